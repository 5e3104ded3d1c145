"""One Postgres database, on which programs run in both colours.

Savers and stores keep their tables here. Given a connection string it opens a
pool for each colour when that is first called. Given a blocking connection or
pool, async calls run in threads; given an async one, blocking calls open a small
pool to the same server. The tables are made before the first program runs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, Final, NamedTuple, Self, TypeVar

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg_pool import AsyncConnectionPool, ConnectionPool

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
from towpath.checkpoint.programs import (
    Make,
    Migrations,
    Program,
    Query,
    Ready,
    migrate,
)
from towpath.checkpoint.staged import Storing
from towpath.errors import PersistenceError

R = TypeVar("R")

Conn = psycopg.Connection[Any] | ConnectionPool[Any]
AsyncConn = psycopg.AsyncConnection[Any] | AsyncConnectionPool[Any]

LOCK_S_MAX: Final = 5.0
"""How long a blocking call waits for a lock in the thread of an event loop."""
_FAILURES = (psycopg.Error, UnicodeEncodeError)


class Tables(NamedTuple):
    """The tables of one user of a database."""

    versions: str
    """The table of the versions that the others have had."""
    migrations: Migrations
    names: str
    """Names of tables, as SQL lists them."""
    last: Make[None] | None = None
    """What is to be done at each start, once the tables are there."""

    def setup(self) -> Program[None]:
        """Make the tables, or bring them to the newest version."""
        yield from self._migrate()
        if self.last is not None:
            yield from self.last()

    def _migrate(self) -> Program[None]:
        # Asked first, because a role that may not make tables may use them.
        there = f"SELECT to_regclass('{self.versions}') IS NOT NULL"
        [(made,)] = yield from Query(there)
        if made:
            [(version,)] = yield from Query(f"SELECT max(v) FROM {self.versions}")
            if version == len(self.migrations) - 1:
                return
        # `CREATE TABLE IF NOT EXISTS` fails when two processes do it at once.
        yield Query("SELECT 1", lock=self.versions)
        yield from migrate(self.versions, self.migrations)

    def vacuum(self) -> Program[None]:
        """Give the space back that is free."""
        yield Query(f"VACUUM (ANALYZE) {self.names}")

    def size(self) -> Program[int]:
        """Count the bytes of the tables."""
        sizes = " + ".join(
            f"pg_total_relation_size('{table}')" for table in self.names.split(", ")
        )
        [(size,)] = yield from Query(f"SELECT {sizes}")
        return int(size)


class Pooling(NamedTuple):
    """How connections are opened and used."""

    size_max: int = 10
    timeout_s: float = 30.0
    prepare: bool = True


class PostgresDatabase:
    """A database, the tables in it, and the lenders of connections to it."""

    def __init__(
        self,
        conn: str | Conn | AsyncConn,
        tables: Tables,
        *,
        pipe: psycopg.Pipeline | psycopg.AsyncPipeline | None = None,
        pooling: Pooling = Pooling(),  # noqa: B008 - it never changes
    ) -> None:
        self.tables = tables
        self.is_setup = False
        wait_ms = max(1, int(1000 * min(pooling.timeout_s, LOCK_S_MAX)))
        self._wait_less = f"SET LOCAL lock_timeout = {wait_ms}".encode()
        self._prepared = Prepared() if pooling.prepare else None
        options = PoolOptions(pooling.size_max, pooling.timeout_s)
        self._lenders = _lenders(conn, pipe, options)
        self._closed = False

    def setup(self) -> None:
        """Make the tables, or bring them to the newest version."""
        self._check_open()
        if not self.is_setup:
            _run(self._lenders.first, Work(self.tables.setup, self._begin(WRITE)))
            self.is_setup = True

    async def asetup(self) -> None:
        """Async twin of `setup`."""
        lender = self._lenders.first_async
        if lender is None:
            return await in_thread(self.setup)
        self._check_open()
        if not self.is_setup:
            await _arun(lender, Work(self.tables.setup, WRITE))
            self.is_setup = True
        return None

    def _check_open(self) -> None:
        if self._closed:
            raise PersistenceError(
                "this database was closed",
                hint="run the graph inside the saver's `with`, or open another one",
            )

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

    def do(self, make: Make[R], begin: Sequence[bytes]) -> R:
        """Run a program in a transaction that begins with `begin`."""
        self.setup()
        work = Work(make, self._begin(begin), self._prepared)
        return _run(self._lenders.blocking, work)

    def _begin(self, begin: Sequence[bytes]) -> Sequence[bytes]:
        """How a blocking transaction begins in this thread.

        In the thread of an event loop it may wait for a lock of a transaction
        that only the loop could finish: it must not wait for ever.
        """
        return (*begin, self._wait_less) if begin and _in_loop() else begin

    async def ado(self, make: Make[R], begin: Sequence[bytes]) -> R:
        """Async twin of `do`."""
        await self.asetup()
        work = Work(make, begin, self._prepared)
        if self._lenders.looped is None:
            return await in_thread(_run, self._lenders.blocking, work)
        return await _arun(self._lenders.looped, work)


class InPostgres:
    """Something that keeps its tables in a Postgres database.

    It is its own context manager, in both colours.
    """

    _database: PostgresDatabase

    @property
    def is_setup(self) -> bool:
        """Whether the tables are known to be there."""
        return self._database.is_setup

    def setup(self) -> Ready:
        """Make the tables, or bring them to the newest version.

        Called before first use; calling it again does nothing. Processes that
        start at once take turns. Inside an event loop, await the result.
        """
        if _in_loop():
            return Ready(self._database.asetup)
        self._database.setup()
        return Ready()

    def close(self) -> None:
        """Close what was opened here, waiting for blocking calls only."""
        self._database.close()

    async def aclose(self) -> None:
        """Close what was opened here."""
        await self._database.aclose()

    def __enter__(self) -> Self:
        try:
            self._database.setup()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        try:
            await self._database.asetup()
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    # How programs are run

    def _read(self, make: Make[R]) -> R:
        return self._database.do(make, READ)

    def _write(self, make: Make[R], *, durable: bool = True) -> R:
        return self._database.do(make, WRITE if durable else WRITE_BEHIND)

    async def _aread(self, make: Make[R]) -> R:
        return await self._database.ado(make, READ)

    async def _awrite(self, make: Make[R], *, durable: bool = True) -> R:
        return await self._database.ado(make, WRITE if durable else WRITE_BEHIND)

    def _sizing(self) -> Staged[int]:
        make = self._database.tables.size
        return Storing(partial(self._read, make), partial(self._aread, make))

    def _vacuuming(self) -> Staged[None]:
        # Not in a transaction: Postgres refuses that.
        do, ado, make = self._database.do, self._database.ado, self._database.tables
        return Storing(partial(do, make.vacuum, ()), partial(ado, make.vacuum, ()))


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
