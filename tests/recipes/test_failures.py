"""Section H of the reports: errors, caches, timeouts, limits.

Row 95 (a tool node's errors) belongs with the prebuilt nodes.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from typing import Annotated, Any

import pytest
from typing_extensions import TypedDict

from towpath import CachePolicy, InMemorySaver, RetryPolicy, StateGraph
from towpath.cache.memory import InMemoryCache
from towpath.errors import GraphRecursionError, NodeError, NodeTimeoutError
from towpath.managed import IsLastStep, RemainingSteps
from towpath.semantics import LANGGRAPH, NATIVE

from .kit import Colour, Log, chain, logs, wire


def fails(state: Any) -> Any:
    raise ValueError("no luck")


# -- row 90: a handled error is handled ---------------------------------------


def handles(state: Log, error: NodeError) -> Any:
    return {"log": [f"{error.node} {error.error}"]}


def handled(sibling: bool) -> StateGraph:
    """Return a graph whose node fails and is handled, alone or with a sibling."""
    builder = wire(fine=logs("fine")) if sibling else wire()
    builder.add_node("bad", fails, error_handler=handles)
    builder.add_edge("__start__", "bad")
    return builder


@pytest.mark.parametrize("sibling", [False, True], ids=["alone", "beside"])
@pytest.mark.parametrize("mode", ["values", "updates", "custom", "tasks", "debug"])
def test_a_handled_error_is_not_raised(
    colour: Colour, mode: str, sibling: bool
) -> None:
    app = handled(sibling).compile(InMemorySaver())
    colour.stream(app, {"log": []}, stream_mode=mode)
    logged = colour.state(app).values["log"]
    assert sorted(["bad no luck", *["fine"][:sibling]]) == sorted(logged)


def test_an_error_of_a_handler_is_raised(colour: Colour) -> None:
    def worse(state: Log, error: NodeError) -> Any:
        raise KeyError("worse")

    builder = wire()
    builder.add_node("bad", fails, error_handler=worse)
    builder.add_edge("__start__", "bad")
    with pytest.raises(KeyError, match="worse"):
        colour.invoke(builder.compile(), {"log": []})


def test_errors_keep_their_type_and_say_where(colour: Colour) -> None:
    with pytest.raises(ValueError, match="no luck") as error:
        colour.invoke(wire(culprit=fails).compile(), {"log": []})
    assert any("culprit" in note for note in error.value.__notes__)
    assert "fails" in [one.name for one in error.traceback]


# -- row 92: compiling changes nothing ----------------------------------------


def test_a_builder_is_compiled_twice_and_extended(colour: Colour) -> None:
    builder = wire(("__start__", "a"), a=logs("a"))
    builder.set_node_defaults(
        retry_policy=RetryPolicy(initial_interval=0.001, jitter=False),
        error_handler=handles,
    )
    first, second = builder.compile(), builder.compile()
    with pytest.warns(UserWarning, match="already been compiled"):
        builder.add_node("b", fails)
        builder.add_edge("a", "b")
    third = builder.compile()
    assert ["a"] == colour.invoke(first, {"log": []})["log"]
    assert ["a"] == colour.invoke(second, {"log": []})["log"]
    assert ["a", "b no luck"] == colour.invoke(third, {"log": []})["log"]


# -- row 93: a cache shared by two graphs -------------------------------------


class Adds:
    """A callable object as a node."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __call__(self, state: Any) -> Any:
        return {"log": [self.text]}


def test_two_graphs_share_a_cache_and_no_results(colour: Colour) -> None:
    cache = InMemoryCache()
    for text in "ab":
        builder = wire()
        builder.add_node("node", Adds(text), cache_policy=CachePolicy())
        builder.add_edge("__start__", "node")
        app = builder.compile(cache=cache)
        assert [text] == colour.invoke(app, {"log": []})["log"]


def test_two_functions_of_one_name_share_no_results(colour: Colour) -> None:
    cache = InMemoryCache()
    for text in "ab":
        builder = wire()
        builder.add_node("node", logs(text), cache_policy=CachePolicy())
        builder.add_edge("__start__", "node")
        app = builder.compile(cache=cache)
        assert [text] == colour.invoke(app, {"log": []})["log"]


def test_a_cached_result_is_not_computed_again(colour: Colour) -> None:
    calls: Counter = Counter()
    builder = wire()
    builder.add_node("node", logs("node", calls), cache_policy=CachePolicy())
    builder.add_edge("__start__", "node")
    app = builder.compile(cache=InMemoryCache())
    for _ in range(3):
        assert ["node"] == colour.invoke(app, {"log": []})["log"]
    assert {"node": 1} == calls
    colour.invoke(app, {"log": ["other input"]})
    assert {"node": 2} == calls


# -- row 97: timeouts ---------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["node", "step"])
def test_a_timeout_of_blocking_code_comes_at_once(colour: Colour, kind: str) -> None:
    release = threading.Event()

    def sleeps(state: Log) -> Any:
        release.wait(5)
        return {"log": ["late"]}

    builder = wire()
    builder.add_node("sleeps", sleeps, timeout=0.05 if kind == "node" else None)
    builder.add_edge("__start__", "sleeps")
    app = builder.compile(InMemorySaver())
    if kind == "step":
        app.step_timeout = 0.05
    start = time.monotonic()
    try:
        with pytest.raises(TimeoutError) as error:
            colour.invoke(app, {"log": []})
        took = time.monotonic() - start
    finally:
        release.set()
    assert took < 1
    assert "sleeps" in str(error.value)
    assert not colour.state(app).values.get("log")


def test_a_late_result_is_not_taken(colour: Colour) -> None:
    release, tries = threading.Event(), Counter()

    def node(state: Log) -> Any:
        tries["node"] += 1
        if tries["node"] == 1:
            release.wait(5)
            return {"log": ["late"]}
        release.set()
        return {"log": ["in time"]}

    builder = wire()
    builder.add_node("node", node, timeout=0.05)
    builder.add_edge("__start__", "node")
    app = builder.compile(InMemorySaver())
    with pytest.raises(NodeTimeoutError):
        colour.invoke(app, {"log": []})
    assert ["in time"] == colour.invoke(app, None)["log"]


async def test_a_coroutine_is_cancelled_by_its_timeout() -> None:
    cancelled = asyncio.Event()

    async def sleeps(state: Log) -> Any:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    builder = wire()
    builder.add_node("sleeps", sleeps, timeout=0.02)
    builder.add_edge("__start__", "sleeps")
    with pytest.raises(NodeTimeoutError):
        await builder.compile().ainvoke({"log": []})
    await asyncio.wait_for(cancelled.wait(), 1)


# -- rows 98, 100: limits -----------------------------------------------------


class Counted(TypedDict, total=False):
    n: int
    left: RemainingSteps
    last: IsLastStep
    seen: Annotated[list, lambda old, new: [*old, *new]]


def runaway(state: Any) -> Any:
    return {"n": state.get("n", 0) + 1}


def test_a_runaway_loop_ends_soon(colour: Colour) -> None:
    assert (1000, 10007) == (NATIVE.recursion_limit, LANGGRAPH.recursion_limit)
    builder = wire(("__start__", "a"), ("a", "a"), state=Counted, a=runaway)
    app = builder.compile(InMemorySaver())
    with pytest.raises(GraphRecursionError, match="`a`") as error:
        colour.invoke(app, {"n": 0})
    assert "recursion_limit" in str(error.value)
    assert colour.state(app).values["n"] in range(999, 1002)


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_a_limit_counts_the_steps_and_the_end(colour: Colour, count: int) -> None:
    names = [f"n{number}" for number in range(count)]
    app = chain(**{name: logs(name) for name in names}).compile()
    config = {"recursion_limit": count + 1}
    assert names == colour.invoke(app, {"log": []}, config)["log"]
    with pytest.raises(GraphRecursionError):
        colour.invoke(app, {"log": []}, {"recursion_limit": count})


def test_the_last_step_knows_that_it_is_the_last(colour: Colour) -> None:
    def look(state: Any) -> Any:
        return {"seen": [(state["left"], state["last"])]}

    app = chain(state=Counted, a=look, b=look, c=look).compile()
    seen = colour.invoke(app, {"n": 0}, {"recursion_limit": 4})["seen"]
    assert [(3, False), (2, False), (1, True)] == seen


def test_children_share_the_limit_of_their_parent(colour: Colour) -> None:
    child = wire(("__start__", "a"), ("a", "a"), state=Counted, a=runaway).compile()
    app = wire(state=Counted, child=child).compile()
    with pytest.raises(GraphRecursionError):
        colour.invoke(app, {"n": 0}, {"recursion_limit": 10})


# -- row 102: several failures at once ----------------------------------------


def test_every_failure_of_a_step_is_told(colour: Colour) -> None:
    barrier = threading.Barrier(2)

    def fails_too(name: str) -> Any:
        def node(state: Log) -> Any:
            barrier.wait(5)
            raise ValueError(f"{name} failed")

        async def anode(state: Log) -> Any:
            raise ValueError(f"{name} failed")

        return node if colour.runner is None else anode

    app = wire(left=fails_too("left"), right=fails_too("right")).compile()
    with pytest.raises(ValueError, match="failed") as error:
        colour.invoke(app, {"log": []})
    told = str(error.value) + "".join(error.value.__notes__)
    assert "left failed" in told
    assert "right failed" in told


# -- what every failure leaves behind -----------------------------------------


def test_a_failed_thread_goes_on_where_it_failed(colour: Colour, saver: Any) -> None:
    calls: Counter = Counter()

    def flaky(state: Log) -> Any:
        calls["flaky"] += 1
        if calls["flaky"] == 1:
            raise ValueError("no luck")
        return {"log": ["flaky"]}

    app = chain(a=logs("a", calls), flaky=flaky).compile(saver)
    with pytest.raises(ValueError, match="no luck"):
        colour.invoke(app, {"log": []})
    (task,) = colour.state(app).tasks
    assert "no luck" in str(task.error)
    assert ["a", "flaky"] == colour.invoke(app, None)["log"]
    assert {"a": 1, "flaky": 2} == calls
