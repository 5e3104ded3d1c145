"""A cache in the memory of this process."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Final

from towpath.cache.base import BaseCache, Cell, FullKey, Namespace, ValueT
from towpath.checkpoint.serde.base import SerializerProtocol

__all__ = ("BaseCache", "InMemoryCache", "SerializerProtocol")

_SWEEP_EVERY: Final = 256
"""After how many values the expired ones are thrown away."""

_Kept = tuple[Cell, float]
"""An encoded value, and when it expires."""


class InMemoryCache(BaseCache[ValueT]):
    """Keeps values until they expire, or the process ends."""

    def __init__(self, *, serde: SerializerProtocol | None = None) -> None:
        super().__init__(serde=serde)
        self._lock = threading.Lock()
        self._kept: dict[Namespace, dict[str, _Kept]] = {}
        self._sets = 0

    def get(self, keys: Sequence[FullKey]) -> dict[FullKey, ValueT]:
        """Return the values of those keys that have one."""
        now_s = time.monotonic()
        with self._lock:
            kept = [(key, self._kept.get(key[0], {}).get(key[1])) for key in keys]
        return self._loaded(
            (key, found[0]) for key, found in kept if found and found[1] > now_s
        )

    async def aget(self, keys: Sequence[FullKey]) -> dict[FullKey, ValueT]:
        """Async twin of `get`."""
        return self.get(keys)

    def set(self, pairs: Mapping[FullKey, tuple[ValueT, int | None]]) -> None:
        """Keep values, each with its lifetime in seconds."""
        now_s = time.monotonic()
        encoded: list[tuple[FullKey, _Kept]] = []
        for key, (value, ttl) in pairs.items():
            until = math.inf if ttl is None else now_s + ttl
            encoded.append((key, (self.serde.dumps_typed(value), until)))
        with self._lock:
            for (namespace, name), kept in encoded:
                self._kept.setdefault(namespace, {})[name] = kept
            self._sets += len(encoded)
            if self._sets >= _SWEEP_EVERY:
                self._sets = 0
                self._sweep(now_s)

    async def aset(self, pairs: Mapping[FullKey, tuple[ValueT, int | None]]) -> None:
        """Async twin of `set`."""
        self.set(pairs)

    def _sweep(self, now_s: float) -> None:
        for namespace, values in list(self._kept.items()):
            live = {key: kept for key, kept in values.items() if kept[1] > now_s}
            self._kept[namespace] = live
            if not live:
                del self._kept[namespace]

    def clear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """Forget these namespaces; everything when none are given."""
        with self._lock:
            if namespaces is None:
                self._kept.clear()
                return
            for namespace in namespaces:
                self._kept.pop(namespace, None)

    async def aclear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """Async twin of `clear`."""
        self.clear(namespaces)
