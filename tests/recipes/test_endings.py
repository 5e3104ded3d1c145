"""Siblings of sections G and H: caches, retries, streams that are left."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import Counter
from typing import Any

import pytest

from towpath import CachePolicy, Command, InMemorySaver, RetryPolicy, get_stream_writer
from towpath.cache.memory import InMemoryCache
from towpath.errors import GraphRecursionError, NodeError, UnknownNodeError

from .kit import THREAD, Colour, Log, chain, logs, wire


def cached(node: Any, policy: CachePolicy, cache: Any) -> Any:
    """Return a graph of one cached node."""
    builder = wire()
    builder.add_node("node", node, cache_policy=policy)
    builder.add_edge("__start__", "node")
    return builder.compile(cache=cache)


def test_a_failure_is_not_cached(colour: Colour) -> None:
    calls: Counter = Counter()

    def node(state: Log) -> Any:
        calls["node"] += 1
        if calls["node"] == 1:
            raise ValueError("no luck")
        return {"log": ["ok"]}

    app = cached(node, CachePolicy(), InMemoryCache())
    with pytest.raises(ValueError, match="no luck"):
        colour.invoke(app, {"log": []})
    assert ["ok"] == colour.invoke(app, {"log": []})["log"]
    assert ["ok"] == colour.invoke(app, {"log": []})["log"]
    assert 2 == calls["node"]


def test_a_cached_goto_is_taken_again(colour: Colour) -> None:
    def node(state: Log) -> Any:
        return Command(goto="next", update={"log": ["node"]})

    builder = wire()
    builder.add_node("node", node, cache_policy=CachePolicy())
    builder.add_node("next", logs("next"))
    builder.add_edge("__start__", "node")
    app = builder.compile(cache=InMemoryCache())
    for _ in range(2):
        assert ["node", "next"] == colour.invoke(app, {"log": []})["log"]


@pytest.mark.slow
def test_a_cached_result_expires(colour: Colour) -> None:
    calls: Counter = Counter()
    app = cached(logs("node", calls), CachePolicy(ttl=1), InMemoryCache())
    colour.invoke(app, {"log": []})
    colour.invoke(app, {"log": []})
    assert 1 == calls["node"]
    time.sleep(1.1)
    colour.invoke(app, {"log": []})
    assert 2 == calls["node"]


def test_a_changed_result_of_a_cache_does_not_change_the_cache(colour: Colour) -> None:
    app = cached(lambda state: {"log": [["deep"]]}, CachePolicy(), InMemoryCache())
    colour.invoke(app, {"log": []})["log"][0].append("changed")
    assert [["deep"]] == colour.invoke(app, {"log": []})["log"]


def test_a_handler_may_not_go_to_an_unknown_node(colour: Colour) -> None:
    def fails(state: Log) -> Any:
        raise ValueError("no luck")

    def handle(state: Log, error: NodeError) -> Any:
        return Command(goto="nowhere")

    builder = wire()
    builder.add_node("fails", fails, error_handler=handle)
    builder.add_edge("__start__", "fails")
    with pytest.raises(UnknownNodeError, match="nowhere"):
        colour.invoke(builder.compile(), {"log": []})


def test_retries_start_from_the_same_state(colour: Colour) -> None:
    seen = []

    def node(state: Any) -> Any:
        seen.append(list(state["log"]))
        state["log"].append("changed in place")
        if len(seen) < 3:
            raise ValueError("later")
        return {"log": ["done"]}

    builder = wire()
    policy = RetryPolicy(initial_interval=0.001, jitter=False, retry_on=ValueError)
    builder.add_node("node", node, retry_policy=policy)
    builder.add_edge("__start__", "node")
    assert ["in", "done"] == colour.invoke(builder.compile(), {"log": ["in"]})["log"]
    assert [["in"]] * 3 == seen


def test_chunks_of_a_failed_attempt_were_told(colour: Colour) -> None:
    tries: Counter = Counter()

    def node(state: Log) -> Any:
        tries["node"] += 1
        get_stream_writer()(tries["node"])
        if tries["node"] < 3:
            raise ValueError("later")
        return {"log": ["done"]}

    builder = wire()
    policy = RetryPolicy(initial_interval=0.001, jitter=False, retry_on=ValueError)
    builder.add_node("node", node, retry_policy=policy)
    builder.add_edge("__start__", "node")
    app = builder.compile()
    assert [1, 2, 3] == colour.stream(app, {"log": []}, stream_mode="custom")


def test_a_child_counts_towards_the_limit_of_its_parent(colour: Colour) -> None:
    child = chain(**{f"c{n}": logs("c") for n in range(5)}).compile()
    app = wire(child=child).compile()
    assert 5 == len(colour.invoke(app, {"log": []}, {"recursion_limit": 12})["log"])
    with pytest.raises(GraphRecursionError):
        colour.invoke(app, {"log": []}, {"recursion_limit": 4})


def test_a_thread_ended_by_the_limit_goes_on(colour: Colour, saver: Any) -> None:
    app = chain(**{f"n{n}": logs(f"n{n}") for n in range(6)}).compile(saver)
    with pytest.raises(GraphRecursionError):
        colour.invoke(app, {"log": []}, {**THREAD, "recursion_limit": 3})
    assert [f"n{n}" for n in range(6)] == colour.invoke(app, None)["log"]


# -- streams that are left, errors of who listens -----------------------------------


def test_a_left_stream_keeps_what_was_done(saver: Any) -> None:
    app = chain(**{name: logs(name) for name in "abc"}).compile(saver)
    run = app.stream({"log": []}, THREAD, stream_mode="updates", durability="sync")
    assert {"a": {"log": ["a"]}} == next(run)
    run.close()
    state = app.get_state(THREAD)
    done = state.values["log"]
    assert done == ["a", "b", "c"][: len(done)]
    assert ["a", "b", "c"] == app.invoke(None, THREAD)["log"]


async def test_a_left_asynchronous_stream_keeps_what_was_done() -> None:
    app = chain(**{name: logs(name) for name in "abc"}).compile(InMemorySaver())
    run = app.astream({"log": []}, THREAD, stream_mode="updates")
    await anext(run)
    await run.aclose()
    assert ["a", "b", "c"] == (await app.ainvoke(None, THREAD))["log"]


def test_an_error_of_the_listener_is_its_own(saver: Any) -> None:
    app = chain(**{name: logs(name) for name in "abc"}).compile(saver)
    with pytest.raises(KeyError, match="mine"):
        for _ in app.stream({"log": []}, THREAD):
            raise KeyError("mine")
    assert ["a", "b", "c"] == app.invoke(None, THREAD)["log"]


def test_a_writer_that_outlives_its_node_is_harmless(colour: Colour) -> None:
    kept = []

    def node(state: Log) -> Any:
        kept.append(get_stream_writer())
        return {"log": ["node"]}

    app = chain(node=node, after=logs("after")).compile()
    colour.stream(app, {"log": []}, stream_mode="custom")
    kept[0]("late")
    assert ["node", "after"] == colour.invoke(app, {"log": []})["log"]


def test_writers_of_threads_do_not_mix() -> None:
    def node(state: Log) -> Any:
        for _ in range(20):
            get_stream_writer()(state["note"])
        return {}

    app = wire(node=node).compile()
    heard: dict[str, list[Any]] = {}

    def listen(name: str) -> None:
        given = {"log": [], "note": name}
        heard[name] = list(app.stream(given, stream_mode="custom"))

    threads = [threading.Thread(target=listen, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert {name: [name] * 20 for name in "abcd"} == heard


async def test_a_run_cancelled_between_nodes_can_go_on() -> None:
    gate = asyncio.Event()

    async def waits(state: Log) -> Any:
        await gate.wait()
        return {"log": ["waited"]}

    app = chain(a=logs("a"), waits=waits, b=logs("b")).compile(InMemorySaver())
    for _ in range(3):
        with contextlib.suppress(asyncio.TimeoutError):
            given = {"log": []} if not (await app.aget_state(THREAD)).values else None
            await asyncio.wait_for(app.ainvoke(given, THREAD), 0.02)
    gate.set()
    assert ["a", "waited", "b"] == (await app.ainvoke(None, THREAD))["log"]
