"""Where connections come from, one lender per colour.

A connection is lent for one transaction and given back; none is held while
nodes run. Of pools of our own there is one for blocking calls and one for each
event loop, opened with the first call. A pool of an event loop closes with the
saver or, at the latest, with its loop.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from typing import Any, Final, NamedTuple, Protocol

import psycopg
from psycopg.pq import TransactionStatus
from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolTimeout

from towpath.errors import PersistenceError

SETTINGS: Final[dict[str, Any]] = {
    "autocommit": True,  # transactions are begun by hand, in the same round trip
    "prepare_threshold": None,
}

_IDLE_S_MAX: Final = 600.0
"""How long an unused connection is kept at least."""


class Lender(Protocol):
    """Lends connections to blocking callers."""

    @property
    def patience_s(self) -> float:
        """How long a caller goes on when connecting fails."""

    def lend(self) -> AbstractContextManager[Any]:
        """Lend a connection; of a transaction that fails nothing is left."""

    def renew(self) -> None:
        """Sort out connections that were lost."""

    def close(self) -> None:
        """Close what was opened here."""


class AsyncLender(Protocol):
    """Lends connections to the tasks of event loops."""

    @property
    def patience_s(self) -> float:
        """How long a caller goes on when connecting fails."""

    def lend(self) -> AbstractAsyncContextManager[Any]:
        """Async twin of `Lender.lend`."""

    async def renew(self) -> None:
        """Async twin of `Lender.renew`."""

    async def aclose(self) -> None:
        """Close what was opened here."""

    def close(self) -> None:
        """Begin to close what was opened here, without waiting for it."""


class PoolOptions(NamedTuple):
    """How large a pool may become, and how long a caller waits for it."""

    size_max: int
    timeout_s: float

    def arguments(self) -> dict[str, Any]:
        return {
            "min_size": 0,
            "max_size": self.size_max,
            "timeout": self.timeout_s,
            "open": False,
            "num_workers": 1,
            "name": "towpath",
        }


# Blocking


class Direct:
    """Opens a connection for each caller, so that failures are told at once."""

    patience_s = 0.0

    def __init__(self, target: str) -> None:
        self._target = target

    @contextmanager
    def lend(self) -> Iterator[psycopg.Connection[Any]]:
        with psycopg.connect(self._target, **SETTINGS) as connection:
            yield connection

    def renew(self) -> None:
        """Nothing is kept that could be lost."""

    def close(self) -> None:
        """Nothing is kept that could be closed."""


class Pooled:
    """Lends from a pool."""

    patience_s = 0.0  # the pool has some itself

    def __init__(self, pool: ConnectionPool[Any], *, owned: bool) -> None:
        self._pool = pool
        self._owned = owned

    @classmethod
    def own(cls, target: Any, options: PoolOptions, **settings: Any) -> Pooled:
        """Make a pool that opens with the first call."""
        kwargs = {**SETTINGS, **settings}
        pool = ConnectionPool[Any](target, kwargs=kwargs, **options.arguments())
        return cls(pool, owned=True)

    def lend(self) -> AbstractContextManager[Any]:
        if self._owned and self._pool.closed:
            self._pool.open()
        return self._pool.connection()

    def renew(self) -> None:
        self._pool.check()

    def close(self) -> None:
        if self._owned:
            self._pool.close()


class Lone:
    """Lends the one connection that the caller opened, to one at a time."""

    patience_s = 0.0

    def __init__(
        self, connection: psycopg.Connection[Any], pipe: psycopg.Pipeline | None
    ) -> None:
        self._connection = connection
        self._pipe = pipe
        self._lock = threading.Lock()

    @contextmanager
    def lend(self) -> Iterator[psycopg.Connection[Any]]:
        connection = self._connection
        with self._lock:
            _check_alive(connection)
            if self._pipe is not None:
                self._pipe.sync()
            if _is_busy(connection):
                with connection.transaction():
                    yield connection
                return
            try:
                yield connection
            except BaseException:
                with suppress(psycopg.Error):
                    connection.rollback()
                raise

    def renew(self) -> None:
        """What is lost is lost, see `_check_alive`."""

    def close(self) -> None:
        """It is the caller's."""


# For event loops


class AsyncDirect:
    """Async twin of `Direct`."""

    patience_s = 0.0

    def __init__(self, target: str) -> None:
        self._target = target

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        connect = psycopg.AsyncConnection[Any].connect
        async with await connect(self._target, **SETTINGS) as connection:
            yield connection

    async def renew(self) -> None:
        """Nothing is kept that could be lost."""

    async def aclose(self) -> None:
        """Nothing is kept that could be closed."""

    def close(self) -> None:
        """Nothing is kept that could be closed."""


class AsyncPooled:
    """Lends from the pool that the caller opened."""

    patience_s = 0.0  # the pool has some itself

    def __init__(self, pool: AsyncConnectionPool[Any]) -> None:
        self._pool = pool

    def lend(self) -> AbstractAsyncContextManager[Any]:
        return self._pool.connection()

    async def renew(self) -> None:
        await self._pool.check()

    async def aclose(self) -> None:
        """It is the caller's."""

    def close(self) -> None:
        """It is the caller's."""


class AsyncLone:
    """Async twin of `Lone`."""

    patience_s = 0.0

    def __init__(
        self,
        connection: psycopg.AsyncConnection[Any],
        pipe: psycopg.AsyncPipeline | None,
    ) -> None:
        self._connection = connection
        self._pipe = pipe
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        connection = self._connection
        async with self._lock:
            _check_alive(connection)
            if self._pipe is not None:
                await self._pipe.sync()
            if _is_busy(connection):
                async with connection.transaction():
                    yield connection
                return
            try:
                yield connection
            except BaseException:
                with suppress(psycopg.Error):
                    await connection.rollback()
                raise

    async def renew(self) -> None:
        """What is lost is lost, see `_check_alive`."""

    async def aclose(self) -> None:
        """It is the caller's."""

    def close(self) -> None:
        """It is the caller's."""


class LoopPool:
    """The connections of one event loop.

    Not a pool of psycopg's: that has tasks of its own, which go on connecting when
    `asyncio.run` cancels them at its end, and hang it.
    """

    def __init__(self, target: str, options: PoolOptions) -> None:
        self._target = target
        self._options = options
        self._turns = asyncio.Semaphore(options.size_max)
        self._idle: list[tuple[float, psycopg.AsyncConnection[Any]]] = []
        """Connections and since when, the last used one at the end."""
        self._closed = False

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        await self._wait_for_turn()
        try:
            connection = await self._take()
            try:
                yield connection
            except BaseException:
                # Whatever it is in the middle of, the server rolls it back.
                await connection.close()
                raise
            await self._give_back(connection)
        finally:
            self._turns.release()

    async def _wait_for_turn(self) -> None:
        timeout_s = self._options.timeout_s
        try:
            async with asyncio.timeout(timeout_s if self._turns.locked() else None):
                await self._turns.acquire()
        except TimeoutError as error:
            message = f"all connections were busy for {timeout_s:g} s"
            raise PoolTimeout(message) from error

    async def _take(self) -> psycopg.AsyncConnection[Any]:
        if self._idle:
            return self._idle.pop()[1]
        return await psycopg.AsyncConnection[Any].connect(self._target, **SETTINGS)

    async def _give_back(self, connection: psycopg.AsyncConnection[Any]) -> None:
        now = time.monotonic()
        self._idle.append((now, connection))
        while self._idle and (self._closed or self._idle[0][0] < now - _IDLE_S_MAX):
            await self._idle.pop(0)[1].close()

    async def renew(self) -> None:
        while self._idle:
            await self._idle.pop()[1].close()

    async def close(self) -> None:
        self._closed = True
        await self.renew()


class _Kept(NamedTuple):
    pool: LoopPool
    keeper: AsyncGenerator[LoopPool, None]
    """Closes the pool when it is closed itself."""


class LoopPools:
    """Lends from a pool for each event loop."""

    def __init__(self, target: str, options: PoolOptions) -> None:
        self._target = target
        self._options = options
        self._kept: dict[asyncio.AbstractEventLoop, _Kept] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self.patience_s = options.timeout_s

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        pool = await self._pool()
        async with pool.lend() as connection:
            yield connection

    async def renew(self) -> None:
        await (await self._pool()).renew()

    async def _pool(self) -> LoopPool:
        loop = asyncio.get_running_loop()
        kept = self._kept.get(loop)
        if kept is None:
            self._kept = {at: x for at, x in self._kept.items() if not at.is_closed()}
            pool = LoopPool(self._target, self._options)
            # A loop closes the generators that are under way before it ends.
            kept = self._kept[loop] = _Kept(pool, _keep(pool))
            await anext(kept.keeper)
        return kept.pool

    async def aclose(self) -> None:
        kept = self._kept.pop(asyncio.get_running_loop(), None)
        if kept is not None:
            await kept.keeper.aclose()
        self.close()

    def close(self) -> None:
        for loop, kept in self._kept.items():
            if loop.is_running():
                loop.call_soon_threadsafe(self._close, loop, kept)

    def _close(self, loop: asyncio.AbstractEventLoop, kept: _Kept) -> None:
        async def close() -> None:
            await kept.keeper.aclose()

        task = loop.create_task(close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


async def _keep(pool: LoopPool) -> AsyncGenerator[LoopPool, None]:
    try:
        yield pool
    finally:
        await pool.close()


# What a caller opened


def _is_busy(connection: Any) -> bool:
    """Tell whether the caller has begun a transaction, which ours is part of then."""
    return bool(connection.info.transaction_status == TransactionStatus.INTRANS)


def _check_alive(connection: Any) -> None:
    if connection.closed:
        raise PersistenceError(
            "the connection to Postgres that this saver was given is closed or lost",
            hint="give it a connection string or a pool, which can open another",
        )
