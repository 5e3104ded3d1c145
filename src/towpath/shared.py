"""Equal values, each once.

Of a thousand runs of a graph that wait at the same time, each has the same few names,
and sets of them. Not `sys.intern`: it knows texts only, and keeps them for ever in
some versions of Python.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

H = TypeVar("H", bound=Hashable)


class Shared(Generic[H]):
    """Values that nobody changes; those that were seen lately are known."""

    __slots__ = ("_most", "_seen")

    def __init__(self, most: int = 1024) -> None:
        self._most = most
        self._seen: dict[H, H] = {}

    def one(self, value: H) -> H:
        """Return this value, or one that is equal to it and known."""
        seen = self._seen
        if len(seen) >= self._most:
            seen.clear()
        return seen.setdefault(value, value)
