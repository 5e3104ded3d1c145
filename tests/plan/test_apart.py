"""Who means the asyncio task it runs in has one of its own."""

from __future__ import annotations

import asyncio
import functools
from typing import Any, TypedDict

import pytest

from towpath import END, START, StateGraph


class State(TypedDict, total=False):
    text: str


def stops() -> None:
    asyncio.current_task().cancel()


def calls_itself() -> None:
    calls_itself()


async def asks(state: Any) -> None:
    asyncio.current_task()


async def has_it_asked(state: Any) -> None:
    stops()


async def asks_inside(state: Any) -> None:
    def inner() -> Any:
        return asyncio.current_task()

    inner()


async def does_not(state: Any) -> None:
    await asyncio.sleep(0)


async def goes_round(state: Any) -> None:
    calls_itself()


def blocks(state: Any) -> None:
    stops()


def wrapped(function: Any) -> Any:
    @functools.wraps(function)
    async def wrapper(state: Any) -> Any:
        return await function(state)

    return wrapper


class Called:
    async def __call__(self, state: Any) -> None:
        stops()

    async def method(self, state: Any) -> None:
        stops()


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (asks, True),
        (has_it_asked, True),
        (asks_inside, True),
        (wrapped(asks), True),
        (functools.partial(asks), True),
        (Called(), True),
        (Called().method, True),
        (does_not, False),
        (goes_round, False),
        (wrapped(does_not), False),
        (blocks, False),
    ],
)
def test_a_node_is_looked_at_for_what_it_asks(node, expected):
    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    builder.add_node("by_branch", does_not)
    builder.add_node("handled", does_not, error_handler=node)
    builder.add_edge("node", "by_branch")
    if node is not blocks:
        builder.add_conditional_edges("by_branch", node, [END])
    nodes = builder.compile().plan_of_graph.nodes
    assert expected == nodes["node"].apart
    assert expected == nodes["by_branch"].apart
    assert not nodes["handled"].apart
    assert expected == next(s for s in nodes.values() if s.handles).apart


async def test_it_has_one_and_others_run_in_their_caller_s():
    seen = []

    async def asks(state: Any) -> None:
        seen.append(asyncio.current_task())

    async def tells(state: Any) -> None:
        seen.append(running())

    builder = StateGraph(State)
    builder.add_node("asks", asks)
    builder.add_node("tells", tells)
    builder.add_edge(START, "asks")
    builder.add_edge("asks", "tells")
    await builder.compile().ainvoke({"text": ""})
    assert seen[0] is not asyncio.current_task()
    assert seen[1] is asyncio.current_task()


running = getattr(asyncio, "current_task")  # noqa: B009 - what no code of a node names
