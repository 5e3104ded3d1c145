"""Habits: what programs do with a graph over and over.

They run it, answer its question, let it fail, stop listening in the middle, go back
to an earlier checkpoint. `bench.memory` counts what is alive after many of each.
"""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

from towpath import (
    END,
    START,
    Command,
    RetryPolicy,
    Send,
    StateGraph,
    entrypoint,
    interrupt,
    task,
)
from towpath.config import get_stream_writer

SAVERS = ("none", "memory", "sqlite")


class State(TypedDict):
    notes: Annotated[list[str], operator.add]
    answer: str


class FaultError(Exception):
    """What a node of these graphs fails with."""


# What is used


def note(state: State) -> dict[str, Any]:
    get_stream_writer()("noting")
    return {"notes": ["noted"]}


def decide(state: State) -> dict[str, Any]:
    """Ask, fail or end, as the caller says with `answer`."""
    return {"answer": decided(state["answer"])}


def decided(answer: str) -> str:
    match answer:
        case "ask":
            return str(interrupt("which?"))
        case "fail":
            raise FaultError
        case _:
            return answer


def whole(saver: Any) -> Any:
    """Return a graph with what a run can make: subgraph, tasks, branches, lists."""
    inner = StateGraph(State)
    inner.add_node("note", note)
    inner.add_edge(START, "note")
    builder = StateGraph(State)
    builder.add_node("inner", inner.compile())
    builder.add_node("sent", lambda sent: {"notes": [f"number {sent}"]})
    builder.add_node("last", decide)
    builder.add_edge(START, "inner")
    builder.add_conditional_edges(
        "inner", lambda state: [Send("sent", number) for number in range(3)], ["sent"]
    )
    builder.add_edge("sent", "last")
    builder.add_edge("last", END)
    return builder.compile(checkpointer=saver)


def patient(saver: Any) -> Any:
    """Return a graph whose nodes are tried again, run out of time and are replaced."""

    async def stuck(state: State) -> dict[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError

    def instead(state: State) -> dict[str, Any]:
        return {"notes": ["instead"]}

    builder = StateGraph(State)
    again = RetryPolicy(initial_interval=0, jitter=False, max_attempts=2)
    builder.add_node("stuck", stuck, timeout=0.001, error_handler=instead)
    builder.add_node("last", decide, retry_policy=again)
    builder.add_edge(START, "stuck")
    builder.add_edge(START, "last")
    return builder.compile(checkpointer=saver)


@task
def said(word: str) -> str:
    return word


@task
async def asaid(word: str) -> str:
    return word


def flow(saver: Any) -> Any:
    """Return a function that calls tasks."""

    @entrypoint(checkpointer=saver)
    def work(given: State) -> str:
        words = [said(note) for note in given["notes"]]
        return decided(given["answer"]) + "".join(word.result() for word in words)

    return work


def aflow(saver: Any) -> Any:
    """Return an async function that calls tasks."""

    @entrypoint(checkpointer=saver)
    async def work(given: State) -> str:
        words = await asyncio.gather(*[asaid(note) for note in given["notes"]])
        return decided(given["answer"]) + "".join(words)

    return work


# How it is used


def given(answer: str) -> State:
    return {"notes": ["begun"], "answer": answer}


Place = dict[str, Any]


def run(graph: Any, place: Place) -> None:
    graph.invoke(given("go"), place)


def answer(graph: Any, place: Place) -> None:
    graph.invoke(given("ask"), place)
    graph.invoke(Command(resume="this"), place)


def fail(graph: Any, place: Place) -> None:
    with suppress(FaultError):
        graph.invoke(given("fail"), place)


def listen(graph: Any, place: Place) -> None:
    """Take all that is told, of subgraphs and while nodes still run."""
    for _ in graph.stream(
        given("go"), place, stream_mode=["custom", "values", "tasks"], subgraphs=True
    ):
        pass


def leave(graph: Any, place: Place) -> None:
    """Stop listening after the first chunk."""
    chunks = graph.stream(given("go"), place, stream_mode=["updates", "tasks"])
    next(chunks)
    chunks.close()


def rewind(graph: Any, place: Place) -> None:
    """Look at the past, change it, and run again from there."""
    graph.invoke(given("ask"), place)
    *_, first = graph.get_state_history(place)
    graph.invoke(None, first.config)
    graph.update_state(place, {"answer": "go"}, as_node="last")
    assert graph.get_state(place).values["answer"] == "go"


def at_end(graph: Any, place: Place) -> None:
    """Store nothing before the run stops."""
    graph.invoke(given("ask"), place, durability="exit")
    graph.invoke(Command(resume="this"), place, durability="exit")


async def arun(graph: Any, place: Place) -> None:
    await graph.ainvoke(given("go"), place)


async def aanswer(graph: Any, place: Place) -> None:
    await graph.ainvoke(given("ask"), place)
    await graph.ainvoke(Command(resume="this"), place)


async def afail(graph: Any, place: Place) -> None:
    with suppress(FaultError):
        await graph.ainvoke(given("fail"), place)


async def alisten(graph: Any, place: Place) -> None:
    async for _ in graph.astream(
        given("go"), place, stream_mode=["custom", "values", "tasks"], subgraphs=True
    ):
        pass


async def aleave(graph: Any, place: Place) -> None:
    chunks = graph.astream(given("go"), place, stream_mode=["updates", "tasks"])
    await anext(chunks)
    await chunks.aclose()


async def acancel(graph: Any, place: Place) -> None:
    """Cancel the run when it has begun."""
    task = asyncio.create_task(graph.ainvoke(given("go"), place))
    await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


@dataclass(frozen=True)
class Habit:
    """A way to use a graph, over and over."""

    act: Callable[[Any, Place], Awaitable[None] | None]
    graph: Callable[[Any], Any] = whole
    stores: bool = False
    """Whether it means something only with a saver."""

    @property
    def name(self) -> str:
        """What is done, and with what, if that is not the graph of most habits."""
        done, used = self.act.__name__, self.graph.__name__
        return done if self.graph is whole else f"{done} {used}"

    @property
    def asynchronous(self) -> bool:
        return asyncio.iscoroutinefunction(self.act)


HABITS = (
    Habit(run),
    Habit(answer, stores=True),
    Habit(fail),
    Habit(listen),
    Habit(leave),
    Habit(rewind, stores=True),
    Habit(at_end, stores=True),
    Habit(run, flow),
    Habit(answer, flow, stores=True),
    Habit(fail, flow),
    Habit(leave, flow),
    Habit(arun),
    Habit(aanswer, stores=True),
    Habit(afail),
    Habit(alisten),
    Habit(aleave),
    Habit(acancel),
    Habit(arun, aflow),
    Habit(aanswer, aflow, stores=True),
    Habit(afail, aflow),
    Habit(acancel, aflow),
    Habit(arun, patient),
    Habit(afail, patient),
)
CASES = [
    (habit, saver)
    for saver in SAVERS
    for habit in HABITS
    if saver != "none" or not habit.stores
]
