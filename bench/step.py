"""Where the time of one superstep goes.

    python -m bench.step                 # a loop of two nodes
    python -m bench.step --saver memory  # the same, stored
    python -m bench.step --profile       # function by function

The program of a run is obeyed here by hand, with a clock between the commands:
what the program thinks after each kind of reply, and what obeying each kind of
command takes. The clock itself costs something, so the whole is measured once
more without it.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import pstats
from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import median
from time import perf_counter, perf_counter_ns
from typing import Any, TypedDict

from towpath.checkpoint.memory import InMemorySaver
from towpath.drive.sync import ORDERS, SyncDriver
from towpath.graph import END, START, StateGraph
from towpath.pregel.finish import connect
from towpath.pregel.runs import Options, prepare_run


class State(TypedDict):
    n: int


def loop(steps: int, saver: Any = None, *, asynchronous: bool = False) -> Any:
    """Two nodes that hand over to each other."""

    def add(state: State) -> State:
        return {"n": state["n"] + 1}

    async def aadd(state: State) -> State:
        return {"n": state["n"] + 1}

    builder = StateGraph(State)
    node = aadd if asynchronous else add
    builder.add_node("a", node)
    builder.add_node("b", node)
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    builder.add_conditional_edges(
        "b", lambda state: "a" if state["n"] < steps else END, ["a", END]
    )
    return builder.compile(checkpointer=saver)


def config_of(steps: int) -> dict[str, Any]:
    return {"recursion_limit": steps + 10, "configurable": {"thread_id": "step"}}


def breakdown(graph: Any, steps: int) -> tuple[dict[str, int], Counter[str]]:
    """Nanoseconds by part, and how often each part came."""
    options = Options(stream_mode="values", durability="sync")
    made = prepare_run(graph, {"n": 0}, config_of(steps), options, streams=False)
    driver = SyncDriver(made.scope)
    connect(made, driver.emit)
    made.scope.begin()
    spent: dict[str, int] = defaultdict(int)
    counts: Counter[str] = Counter()
    program = made.program()
    command = next(program)
    try:
        while True:
            kind = type(command).__name__
            counts[kind] += 1
            began = perf_counter_ns()
            reply = ORDERS[type(command)](driver, command)
            between = perf_counter_ns()
            spent[f"obey {kind}"] += between - began
            command = program.send(reply)
            spent[f"think after {kind}"] += perf_counter_ns() - between
    except StopIteration:
        return spent, counts


def whole_us(graph: Any, steps: int, *, asynchronous: bool, rounds: int) -> float:
    """Microseconds per step of a whole run, without a clock inside it."""
    taken = []
    for number in range(rounds):
        config = config_of(steps)
        config["configurable"]["thread_id"] = str(number)
        if asynchronous:
            taken.append(asyncio.run(timed(graph, config)))
        else:
            began = perf_counter()
            graph.invoke({"n": 0}, config, durability="sync")
            taken.append(perf_counter() - began)
    return median(taken) / steps * 1e6


async def timed(graph: Any, config: Any) -> float:
    began = perf_counter()
    await graph.ainvoke({"n": 0}, config, durability="sync")
    return perf_counter() - began


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.step", description=__doc__)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--saver", choices=["none", "memory"], default="none")
    parser.add_argument("--async", dest="asynchronous", action="store_true")
    parser.add_argument("--profile", action="store_true", help="by function")
    given = parser.parse_args(arguments)
    saver = InMemorySaver() if given.saver == "memory" else None
    steps = given.steps
    graph = loop(steps, saver, asynchronous=given.asynchronous)
    whole = whole_us(graph, steps, asynchronous=given.asynchronous, rounds=given.rounds)
    colour = "async" if given.asynchronous else "sync"
    print(f"{whole:.2f} us per superstep ({colour}, saver: {given.saver})")
    if given.profile:
        profile = cProfile.Profile()
        profile.runcall(
            whole_us, graph, steps, asynchronous=given.asynchronous, rounds=1
        )
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)
    elif not given.asynchronous:
        show(graph, steps)
    return 0


def show(graph: Any, steps: int) -> None:
    """Print the parts, the dearest first."""
    breakdown(graph, steps)
    spent, counts = breakdown(graph, steps)
    for part, total in sorted(spent.items(), key=lambda entry: -entry[1]):
        each = total / counts[part.split()[-1]] / 1e3
        print(f"{part:<24}{total / steps / 1e3:>9.2f} us per step{each:>9.2f} us each")


if __name__ == "__main__":
    raise SystemExit(main())
