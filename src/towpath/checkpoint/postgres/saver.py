"""A saver that keeps checkpoints in Postgres.

One class has both colours. Given a connection string it opens a pool for each
colour when that is first called. Given a blocking connection or pool, its async
methods run in threads; given an async one, its blocking methods open a small
pool to the same server.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Final, NamedTuple, Self, TypeVar

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from towpath.checkpoint import programs
from towpath.checkpoint.base.saver import Staged, in_thread
from towpath.checkpoint.postgres.lend import (
    AsyncDirect,
    AsyncLender,
    AsyncLone,
    AsyncPooled,
    Direct,
    Lender,
    Lone,
    LoopPools,
    Pooled,
    PoolOptions,
)
from towpath.checkpoint.postgres.link import Prepared
from towpath.checkpoint.postgres.work import (
    READ,
    WRITE,
    WRITE_BEHIND,
    Work,
    obey,
    obey_async,
)
from towpath.checkpoint.programs import MIGRATIONS, Program, Query
from towpath.checkpoint.serde.base import SerializerProtocol
from towpath.checkpoint.serde.keyring import Keyring
from towpath.checkpoint.sql import Make, Ready, SqlSaver
from towpath.checkpoint.staged import Storing
from towpath.errors import PersistenceError

R = TypeVar("R")

Conn = psycopg.Connection[Any] | ConnectionPool[Any]
AsyncConn = psycopg.AsyncConnection[Any] | AsyncConnectionPool[Any]

_FAILURES = (psycopg.Error, UnicodeEncodeError)


class PostgresSaver(SqlSaver):
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
        self._prepared = Prepared() if prepare else None
        self._lenders = _lenders(conn, pipe, PoolOptions(pool_size_max, timeout_s))
        self._closed = False
        self.is_setup = False

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

    def setup(self) -> Ready:
        """Make the tables, or bring them to the newest version.

        Called before first use; calling it again does nothing. Processes that
        start at once take turns. Inside an event loop, await the result.
        """
        if _in_loop():
            return Ready(self._aset_up)
        self._set_up()
        return Ready()

    def _set_up(self) -> None:
        self._check_open()
        if not self.is_setup:
            _run(self._lenders.first, Work(_migrate, WRITE))
            self.is_setup = True

    async def _aset_up(self) -> None:
        lender = self._lenders.first_async
        if lender is None:
            return await in_thread(self._set_up)
        self._check_open()
        if not self.is_setup:
            await _arun(lender, Work(_migrate, WRITE))
            self.is_setup = True
        return None

    def _check_open(self) -> None:
        if self._closed:
            raise PersistenceError("this saver was closed")

    def close(self) -> None:
        """Close what was opened here, waiting for blocking calls only."""
        self._closed = True
        self._lenders.blocking.close()
        if self._lenders.looped is not None:
            self._lenders.looped.close()

    async def aclose(self) -> None:
        """Close what was opened here."""
        self._closed = True
        if self._lenders.looped is not None:
            await self._lenders.looped.aclose()
        await in_thread(self._lenders.blocking.close)

    def __enter__(self) -> Self:
        try:
            self._set_up()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        try:
            await self._aset_up()
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    # How programs are run

    def _read(self, make: Make[R]) -> R:
        return self._do(make, READ)

    def _write(self, make: Make[R], *, durable: bool = True) -> R:
        return self._do(make, WRITE if durable else WRITE_BEHIND)

    async def _aread(self, make: Make[R]) -> R:
        return await self._ado(make, READ)

    async def _awrite(self, make: Make[R], *, durable: bool = True) -> R:
        return await self._ado(make, WRITE if durable else WRITE_BEHIND)

    def _sizing(self) -> Staged[int]:
        return self._reading(_size)

    def _vacuuming(self) -> Staged[None]:
        # Not in a transaction: Postgres refuses that.
        return Storing(partial(self._do, _vacuum, ()), partial(self._ado, _vacuum, ()))

    def _do(self, make: Make[R], begin: Sequence[bytes]) -> R:
        self._set_up()
        return _run(self._lenders.blocking, Work(make, begin, self._prepared))

    async def _ado(self, make: Make[R], begin: Sequence[bytes]) -> R:
        await self._aset_up()
        work = Work(make, begin, self._prepared)
        if self._lenders.looped is None:
            return await in_thread(_run, self._lenders.blocking, work)
        return await _arun(self._lenders.looped, work)


# Running


def _run(lender: Lender, work: Work[R]) -> R:
    while True:
        try:
            with lender.lend() as connection:
                return obey(work.steps(connection))
        except _FAILURES as error:
            time.sleep(work.pause_after(error, lender.patience_s))
        lender.renew()


async def _arun(lender: AsyncLender, work: Work[R]) -> R:
    while True:
        try:
            async with lender.lend() as connection:
                return await obey_async(work.steps(connection))
        except _FAILURES as error:
            await asyncio.sleep(work.pause_after(error, lender.patience_s))
        await lender.renew()


def _migrate() -> Program[None]:
    # Asked first, because a role that may not make tables may use them.
    [(made,)] = yield from Query("SELECT to_regclass('towpath_migrations') IS NOT NULL")
    if made:
        [(version,)] = yield from Query("SELECT max(v) FROM towpath_migrations")
        if version == len(MIGRATIONS) - 1:
            return
    # `CREATE TABLE IF NOT EXISTS` fails when two processes do it at once.
    yield Query("SELECT 1", lock="towpath_migrations")
    yield from programs.migrate()


_TABLES: Final = "towpath_spaces, towpath_checkpoints, towpath_cells, towpath_writes"


def _vacuum() -> Program[None]:
    yield Query(f"VACUUM (ANALYZE) {_TABLES}")


def _size() -> Program[int]:
    sizes = " + ".join(
        f"pg_total_relation_size('{table}')" for table in _TABLES.split(", ")
    )
    [(size,)] = yield from Query(f"SELECT {sizes}")
    return int(size)


def _in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


# Where connections come from


class _Lenders(NamedTuple):
    first: Lender
    """For the first call, which should fail at once and not wait for a pool."""
    blocking: Lender
    first_async: AsyncLender | None
    looped: AsyncLender | None
    """None: async calls go to threads."""


def _lenders(conn: str | Conn | AsyncConn, pipe: Any, options: PoolOptions) -> _Lenders:
    if isinstance(conn, str):
        pools = LoopPools(conn, options)
        own = Pooled.own(conn, options)
        return _Lenders(Direct(conn), own, AsyncDirect(conn), pools)
    if isinstance(conn, psycopg.Connection):
        lone = Lone(conn, pipe)
        return _Lenders(lone, lone, None, None)
    if isinstance(conn, ConnectionPool):
        pooled = Pooled(conn, owned=False)
        return _Lenders(pooled, pooled, None, None)
    if isinstance(conn, psycopg.AsyncConnection):
        alone = AsyncLone(conn, pipe)
        beside = Pooled.own(_target(conn.info), options)
        return _Lenders(beside, beside, alone, alone)
    if isinstance(conn, AsyncConnectionPool):
        apooled = AsyncPooled(conn)
        beside = Pooled.own(conn.conninfo, options, **_plain(conn.kwargs))
        return _Lenders(beside, beside, apooled, apooled)
    raise TypeError(
        "a connection string, a connection or a pool of psycopg is needed, "
        f"not {type(conn).__name__}"
    )


def _target(info: psycopg.ConnectionInfo) -> str:
    return make_conninfo(info.dsn, password=info.password or None)


def _plain(kwargs: Any) -> dict[str, Any]:
    """Return the settings of an async pool that a blocking one can have."""
    return {
        name: value
        for name, value in (kwargs or {}).items()
        if name not in {*_OURS, "cursor_factory", "row_factory"}
    }


_OURS = ("autocommit", "prepare_threshold")
