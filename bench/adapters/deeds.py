"""What is done with a compiled graph: the part of a workload whose time counts."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

from bench.adapters.graphs import Plan
from bench.workloads import Workload
from towpath.testing.api import Api

STEPS_MAX = 100_000
_threads = count()


@dataclass
class Session:
    """A graph, compiled for one workload, and the thread of what was prepared."""

    api: Api
    workload: Workload
    plan: Plan
    graph: Any = None
    place: dict[str, Any] = field(default_factory=lambda: new_place())

    @property
    def options(self) -> dict[str, Any]:
        return {"durability": "sync"} if self.workload.saver != "none" else {}

    def invoke(self, given: Any, place: dict[str, Any]) -> Any:
        return self.graph.invoke(given, place, **self.options)

    async def ainvoke(self, given: Any, place: dict[str, Any]) -> Any:
        return await self.graph.ainvoke(given, place, **self.options)


def new_place() -> dict[str, Any]:
    """Return the config of a thread that is not there yet."""
    thread = f"thread-{next(_threads)}"
    return {"recursion_limit": STEPS_MAX, "configurable": {"thread_id": thread}}


def run(session: Session) -> object:
    plan = session.plan
    return plan.result(session.invoke(plan.given, new_place()))


async def arun(session: Session) -> object:
    plan = session.plan
    return plan.result(await session.ainvoke(plan.given, new_place()))


def ask(session: Session) -> int:
    """Have questions asked, each on a thread of its own, and answer them."""
    answer = session.api.Command(resume="yes")
    answered = 0
    for _ in range(session.workload.size):
        place = new_place()
        session.invoke(session.plan.given, place)
        answered += session.plan.result(session.invoke(answer, place)) == "yes"
    return answered


async def crowd(session: Session) -> int:
    """Hold many conversations at once, and count those that came to their end."""
    turns = session.plan.given["turns"]
    runs = (arun(session) for _ in range(session.workload.size))
    return sum(said == 2 * turns for said in await asyncio.gather(*runs))


def snapshot(session: Session) -> int:
    return len(session.graph.get_state(session.place).values["messages"])


def history(session: Session) -> int:
    return len(list(session.graph.get_state_history(session.place)))


def stream(session: Session) -> object:
    """Count the chunks; `invoke` is the same run without any."""
    if session.workload.variant.startswith("invoke"):
        return run(session)
    return sum(1 for _ in chunks(session))


def tokens(session: Session) -> int:
    """Count those with words in them; the last one only says that it is the last."""
    return sum(1 for message, _ in chunks(session) if message.content)


def chunks(session: Session) -> Iterator[Any]:
    mode = session.workload.variant
    return session.graph.stream(
        session.plan.given, new_place(), stream_mode=mode, **session.options
    )


DEEDS: dict[str, Callable[[Session], Any]] = {
    "ask": ask,
    "crowd": crowd,
    "snapshot": snapshot,
    "history": history,
    "stream": stream,
    "tokens": tokens,
}


def deed(session: Session) -> Callable[[], Any]:
    """Return what is to be done once for a sample."""
    workload = session.workload
    usual = arun if workload.asynchronous else run
    return partial(DEEDS.get(workload.kind, usual), session)


@contextmanager
def traced():
    """Yield a function that returns the bytes allocated since, and still in use."""
    tracemalloc.start()
    try:
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        yield lambda: gc.collect() * 0 + tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def held(session: Session) -> int:
    """Return the bytes of memory that each waiting conversation holds."""
    match session.workload:
        case Workload(kind="crowd", saver="none" | "memory"):
            return asyncio.run(held_at_gate(session))
        case Workload(kind="ask", saver="memory"):
            return held_by_question(session)
        case _:
            return 0


async def held_at_gate(session: Session) -> int:
    """Of runs that wait in a node, with their tasks of asyncio."""
    gate, size = session.plan.gate, session.workload.size
    assert gate is not None
    gate.close(size)
    with traced() as more:
        runs = [asyncio.create_task(arun(session)) for _ in range(size)]
        await gate.full()
        bytes_each = more() // size
    gate.open()
    await asyncio.gather(*runs)
    return bytes_each


def held_by_question(session: Session) -> int:
    """Of runs that ended in a question: what the saver keeps for the answer."""
    places = [new_place() for _ in range(session.workload.size)]
    with traced() as more:
        for place in places:
            session.invoke(session.plan.given, place)
        return more() // len(places)
