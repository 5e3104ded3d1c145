"""Towpath and the peer: the same graphs, compiled and run by each."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench.adapters.base import Job, size
from bench.adapters.deeds import Session, deed, held
from bench.adapters.graphs import PLANS, row
from bench.workloads import READING, Workload
from towpath.testing.api import Api
from towpath.version import __version__

ASYNC_SAVERS = {"sqlite": "AsyncSqliteSaver", "postgres": "AsyncPostgresSaver"}


class Library:
    """A library with the interface that `graphs.py` is written for."""

    name: str

    def __init__(self) -> None:
        self._api = Api(self.name)

    @property
    def version(self) -> str:
        return version(self.name)

    def importing(self) -> str:
        return f"import {self.name}.graph"

    def prepare(self, workload: Workload, folder: Path) -> Job | None:
        if workload.kind == "compile":
            return Job(partial(self._compile, workload))
        if missing(workload):
            return None
        session = Session(
            self._api, workload, PLANS[workload.kind](self._api, workload)
        )
        place, stored = self._place(workload, folder)
        job = Job(deed(session), stored=stored, held=partial(held, session))
        if workload.asynchronous and workload.saver in ASYNC_SAVERS:
            opened_by_loop = AsyncExitStack()
            job.begin = partial(self._begin_async, session, place, opened_by_loop)
            job.end = opened_by_loop.aclose
        else:
            job.close = self._begin(session, place)
        return job

    def _compile(self, workload: Workload) -> int:
        row(self._api, workload).compile()
        return workload.size

    def _place(self, workload: Workload, folder: Path) -> tuple[str, Callable[[], int]]:
        """Return where checkpoints go, and what tells how many bytes they are."""
        if workload.saver != "postgres":
            return str(folder / "checkpoints.db"), partial(size, folder)
        from bench.adapters import postgres

        dsn = postgres.server().new_schema()
        return dsn, partial(postgres.stored, dsn)

    def _begin(self, session: Session, place: str) -> Callable[[], object]:
        """Compile, run what must have run before, and return how to close."""
        plan, workload = session.plan, session.workload
        with ExitStack() as opened:
            saver = self._saver(workload, place, opened)
            session.graph = plan.builder.compile(checkpointer=saver)
            if plan.warm is not None and not workload.asynchronous:
                session.invoke(plan.warm, {**session.place, **WARM})
            if workload.kind in READING:
                session.invoke(plan.given, session.place)
            return opened.pop_all().close

    async def _begin_async(
        self, session: Session, place: str, opened: AsyncExitStack
    ) -> None:
        maker = getattr(self._api, ASYNC_SAVERS[session.workload.saver])
        saver = await opened.enter_async_context(maker.from_conn_string(place))
        await saver.setup()
        await self._sync_always(session.workload, saver)
        plan = session.plan
        session.graph = plan.builder.compile(checkpointer=saver)
        if plan.warm is not None:
            await session.ainvoke(plan.warm, {**session.place, **WARM})

    async def _sync_always(self, workload: Workload, saver: Any) -> None:
        """Make every commit of an asynchronous saver reach the disk."""

    def _saver(self, workload: Workload, place: str, opened: ExitStack) -> Any:
        match workload.saver:
            case "memory":
                return self._api.InMemorySaver()
            case "sqlite":
                opening = self._api.SqliteSaver.from_conn_string(place)
                return opened.enter_context(opening)
            case "postgres":
                opening = self._api.PostgresSaver.from_conn_string(place)
                saver = opened.enter_context(opening)
                saver.setup()
                return saver
            case _:
                return None


WARM = {"configurable": {"thread_id": "warm"}}


def missing(workload: Workload) -> bool:
    """Whether an optional package that the workload needs is not installed."""
    needed = {"messages": "langchain_core", "pydantic": "pydantic"}
    package = needed.get(workload.variant)
    return package is not None and find_spec(package) is None


class Towpath(Library):
    """This library, with what it does when nothing is said."""

    name = "towpath"

    @property
    def version(self) -> str:
        return __version__


WAL, FULL = "PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL"


class Langgraph(Library):
    """The peer; every commit of its saver reaches the disk, as ours does."""

    name = "langgraph"

    def _saver(self, workload: Workload, place: str, opened: ExitStack) -> Any:
        saver = super()._saver(workload, place, opened)
        if workload.saver == "sqlite":
            saver.setup()
            saver.conn.execute(WAL)
            saver.conn.execute(FULL)
        return saver

    async def _sync_always(self, workload: Workload, saver: Any) -> None:
        if workload.saver == "sqlite":
            await saver.conn.execute(WAL)
            await saver.conn.execute(FULL)
