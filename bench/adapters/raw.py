"""The same work by hand, without an engine: the price below which nobody gets.

A plain loop isolates nothing, cannot be stopped by a limit and could not resume;
`floor.py` is the loop that could be called an engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from bench.adapters.base import Bare, Job, said
from bench.adapters.deeds import traced
from bench.adapters.graphs import (
    Chat,
    CountObject,
    add_one,
    add_one_to_object,
    async_add_one,
    async_weigh,
    model,
    state_of,
    talk,
    touch,
    weigh,
)
from bench.adapters.libraries import missing
from bench.adapters.logs import Log, NoLog, open_log
from bench.workloads import (
    CROWD_TURNS,
    LOOP_STEPS,
    READING,
    VISITS,
    WIDE_STEPS,
    Workload,
)

State = dict[str, Any]


class Raw(Bare):
    """Plain Python."""

    name = "raw"

    def prepare(self, workload: Workload, folder: Path) -> Job | None:
        if missing(workload):
            return None
        if workload.kind == "fan" and not workload.asynchronous:
            pool = ThreadPoolExecutor()
            return Job(partial(fan, pool, workload.size), pool.shutdown)
        if workload.kind in KEEPING:
            return keeping(workload, folder)
        if workload.kind == "chain" and workload.variant:
            return Job(partial(object_chain, workload))
        bodies = ASYNC_BODIES if workload.asynchronous else BODIES
        body = bodies.get(workload.kind)
        return None if body is None else Job(partial(body, workload.size))


def keeping(workload: Workload, folder: Path) -> Job:
    """Make ready what keeps, where the saver keeps it, what each turn said."""
    log = open_log(workload, folder)
    run = KEEPING[workload.kind]
    if workload.kind == "chat" and workload.asynchronous:
        run = async_chat
    if workload.kind in READING:
        chat(workload.size, log)
    held = partial(held_at_gate, workload.size) if workload.kind == "crowd" else int
    return Job(partial(run, workload.size, log), log.close, log.stored, held)


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


def object_chain(workload: Workload) -> object:
    """The state is an object of the class, which checks what it can."""
    make: Any = state_of(workload.variant)
    state = make(count=0)
    assert workload.variant != "dataclass" or isinstance(state, CountObject)
    for node in [add_one_to_object] * workload.size:
        state = make(**node(state))
    return state.count


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


def tokens(size: int) -> object:
    """The model alone."""
    return sum(1 for chunk in model().stream("speak") if chunk.content)


def chat(turns: int, log: Log) -> object:
    state: Chat = {"messages": [], "turn": 0, "turns": turns}
    while state["turn"] < state["turns"]:
        take(state, talk(state), log)
    return len(state["messages"])


def take(state: Chat, update: State, log: Log) -> None:
    state["messages"] += update["messages"]
    state["turn"] = update["turn"]
    log.keep(update)


async def async_chat(
    turns: int, log: Log, gate: Callable[[], Any] | None = None
) -> object:
    state: Chat = {"messages": [], "turn": 0, "turns": turns}
    while state["turn"] < state["turns"]:
        if gate is not None and state["turn"] == turns // 2:
            await gate()
        turn = state["turn"]
        take(state, {"messages": said(turn), "turn": turn + 1}, log)
    return len(state["messages"])


async def crowd(size: int, log: Log) -> int:
    runs = (async_chat(CROWD_TURNS, log) for _ in range(size))
    return sum(told == 2 * CROWD_TURNS for told in await asyncio.gather(*runs))


def held_at_gate(size: int) -> int:
    async def wait() -> int:
        opened = asyncio.Event()
        log = NoLog()
        with traced() as more:
            runs = [
                asyncio.create_task(async_chat(CROWD_TURNS, log, opened.wait))
                for _ in range(size)
            ]
            await asyncio.sleep(0)
            bytes_each = more() // size
        opened.set()
        await asyncio.gather(*runs)
        return bytes_each

    return asyncio.run(wait())


def ask(size: int, log: Log) -> int:
    """Keep the input, the question, its answer and the end: four commits."""
    answered = 0
    for _ in range(size):
        log.keep({"draft": ""})
        log.keep({"draft": "a lock and a gate", "question": "a lock and a gate"})
        log.keep({"resume": "yes"})
        log.keep({"answer": "yes"})
        answered += 1
    return answered


def snapshot(size: int, log: Log) -> int:
    messages: list[Any] = []
    for update in log.read():
        messages += update["messages"]
    return len(messages)


def history(size: int, log: Log) -> int:
    """Have every state there was, each with a list of its own."""
    states: list[State] = [{"messages": []}, {"messages": [], "turn": 0}]
    for update in log.read():
        messages = [*states[-1]["messages"], *update["messages"]]
        states.append({"messages": messages, "turn": update["turn"]})
    return len(states)


BODIES: dict[str, Callable[[int], object]] = {
    "chain": chain,
    "loop": loop,
    "wide": wide,
    "nested": nested,
    "compile": compiling,
    "tokens": tokens,
}
ASYNC_BODIES: dict[str, Callable[[int], Any]] = {
    "chain": async_chain,
    "loop": async_loop,
    "fan": async_fan,
}
KEEPING: dict[str, Callable[[int, Log], Any]] = {
    "chat": chat,
    "crowd": crowd,
    "ask": ask,
    "snapshot": snapshot,
    "history": history,
}
