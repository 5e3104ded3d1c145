"""A saver that keeps checkpoints in Postgres; one class has both colours."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final, Self

import psycopg

from towpath.checkpoint.neighbours import in_postgres
from towpath.checkpoint.postgres.database import (
    AsyncConn,
    Conn,
    InPostgres,
    Pooling,
    PostgresDatabase,
    Tables,
)
from towpath.checkpoint.programs import MIGRATIONS, VERSIONS
from towpath.checkpoint.serde.base import SerializerProtocol
from towpath.checkpoint.serde.keyring import Keyring
from towpath.checkpoint.sql import SqlSaver

_TABLES: Final = Tables(
    VERSIONS,
    MIGRATIONS,
    "towpath_spaces, towpath_checkpoints, towpath_cells, towpath_writes",
    in_postgres,
)


class PostgresSaver(InPostgres, SqlSaver):
    """Keeps checkpoints in a Postgres database.

    The database is named by a connection string (of which the saver makes a pool
    for each colour, of at most `pool_size_max` connections), or it is a
    connection or a pool of psycopg, blocking or async, which the caller closes.
    A pool of one's own behind a pooler in transaction mode should have
    `kwargs={"autocommit": True, "prepare_threshold": None}`.

    Several processes may use one database. A connection that was lost, also by
    a restart of the server, is replaced and the transaction run again; a
    connection of the caller's is not replaced. `timeout_s` is how long a call
    waits for a connection.

    Each connection prepares its statements once, which halves the time of a
    commit. Where a pooler is found to be in the way, the transaction is run again
    and nothing is prepared any more; with `prepare=False`, nothing ever is.

    With `encryption` everything that is stored is sealed, but for names, see
    `towpath.checkpoint.sealing`. `ttl` is how long after its last checkpoint a
    thread may go, see `sweep`.

    Statements travel in batches, with or without `pipeline`. Where the caller has
    made a pipeline of the connection, `pipe` is that pipeline.

    Raises:
        PersistenceError: (TP-501) from any method, with what Postgres said.
    """

    def __init__(
        self,
        conn: str | Conn | AsyncConn,
        pipe: psycopg.Pipeline | psycopg.AsyncPipeline | None = None,
        serde: SerializerProtocol | None = None,
        *,
        pool_size_max: int = 10,
        timeout_s: float = 30.0,
        prepare: bool = True,
        encryption: Keyring | None = None,
        ttl: timedelta | None = None,
    ) -> None:
        super().__init__(serde=serde, encryption=encryption, ttl=ttl)
        self.conn = conn
        pooling = Pooling(pool_size_max, timeout_s, prepare)
        self._database = PostgresDatabase(conn, _TABLES, pipe=pipe, pooling=pooling)

    @classmethod
    def from_conn_string(
        cls,
        conn_string: str,
        *,
        pipeline: bool = False,  # noqa: ARG003 - the peer's
        serde: SerializerProtocol | None = None,
        **options: Any,
    ) -> Self:
        """Open a database. The saver is its own context manager, in both colours."""
        return cls(conn_string, serde=serde, **options)
