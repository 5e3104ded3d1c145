"""burr: an application is a state machine of actions over an immutable state.

Its fastest use without a change of what it promises: the graph is built before the
clock starts and the application once per job, which is sent back to its entrypoint
for the next run; no tracker, no hooks. Its fan-out makes an application of each
task, because there is no lighter one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

from burr.core import (
    ApplicationBuilder,
    ApplicationContext,
    Condition,
    Graph,
    GraphBuilder,
    State,
    action,
    default,
)
from burr.core.action import Action
from burr.core.parallelism import MapStates
from burr.core.persistence import InMemoryPersister, SQLitePersister

from bench.adapters.base import Job, said, size
from bench.workloads import LOOP_STEPS, Workload


class Burr:
    name = "burr"

    @property
    def version(self) -> str:
        return version("burr")

    def importing(self) -> str:
        return "import burr.core"

    def prepare(self, workload: Workload, folder: Path) -> Job | None:
        match workload.kind:
            case "chain" if not workload.variant:
                return running(workload, chain(workload), {"count": 0}, "count")
            case "loop":
                return running(workload, loop(workload), {"count": 0}, "count")
            case "fan":
                return running(workload, fan(workload), {"total": 0}, "total")
            case "chat" if not workload.asynchronous:
                return chatting(workload, folder)
            case "compile":
                return Job(partial(compiling, workload))
            case _:
                return None


@action(reads=["count"], writes=["count"])
def add_one(state: State) -> State:
    return state.update(count=state["count"] + 1)


@action(reads=["count"], writes=["count"])
async def async_add_one(state: State) -> State:
    return state.update(count=state["count"] + 1)


@action(reads=["turn"], writes=["messages", "turn"])
def talk(state: State) -> State:
    turn = state["turn"]
    return state.extend(messages=said(turn)).update(turn=turn + 1)


@action(reads=[], writes=[])
def stop(state: State) -> State:
    return state


def chain(workload: Workload) -> Graph:
    node = async_add_one if workload.asynchronous else add_one
    names = [f"node_{number}" for number in range(workload.size)]
    builder = GraphBuilder().with_actions(**dict.fromkeys(names, node), stop=stop)
    return builder.with_transitions(*pairwise([*names, "stop"])).build()


def compiling(workload: Workload) -> int:
    # Less the action at which a run would halt.
    return len(chain(workload).actions) - 1


def loop(workload: Workload) -> Graph:
    node = async_add_one if workload.asynchronous else add_one
    again = Condition(["count"], lambda state: state["count"] < LOOP_STEPS)
    builder = GraphBuilder().with_actions(ping=node, pong=node, stop=stop)
    return builder.with_transitions(
        ("ping", "pong"), ("pong", "ping", again), ("pong", "stop", default)
    ).build()


@action(reads=["weight"], writes=["weighed"])
def weigh(state: State) -> State:
    return state.update(weighed=state["weight"])


@action(reads=["weight"], writes=["weighed"])
async def async_weigh(state: State) -> State:
    return state.update(weighed=state["weight"])


class Weighing(MapStates):
    """Weighs `number` things at once and adds up."""

    number = 0

    def action(self, state: State, inputs: dict[str, Any]) -> Any:
        return weigh

    def states(
        self, state: State, context: ApplicationContext, inputs: dict[str, Any]
    ) -> Iterator[State]:
        for weight in range(self.number):
            yield state.update(weight=weight)

    def reduce(self, state: State, results: Iterator[State]) -> State:
        return state.update(total=sum(each["weighed"] for each in results))

    @property
    def reads(self) -> list[str]:
        return ["total"]

    @property
    def writes(self) -> list[str]:
        return ["total"]


class AsyncWeighing(Weighing):
    def is_async(self) -> bool:
        return True

    def action(self, state: State, inputs: dict[str, Any]) -> Any:
        return async_weigh

    async def states(self, state, context, inputs):
        for weight in range(self.number):
            yield state.update(weight=weight)

    async def reduce(self, state, results):
        return state.update(total=sum([each["weighed"] async for each in results]))


def fan(workload: Workload) -> Graph:
    weighing: Action = AsyncWeighing() if workload.asynchronous else Weighing()
    weighing.number = workload.size
    builder = GraphBuilder().with_actions(entry=weighing, stop=stop)
    return builder.with_transitions(("entry", "stop")).build()


def running(workload: Workload, graph: Graph, given: dict[str, Any], key: str) -> Job:
    application = built(graph, given).build()

    def again() -> Any:
        application.update_state(State(given))
        application.reset_to_entrypoint()
        return application

    run = arun if workload.asynchronous else blocking_run
    return Job(lambda: run(again(), key))


def built(graph: Graph, given: dict[str, Any]) -> ApplicationBuilder:
    builder = ApplicationBuilder().with_graph(graph).with_state(**given)
    return builder.with_entrypoint(graph.actions[0].name)


def blocking_run(application: Any, key: str) -> Any:
    return application.run(halt_before=["stop"])[2][key]


async def arun(application: Any, key: str) -> Any:
    return (await application.arun(halt_before=["stop"]))[2][key]


def chatting(workload: Workload, folder: Path) -> Job | None:
    turns = workload.size
    again = Condition(["turn"], lambda state: state["turn"] < turns)
    graph = (
        GraphBuilder()
        .with_actions(talk=talk, stop=stop)
        .with_transitions(("talk", "talk", again), ("talk", "stop", default))
        .build()
    )
    given: dict[str, Any] = {"messages": [], "turn": 0}
    if workload.saver == "none":
        job = running(workload, graph, given, "messages")
        return Job(lambda: len(job.run()))
    if workload.saver not in PERSISTERS:
        return None
    persister, close = PERSISTERS[workload.saver](folder)
    builder = built(graph, given).with_identifiers(app_id="chat")
    application = builder.with_state_persister(persister).build()
    return Job(
        lambda: len(blocking_run(application, "messages")),
        close,
        partial(size, folder),
    )


def in_memory(folder: Path) -> tuple[Any, Callable[[], object]]:
    return InMemoryPersister(), lambda: None


def in_sqlite(folder: Path) -> tuple[Any, Callable[[], object]]:
    """One whole state a row; every commit reaches the disk, as ours does."""
    connection = sqlite3.connect(folder / "states.db")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    persister = SQLitePersister("", connection=connection)
    persister.initialize()
    return persister, connection.close


PERSISTERS = {"memory": in_memory, "sqlite": in_sqlite}
