"""Mappings of which one after the other differs in little.

Each says what differs from one that they share, as long as that is little: a
checkpoint costs what changed in it, in time and in memory, and not a copy of all
that did not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

from towpath.constants import MISSING

T = TypeVar("T")


class Overlay(Mapping[str, T], Generic[T]):
    """A mapping and what differs from it. Neither is changed any more."""

    __slots__ = ("_base", "_changes")

    def __init__(self, base: dict[str, T], changes: Mapping[str, Any] = {}) -> None:
        """`changes` to MISSING are keys that are gone."""
        # What is copied for each of n changes, n times, weighs less than the whole.
        if len(changes) ** 2 > len(base):
            base, changes = _joined(base, changes), {}
        self._base = base
        self._changes = changes

    def on(self, changes: Mapping[str, Any]) -> Overlay[T]:
        """Return what differs from this in these keys."""
        return Overlay(self._base, {**self._changes, **changes})

    def flat(self) -> dict[str, T]:
        """Return it as a dict, which nobody may change."""
        return _joined(self._base, self._changes) if self._changes else self._base

    def __getitem__(self, key: str) -> T:
        found: T = self._changes.get(key, MISSING)
        if found is not MISSING:
            return found
        if key in self._changes:
            raise KeyError(key)
        return self._base[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.flat())

    def __len__(self) -> int:
        return len(self.flat())


def _joined(base: dict[str, T], changes: Mapping[str, Any]) -> dict[str, T]:
    joined = {**base, **changes}
    for key, value in changes.items():
        if value is MISSING:
            del joined[key]
    return joined
