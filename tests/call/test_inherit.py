"""Threads that a node starts know the node, in every way of starting them."""

from __future__ import annotations

import asyncio
import operator
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, TypedDict

import pytest

from towpath import START, StateGraph, get_config, get_stream_writer


class Log(TypedDict):
    log: Annotated[list, operator.add]


def node_name() -> str:
    get_stream_writer()("seen")
    return get_config()["metadata"]["langgraph_node"]


def in_thread() -> str:
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(node_name()))
    thread.start()
    thread.join()
    return found[0]


def in_thread_of_thread() -> str:
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(in_thread()))
    thread.start()
    thread.join()
    return found[0]


def in_pool() -> str:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(node_name).result()


SHARED = ThreadPoolExecutor(1)


def in_shared_pool() -> str:
    return SHARED.submit(node_name).result()


def in_timer() -> str:
    found: list[str] = []
    timer = threading.Timer(0, lambda: found.append(node_name()))
    timer.start()
    timer.join()
    return found[0]


WAYS = [node_name, in_thread, in_thread_of_thread, in_pool, in_shared_pool, in_timer]


@pytest.mark.parametrize("way", WAYS)
def test_a_thread_started_by_a_node_knows_it(way: Callable[[], str]) -> None:
    graph = StateGraph(Log)
    graph.add_node("one", lambda _: {"log": [way()]})
    graph.add_node("two", lambda _: {"log": [way()]})
    graph.add_edge(START, "one")
    graph.add_edge("one", "two")
    app = graph.compile()

    assert {"log": ["one", "two"]} == app.invoke({"log": []})
    assert ["seen", "seen"] == list(app.stream({"log": []}, stream_mode="custom"))


@pytest.mark.parametrize("way", WAYS)
async def test_a_thread_started_by_an_async_node_knows_it(
    way: Callable[[], str],
) -> None:
    async def ask(_: Any) -> Any:
        hop = asyncio.to_thread(way)
        default = asyncio.get_running_loop().run_in_executor(None, way)
        return {"log": [way(), await hop, await default]}

    graph = StateGraph(Log)
    graph.add_node("one", ask)
    graph.add_edge(START, "one")

    assert {"log": ["one"] * 3} == await graph.compile().ainvoke({"log": []})


def test_threads_outside_of_nodes_are_left_alone() -> None:
    with ThreadPoolExecutor(1) as pool:
        error = pool.submit(node_name).exception()
    assert isinstance(error, RuntimeError)
