"""One SQLite database, on which programs run in both colours.

Savers and stores keep their tables here. An async call has its program run in a
thread, with one hop there and back; writers that wait share a transaction. The
tables are made before the first program runs.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, Protocol, Self, TypeVar

from towpath.checkpoint.base.saver import Staged
from towpath.checkpoint.programs import Make, Ready
from towpath.checkpoint.sqlite.connection import Connections, Synchronous
from towpath.checkpoint.sqlite.group import Job
from towpath.checkpoint.staged import Storing
from towpath.errors import PersistenceError

R = TypeVar("R")
T = TypeVar("T")

_THREADS_MAX: Final = 4
"""Threads for async calls: one writes, the others may read meanwhile."""


class AsyncConnection(Protocol):
    """A connection of aiosqlite's, of which only the file is used.

    It runs one statement after the other in a thread of its own, and others cannot
    have it commit together with theirs. A database in memory is nobody else's, so
    one of our own takes its place.
    """

    def execute_fetchall(self, sql: str) -> Awaitable[Iterable[Any]]:
        """Return the rows of a query."""
        ...


Target = str | os.PathLike[str] | sqlite3.Connection | AsyncConnection


class SqliteDatabase:
    """A database, the program that makes its tables, and the threads to it."""

    def __init__(
        self,
        target: Target,
        migrate: Make[None],
        *,
        busy_timeout_s: float = 30.0,
        synchronous: Synchronous = "FULL",
        equip: Callable[[sqlite3.Connection], object] | None = None,
    ) -> None:
        self.is_setup = False
        self._migrate = migrate
        self._threads: ThreadPoolExecutor | None = None
        self._open = partial(
            Connections,
            busy_timeout_s=busy_timeout_s,
            synchronous=synchronous,
            equip=equip,
        )
        self._connections: Connections | None = None
        self.target = os.fspath(target) if isinstance(target, os.PathLike) else target
        if isinstance(self.target, (str, sqlite3.Connection)):
            self._connections = self._open(self.target)

    @property
    def connections(self) -> Connections:
        """The connections to the database.

        Raises:
            PersistenceError: which file it is has yet to be asked for. (TP-501)
        """
        if self._connections is None:
            raise PersistenceError(
                "a connection of aiosqlite tells async calls only which file it is to",
                hint="call an async method first, or give the path of the file",
            )
        return self._connections

    async def found(self) -> Connections:
        """Return the connections, opened if only the target knows the file."""
        target = self.target
        if self._connections is None and not isinstance(
            target, (str, sqlite3.Connection)
        ):
            rows = await target.execute_fetchall("PRAGMA database_list")
            [(_, _, path), *_] = [tuple(row) for row in rows]
            if self._connections is None:  # nobody did so meanwhile
                self._connections = self._open(path or ":memory:")
        return self.connections

    def setup(self) -> None:
        """Make the tables, or bring them to the newest version."""
        if not self.is_setup:
            self.connections.write(self._migrate())
            self.is_setup = True

    def close(self) -> None:
        """Close the database, if it was opened here."""
        if self._threads is not None:
            self._threads.shutdown()
        if self._connections is not None:
            self._connections.close()

    def read(self, make: Make[R]) -> R:
        """Run a program that only reads."""
        self.setup()
        return self.connections.read(make())

    def write(self, make: Make[R], *, durable: bool = True) -> R:
        """Run a program that may write; all of it is stored, or nothing."""
        self.setup()
        return self.connections.write(make(), durable=durable)

    async def asetup(self) -> None:
        """Async twin of `setup`."""
        await self.found()
        self.setup()

    async def aread(self, make: Make[R]) -> R:
        """Async twin of `read`."""
        return await self.hop(self.read, make)

    async def awrite(self, make: Make[R], *, durable: bool = True) -> R:
        """Run a program that may write, along with those that wait to, too."""
        # Importing asyncio takes 30 ms that a blocking program need not pay.
        import asyncio

        connections = await self.found()
        loop = asyncio.get_running_loop()
        workers = self._workers()
        if not self.is_setup:
            await loop.run_in_executor(workers, self.setup)
        written: asyncio.Future[R] = loop.create_future()

        def settle(job: Job[R]) -> None:
            if written.done():
                return  # nobody waits any more
            try:
                written.set_result(job.outcome())
            except BaseException as error:
                written.set_exception(error)

        notify = loop.call_soon_threadsafe
        job = Job(make(), durable=durable, notify=notify, told=settle)
        if connections.submit(job):
            workers.submit(connections.drain)
        return await written

    def staged(self, call: Callable[[], R]) -> Staged[R]:
        """Return a call on the connections that is to be made in either colour."""

        def run(call: Callable[[], R]) -> R:
            self.setup()
            return call()

        return Storing(partial(run, call), partial(self.hop, run, call))

    async def hop(self, run: Callable[[T], R], make: T) -> R:
        """Call a function in one of the threads."""
        # Importing asyncio takes 30 ms that a blocking program need not pay.
        import asyncio

        await self.found()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._workers(), run, make)

    def _workers(self) -> ThreadPoolExecutor:
        self.connections.check_open()
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_THREADS_MAX, "towpath-sqlite")
        return self._threads


class InSqlite:
    """Something that keeps its tables in an SQLite database.

    It is its own context manager, in both colours.
    """

    _database: SqliteDatabase

    @property
    def conn(self) -> Any:
        """The connection that was given, or else the one that writes."""
        target = self._database.target
        return self._database.connections.writer if isinstance(target, str) else target

    @property
    def is_setup(self) -> bool:
        """Whether the tables are known to be there."""
        return self._database.is_setup

    def setup(self) -> Ready:
        """Make the tables, or bring them to the newest version.

        Called before first use; calling it again does nothing. The result may
        be awaited.
        """
        if isinstance(self._database.target, (str, sqlite3.Connection)):
            self._database.setup()
            return Ready()
        return Ready(self._database.asetup)

    def close(self) -> None:
        """Close the database, if it was opened here."""
        self._database.close()

    def __enter__(self) -> Self:
        try:
            self.setup()
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
            self.close()
            raise
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self.close()

    # How programs are run

    def _read(self, make: Make[R]) -> R:
        return self._database.read(make)

    def _write(self, make: Make[R], *, durable: bool = True) -> R:
        return self._database.write(make, durable=durable)

    async def _aread(self, make: Make[R]) -> R:
        return await self._database.aread(make)

    async def _awrite(self, make: Make[R], *, durable: bool = True) -> R:
        return await self._database.awrite(make, durable=durable)

    def _sizing(self) -> Staged[int]:
        return self._database.staged(self._database.connections.size)

    def _vacuuming(self) -> Staged[None]:
        return self._database.staged(self._database.connections.vacuum)
