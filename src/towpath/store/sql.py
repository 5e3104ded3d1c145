"""A store over a SQL database, whichever it is and in both colours."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Set as AbstractSet
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from towpath.checkpoint.programs import Make, Program
from towpath.store import programs
from towpath.store.base import IndexConfig, Op, PutOp, Result, TTLConfig
from towpath.store.facts import Fact, facts_of
from towpath.store.planned import Plan, PlannedStore
from towpath.store.programs import Done, Measuring
from towpath.store.sweeping import Sweeper, interval_s

if TYPE_CHECKING:
    import asyncio

    from towpath.store.base.batch import Gathering

R = TypeVar("R")


class SqlStore(PlannedStore):
    """The part of a SQL store that does not depend on the database.

    What several tasks of an event loop ask for at once is one batch. What has
    expired is never returned, and stays in the database until it is swept.
    """

    def __init__(self, *, index: IndexConfig | None, ttl: TTLConfig | None) -> None:
        super().__init__(index=index, ttl=ttl)
        self._gatherings: WeakKeyDictionary[Any, Gathering] = WeakKeyDictionary()
        self._sweeper: Sweeper | None = None

    @property
    @abstractmethod
    def _measuring(self) -> Measuring:
        """How vectors are kept and compared; known once the tables are there."""

    # How programs are run

    @abstractmethod
    def _read(self, make: Make[R]) -> R: ...

    @abstractmethod
    def _write(self, make: Make[R], *, durable: bool = True) -> R: ...

    @abstractmethod
    async def _aread(self, make: Make[R]) -> R: ...

    @abstractmethod
    async def _awrite(self, make: Make[R], *, durable: bool = True) -> R: ...

    # Batches

    def _facts(self, op: PutOp) -> AbstractSet[Fact]:
        return facts_of(op.value or {})

    def _run(self, plan: Plan) -> list[Result]:
        make = self._making(plan)
        done = self._write(make) if plan.puts else self._read(make)
        if done.read:
            self._write(_prolonging(done), durable=False)
        return done.results

    async def _arun(self, plan: Plan) -> list[Result]:
        make = self._making(plan)
        done = await (self._awrite(make) if plan.puts else self._aread(make))
        if done.read:
            await self._awrite(_prolonging(done), durable=False)
        return done.results

    def _making(self, plan: Plan) -> Make[Done]:
        # The way to measure is found along with the tables, so asked for late.
        return lambda: programs.run(plan, now_us(), self._measuring)

    async def _aone(self, op: Op) -> Result:
        import asyncio

        from towpath.store.base.batch import Gathering

        loop = asyncio.get_running_loop()
        gathering = self._gatherings.get(loop)
        if gathering is None:
            gathering = self._gatherings[loop] = Gathering(self.abatch)
        return await gathering.ask(op)

    # Sweeping

    def sweep_ttl(self) -> int:
        """Delete what has expired; return how many items that were."""
        return self._write(_sweeping, durable=False)

    async def asweep_ttl(self) -> int:
        """Async twin of `sweep_ttl`."""
        return await self._awrite(_sweeping, durable=False)

    def start_ttl_sweeper(
        self, sweep_interval_minutes: float | None = None
    ) -> Future[None]:
        """Sweep every so often in a thread, until stopped or closed.

        The interval is the one given, the one of `ttl`, or five minutes. The
        future is done when the sweeper has stopped.
        """
        if self._sweeper is None or self._sweeper.ended.done():
            pause_s = interval_s(self.ttl_config, sweep_interval_minutes)
            self._sweeper = Sweeper(self.sweep_ttl, pause_s)
        return self._sweeper.ended

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stop sweeping; tell whether that was done within `timeout` seconds."""
        return self._sweeper is None or self._sweeper.stop(timeout)


class AsyncSweeping(SqlStore):
    """The verbs about sweeping as the peer's async stores have them: awaited."""

    _sweeping_task: asyncio.Task[None] | None = None

    async def sweep_ttl(self) -> int:  # type: ignore[override]  # the peer's
        """Delete what has expired; return how many items that were."""
        return await self.asweep_ttl()

    async def start_ttl_sweeper(  # type: ignore[override]  # the peer's
        self, sweep_interval_minutes: float | None = None
    ) -> asyncio.Task[None]:
        """Sweep every so often in a task, until stopped or closed."""
        import asyncio

        from towpath.store.sweeping import sweep_for_ever

        if self._sweeping_task is None or self._sweeping_task.done():
            pause_s = interval_s(self.ttl_config, sweep_interval_minutes)
            self._sweeping_task = asyncio.create_task(
                sweep_for_ever(self.asweep_ttl, pause_s), name="towpath-sweeper"
            )
        return self._sweeping_task

    async def stop_ttl_sweeper(  # type: ignore[override]  # the peer's
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - the peer's
    ) -> bool:
        """Stop sweeping; tell whether that was done within `timeout` seconds."""
        import asyncio

        task = self._sweeping_task
        if task is None:
            return True
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=timeout)
        return bool(done)


def now_us() -> int:
    """Return the time, in microseconds since 1970."""
    return time.time_ns() // 1000


def _sweeping() -> Program[int]:
    return programs.sweep(now_us())


def _prolonging(done: Done) -> Make[None]:
    return partial(programs.prolong, done.read, now_us())
