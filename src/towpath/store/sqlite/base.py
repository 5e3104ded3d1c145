"""A store that keeps items in one SQLite file.

Vectors lie in it as 32-bit floats. Where the extension `sqlite-vec` can be
loaded it compares them, otherwise numpy or Python does; each compares all there
are, so the results are the same.
"""

from __future__ import annotations

import sqlite3
from array import array
from contextlib import suppress
from functools import partial
from typing import Any, Final, Self

from towpath.checkpoint.programs import migrate
from towpath.checkpoint.sqlite.connection import Synchronous
from towpath.checkpoint.sqlite.database import InSqlite, SqliteDatabase, Target
from towpath.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    ensure_embeddings,
    get_text_at_path,
    tokenize_path,
    validate_op_namespace,
)
from towpath.store.nearness import COSINE, Vector
from towpath.store.programs import MIGRATIONS, VERSIONS, Measuring
from towpath.store.sql import SqlStore

__all__ = (
    "BaseStore",
    "GetOp",
    "IndexConfig",
    "Item",
    "ListNamespacesOp",
    "Op",
    "PutOp",
    "Result",
    "SearchItem",
    "SearchOp",
    "SqliteIndexConfig",
    "SqliteStore",
    "TTLConfig",
    "ensure_embeddings",
    "get_text_at_path",
    "tokenize_path",
    "validate_op_namespace",
)

_NEARNESS: Final = (
    "CASE WHEN v.data IS NULL THEN NULL"
    # The distance from a vector of zeros is no number, and NULL for SQLite.
    " ELSE coalesce(1 - vec_distance_cosine(v.data, ?), 0) END"
)


class SqliteIndexConfig(IndexConfig, total=False):
    """How items are found by meaning."""


class SqliteStore(InSqlite, SqlStore):
    """Keeps items in an SQLite database.

    The database is a path, ":memory:", a "file:" URI, or a connection, which
    the caller then opens with `check_same_thread=False` and closes. Of a connection
    of aiosqlite only the file is used. Several processes may use one file, savers
    and caches among them.

    One class has both colours. Values are kept by the codec of checkpoints, so
    they come back with their types.

    >>> with SqliteStore(":memory:") as store:
    ...     store.put(("users", "ann"), "food", {"likes": "plums"})
    ...     store.get(("users", "ann"), "food").value
    {'likes': 'plums'}

    Raises:
        PersistenceError: (TP-501) from any method, with what SQLite said.
    """

    def __init__(
        self,
        conn: Target,
        *,
        deserializer: Any = None,  # noqa: ARG002 - the peer's, for its own format
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        busy_timeout_s: float = 30.0,
        synchronous: Synchronous = "FULL",
    ) -> None:
        super().__init__(index=index, ttl=ttl)
        self._nearness: str | None = None
        self._database = SqliteDatabase(
            conn,
            partial(migrate, VERSIONS, MIGRATIONS),
            busy_timeout_s=busy_timeout_s,
            synchronous=synchronous,
            equip=self._equip if index else None,
        )

    @classmethod
    def from_conn_string(cls, conn_string: str, **options: Any) -> Self:
        """Open a database. The store is its own context manager, in both colours."""
        return cls(conn_string, **options)

    def close(self) -> None:
        """Stop sweeping, and close the database if it was opened here."""
        SqlStore.stop_ttl_sweeper(self)
        super().close()

    @property
    def _measuring(self) -> Measuring:
        return Measuring(COSINE, _bind, _read, self._nearness)

    def _equip(self, connection: sqlite3.Connection) -> None:
        """Load `sqlite-vec`, where it is installed and may be loaded."""
        with suppress(ImportError, AttributeError, sqlite3.Error):
            import sqlite_vec

            connection.enable_load_extension(True)
            try:
                sqlite_vec.load(connection)
            finally:
                connection.enable_load_extension(False)
            self._nearness = _NEARNESS


def _bind(vector: Vector) -> bytes:
    return array("f", vector).tobytes()


def _read(data: bytes) -> Vector:
    return memoryview(data).cast("f")
