"""A run that comes back to its own thread does not wait for itself."""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import operator
import sys
import threading
from contextlib import closing
from typing import Annotated, Any, TypedDict

import pytest

from towpath.checkpoint.memory import InMemorySaver
from towpath.checkpoint.sqlite import SqliteSaver
from towpath.errors import ThreadBusyError
from towpath.graph import START, StateGraph
from towpath.types import Send

THREAD = {"configurable": {"thread_id": "t"}}
LONG_S = 8.0
"""Who takes longer waits for ever."""


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    item: Annotated[int, max]


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def saver(request, tmp_path):
    if request.param == "memory":
        yield InMemorySaver()
        return
    if request.param == "sqlite":
        opened = SqliteSaver(str(tmp_path / "db.sqlite"))
    else:
        from towpath.checkpoint.postgres import PostgresSaver

        opened = PostgresSaver(request.getfixturevalue("postgres"), pool_size_max=4)
    with closing(opened) as saver:
        yield saver


def watched(work: Any) -> Any:
    """Do something in a thread of its own; fail, with all stacks, if it hangs."""
    result: list[Any] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            result.append(work())
        except BaseException as error:
            failure.append(error)

    runner = threading.Thread(target=run, daemon=True)
    runner.start()
    runner.join(LONG_S)
    if runner.is_alive():
        faulthandler.dump_traceback(sys.stderr)
        pytest.fail("it waits for itself")
    if failure:
        raise failure[0]
    return result[0]


def build(**nodes: Any) -> Any:
    """A chain of nodes."""
    builder: Any = StateGraph(State)
    above = START
    for name, node in nodes.items():
        builder.add_node(name, node)
        builder.add_edge(above, name)
        above = name
    return builder


def call(graph: Any, given: Any, colour: str, durability: str = "async") -> Any:
    options = {"durability": durability}
    if colour == "sync":
        return watched(lambda: graph.invoke(given, THREAD, **options))
    return watched(lambda: asyncio.run(graph.ainvoke(given, THREAD, **options)))


def log(*words: str) -> Any:
    return lambda state: {"log": list(words)}


@pytest.mark.parametrize("colour", ["sync", "loop"])
def test_a_node_may_run_read_and_edit_the_thread_it_is_in(saver, colour):
    depth = []

    def node(state):
        if depth:
            return {"log": ["inner"]}
        depth.append(1)
        before = graph.get_state(THREAD).values["log"]
        told = graph.invoke({"log": ["again"]}, THREAD)
        assert list(graph.get_state_history(THREAD))
        return {"log": [f"saw {before}", f"told {told['log']}"]}

    async def anode(state):
        if depth:
            return {"log": ["inner"]}
        depth.append(1)
        before = (await graph.aget_state(THREAD)).values["log"]
        told = await graph.ainvoke({"log": ["again"]}, THREAD)
        assert [s async for s in graph.aget_state_history(THREAD)]
        return {"log": [f"saw {before}", f"told {told['log']}"]}

    builder = build(first=log("first"), node=node if colour == "sync" else anode)
    graph = builder.compile(checkpointer=saver)
    told = call(graph, {"log": ["in"]}, colour, "sync")["log"]
    assert ["in", "first"] == told[:2]
    assert 4 == len(told)
    assert told == graph.get_state(THREAD).values["log"]


@pytest.mark.parametrize("colour", ["sync", "loop"])
def test_a_node_may_edit_the_thread_it_is_in(saver, colour):
    def node(state):
        graph.update_state(THREAD, {"log": ["edited"]}, as_node="first")
        return {"log": ["node"]}

    async def anode(state):
        await graph.aupdate_state(THREAD, {"log": ["edited"]}, as_node="first")
        return {"log": ["node"]}

    builder = build(first=log("first"), node=node if colour == "sync" else anode)
    graph = builder.compile(checkpointer=saver)
    told = call(graph, {"log": ["in"]}, colour)["log"]
    assert ["in", "first", "node"] == told
    assert told == graph.get_state(THREAD).values["log"]


@pytest.mark.parametrize("colour", ["sync", "loop"])
@pytest.mark.parametrize("persist", [None, True, False, "own"])
def test_subgraphs_of_every_kind_run_side_by_side(saver, colour, persist):
    """Some as nodes, some called in a node, some by sends; three levels deep."""
    own = InMemorySaver() if persist == "own" else persist
    lowest = build(lowest=log("lowest")).compile(checkpointer=own)
    middle = build(above=log("middle"), lowest=lowest).compile(checkpointer=own)
    subgraph = build(calls=log("sub"), middle=middle).compile(checkpointer=own)

    def calls(state):
        return {"log": [*subgraph.invoke({"log": []})["log"], "called"]}

    async def acalls(state):
        return {"log": [*(await subgraph.ainvoke({"log": []}))["log"], "called"]}

    builder: Any = StateGraph(State)
    builder.add_node("start", log("start"))
    builder.add_node("calls", calls if colour == "sync" else acalls)
    builder.add_node("graph", subgraph)
    builder.add_edge(START, "start")
    builder.add_edge("start", "calls")
    if persist is not True:  # several would share what one keeps
        builder.add_conditional_edges(
            "start",
            lambda state: [Send("graph", {"log": [], "item": n}) for n in range(6)],
            ["graph"],
        )
    else:
        builder.add_edge("calls", "graph")
    graph = builder.compile(checkpointer=saver)
    for _ in range(2):
        told = call(graph, {"log": []}, colour)["log"]
        assert {"start", "sub", "middle", "lowest", "called"} == set(told)
    assert told == graph.get_state(THREAD).values["log"]


@pytest.mark.parametrize("colour", ["sync", "loop"])
def test_a_node_may_run_other_threads_of_its_graph(saver, colour):
    def node(state):
        item = state.get("item", 0)
        if item == 0:
            return {"log": ["deepest"]}
        config = {"configurable": {"thread_id": f"t{item - 1}"}}
        return {"log": [*graph.invoke({"log": [], "item": item - 1}, config)["log"]]}

    async def anode(state):
        item = state.get("item", 0)
        if item == 0:
            return {"log": ["deepest"]}
        config = {"configurable": {"thread_id": f"t{item - 1}"}}
        told = await graph.ainvoke({"log": [], "item": item - 1}, config)
        return {"log": told["log"]}

    builder = build(node=node if colour == "sync" else anode)
    graph = builder.compile(checkpointer=saver)
    assert ["deepest"] == call(graph, {"log": [], "item": 3}, colour)["log"]


def test_a_stream_left_open_is_told_of_by_who_would_wait_for_it(saver):
    graph = build(a=log("a"), b=log("b")).compile(checkpointer=saver)

    def work():
        stream = graph.stream({"log": []}, THREAD, stream_mode="updates")
        next(stream)
        for second in (
            lambda: graph.invoke({"log": ["two"]}, THREAD),
            lambda: graph.update_state(THREAD, {"log": ["two"]}),
        ):
            with pytest.raises(ThreadBusyError, match="TP-502") as caught:
                second()
            assert "close the stream" in str(caught.value)
        stream.close()
        return graph.invoke({"log": ["two"]}, THREAD)["log"]

    assert "two" in watched(work)


def test_an_async_stream_left_open_is_told_of_by_who_would_block_its_loop(saver):
    graph = build(a=log("a"), b=log("b")).compile(checkpointer=saver)

    async def work():
        # A transaction under way would wait for the loop, and its lock for it.
        options = {"stream_mode": "updates", "durability": "sync"}
        stream = graph.astream({"log": []}, THREAD, **options)
        await anext(stream)
        with pytest.raises(ThreadBusyError, match="TP-502"):
            graph.invoke({"log": ["two"]}, THREAD)
        await stream.aclose()
        return (await graph.ainvoke({"log": ["two"]}, THREAD))["log"]

    assert "two" in watched(lambda: asyncio.run(work()))


def test_a_stream_that_nobody_holds_any_more_frees_its_thread(saver):
    graph = build(a=log("a"), b=log("b")).compile(checkpointer=saver)

    def work():
        stream = graph.stream({"log": []}, THREAD, stream_mode="updates")
        next(stream)
        del stream
        gc.collect()
        return graph.invoke({"log": ["two"]}, THREAD)["log"]

    assert "two" in watched(work)


def test_an_async_stream_that_nobody_holds_any_more_frees_its_thread(saver):
    graph = build(a=log("a"), b=log("b")).compile(checkpointer=saver)

    async def work():
        stream = graph.astream({"log": []}, THREAD, stream_mode="updates")
        await anext(stream)
        del stream
        gc.collect()
        return (await graph.ainvoke({"log": ["two"]}, THREAD))["log"]

    assert "two" in watched(lambda: asyncio.run(work()))
