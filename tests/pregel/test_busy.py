"""One run at a time writes to a thread; what a second one does is a choice."""

from __future__ import annotations

import asyncio
import gc
import operator
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from towpath import END, START, Command, StateGraph, interrupt
from towpath.checkpoint.base.lease import Lease, pause_s
from towpath.checkpoint.memory import InMemorySaver
from towpath.checkpoint.sqlite import SqliteSaver
from towpath.errors import (
    LeaseLostError,
    NothingToResumeError,
    ThreadBusyError,
    UnknownInterruptError,
)
from towpath.runtime import RunControl
from towpath.semantics import NATIVE

THREAD: Any = {"configurable": {"thread_id": "t"}}


class State(TypedDict):
    log: Annotated[list[str], operator.add]


@pytest.fixture(params=["memory", "sqlite"])
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    if request.param == "memory":
        yield InMemorySaver()
        return
    with SqliteSaver(str(tmp_path / "db")) as made:
        yield made


def compiled(saver: Any, node: Callable[[State], Any], on_busy: Any = "wait") -> Any:
    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    builder.add_edge("node", END)
    semantics = replace(NATIVE, on_busy=on_busy)
    return builder.compile(checkpointer=saver, semantics=semantics)


class Held:
    """A node that says when it has begun, and goes on when it is told."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()

    def __call__(self, state: State) -> Any:
        if state["log"][-1] == "first":
            self.begun.set()
            assert self.go_on.wait(10)
        return {"log": ["node"]}


def first(graph: Any, held: Held) -> threading.Thread:
    thread = threading.Thread(
        target=graph.invoke,
        args=({"log": ["first"]}, THREAD),
        kwargs={"durability": "sync"},
    )
    thread.start()
    assert held.begun.wait(10)
    return thread


def test_a_second_run_waits_for_the_first(saver: Any) -> None:
    held = Held()
    graph = compiled(saver, held)
    one = first(graph, held)
    two = threading.Thread(target=graph.invoke, args=({"log": ["second"]}, THREAD))
    two.start()
    held.go_on.set()
    one.join(10)
    two.join(10)

    assert ["first", "node", "second", "node"] == graph.get_state(THREAD).values["log"]


def test_inputs_of_one_event_loop_are_all_applied(saver: Any) -> None:
    async def node(state: State) -> Any:
        await asyncio.sleep(0)
        return {"log": ["node"]}

    graph = compiled(saver, node)

    async def run() -> None:
        inputs = ({"log": [str(n)]} for n in range(10))
        await asyncio.gather(*(graph.ainvoke(given, THREAD) for given in inputs))

    asyncio.run(run())

    log = graph.get_state(THREAD).values["log"]
    assert sorted(map(str, range(10))) == sorted(log[::2])
    assert ["node"] * 10 == log[1::2]


def test_a_second_run_may_be_rejected(saver: Any) -> None:
    held = Held()
    graph = compiled(saver, held, "reject")
    one = first(graph, held)

    with pytest.raises(ThreadBusyError, match="`t`"):
        graph.invoke({"log": ["second"]}, THREAD)
    with pytest.raises(ThreadBusyError, match="`t`"):
        asyncio.run(graph.ainvoke({"log": ["second"]}, THREAD))
    with pytest.raises(ThreadBusyError, match="`t`"):
        graph.update_state(THREAD, {"log": ["edit"]})
    held.go_on.set()
    one.join(10)

    assert ["first", "node"] == graph.get_state(THREAD).values["log"]
    assert graph.invoke({"log": ["third"]}, THREAD)["log"][-1] == "node"


def test_a_second_run_may_go_on_in_a_copy(saver: Any) -> None:
    held = Held()
    graph = compiled(saver, held, "fork")
    graph.invoke({"log": ["before"]}, THREAD)
    one = first(graph, held)
    control = RunControl()

    result = graph.invoke({"log": ["second"]}, THREAD, control=control)
    held.go_on.set()
    one.join(10)

    # What the first run had committed by then is in the copy, nothing after it.
    assert ["before", "node", "first", "second", "node"] == result["log"]
    log = graph.get_state(THREAD).values["log"]
    assert ["before", "node", "first", "node"] == log
    forked = {"configurable": {"thread_id": control.thread_id}}
    assert result["log"] == graph.get_state(forked).values["log"]


def test_of_two_answers_to_one_question_one_is_taken(saver: Any) -> None:
    answers: list[str] = []

    def asks(state: State) -> Any:
        answers.append(interrupt("which?"))
        return {"log": answers[-1:]}

    graph = compiled(saver, asks)
    [question] = graph.invoke({"log": []}, THREAD)["__interrupt__"]
    refused: list[BaseException] = []

    def answer(text: str, given: Any) -> None:
        try:
            graph.invoke(Command(resume=given), THREAD)
        except (NothingToResumeError, UnknownInterruptError) as error:
            refused.append(error)

    threads = [
        threading.Thread(target=answer, args=(text, {question.id: text}))
        for text in ("yes", "no")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)

    assert 1 == len(answers) == len(refused)
    assert answers == graph.get_state(THREAD).values["log"]


def test_a_stream_left_open_is_not_waited_for_in_its_own_thread(saver: Any) -> None:
    graph = compiled(saver, lambda state: {"log": ["node"]})
    stream = graph.stream({"log": ["open"]}, THREAD)
    next(stream)

    with pytest.raises(ThreadBusyError) as raised:
        graph.invoke({"log": ["second"]}, THREAD)
    assert "close the stream" in str(raised.value)
    del stream
    gc.collect()

    assert "node" == graph.invoke({"log": ["third"]}, THREAD)["log"][-1]


def test_a_run_comes_back_to_its_own_thread(saver: Any) -> None:
    """A node edits, reads and runs the thread that it is running on."""

    def node(state: State) -> Any:
        graph.update_state(THREAD, {"log": ["edit"]}, as_node="node")
        assert "edit" == graph.get_state(THREAD).values["log"][-1]
        return {"log": ["node"]}

    graph = compiled(saver, node)
    assert ["in", "node"] == graph.invoke({"log": ["in"]}, THREAD)["log"]


def test_a_run_whose_thread_was_taken_over_stores_nothing_more(saver: Any) -> None:
    thief = Lease("t")

    def node(state: State) -> Any:
        if "stolen" not in state["log"]:
            steal(saver, thief)
        return {"log": ["node"]}

    graph = compiled(saver, node)
    with pytest.raises(LeaseLostError, match="`t`"):
        graph.invoke({"log": ["in"]}, THREAD, durability="sync")

    state = graph.get_state(THREAD)
    assert (["in"], ("node",)) == (state.values["log"], state.next)
    thief.end()
    assert "node" == graph.invoke({"log": ["stolen"]}, THREAD)["log"][-1]


def steal(saver: Any, thief: Lease) -> None:
    """Take the thread, as another machine does when the lease has run out."""
    if isinstance(saver, InMemorySaver):
        saver._leases._held["t"].end()
    else:
        with saver.cursor() as cursor:
            cursor.execute("UPDATE towpath_leases SET expires = 0")
    saver.begin_run(THREAD, thief)


def test_waiting_for_a_busy_thread_can_be_given_up(saver: Any) -> None:
    graph = compiled(saver, lambda state: {"log": ["node"]})
    other = Lease("t")
    saver.begin_run(THREAD, other)

    async def run() -> None:
        task = asyncio.create_task(graph.ainvoke({"log": ["in"]}, THREAD))
        for _ in range(100):  # it has begun, and is somewhere in its waiting
            await asyncio.sleep(0)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(task, 0.01)

    asyncio.run(asyncio.wait_for(run(), 10))
    other.end()

    assert ["next", "node"] == graph.invoke({"log": ["next"]}, THREAD)["log"]


def test_waiting_may_take_as_long_as_it_takes() -> None:
    assert [0.002, 0.25, 0.25] == [pause_s(0), pause_s(50), pause_s(1_000_000)]


def test_nothing_is_left_of_a_thread_that_never_began(saver: Any) -> None:
    graph = compiled(saver, lambda state: {})
    with pytest.raises(Exception, match="resume"):
        graph.invoke(Command(resume="yes"), THREAD)

    assert [] == list(saver.list(None))
    if isinstance(saver, SqliteSaver):
        with saver.cursor() as cursor:
            [(left,)] = cursor.execute("SELECT count(*) FROM towpath_leases")
        assert 0 == left
