"""Show that a step costs the same, however much there is of everything else.

    make bench-growth                         # every axis, with SVG plots
    python -m bench.growth --only messages --folder FOLDER

An *axis* is something that grows: steps so far, messages so far, keys that a step
does not touch, nodes that are not triggered, threads in the database, conversations
that wait. Along each, the CPU time of one step is taken at growing places. Its
*slope* is the mean of the last tenth over that of the first; 1 is flat. Only
comparisons within one line mean something: see `bench/__init__.py`.

The first two axes are measured inside one long run, from node to node. All the
places are visited several times over, in turns, and the best visit of each counts,
because other programs of the machine only ever add.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import operator
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypedDict

from bench.adapters.base import TURNS_MAX, said
from bench.plot import growth
from bench.savers import unsynced
from towpath import END, START, StateGraph, interrupt

FLAT = 1.2
BUCKETS = 50
Point = tuple[float, float]
"""How much there is, and the microseconds of CPU time of one step."""


@dataclass(frozen=True)
class Line:
    """What was measured along one axis with one saver."""

    axis: str
    saver: str
    unit: str
    points: Sequence[Point]

    @property
    def slope(self) -> float:
        """The mean of the last tenth over the mean of the first."""
        tenth = max(1, len(self.points) // 10)
        costs = [cost for _, cost in self.points]
        return sum(costs[-tenth:]) / sum(costs[:tenth])

    def told(self) -> str:
        tenth = max(1, len(self.points) // 10)
        first = sum(cost for _, cost in self.points[:tenth]) / tenth
        verdict = "flat" if self.slope <= FLAT else "GROWS"
        name, last = f"{self.axis}, {self.saver}", first * self.slope
        return (
            f"{name:32} {first:9.2f} us {last:9.2f} us   {self.slope:5.2f}  {verdict}"
        )


@dataclass(frozen=True)
class Axis:
    """Something that grows, and what measures along it."""

    name: str
    unit: str
    savers: Sequence[str]
    measure: Callable[[str, int], list[Point]]
    """Given a saver and the most there is to be, visit every place once."""
    most: int


class State(TypedDict):
    step: int
    steps: int


class Chat(TypedDict):
    messages: Annotated[list[dict[str, str]], operator.add]
    step: int
    steps: int


def place(thread: str) -> dict[str, Any]:
    return {"recursion_limit": 1_000_000, "configurable": {"thread_id": thread}}


def looping(
    node: Callable[[Any], Any], schema: type = State, idle: int = 0
) -> StateGraph[Any, Any, Any, Any]:
    """Return a node that is run over and over, beside others that never are."""
    builder = StateGraph(schema)
    builder.add_node("work", node)
    builder.add_edge(START, "work")
    idlers = [f"idle_{number}" for number in range(idle)]
    for name in idlers:
        builder.add_node(name, lambda state: {})
    # A blocking router of an asynchronous run would hop to a thread.
    route = aagain if asyncio.iscoroutinefunction(node) else again
    builder.add_conditional_edges("work", route, ["work", *idlers, END])
    return builder


def again(state: Any) -> str:
    return "work" if state["step"] < state["steps"] else END


async def aagain(state: Any) -> str:
    return again(state)


def count(state: State) -> dict[str, Any]:
    return {"step": state["step"] + 1}


def talk(state: Chat) -> dict[str, Any]:
    step = state["step"]
    return {"messages": said(step % TURNS_MAX), "step": step + 1}


def spent_us(call: Callable[[], object]) -> float:
    began = time.process_time_ns()
    call()
    return (time.process_time_ns() - began) / 1e3


def within(
    schema: type, body: Callable[[Any], Any], saver: str, steps: int
) -> list[Point]:
    """Run once, and take the time from each call of the node to the next."""
    clock: list[int] = []

    def node(state: Any) -> Any:
        clock.append(time.process_time_ns())
        return body(state)

    given = {"messages": [], "step": 0, "steps": steps}
    given = {key: given[key] for key in schema.__annotations__}
    with unsynced(saver) as kept:
        looping(node, schema).compile(checkpointer=kept).invoke(given, place("t"))
    size = len(clock) // BUCKETS
    edges = range(size, len(clock), size)  # The first steps pay for the start.
    return [
        (end, (clock[end - 1] - clock[end - size]) / (size - 1) / 1e3)
        for end in (edge + size for edge in edges)
        if end <= len(clock)
    ]


PROBE_STEPS = 50


def probe(graph: Any, given: dict[str, Any], thread: str = "t") -> float:
    """Return the microseconds of a step of a short run."""
    steps = {**given, "step": 0, "steps": PROBE_STEPS}
    return spent_us(lambda: graph.invoke(steps, place(thread))) / PROBE_STEPS


def sizes(most: int) -> Iterator[int]:
    return (most * part // 20 for part in range(1, 21))


def untouched_keys(saver: str, most: int) -> list[Point]:
    return [(size, _among_keys(saver, size)) for size in sizes(most)]


def _among_keys(saver: str, size: int) -> float:
    """Return the microseconds of a step that touches one key of many."""
    clock: list[int] = []

    def work(state: Any) -> dict[str, Any]:
        clock.append(time.process_time_ns())
        return {"step": state["step"] + 1}

    keys = [f"key_{number}" for number in range(size)]
    types = {**dict.fromkeys(keys, int), "step": int, "steps": int}
    builder = StateGraph(
        TypedDict("Wide", types), input_schema=State, output_schema=State
    )
    # The keys are there: a key without a value costs nothing anyway.
    builder.add_node("fill", lambda state: dict.fromkeys(keys, 1))
    builder.add_node("work", work)
    builder.add_edge(START, "fill")
    builder.add_edge("fill", "work")
    builder.add_conditional_edges("work", again, ["work", END])
    with unsynced(saver) as kept:
        graph = builder.compile(checkpointer=kept)
        graph.invoke({"step": 0, "steps": PROBE_STEPS}, place("t"))
    # What is stored behind the first steps is what the filling wrote.
    begun = len(clock) // 5
    return (clock[-1] - clock[begun]) / (len(clock) - 1 - begun) / 1e3


def idle_nodes(saver: str, most: int) -> list[Point]:
    points = []
    for size in sizes(most):
        with unsynced(saver) as kept:
            graph = looping(count, idle=size).compile(checkpointer=kept)
            probe(graph, {}, "warm")
            points.append((size, probe(graph, {})))
    return points


def stored_threads(saver: str, most: int) -> list[Point]:
    """A step of a run on a thread that is new, and one that goes on after it."""
    points = []
    with unsynced(saver) as kept:
        graph = looping(count).compile(checkpointer=kept)
        stored = 0
        for size in sizes(most):
            for number in range(stored, size):
                graph.invoke({"step": 0, "steps": 2}, place(f"thread-{number}"))
            stored = size
            runs = [probe(graph, {}, f"probe-{size}-{part % 2}") for part in range(4)]
            points.append((size, sum(runs) / len(runs)))
    return points


def parked_threads(saver: str, most: int) -> list[Point]:
    """A step beside conversations that have asked something."""

    def work(state: State) -> dict[str, Any]:
        if not state["steps"]:
            interrupt("what now?")
        return {"step": state["step"] + 1}

    points = []
    with unsynced(saver) as kept:
        graph = looping(work).compile(checkpointer=kept)
        parked = 0
        for size in sizes(most):
            for number in range(parked, size):
                graph.invoke({"step": 0, "steps": 0}, place(f"parked-{number}"))
            parked = size
            points.append((size, probe(graph, {}, f"probe-{size}")))
    return points


def waiting_runs(saver: str, most: int) -> list[Point]:
    """A step beside runs of the same loop that wait in a node."""
    with unsynced(saver) as kept:
        return asyncio.run(_waiting_runs(kept, most))


async def _waiting_runs(kept: Any, most: int) -> list[Point]:
    gate = asyncio.Event()

    async def work(state: State) -> dict[str, Any]:
        if not state["steps"]:
            await gate.wait()
        return {"step": state["step"] + 1}

    graph = looping(work).compile(checkpointer=kept)
    points: list[Point] = []
    async with AsyncExitStack() as ended:
        waiting: list[asyncio.Task[Any]] = []
        ended.push_async_callback(lambda: asyncio.gather(*waiting))
        ended.callback(gate.set)
        for size in sizes(most):
            waiting += (
                asyncio.create_task(
                    graph.ainvoke({"step": 0, "steps": 0}, place(f"w-{number}"))
                )
                for number in range(len(waiting), size)
            )
            await asyncio.sleep(0)
            # The first probe lets those who came last get to the gate.
            for name in ("warm", "probe"):
                given = {"step": 0, "steps": PROBE_STEPS}
                began = time.process_time_ns()
                await graph.ainvoke(given, place(f"{name}-{size}"))
                spent = (time.process_time_ns() - began) / 1e3
            points.append((size, spent / PROBE_STEPS))
    return points


ALL = ("none", "memory", "sqlite")
AXES = (
    Axis("steps", "steps so far", ALL, partial(within, State, count), 10_000),
    Axis(
        "messages",
        "turns of two messages so far",
        ALL,
        partial(within, Chat, talk),
        5_000,
    ),
    Axis("keys", "keys not touched", ALL, untouched_keys, 10_000),
    Axis("nodes", "nodes not triggered", ALL, idle_nodes, 2_000),
    Axis("threads", "threads stored", ALL[1:], stored_threads, 5_000),
    Axis("parked", "conversations that asked", ALL[1:], parked_threads, 2_000),
    Axis("waiting", "conversations that wait", ALL, waiting_runs, 2_000),
)


def lines(axis: Axis, rounds: int, part: float = 1.0) -> Iterator[Line]:
    """Measure along an axis with each of its savers; `part` makes it shorter."""
    most = max(BUCKETS * 4, int(axis.most * part))
    for saver in axis.savers:
        visits = [axis.measure(saver, most) for _ in range(rounds)]
        best = [
            (places[0][0], min(cost for _, cost in places))
            for places in zip(*visits, strict=True)
        ]
        yield Line(axis.name, saver, axis.unit, best)


def chosen(patterns: Sequence[str]) -> list[Axis]:
    """Return the axes that a pattern names, all of them without patterns."""
    return [
        axis
        for axis in AXES
        if not patterns or any(fnmatchcase(axis.name, one) for one in patterns)
    ]


def draw(folder: Path, found: Sequence[Line]) -> None:
    """Write a plot for each axis, and all figures as JSON."""
    for axis in AXES:
        drawn = {line.saver: line.points for line in found if line.axis == axis.name}
        if drawn:
            plot = growth(f"CPU time of a step by {axis.unit}", axis.unit, drawn)
            (folder / f"growth-{axis.name}.svg").write_text(plot, "utf-8")
    entries = [{**asdict(line), "slope": line.slope} for line in found]
    text = json.dumps({"lines": entries}, indent=2)
    (folder / "growth.json").write_text(text + "\n", "utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, draw; the exit status tells whether everything is flat."""
    parser = argparse.ArgumentParser(prog="python -m bench.growth")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--part", type=float, default=1.0, help="of the way to go")
    parser.add_argument("--folder", type=Path, help="for an SVG an axis, and JSON")
    parser.add_argument("--only", action="append", default=[], metavar="AXIS")
    options = parser.parse_args(arguments)
    print(f"{'cost of a step':32} {'first tenth':>12} {'last tenth':>12}   slope")
    found: list[Line] = []
    for axis in chosen(options.only):
        for line in lines(axis, options.rounds, options.part):
            print(line.told(), flush=True)
            found.append(line)
    if options.folder is not None:
        options.folder.mkdir(parents=True, exist_ok=True)
        draw(options.folder, found)
    return 0 if all(line.slope <= FLAT for line in found) else 1


if __name__ == "__main__":
    sys.exit(main())
