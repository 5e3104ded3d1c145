"""The contract of a cache of task results.

Keys are full: a namespace, which names the node and its version, and a key made
of the input. Values go through the codec of checkpoints, so a cache that others
can write to can no more run code than a checkpoint can. What is found in it and
cannot be decoded is a miss: the work is done anew, and a warning says why.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from towpath.checkpoint.serde.base import SerializerProtocol
from towpath.checkpoint.serde.holder import HasSerde
from towpath.warnings import CacheWarning, warn_user

__all__ = (
    "BaseCache",
    "FullKey",
    "Namespace",
    "SerializerProtocol",
    "ValueT",
)

ValueT = TypeVar("ValueT")
Namespace = tuple[str, ...]
FullKey = tuple[Namespace, str]
Cell = tuple[str, bytes]
"""A value as the codec made it: a tag, and bytes."""


class BaseCache(HasSerde, ABC, Generic[ValueT]):
    """Keeps values, each for a number of seconds, or for good."""

    @abstractmethod
    def get(self, keys: Sequence[FullKey]) -> dict[FullKey, ValueT]:
        """Return the values of those keys that have one."""

    @abstractmethod
    async def aget(self, keys: Sequence[FullKey]) -> dict[FullKey, ValueT]:
        """Async twin of `get`."""

    @abstractmethod
    def set(self, pairs: Mapping[FullKey, tuple[ValueT, int | None]]) -> None:
        """Keep values, each with its lifetime in seconds."""

    @abstractmethod
    async def aset(self, pairs: Mapping[FullKey, tuple[ValueT, int | None]]) -> None:
        """Async twin of `set`."""

    @abstractmethod
    def clear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """Forget these namespaces; everything when none are given."""

    @abstractmethod
    async def aclear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """Async twin of `clear`."""

    def _loaded(self, cells: Iterable[tuple[FullKey, Cell]]) -> dict[FullKey, ValueT]:
        """Decode what was found, but for what cannot be decoded."""
        values: dict[FullKey, ValueT] = {}
        for key, cell in cells:
            try:
                values[key] = self.serde.loads_typed(cell)
            except Exception as error:
                warn_user(
                    f"what the cache has for {key[0]} cannot be read, and is passed "
                    f"over: {error}",
                    CacheWarning,
                )
        return values
