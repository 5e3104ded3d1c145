"""A saver that keeps checkpoints in one SQLite file.

The class is blocking and async in one: an async method has its program run in a
thread, with one hop there and back. Either may be called from anywhere, a
running event loop included.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Self

from towpath.checkpoint.neighbours import migrate_in_sqlite
from towpath.checkpoint.serde.base import SerializerProtocol
from towpath.checkpoint.serde.keyring import Keyring
from towpath.checkpoint.sql import SqlSaver
from towpath.checkpoint.sqlite.connection import Synchronous
from towpath.checkpoint.sqlite.database import InSqlite, SqliteDatabase, Target


class SqliteSaver(InSqlite, SqlSaver):
    """Keeps checkpoints in an SQLite database.

    The database is a path, ":memory:", a "file:" URI, or a connection, which
    the caller then opens with `check_same_thread=False` and closes. Of a connection
    of aiosqlite only the file is used. Several processes may use one file.

    `synchronous="FULL"`, the default, loses nothing of a finished step when the
    machine loses power; "NORMAL" may lose the last steps then, but not when
    only the process dies, and commits several times faster.

    With `encryption` everything that is stored is sealed, but for names, see
    `towpath.checkpoint.sealing`. `ttl` is how long after its last checkpoint a
    thread may go, see `sweep`.

    >>> with SqliteSaver(":memory:") as saver:
    ...     list(saver.list(None))
    []
    """

    def __init__(
        self,
        conn: Target,
        *,
        serde: SerializerProtocol | None = None,
        busy_timeout_s: float = 30.0,
        synchronous: Synchronous = "FULL",
        encryption: Keyring | None = None,
        ttl: timedelta | None = None,
    ) -> None:
        super().__init__(serde=serde, encryption=encryption, ttl=ttl)
        self._database = SqliteDatabase(
            conn,
            migrate_in_sqlite,
            busy_timeout_s=busy_timeout_s,
            synchronous=synchronous,
        )

    @classmethod
    def from_conn_string(cls, conn_string: str, **options: Any) -> Self:
        """Open a database. The saver is its own context manager, in both colours."""
        return cls(conn_string, **options)

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:
        """Lend a cursor of the writing connection, for queries of one's own."""
        self.setup()
        with self._database.connections.lend(transaction) as cursor:
            yield cursor
