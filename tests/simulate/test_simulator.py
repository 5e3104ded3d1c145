"""The simulator itself: time that costs nothing, faults on request, crashes."""

from __future__ import annotations

import asyncio
import operator
import threading
from time import monotonic
from typing import Annotated, Any, TypedDict

import pytest

from towpath.checkpoint.memory import InMemorySaver
from towpath.errors import NodeTimeoutError, StepTimeoutError
from towpath.func import task
from towpath.graph import START, StateGraph
from towpath.runtime import Runtime
from towpath.testing.laws import crash_everywhere
from towpath.testing.simulate import (
    Clock,
    DiskError,
    Faults,
    SimulationError,
    simulate,
)
from towpath.types import RetryPolicy, TimeoutPolicy, interrupt

THREAD = {"configurable": {"thread_id": "thread"}}


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


def graph_of(*nodes: Any, **options: Any) -> StateGraph:
    """Nodes beside each other, named a, b, c."""
    builder = StateGraph(State)
    for name, node in zip("abc", nodes, strict=False):
        builder.add_node(name, node, **options)
        builder.add_edge(START, name)
    return builder


def log(text: str) -> Any:
    return lambda state: {"log": [text]}


def test_waiting_to_try_again_costs_no_time() -> None:
    clock, began = Clock(), monotonic()

    def node(state: State, runtime: Runtime[Any]) -> State:
        if runtime.execution_info.node_attempt < 4:
            raise ValueError
        return {"log": [f"{clock.now:.0f}"]}

    policy = RetryPolicy(
        initial_interval=100.0,
        backoff_factor=10.0,
        max_interval=1e9,
        max_attempts=4,
        jitter=False,
        retry_on=ValueError,
    )
    trace = simulate(graph_of(node, retry_policy=policy).compile(), {}, clock=clock)

    assert {"log": ["11101"]} == trace.value
    assert monotonic() - began < 5


@pytest.mark.parametrize("seed", range(5))
def test_what_takes_longer_finishes_later(seed: int) -> None:
    """Blocking or not, side by side, each in its own time."""
    clock = Clock()

    def blocks(state: State) -> State:
        clock.sleep(30)
        return {"log": ["blocks"]}

    async def awaits(state: State) -> State:
        await clock.asleep(20)
        return {"log": ["awaits"]}

    graph = graph_of(blocks, awaits, log("at once")).compile()
    trace = simulate(graph, {}, seed=seed, clock=clock, stream_mode="updates")

    assert ["c", "b", "a"] == [name for chunk in trace.chunks for name in chunk]
    assert 31.0 == clock.now


@pytest.mark.parametrize("seed", range(5))
def test_time_limits_of_nodes(seed: int) -> None:
    clock = Clock()

    async def awaits(state: State) -> State:
        await clock.asleep(61)
        return {"log": ["late"]}

    builder = graph_of(awaits, timeout=TimeoutPolicy(run_timeout=60))
    trace = simulate(builder.compile(), {}, seed=seed, clock=clock)

    assert isinstance(trace.error, NodeTimeoutError)
    assert 60.0 == trace.error.elapsed


def test_heartbeats_put_off_the_idle_limit() -> None:
    clock = Clock()

    async def beats(state: State, runtime: Runtime[Any]) -> State:
        for _ in range(5):
            await clock.asleep(50)
            runtime.heartbeat()
        return {"log": ["done"]}

    async def silent(state: State) -> State:
        await clock.asleep(61)
        return {}

    limit = TimeoutPolicy(idle_timeout=60, refresh_on="heartbeat")
    alive = simulate(graph_of(beats, timeout=limit).compile(), {}, clock=clock)
    dead = simulate(graph_of(silent, timeout=limit).compile(), {}, clock=clock)

    assert {"log": ["done"]} == alive.value
    assert isinstance(dead.error, NodeTimeoutError)


def test_time_limits_of_steps() -> None:
    clock = Clock()

    def blocks(state: State) -> State:
        clock.sleep(11)
        return {}

    graph = graph_of(blocks, log("b")).compile()
    graph.step_timeout = 10.0

    assert isinstance(simulate(graph, {}, clock=clock).error, StepTimeoutError)


def test_no_threads() -> None:
    before = threading.active_count()
    trace = simulate(graph_of(log("a"), log("b"), log("c")).compile(), {})

    assert {"log": ["a", "b", "c"]} == trace.value
    assert before == threading.active_count()


def test_every_order_of_finishing_comes_up() -> None:
    graph = graph_of(log("a"), log("b"), log("c")).compile()
    orders = {
        tuple(name for chunk in trace.chunks for name in chunk)
        for seed in range(60)
        for trace in [simulate(graph, {}, seed=seed, stream_mode="updates")]
    }

    assert 6 == len(orders)


def test_a_failing_disk_fails_the_run() -> None:
    graph = graph_of(log("a")).compile(checkpointer=InMemorySaver())
    trace = simulate(graph, {}, THREAD, faults=Faults(stores=frozenset({0})))

    assert "failed" == trace.status
    assert isinstance(trace.error, DiskError)
    assert () == graph.get_state(THREAD).next


def test_a_crash_leaves_what_was_stored() -> None:
    saver = InMemorySaver()
    graph = graph_of(log("a")).compile(checkpointer=saver)
    clock = Clock()

    trace = simulate(graph, {}, THREAD, crash_at=4, clock=clock, durability="sync")
    stored = graph.get_state(THREAD)
    resumed = simulate(graph, None, THREAD, clock=clock)

    assert "crashed" == trace.status
    assert ("a",) == stored.next
    assert {"log": ["a"]} == resumed.value


def test_a_crash_loses_what_was_left_behind() -> None:
    graph = graph_of(log("a")).compile(checkpointer=InMemorySaver())
    lagging = Faults(lag=1.0)

    simulate(graph, {}, THREAD, crash_at=4, faults=lagging, durability="async")

    assert graph.get_state(THREAD).created_at is None


def test_code_of_nodes_cannot_stop_a_crash() -> None:
    """Nor do anything after it that would be stored."""
    saver = InMemorySaver()
    child = graph_of(log("x"), log("y")).compile()

    def node(state: State) -> Any:
        try:
            return child.invoke({})
        except BaseException:
            return {"log": ["caught"]}

    graph = graph_of(node).compile(checkpointer=saver)
    whole = simulate(graph, {}, THREAD, durability="sync")
    last = len(whole.journal.commands)

    for crash_at in range(last):
        clock = Clock()
        graph = graph_of(node).compile(checkpointer=InMemorySaver())
        trace = simulate(
            graph, {}, THREAD, crash_at=crash_at, clock=clock, durability="sync"
        )
        assert "crashed" == trace.status
        assert "caught" not in graph.get_state(THREAD).values.get("log", [])


def test_what_needs_an_event_loop_is_refused_by_name() -> None:
    async def node(state: State) -> State:
        future = asyncio.Future(loop=asyncio.new_event_loop())
        try:
            return await future
        finally:
            future.get_loop().close()

    trace = simulate(graph_of(node).compile(), {})

    assert isinstance(trace.error, SimulationError)
    assert "`a`" in str(trace.error)


def test_a_law_that_is_broken_is_reported() -> None:
    """A node that remembers what it did breaks the laws, and the report says so."""
    times: list[int] = []

    def remembers(state: State) -> State:
        times.append(1)
        return {"log": [str(len(times))]}

    report = crash_everywhere(
        lambda saver: graph_of(remembers).compile(checkpointer=saver), {}
    )

    with pytest.raises(AssertionError, match=r"(?s)seed 0: .* the same values"):
        report.check()


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_questions_are_answered_after_a_crash(durability: str) -> None:
    def asks(state: State) -> State:
        return {"log": [interrupt("first?"), interrupt("second?")]}

    crash_everywhere(
        lambda saver: graph_of(asks, asks, log("c")).compile(checkpointer=saver),
        {},
        lambda question: f"answer to {question}",
        durability=durability,
    ).check()


def test_blocking_node_that_waits_for_a_task_cannot_be_simulated() -> None:
    work = task(name="work")(int)
    graph = graph_of(lambda _: work().result()).compile()

    trace = simulate(graph, {"log": []})

    assert "failed" == trace.status
    assert isinstance(trace.error, SimulationError)
