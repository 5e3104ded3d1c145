"""A cache in an SQLite file, which several processes may share.

Namespaces and keys are stored as JSON: they may hold any separator, and what is no
proper Unicode. Losing the newest
values to a power cut costs a repeated task, so nothing waits for the disk.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, Self

from towpath.cache.base import BaseCache, Cell, FullKey, Namespace, ValueT
from towpath.checkpoint.base.saver import in_thread
from towpath.checkpoint.programs import Program, Query
from towpath.checkpoint.serde.base import SerializerProtocol
from towpath.checkpoint.sqlite.connection import Connections

__all__ = ("BaseCache", "SerializerProtocol", "SqliteCache")

_Row = tuple[str, str, float | None, str, bytes]
_Found = dict[tuple[str, str], Cell]


class SqliteCache(BaseCache[ValueT]):
    """Keeps values in the SQLite database at `path`."""

    def __init__(self, *, path: str, serde: SerializerProtocol | None = None) -> None:
        super().__init__(serde=serde)
        self._connections = Connections(path, synchronous="NORMAL")
        self._connections.write(_setup())

    def close(self) -> None:
        """Close the database."""
        self._connections.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def get(self, keys: Sequence[FullKey]) -> dict[FullKey, ValueT]:
        """Return the values of those keys that have one."""
        wanted = [(_label(namespace), _label(key)) for namespace, key in keys]
        found = self._connections.read(_get(wanted, time.time()))
        return self._loaded(
            (full, found[label])
            for full, label in zip(keys, wanted, strict=True)
            if label in found
        )

    async def aget(self, keys: Sequence[FullKey]) -> dict[FullKey, ValueT]:
        """Async twin of `get`."""
        return await in_thread(self.get, keys)

    def set(self, pairs: Mapping[FullKey, tuple[ValueT, int | None]]) -> None:
        """Keep values, each with its lifetime in seconds."""
        self._connections.write(_set(self._rows(pairs), time.time()))

    async def aset(self, pairs: Mapping[FullKey, tuple[ValueT, int | None]]) -> None:
        """Async twin of `set`."""
        # Encoded here: in the thread, the values may change meanwhile.
        program = _set(self._rows(pairs), time.time())
        await in_thread(self._connections.write, program)

    def _rows(self, pairs: Mapping[FullKey, tuple[ValueT, int | None]]) -> list[_Row]:
        now_s = time.time()
        rows: list[_Row] = []
        for (namespace, key), (value, ttl) in pairs.items():
            until = None if ttl is None else now_s + ttl
            cell = self.serde.dumps_typed(value)
            rows.append((_label(namespace), _label(key), until, *cell))
        return rows

    def clear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """Forget these namespaces; everything when none are given."""
        self._connections.write(_clear(namespaces))

    async def aclear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """Async twin of `clear`."""
        await in_thread(self._connections.write, _clear(namespaces))


def _label(name: Namespace | str) -> str:
    return json.dumps(name)


def _setup() -> Program[None]:
    yield Query(
        "CREATE TABLE IF NOT EXISTS towpath_cache ("
        " ns TEXT NOT NULL, key TEXT NOT NULL, until REAL,"
        " tag TEXT NOT NULL, data BLOB NOT NULL, UNIQUE (ns, key))"
    )
    yield Query(
        "CREATE INDEX IF NOT EXISTS towpath_cache_until ON towpath_cache (until)"
        " WHERE until IS NOT NULL"
    )


def _get(wanted: Sequence[tuple[str, str]], now_s: float) -> Program[_Found]:
    rows = yield from Query(
        "SELECT c.ns, c.key, c.tag, c.data FROM json_each(?) w JOIN towpath_cache c"
        " ON c.ns = json_extract(w.value, '$[0]')"
        " AND c.key = json_extract(w.value, '$[1]')"
        " WHERE c.until IS NULL OR c.until > ?",
        (json.dumps(wanted), now_s),
    )
    return {(ns, key): (tag, data) for ns, key, tag, data in rows}


def _set(rows: list[_Row], now_s: float) -> Program[None]:
    yield Query("DELETE FROM towpath_cache WHERE until <= ?", (now_s,))
    yield Query(
        "INSERT INTO towpath_cache (ns, key, until, tag, data)"
        " VALUES (?, ?, ?, ?, ?) ON CONFLICT (ns, key) DO UPDATE SET"
        " until = excluded.until, tag = excluded.tag, data = excluded.data",
        rows,
        many=True,
    )


def _clear(namespaces: Sequence[Namespace] | None) -> Program[None]:
    if namespaces is None:
        yield Query("DELETE FROM towpath_cache")
        return
    labels: list[tuple[Any, ...]] = [(_label(namespace),) for namespace in namespaces]
    yield Query("DELETE FROM towpath_cache WHERE ns = ?", labels, many=True)
