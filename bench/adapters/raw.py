"""The same work by hand, without an engine: the price below which nobody gets."""

from __future__ import annotations

import asyncio
import json
import platform
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from bench.adapters.base import ANSWER, QUESTION, Job, size
from bench.adapters.graphs import (
    Chat,
    add_one,
    async_add_one,
    async_weigh,
    talk,
    touch,
    weigh,
)
from bench.workloads import LOOP_STEPS, VISITS, WIDE_STEPS, Workload

State = dict[str, Any]
Keep = Callable[[int, State], object]


class Raw:
    """Plain Python."""

    name = "raw"

    @property
    def version(self) -> str:
        return platform.python_version()

    def importing(self) -> str:
        return "pass"

    def prepare(self, workload: Workload, folder: Path) -> Job | None:
        match workload.kind:
            case "fan" if not workload.asynchronous:
                pool = ThreadPoolExecutor()
                return Job(partial(fan, pool, workload.size), pool.shutdown)
            case "chat":
                return chatting(workload, folder)
            case "import":
                return None
            case kind:
                bodies = ASYNC_BODIES if workload.asynchronous else BODIES
                return Job(partial(bodies[kind], workload.size))


def chain(size: int) -> object:
    nodes, state = [add_one] * size, {"count": 0}
    for node in nodes:
        state.update(node(state))
    return state["count"]


async def async_chain(size: int) -> object:
    nodes, state = [async_add_one] * size, {"count": 0}
    for node in nodes:
        state.update(await node(state))
    return state["count"]


def loop(size: int) -> object:
    state = {"count": 0}
    while state["count"] < LOOP_STEPS:
        state.update(add_one(state))
        state.update(add_one(state))
    return state["count"]


async def async_loop(size: int) -> object:
    state = {"count": 0}
    while state["count"] < LOOP_STEPS:
        state.update(await async_add_one(state))
        state.update(await async_add_one(state))
    return state["count"]


def fan(pool: ThreadPoolExecutor, size: int) -> object:
    sent = [{"weight": weight} for weight in range(size)]
    return sum(each["total"] for each in pool.map(weigh, sent))


async def async_fan(size: int) -> object:
    sent = [async_weigh({"weight": weight}) for weight in range(size)]
    return sum(each["total"] for each in await asyncio.gather(*sent))


def wide(size: int) -> object:
    state = {f"key_{number}": 0 for number in range(size)}
    while state["key_0"] < WIDE_STEPS:
        for key, value in touch(state).items():
            state[key] += value
    return state["key_1"]


def nested(size: int) -> object:
    state = {"count": 0}
    while state["count"] < VISITS:
        state.update(visit(state, size))
    return state["count"]


def visit(state: State, levels: int) -> State:
    if not levels:
        return add_one(state)
    inner = dict(state)
    inner.update(visit(inner, levels - 1))
    return inner


def compiling(size: int) -> object:
    nodes = {f"node_{number}": add_one for number in range(size)}
    names = list(nodes)
    edges = dict(zip(names, names[1:], strict=False))
    return len(edges) + 1


def chatting(workload: Workload, folder: Path) -> Job:
    """A conversation that keeps what each turn said, where the saver keeps it."""
    if workload.saver == "none":
        return Job(partial(chat, workload.size, lambda turn, said: None))
    if workload.saver == "memory":
        log: list[str] = []
        return Job(
            partial(chat, workload.size, lambda turn, said: log.append(packed(said)))
        )
    if workload.saver == "postgres":
        return chatting_with_postgres(workload)
    database = sqlite3.connect(folder / "log.db", isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("CREATE TABLE log (turn INTEGER PRIMARY KEY, said TEXT)")

    def keep(turn: int, said: State) -> None:
        # Without a transaction of its own, each statement is one commit.
        database.execute("INSERT INTO log VALUES (?, ?)", (turn, packed(said)))

    run = partial(chat, workload.size, keep)
    return Job(run, database.close, partial(size, folder))


def chatting_with_postgres(workload: Workload) -> Job:
    """The same, each turn one statement and one commit of a server."""
    import psycopg

    from bench.adapters import postgres

    dsn = postgres.server().new_schema()
    database = psycopg.connect(dsn, autocommit=True)
    database.execute("CREATE TABLE log (turn BIGINT PRIMARY KEY, said TEXT)")

    def keep(turn: int, said: State) -> None:
        database.execute("INSERT INTO log VALUES (%s, %s)", (turn, packed(said)))

    run = partial(chat, workload.size, keep)
    return Job(run, database.close, partial(postgres.stored, dsn))


def packed(said: State) -> str:
    return json.dumps(said)


def chat(turns: int, keep: Keep) -> object:
    state: Chat = {"messages": [], "turn": 0, "turns": turns}
    while state["turn"] < state["turns"]:
        said = talk(state)
        state["messages"] += said["messages"]
        state["turn"] = said["turn"]
        keep(said["turn"], said)
    assert state["messages"][:2] == [QUESTION, ANSWER]
    return len(state["messages"])


BODIES: dict[str, Callable[[int], object]] = {
    "chain": chain,
    "loop": loop,
    "wide": wide,
    "nested": nested,
    "compile": compiling,
}
ASYNC_BODIES: dict[str, Callable[[int], Any]] = {
    "chain": async_chain,
    "loop": async_loop,
    "fan": async_fan,
}
