"""The least that could be called an engine, with nothing kept or told.

A plain loop shares one state between all nodes, does not know which of them runs,
and does not end by itself. This one gives each node a dict of its own, says in a
context variable where it is, and stops at a limit. It has no channels, no tasks,
no errors with names, no way to stop and go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextvars import ContextVar, copy_context
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

from bench.adapters.base import Bare, Job
from bench.adapters.deeds import STEPS_MAX
from bench.adapters.graphs import (
    add_one,
    async_add_one,
    async_talk,
    async_weigh,
    talk,
    touch,
)
from bench.workloads import LOOP_STEPS, VISITS, WIDE_STEPS, Workload

State = dict[str, Any]
Node = Callable[[Any], Any]
Route = Callable[[str, State], str | None]

RUNNING: ContextVar[str] = ContextVar("RUNNING")


class Floor(Bare):
    name = "floor"

    def prepare(self, workload: Workload, folder: Path) -> Job | None:
        if workload.saver != "none" or workload.variant:
            return None
        if workload.kind == "fan":
            return Job(partial(fan, workload.size)) if workload.asynchronous else None
        make = GRAPHS.get(workload.kind)
        if make is None:
            return None
        graph, given = make(workload)
        run = graph.arun if workload.asynchronous else graph.run
        # Lists of one run must not grow into the next.
        return Job(lambda: run(deepcopy(given)))


class Graph:
    """Named nodes, a route from each, and how a write is folded."""

    def __init__(self, nodes: Mapping[str, Node], route: Route, key: str) -> None:
        self.nodes, self.route, self.key = nodes, route, key
        self.first = next(iter(nodes))

    def run(self, state: State) -> Any:
        name = self.first
        for _ in range(STEPS_MAX):
            before = RUNNING.set(name)
            try:
                update = self.nodes[name](dict(state))
            finally:
                RUNNING.reset(before)
            following = self.take(state, update, name)
            if following is None:
                return self.result(state)
            name = following
        raise RecursionError

    async def arun(self, state: State) -> Any:
        name = self.first
        for _ in range(STEPS_MAX):
            before = RUNNING.set(name)
            try:
                update = await self.nodes[name](dict(state))
            finally:
                RUNNING.reset(before)
            following = self.take(state, update, name)
            if following is None:
                return self.result(state)
            name = following
        raise RecursionError

    def take(self, state: State, update: State, name: str) -> str | None:
        state.update(update)
        return self.route(name, state)

    def result(self, state: State) -> Any:
        return state[self.key]


Made = tuple[Graph, State]
"""A graph, and the state it begins with."""


class Summing(Graph):
    """Every key is a sum."""

    def take(self, state: State, update: State, name: str) -> str | None:
        for key, value in update.items():
            state[key] += value
        return self.route(name, state)


class Chatting(Graph):
    """Messages are added to a list that grows in place."""

    def take(self, state: State, update: State, name: str) -> str | None:
        state["messages"] += update.pop("messages")
        return super().take(state, update, name)

    def result(self, state: State) -> Any:
        return len(state["messages"])


def chain(workload: Workload) -> Made:
    names = [f"node_{number}" for number in range(workload.size)]
    following = dict(zip(names, names[1:], strict=False))
    node = async_add_one if workload.asynchronous else add_one
    nodes = dict.fromkeys(names, node)
    graph = Graph(nodes, lambda name, state: following.get(name), "count")
    return graph, {"count": 0}


def loop(workload: Workload) -> Made:
    def route(name: str, state: State) -> str | None:
        if name == "ping":
            return "pong"
        return "ping" if state["count"] < LOOP_STEPS else None

    node = async_add_one if workload.asynchronous else add_one
    return Graph({"ping": node, "pong": node}, route, "count"), {"count": 0}


def wide(workload: Workload) -> Made:
    def route(name: str, state: State) -> str | None:
        return "touch" if state["key_0"] < WIDE_STEPS else None

    given = {f"key_{number}": 0 for number in range(workload.size)}
    return Summing({"touch": touch}, route, "key_1"), given


def chat(workload: Workload) -> Made:
    def route(name: str, state: State) -> str | None:
        return "talk" if state["turn"] < state["turns"] else None

    node = async_talk if workload.asynchronous else talk
    given = {"messages": [], "turn": 0, "turns": workload.size}
    return Chatting({"talk": node}, route, "messages"), given


def nested(workload: Workload) -> Made:
    node: Node = add_one
    for _ in range(workload.size):
        node = level(node)

    def route(name: str, state: State) -> str | None:
        return "visit" if state["count"] < VISITS else None

    return Graph({"visit": node}, route, "count"), {"count": 0}


def level(node: Node) -> Node:
    """Return a node that is a graph of one node."""
    inner = Graph({"inner": node}, lambda name, state: None, "count")
    return lambda state: {"count": inner.run(state)}


async def fan(size: int) -> object:
    """Each task has a context of its own, in which it is named."""

    async def weigh(sent: State) -> State:
        RUNNING.set("weigh")
        return await async_weigh(sent)

    tasks = [
        asyncio.create_task(weigh({"weight": weight}), context=copy_context())
        for weight in range(size)
    ]
    return sum(each["total"] for each in await asyncio.gather(*tasks))


GRAPHS: dict[str, Callable[[Workload], Made]] = {
    "chain": chain,
    "loop": loop,
    "wide": wide,
    "chat": chat,
    "nested": nested,
}
