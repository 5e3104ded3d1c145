"""Towpath and the peer: the same graphs, compiled and run by each."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any

from bench.adapters.base import Job, size
from bench.adapters.graphs import PLANS, Plan, row
from bench.workloads import Workload
from towpath.testing.api import Api
from towpath.version import __version__

STEPS_MAX = 100_000


class Library:
    """A library with the interface that `graphs.py` is written for."""

    name: str

    def __init__(self) -> None:
        self._api = Api(self.name)
        self._threads = count()

    @property
    def version(self) -> str:
        return version(self.name)

    def importing(self) -> str:
        return f"import {self.name}.graph"

    def prepare(self, workload: Workload, folder: Path) -> Job | None:
        if workload.kind == "compile":
            return Job(partial(self._compile, workload))
        plan = PLANS[workload.kind](self._api, workload)
        if workload.saver == "postgres":
            place, left = self._in_postgres()
        else:
            place, left = folder / "checkpoints.db", partial(size, folder)
        with ExitStack() as opened:
            saver = self._saver(workload, str(place), opened)
            graph = plan.builder.compile(checkpointer=saver)
            if plan.warm is not None:
                graph.invoke(plan.warm, self._config(), **self._options(workload))
            close = opened.pop_all().close
        run = self._arun if workload.asynchronous else self._run
        return Job(partial(run, graph, plan, workload), close, left)

    def _compile(self, workload: Workload) -> int:
        row(self._api, workload).compile()
        return workload.size

    def _run(self, graph: Any, plan: Plan, workload: Workload) -> object:
        options = self._options(workload)
        return plan.result(graph.invoke(plan.given, self._config(), **options))

    async def _arun(self, graph: Any, plan: Plan, workload: Workload) -> object:
        return plan.result(await graph.ainvoke(plan.given, self._config()))

    def _config(self) -> dict[str, Any]:
        thread = f"thread-{next(self._threads)}"
        return {
            "recursion_limit": STEPS_MAX,
            "configurable": {"thread_id": thread},
        }

    def _options(self, workload: Workload) -> dict[str, Any]:
        return {"durability": "sync"} if workload.lasting else {}

    def _in_postgres(self) -> tuple[str, Callable[[], int]]:
        from bench.adapters import postgres

        dsn = postgres.server().new_schema()
        return dsn, partial(postgres.stored, dsn)

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


class Towpath(Library):
    """This library, with what it does when nothing is said."""

    name = "towpath"

    @property
    def version(self) -> str:
        return __version__


class Langgraph(Library):
    """The peer; every commit of its saver reaches the disk, as ours does."""

    name = "langgraph"

    def _saver(self, workload: Workload, place: str, opened: ExitStack) -> Any:
        saver = super()._saver(workload, place, opened)
        if workload.saver == "sqlite":
            saver.setup()
            saver.conn.execute("PRAGMA journal_mode = WAL")
            saver.conn.execute("PRAGMA synchronous = FULL")
        return saver
