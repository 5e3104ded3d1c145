"""What a driver owes a running graph: stopping, failing, limits, nothing left."""

from __future__ import annotations

import asyncio
import operator
import threading
from contextlib import suppress
from contextvars import ContextVar
from typing import Annotated, Any, TypedDict

import pytest

from towpath.checkpoint.memory import InMemorySaver
from towpath.errors import (
    ColourError,
    GraphDrained,
    NodeTimeoutError,
    StepTimeoutError,
)
from towpath.graph import START, StateGraph
from towpath.runtime import RunControl
from towpath.semantics import LANGGRAPH, NATIVE, Semantics
from towpath.types import RetryPolicy, Send, TimeoutPolicy, interrupt

from .colours import THREAD, Calls, Colour, Diary, Loop, Simulated, Sync, turns


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    item: int


class Boom(Exception):
    pass


def chain(colour: Colour, calls: Calls, *names: str, **actions: Any) -> StateGraph:
    """Nodes one after the other; those without an action log their names."""
    builder = StateGraph(State)
    for before, name in zip((START, *names), names, strict=False):
        builder.add_node(name, actions.get(name) or logs(colour, calls, name))
        builder.add_edge(before, name)
    return builder


def fan(colour: Colour, calls: Calls, *names: str, **actions: Any) -> StateGraph:
    """Nodes beside each other in one step."""
    builder = StateGraph(State)
    for name in names:
        builder.add_node(name, actions.get(name) or logs(colour, calls, name))
        builder.add_edge(START, name)
    return builder


def logs(colour: Colour, calls: Calls, name: str) -> Any:
    def node(state: State) -> State:
        calls(name)
        return {"log": [name]}

    return colour.node(node)


def raises(colour: Colour, calls: Calls, name: str, error: BaseException) -> Any:
    def node(state: State) -> State:
        calls(name)
        raise error

    return colour.node(node)


# -- results ----------------------------------------------------------------------


def test_results_fold_in_task_order(colour: Colour) -> None:
    graph = fan(colour, Calls(), "c", "a", "b").compile()

    assert ["in", "a", "b", "c"] == colour.invoke(graph, {"log": ["in"]})["log"]


def test_a_stream_tells_each_step(colour: Colour) -> None:
    graph = chain(colour, Calls(), "a", "b").compile()

    chunks = colour.stream(graph, {"log": []}, stream_mode="updates")

    assert [{"a": {"log": ["a"]}}, {"b": {"log": ["b"]}}] == chunks


def test_what_a_node_writes_to_a_stream_comes_before_its_result(colour: Colour) -> None:
    def node(state: State, writer: Any) -> State:
        writer("working")
        return {"log": ["a"]}

    graph = chain(colour, Calls(), "a", a=node).compile()

    chunks = colour.stream(graph, {"log": []}, stream_mode=["custom", "updates"])

    assert [("custom", "working"), ("updates", {"a": {"log": ["a"]}})] == chunks


def test_nodes_see_the_context_of_the_caller(colour: Colour) -> None:
    variable: ContextVar[str] = ContextVar("variable", default="unset")
    seen = []
    graph = fan(
        colour,
        Calls(),
        "a",
        "b",
        a=colour.node(lambda state: seen.append(variable.get())),
        b=colour.node(lambda state: seen.append(variable.get())),
    ).compile()

    token = variable.set("set")
    try:
        colour.invoke(graph, {"log": []})
    finally:
        variable.reset(token)

    assert ["set", "set"] == seen


def test_what_a_node_sets_in_its_context_stays_there(colour: Colour) -> None:
    variable: ContextVar[str] = ContextVar("variable", default="unset")
    seen = []
    graph = chain(
        colour,
        Calls(),
        "a",
        "b",
        a=colour.node(lambda state: variable.set("by a") and None),
        b=colour.node(lambda state: seen.append(variable.get())),
    ).compile()

    colour.invoke(graph, {"log": []})

    assert ["unset"] == seen


# -- failures ---------------------------------------------------------------------


def test_a_failure_is_raised_and_what_had_finished_is_recorded(colour: Colour) -> None:
    calls = Calls()
    broken = [Boom()]

    def node(state: State) -> State:
        calls("b")
        if broken:
            raise broken.pop()
        return {"log": ["b"]}

    # One at a time, in order: `a` has finished when `b` fails.
    builder = fan(colour, calls, "a", "b", b=colour.node(node))
    graph = builder.compile(checkpointer=InMemorySaver())
    config = {**THREAD, "max_concurrency": 1}

    with pytest.raises(Boom):
        colour.invoke(graph, {"log": []}, config)
    value = colour.invoke(graph, None, config)

    assert ["a", "b"] == value["log"]
    assert {"a": 1, "b": 2} == calls.count


def test_the_first_failure_carries_the_others() -> None:
    """Threads cannot be stopped; a coroutine that still runs would be cancelled."""
    calls, colour = Calls(), Sync()
    gate = colour.barrier(2)
    graph = fan(
        colour,
        calls,
        "a",
        "b",
        a=gate.before(raises(colour, calls, "a", Boom("a"))),
        b=gate.before(raises(colour, calls, "b", Boom("b"))),
    ).compile()

    with pytest.raises(Boom) as caught:
        colour.invoke(graph, {"log": []})

    told = {str(caught.value), *map(str, getattr(caught.value, "also_failed", ()))}
    assert {"a", "b"} == told


def test_a_keyboard_interrupt_in_a_node_ends_the_run_in_order(colour: Colour) -> None:
    if isinstance(colour, Loop):
        pytest.skip("asyncio.run turns it into a cancellation, tested below")
    calls = Calls()
    broken = [KeyboardInterrupt()]

    def node(state: State) -> State:
        calls("b")
        if broken:
            raise broken.pop()
        return {"log": ["b"]}

    builder = chain(colour, calls, "a", "b", b=colour.node(node))
    graph = builder.compile(checkpointer=Diary())

    with pytest.raises(KeyboardInterrupt):
        colour.invoke(graph, {"log": []}, THREAD)
    value = colour.invoke(graph, None, THREAD)

    assert ["a", "b"] == value["log"]
    assert {"a": 1, "b": 2} == calls.count


@pytest.mark.parametrize("failing", range(12))
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_run_goes_on_after_its_storage_failed(
    colour: Colour, durability: Any, failing: int
) -> None:
    """Whichever call it was: the same end, and no hole in the history."""
    saver = Diary()
    saver.fails[failing] = Boom("disk")
    calls = Calls()
    builder = chain(colour, calls, "a", "b")
    builder.add_node("c", logs(colour, calls, "c"))
    builder.add_edge("a", "c")
    graph = builder.compile(checkpointer=saver)

    try:
        value = colour.invoke(graph, {"log": []}, THREAD, durability=durability)
    except Boom:
        saver.fails.clear()
        stored = graph.get_state(THREAD).created_at is not None
        again = None if stored else {"log": []}
        value = colour.invoke(graph, again, THREAD, durability=durability)

    assert ["a", "b", "c"] == value["log"]
    history = list(graph.get_state_history(THREAD))
    known = {snapshot.config["configurable"]["checkpoint_id"] for snapshot in history}
    for snapshot in history:
        if snapshot.parent_config is not None:
            assert snapshot.parent_config["configurable"]["checkpoint_id"] in known


def test_running_siblings_end_before_a_storage_failure_is_raised(
    colour: Colour,
) -> None:
    """Nothing of a run goes on when the run is over."""
    saver, calls = Diary(), Calls()
    gate = colour.barrier(2)  # opens for two at a time

    def before(what: str) -> None:
        # What finishes at once is stored at once: chance decides if some still run.
        if calls.count:
            raise Boom("disk")

    saver.before = before
    names = ("a", "b", "c", "d")

    def node(state: State) -> State:
        calls("begun")
        return {"log": []}

    nodes = {name: gate.inside(calls, node) for name in names}
    graph = fan(colour, calls, *names, **nodes).compile(checkpointer=saver)

    with pytest.raises(Boom):
        colour.invoke(graph, {"log": []}, THREAD, durability="sync")

    assert 0 == calls.active


@pytest.mark.parametrize("semantics", [NATIVE, LANGGRAPH], ids=["native", "peer"])
def test_what_a_node_kept_of_the_state_stays_as_it_was(
    colour: Colour, semantics: Semantics
) -> None:
    kept: list[Any] = []

    def keep(state: State) -> State:
        kept.append(state["log"])
        return {"log": ["more"]}

    node = colour.node(keep)
    graph = chain(colour, Calls(), "a", "b", "c", a=node, b=node, c=node)

    colour.invoke(graph.compile(semantics=semantics), {"log": ["in"]})

    assert [["in"], ["in", "more"], ["in", "more", "more"]] == kept


def test_a_run_that_is_told_to_stop_before_it_starts_runs_no_node(
    colour: Colour,
) -> None:
    calls, control = Calls(), RunControl()
    control.request_drain("soon")

    with pytest.raises(GraphDrained):
        colour.invoke(chain(colour, calls, "a").compile(), {"log": []}, control=control)

    assert not calls.count


def test_async_nodes_beside_each_other_can_limit_their_own_waits() -> None:
    async def node(state: State) -> State:
        with suppress(TimeoutError):
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        return {"log": ["over"]}

    graph = fan(Loop(), Calls(), "a", "b", a=node, b=node).compile()

    assert ["over", "over"] == Loop().invoke(graph, {"log": []})["log"]


# -- stopping ---------------------------------------------------------------------


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_closed_stream_keeps_what_had_finished(
    colour: Colour, durability: Any
) -> None:
    calls = Calls()
    graph = chain(colour, calls, "a", "b", "c").compile(checkpointer=Diary())

    colour.stream(
        graph,
        {"log": []},
        THREAD,
        stop=lambda chunk: "b" in chunk,
        stream_mode="updates",
        durability=durability,
    )
    state = graph.get_state(THREAD)
    value = colour.invoke(graph, None, THREAD)

    assert ["a", "b"] == state.values["log"]
    assert ["a", "b", "c"] == value["log"]
    assert {"a": 1, "b": 1, "c": 1} == calls.count


def test_a_closed_stream_starts_nothing_more(colour: Colour) -> None:
    calls = Calls()
    graph = chain(colour, calls, "a", "b", "c").compile()

    chunks = colour.stream(
        graph, {"log": []}, stop=lambda chunk: True, stream_mode="updates"
    )

    assert [{"a": {"log": ["a"]}}] == chunks
    assert {"a": 1} == calls.count


def test_closing_a_stream_stops_its_children(colour: Colour) -> None:
    """A child that is in the middle goes no further, and goes on from there."""
    calls = Calls()
    child = chain(colour, calls, "x", "y").compile()
    graph = chain(colour, calls, "a", "child", child=child).compile(
        checkpointer=Diary()
    )

    colour.stream(
        graph,
        {"log": []},
        THREAD,
        stop=lambda chunk: "x" in chunk[1],
        stream_mode="updates",
        subgraphs=True,
    )
    colour.nothing_runs()
    began = dict(calls.count)
    value = colour.invoke(graph, None, THREAD)

    if not isinstance(colour, Sync):
        # A blocking child cannot be stopped in its thread, only waited for.
        assert {"a": 1, "x": 1} == began
    assert ["a", "x", "y"] == value["log"]
    assert {"a": 1, "x": 1, "y": 1} == calls.count


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_cancelled_run_keeps_what_had_finished(durability: Any) -> None:
    """Under asyncio a cancellation arrives as an event, and comes out at the end."""
    calls, colour = Calls(), Loop()

    async def run() -> Any:
        begun, done = asyncio.Event(), asyncio.Event()

        async def hangs(state: State) -> State:
            calls("b")
            begun.set()
            await asyncio.Event().wait()
            raise AssertionError

        async def beside(state: State) -> State:
            calls("beside")
            done.set()
            return {"log": ["beside"]}

        builder = chain(colour, calls, "a", "b", b=hangs)
        builder.add_node("beside", beside)
        builder.add_edge("a", "beside")
        saver = Diary()
        graph = builder.compile(checkpointer=saver)
        job = asyncio.create_task(
            graph.ainvoke({"log": []}, THREAD, durability=durability)
        )
        await begun.wait()
        await done.wait()
        await turns()
        job.cancel()
        with pytest.raises(asyncio.CancelledError):
            await job
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return graph, await graph.aget_state(THREAD)

    _, state = asyncio.run(run())

    assert ["a", "beside"] == state.values["log"]
    assert ("b",) == state.next
    assert {"a": 1, "b": 1, "beside": 1} == calls.count


def test_a_run_that_is_cancelled_twice_still_records() -> None:
    """As when a time limit around it and the end of the program meet."""
    calls, colour = Calls(), Loop()

    async def run() -> Any:
        begun, storing, go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()

        class Slow(Diary):
            async def aput_writes(self, *args: Any) -> None:
                storing.set()
                await go_on.wait()
                await super().aput_writes(*args)

        async def hangs(state: State) -> State:
            begun.set()
            await asyncio.Event().wait()
            raise AssertionError

        builder = fan(colour, calls, "a", "b", b=hangs)
        graph = builder.compile(checkpointer=Slow())
        job = asyncio.create_task(graph.ainvoke({"log": []}, THREAD, durability="sync"))
        await begun.wait()
        await storing.wait()
        job.cancel()
        await asyncio.sleep(0)
        job.cancel()
        await asyncio.sleep(0)
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await job
        return await graph.aget_state(THREAD)

    state = asyncio.run(run())

    assert ["a"] == state.values["log"]
    assert ("b",) == state.next


# -- limits -----------------------------------------------------------------------


def test_no_more_tasks_run_at_once_than_allowed(colour: Colour) -> None:
    """And as many do: the barrier opens only when all of them are there."""
    calls, gate = Calls(), colour.barrier(3)

    def work(state: State) -> State:
        return {"log": [str(state["item"])]}

    builder = StateGraph(State)
    builder.add_node("work", gate.inside(calls, work))
    builder.add_conditional_edges(
        START, lambda state: [Send("work", {"item": n}) for n in range(9)], ["work"]
    )
    graph = builder.compile()

    value = colour.invoke(graph, {"log": []}, {"max_concurrency": 3})

    assert [str(n) for n in range(9)] == value["log"]
    assert 3 >= calls.most


def test_a_node_that_takes_too_long_fails_at_once(colour: Colour) -> None:
    """Also a blocking one, which goes on in its thread but is not waited for."""
    slow = colour.slow()
    builder = StateGraph(State)
    builder.add_node("a", slow, timeout=TimeoutPolicy(run_timeout=0.02))
    builder.add_edge(START, "a")
    graph = builder.compile()

    try:
        with pytest.raises(NodeTimeoutError) as caught:
            colour.invoke(graph, {"log": []})
    finally:
        colour.release()

    assert "a" == caught.value.node


def test_a_late_result_is_dropped(colour: Colour) -> None:
    slow = colour.slow()
    calls = Calls()

    def handler(state: State, error: Any) -> State:
        return {"log": ["handled"]}

    builder = chain(colour, calls, "b")
    builder.add_node(
        "a", slow, timeout=TimeoutPolicy(run_timeout=0.02), error_handler=handler
    )
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    graph = builder.compile()

    try:
        value = colour.invoke(graph, {"log": []})
    finally:
        colour.release()

    assert "late" not in value["log"]
    assert "handled" in value["log"]


def test_a_step_that_takes_too_long_ends_the_run(colour: Colour) -> None:
    builder = StateGraph(State)
    builder.add_node("a", colour.slow())
    builder.add_edge(START, "a")
    graph = builder.compile()
    graph.step_timeout = 0.02

    try:
        with pytest.raises(StepTimeoutError):
            colour.invoke(graph, {"log": []})
    finally:
        colour.release()


def test_what_fails_is_tried_again_while_others_go_on(colour: Colour) -> None:
    calls = Calls()

    def node(state: State) -> State:
        calls("a")
        if calls.count["a"] < 3:
            raise Boom
        return {"log": ["a"]}

    wait = 3600.0 if isinstance(colour, Simulated) else 0.0
    policy = RetryPolicy(
        initial_interval=wait, max_attempts=3, jitter=False, retry_on=Boom
    )
    builder = StateGraph(State)
    builder.add_node("a", colour.node(node), retry_policy=policy)
    builder.add_node("b", logs(colour, calls, "b"))
    builder.add_edge(START, "a")
    builder.add_edge(START, "b")
    graph = builder.compile()

    value = colour.invoke(graph, {"log": []})

    assert ["a", "b"] == value["log"]
    assert {"a": 3, "b": 1} == calls.count


# -- colours ----------------------------------------------------------------------


def test_a_blocking_run_refuses_async_nodes() -> None:
    graph = chain(Loop(), Calls(), "a").compile()

    with pytest.raises(ColourError, match="`a` is async"):
        Sync().invoke(graph, {"log": []})


def test_an_async_run_takes_blocking_nodes(colour: Colour) -> None:
    """In threads, so that the loop goes on."""
    if not isinstance(colour, Loop):
        pytest.skip("asyncio only")
    seen = []

    def node(state: State) -> State:
        seen.append(threading.current_thread() is threading.main_thread())
        return {"log": ["a"]}

    graph = chain(colour, Calls(), "a", a=node).compile()

    assert ["a"] == colour.invoke(graph, {"log": []})["log"]
    assert [False] == seen


def test_a_question_stops_the_run_when_its_siblings_are_done(colour: Colour) -> None:
    calls = Calls()

    def asks(state: State) -> State:
        calls("asks")
        return {"log": [interrupt("go?")]}

    graph = fan(colour, calls, "asks", "b", "c", asks=colour.node(asks)).compile(
        checkpointer=Diary()
    )

    colour.invoke(graph, {"log": []}, THREAD)
    state = graph.get_state(THREAD)

    assert ["go?"] == [asked.value for asked in state.interrupts]
    assert ("asks",) == state.next
    assert {"asks": 1, "b": 1, "c": 1} == calls.count
