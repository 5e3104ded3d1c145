"""Mappings of which one after the other differs in little.

A large one says what differs from one that many share, as long as that is little: a
checkpoint costs what changed in it, in time and in memory, and not a copy of all
that did not. A small one is a row: its values, and the names of them, which all rows
of one kind share, whatever thread they are of. That is a third of a dict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Generic, TypeVar

from towpath.constants import MISSING
from towpath.shared import Shared

T = TypeVar("T")

_ROW_MAX: Final = 32
"""How many values a row has at most: it is looked through from the start."""
_names: Final = Shared[tuple[str, ...]]()


class Overlay(Mapping[str, T], Generic[T]):
    """A mapping and what differs from it. Neither is changed any more."""

    __slots__ = ("_base", "_changes")

    def __init__(self, base: dict[str, T], changes: Mapping[str, Any] = {}) -> None:
        # Changes to MISSING are keys that are gone.
        self._base = base
        self._changes = changes

    def on(self, changes: Mapping[str, Any]) -> Layer[T]:
        """Return what differs from this in these keys."""
        changes = {**self._changes, **changes}
        # What is copied for each of n changes, n times, weighs less than the whole.
        if len(changes) ** 2 > len(self._base):
            return layer(_joined(self._base, changes))
        return Overlay(self._base, changes)

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


class Row(Mapping[str, T], Generic[T]):
    """A mapping of a few names. It is not changed any more."""

    __slots__ = ("_held", "_names")

    def __init__(self, content: Mapping[str, T]) -> None:
        self._names = _names.one(tuple(content))
        self._held = tuple(content.values())

    def on(self, changes: Mapping[str, Any]) -> Layer[T]:
        """Return what differs from this in these keys."""
        return layer(_joined(self.flat(), changes))

    def flat(self) -> dict[str, T]:
        """Return it as a dict."""
        return dict(zip(self._names, self._held, strict=True))

    def __getitem__(self, key: str) -> T:
        try:
            return self._held[self._names.index(key)]
        except ValueError:
            raise KeyError(key) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


Layer = Row[T] | Overlay[T]


def layer(content: dict[str, T]) -> Layer[T]:
    """Return a mapping of this content, for others to be laid on."""
    return Row(content) if len(content) <= _ROW_MAX else Overlay(content)


def _joined(base: dict[str, T], changes: Mapping[str, Any]) -> dict[str, T]:
    joined = {**base, **changes}
    for key, value in changes.items():
        if value is MISSING:
            del joined[key]
    return joined
