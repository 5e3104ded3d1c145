"""Where bare Python keeps what a step says: one text, and one commit, a step."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from bench.adapters.base import size
from bench.workloads import Workload

Said = dict[str, Any]


class Log(Protocol):
    def keep(self, said: Said) -> object:
        """Store one step."""

    def read(self) -> Iterator[Said]:
        """Yield all steps in order."""

    def close(self) -> object: ...

    def stored(self) -> int:
        """Return how many bytes it takes on disk."""


class NoLog:
    def keep(self, said: Said) -> None:
        pass

    def read(self) -> Iterator[Said]:
        return iter(())

    def close(self) -> None:
        pass

    def stored(self) -> int:
        return 0


class MemoryLog(NoLog):
    def __init__(self) -> None:
        self._texts: list[str] = []

    def keep(self, said: Said) -> None:
        self._texts.append(json.dumps(said))

    def read(self) -> Iterator[Said]:
        return map(json.loads, self._texts)


class DatabaseLog:
    """Without a transaction of its own, each statement is one commit."""

    def __init__(
        self, database: Any, mark: str, serial: str, stored: Callable[[], int]
    ) -> None:
        self._database = database
        self._insert = f"INSERT INTO log (said) VALUES ({mark})"
        database.execute(f"CREATE TABLE log (step {serial} PRIMARY KEY, said TEXT)")
        self.stored = stored

    def keep(self, said: Said) -> None:
        self._database.execute(self._insert, (json.dumps(said),))

    def read(self) -> Iterator[Said]:
        rows = self._database.execute("SELECT said FROM log ORDER BY step")
        return (json.loads(text) for (text,) in rows)

    def close(self) -> None:
        self._database.close()


def open_log(workload: Workload, folder: Path) -> Log:
    match workload.saver:
        case "none":
            return NoLog()
        case "memory":
            return MemoryLog()
        case "sqlite":
            database = sqlite3.connect(folder / "log.db", isolation_level=None)
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = FULL")
            return DatabaseLog(database, "?", "INTEGER", partial(size, folder))
        case _:
            import psycopg

            from bench.adapters import postgres

            dsn = postgres.server().new_schema()
            connection = psycopg.connect(dsn, autocommit=True)
            stored = partial(postgres.stored, dsn)
            return DatabaseLog(connection, "%s", "BIGSERIAL", stored)
