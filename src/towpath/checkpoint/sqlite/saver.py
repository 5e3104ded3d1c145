"""A saver that keeps checkpoints in one SQLite file.

The class is blocking and async in one: an async method has its program run in a
thread, with one hop there and back. Either may be called from anywhere, a
running event loop included.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any, Final, Self, TypeVar

from towpath.checkpoint import programs
from towpath.checkpoint.base.saver import Staged
from towpath.checkpoint.serde.base import SerializerProtocol
from towpath.checkpoint.serde.keyring import Keyring
from towpath.checkpoint.sql import Make, Ready, SqlSaver
from towpath.checkpoint.sqlite.connection import Connections, Synchronous
from towpath.checkpoint.sqlite.group import Job
from towpath.checkpoint.staged import Storing

R = TypeVar("R")
T = TypeVar("T")

_THREADS_MAX: Final = 4
"""Threads for async calls: one writes, the others may read meanwhile."""


class SqliteSaver(SqlSaver):
    """Keeps checkpoints in an SQLite database.

    The database is a path, ":memory:", a "file:" URI, or a connection, which
    the caller then opens with `check_same_thread=False` and closes. Several
    processes may use one file.

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
        conn: sqlite3.Connection | str,
        *,
        serde: SerializerProtocol | None = None,
        busy_timeout_s: float = 30.0,
        synchronous: Synchronous = "FULL",
        encryption: Keyring | None = None,
        ttl: timedelta | None = None,
    ) -> None:
        super().__init__(serde=serde, encryption=encryption, ttl=ttl)
        self._connections = Connections(
            conn, busy_timeout_s=busy_timeout_s, synchronous=synchronous
        )
        self._threads: ThreadPoolExecutor | None = None
        self.is_setup = False

    @classmethod
    def from_conn_string(cls, conn_string: str, **options: Any) -> Self:
        """Open a database. The saver is its own context manager, in both colours."""
        return cls(conn_string, **options)

    @property
    def conn(self) -> sqlite3.Connection:
        """The connection that writes."""
        return self._connections.writer

    def setup(self) -> Ready:
        """Make the tables, or bring them to the newest version.

        Called before first use; calling it again does nothing. The result may
        be awaited.
        """
        if not self.is_setup:
            self._connections.write(programs.migrate())
            self.is_setup = True
        return Ready()

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:
        """Lend a cursor of the writing connection, for queries of one's own."""
        self.setup()
        with self._connections.lend(transaction) as cursor:
            yield cursor

    def close(self) -> None:
        """Close the database, if it was opened here."""
        if self._threads is not None:
            self._threads.shutdown()
        self._connections.close()

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
        return self.__enter__()

    async def __aexit__(self, *exc_info: object) -> None:
        self.close()

    # How programs are run

    def _read(self, make: Make[R]) -> R:
        self.setup()
        return self._connections.read(make())

    def _write(self, make: Make[R], *, durable: bool = True) -> R:
        self.setup()
        return self._connections.write(make(), durable=durable)

    async def _aread(self, make: Make[R]) -> R:
        return await self._hop(self._read, make)

    async def _awrite(self, make: Make[R], *, durable: bool = True) -> R:
        # Importing asyncio takes 30 ms that a blocking program need not pay.
        import asyncio

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
        if self._connections.submit(job):
            workers.submit(self._connections.drain)
        return await written

    def _sizing(self) -> Staged[int]:
        return self._staged_call(self._connections.size)

    def _vacuuming(self) -> Staged[None]:
        return self._staged_call(self._connections.vacuum)

    def _staged_call(self, call: Callable[[], R]) -> Staged[R]:
        def run(call: Callable[[], R]) -> R:
            self.setup()
            return call()

        return Storing(partial(run, call), partial(self._hop, run, call))

    async def _hop(self, run: Callable[[T], R], make: T) -> R:
        # Importing asyncio takes 30 ms that a blocking program need not pay.
        import asyncio

        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._workers(), run, make)

    def _workers(self) -> ThreadPoolExecutor:
        self._connections.check_open()
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_THREADS_MAX, "towpath-sqlite")
        return self._threads
