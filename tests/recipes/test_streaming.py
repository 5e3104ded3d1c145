"""Section G of the reports: what a stream shows, and when it stops.

Rows 85 and 89 are about a closed server and about events of an outer
framework; 84 is tested where its event stream is.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter
from typing import Any

import pytest

from towpath import InMemorySaver, get_stream_writer
from towpath.errors import InvalidUpdateError
from towpath.semantics import LANGGRAPH, NATIVE

from .kit import THREAD, Colour, Log, chain, logs, wire


def speaks(state: Log) -> Any:
    """Write a chunk from the node of a child."""
    get_stream_writer()("from below")
    return {"log": ["child"]}


# -- row 81: one rule for every mode ------------------------------------------


@pytest.mark.parametrize("semantics", [NATIVE, LANGGRAPH], ids=["native", "peer"])
@pytest.mark.parametrize("mode", ["custom", "updates", "values", "tasks", "debug"])
def test_children_show_only_when_asked(
    colour: Colour, mode: str, semantics: Any
) -> None:
    app = wire(child=wire(speaks=speaks).compile()).compile(semantics=semantics)
    alone = colour.stream(app, {"log": []}, stream_mode=mode, subgraphs=False)
    within = colour.stream(app, {"log": []}, stream_mode=mode, subgraphs=True)
    assert len(alone) == len([where for where, _ in within if not where])
    assert any(where for where, _ in within)


def test_tokens_of_children_show_only_when_asked(colour: Colour) -> None:
    models = pytest.importorskip("langchain_core.language_models")
    model = models.FakeListChatModel(responses=["one two"])

    def call(state: Log) -> Any:
        return {"note": model.invoke("hi").content}

    app = wire(child=wire(call=call).compile()).compile()
    options: dict[str, Any] = {"stream_mode": "messages"}
    assert [] == colour.stream(app, {"log": []}, **options)
    assert colour.stream(app, {"log": []}, subgraphs=True, **options)


# -- row 82: every level under its own place ----------------------------------


def test_each_level_shows_its_state_once(colour: Colour) -> None:
    app = wire(child=wire(speaks=speaks).compile()).compile()
    chunks = colour.stream(app, {"log": []}, stream_mode="values", subgraphs=True)
    places = Counter(len(where) for where, _ in chunks)
    assert {0: 2, 1: 2} == places


# -- row 84: closing a stream stops the children ------------------------------


def test_closing_a_blocking_stream_stops_the_children() -> None:
    calls: Counter = Counter()
    stop = threading.Event()

    def loops(state: Log) -> Any:
        calls["loops"] += 1
        stop.wait(0.005)
        return {"log": ["x"]}

    child = wire(("__start__", "loops"), ("loops", "loops"), loops=loops).compile()
    app = wire(child=child).compile()
    run = app.stream({"log": []}, stream_mode="updates", subgraphs=True)
    next(run)
    run.close()
    after = calls["loops"]
    stop.wait(0.05)
    assert calls["loops"] <= after + 1


async def test_closing_an_asynchronous_stream_stops_the_children() -> None:
    calls: Counter = Counter()

    async def loops(state: Log) -> Any:
        calls["loops"] += 1
        await asyncio.sleep(0.001)
        return {"log": ["x"]}

    child = wire(("__start__", "loops"), ("loops", "loops"), loops=loops).compile()

    async def caller(state: Log) -> Any:
        return await child.ainvoke({"log": []})

    for node in (child, caller):
        calls.clear()
        app = wire(child=node).compile()
        run = app.astream({"log": []}, stream_mode="updates", subgraphs=True)
        await anext(run)
        await run.aclose()
        after = calls["loops"]
        await asyncio.sleep(0.02)
        assert after == calls["loops"]


async def test_cancelling_a_run_stops_the_children() -> None:
    stopped = asyncio.Event()
    started = asyncio.Event()

    async def waits(state: Log) -> Any:
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()

    app = wire(child=wire(waits=waits).compile()).compile()
    run = asyncio.ensure_future(app.ainvoke({"log": []}))
    await started.wait()
    run.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await run
    assert stopped.is_set()


# -- row 86: chunks from helpers, threads and tasks ---------------------------


async def test_chunks_of_tasks_that_a_node_started_are_delivered() -> None:
    async def helper(number: int) -> None:
        await asyncio.sleep(0)
        get_stream_writer()(number)

    async def node(state: Log) -> Any:
        await asyncio.gather(*(helper(number) for number in range(3)))
        await asyncio.to_thread(lambda: get_stream_writer()("thread"))
        return {"log": ["node"]}

    app = wire(node=node).compile()
    chunks = [one async for one in app.astream({"log": []}, stream_mode="custom")]
    assert {0, 1, 2, "thread"} == set(chunks)


def test_chunks_arrive_while_the_node_runs() -> None:
    go_on = threading.Event()

    def node(state: Log) -> Any:
        get_stream_writer()("early")
        assert go_on.wait(5), "the chunk was held back until the node ended"
        return {"log": ["node"]}

    run = wire(node=node).compile().stream({"log": []}, stream_mode="custom")
    first = next(run)
    go_on.set()
    assert ("early", []) == (first, list(run))


# -- row 88: generator nodes --------------------------------------------------


def yields(state: Log) -> Any:
    yield {"log": [1]}
    yield {"log": [2], "note": "first"}
    yield {"note": "second"}


async def ayields(state: Log) -> Any:
    yield {"log": [1]}
    await asyncio.sleep(0)
    yield {"log": [2], "note": "first"}
    yield {"note": "second"}


@pytest.mark.parametrize("semantics", [NATIVE, LANGGRAPH], ids=["native", "peer"])
def test_every_yield_of_a_node_counts(colour: Colour, semantics: Any) -> None:
    app = chain(node=yields, after=logs("after")).compile(
        InMemorySaver(), semantics=semantics
    )
    result = colour.invoke(app, {"log": []})
    assert {"log": [1, 2, "after"], "note": "second"} == result
    assert result == colour.state(app).values


async def test_every_yield_of_an_asynchronous_node_counts() -> None:
    app = wire(node=ayields).compile()
    assert {"log": [1, 2], "note": "second"} == await app.ainvoke({"log": []}, THREAD)


def test_every_yield_is_streamed_as_it_comes() -> None:
    steps = []

    def node(state: Log) -> Any:
        for number in range(3):
            steps.append(f"yield {number}")
            yield {"log": [number]}

    for chunk in wire(node=node).compile().stream({"log": []}, stream_mode="updates"):
        steps.append(chunk["node"]["log"])
    assert [[0], [1], [2]] == [one for one in steps if isinstance(one, list)]


def test_a_wrong_yield_is_an_error(colour: Colour) -> None:
    def node(state: Log) -> Any:
        yield {"log": [1]}
        yield "no update"

    app = wire(node=node).compile(InMemorySaver())
    with pytest.raises(InvalidUpdateError, match="node"):
        colour.invoke(app, {"log": []})
    assert not colour.state(app).values.get("log")
