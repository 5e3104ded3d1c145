"""The workloads as graphs, for libraries with LangGraph's interface.

Only the name of the package differs: what is compared is the same program.
"""

from __future__ import annotations

import operator
import subprocess
import sys
import tempfile
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, TypedDict

from bench.adapters import Job
from bench.workloads import (
    Chat,
    Colour,
    Compile,
    FanOut,
    Import,
    Loop,
    Nested,
    Sequential,
    Wide,
    Workload,
)


class Count(TypedDict):
    n: int


class Item(TypedDict):
    item: int
    done: Annotated[list[int], operator.add]


class Messages(TypedDict):
    messages: Annotated[list[dict[str, str]], operator.add]
    turns: int


USER = {"role": "user", "content": "What is the depth of the river at the lock? " * 4}
MODEL = {"role": "assistant", "content": "Two metres and a half, by the gauge. " * 8}


class GraphAdapter:
    """Runs workloads with one package."""

    def __init__(self, package: str, distribution: str | None = None) -> None:
        self.name = package
        self.graph = import_module(f"{package}.graph")
        self.types = import_module(f"{package}.types")
        try:
            self.version = version(distribution or package)
        except PackageNotFoundError:
            self.version = import_module(package).__version__

    def prepare(self, workload: Workload, colour: Colour) -> Job | None:
        """Build what can be built before the clock starts."""
        asynchronous = colour == "async"
        match workload:
            case Import():
                return lambda: imported(self.name)
            case Compile(size):
                return lambda: self.chain(size, asynchronous).compile()
            case Sequential(size):
                graph = self.chain(size, asynchronous).compile()
                return runs(graph, {"n": 0}, size, asynchronous)
            case Loop(size):
                return runs(self.loop(size, asynchronous), {"n": 0}, size, asynchronous)
            case FanOut(size):
                graph = self.fan_out(size, asynchronous)
                return runs(graph, {"item": 0, "done": []}, 3, asynchronous)
            case Wide(size):
                state = {f"k{number}": 0 for number in range(size)}
                return runs(
                    self.wide(size, asynchronous), state, Wide.STEPS, asynchronous
                )
            case Nested(size):
                graph = self.nested(size, asynchronous)
                return runs(graph, {"n": 0}, 10 * Nested.STEPS, asynchronous)
            case Chat(size, saver):
                return self.chat(size, saver, asynchronous)
        return None

    def node(self, function: Any, asynchronous: bool) -> Any:
        if not asynchronous:
            return function

        async def node(state: Any) -> Any:
            return function(state)

        return node

    def chain(self, size: int, asynchronous: bool) -> Any:
        builder = self.graph.StateGraph(Count)
        add = self.node(lambda state: {"n": state["n"] + 1}, asynchronous)
        before = self.graph.START
        for number in range(size):
            builder.add_node(f"n{number}", add)
            builder.add_edge(before, f"n{number}")
            before = f"n{number}"
        return builder

    def loop(self, size: int, asynchronous: bool) -> Any:
        builder = self.graph.StateGraph(Count)
        add = self.node(lambda state: {"n": state["n"] + 1}, asynchronous)
        builder.add_node("a", add)
        builder.add_node("b", add)
        builder.add_edge(self.graph.START, "a")
        builder.add_edge("a", "b")
        end = self.graph.END
        builder.add_conditional_edges(
            "b", lambda state: "a" if state["n"] < size else end, ["a", end]
        )
        return builder.compile()

    def fan_out(self, size: int, asynchronous: bool) -> Any:
        builder = self.graph.StateGraph(Item)
        send = self.types.Send
        work = self.node(lambda state: {"done": [state["item"]]}, asynchronous)
        builder.add_node("work", work)
        builder.add_conditional_edges(
            self.graph.START,
            lambda state: [send("work", {"item": n}) for n in range(size)],
            ["work"],
        )
        return builder.compile()

    def wide(self, size: int, asynchronous: bool) -> Any:
        keys = {f"k{number}": int for number in range(size)}
        builder = self.graph.StateGraph(TypedDict("State", keys))
        step = self.node(
            lambda state: {"k0": state["k0"] + 1, "k1": state["k1"] + 2}, asynchronous
        )
        builder.add_node("step", step)
        builder.add_edge(self.graph.START, "step")
        end = self.graph.END
        builder.add_conditional_edges(
            "step",
            lambda state: "step" if state["k0"] < Wide.STEPS else end,
            ["step", end],
        )
        return builder.compile()

    def nested(self, levels: int, asynchronous: bool) -> Any:
        inner: Any = self.node(lambda state: {"n": state["n"] + 1}, asynchronous)
        for _ in range(levels):
            builder = self.graph.StateGraph(Count)
            builder.add_node("inner", inner)
            builder.add_edge(self.graph.START, "inner")
            inner = builder.compile()
        builder = self.graph.StateGraph(Count)
        builder.add_node("step", inner)
        builder.add_edge(self.graph.START, "step")
        end = self.graph.END
        builder.add_conditional_edges(
            "step",
            lambda state: "step" if state["n"] < Nested.STEPS else end,
            ["step", end],
        )
        return builder.compile()

    def chat(self, turns: int, saver: str, asynchronous: bool) -> Job | None:
        """Every turn two steps; with a saver every step is stored before the next."""
        if saver == "sqlite" and asynchronous:
            return None
        ticks: list[float] = []
        builder = self.chat_graph(turns, ticks, asynchronous)
        given = {"messages": [], "turns": 0}

        def run(checkpointer: Any = None) -> Any:
            ticks.clear()
            options = {} if checkpointer is None else {"durability": "sync"}
            graph = builder.compile(checkpointer=checkpointer)
            return runs(graph, given, 2 * turns, asynchronous, **options)()

        if saver == "sqlite":
            return lambda: self.in_sqlite(run) | growth(ticks)
        memory = import_module(f"{self.name}.checkpoint.memory").InMemorySaver
        make = memory if saver == "memory" else lambda: None
        if not asynchronous:
            return lambda: run(make()) and growth(ticks)

        async def arun() -> Any:
            await run(make())
            return growth(ticks)

        return arun

    def chat_graph(self, turns: int, ticks: list[float], asynchronous: bool) -> Any:
        def user(state: Any) -> Any:
            ticks.append(perf_counter())
            return {"messages": [USER]}

        def model(state: Any) -> Any:
            return {"messages": [MODEL], "turns": state["turns"] + 1}

        builder = self.graph.StateGraph(Messages)
        builder.add_node("user", self.node(user, asynchronous))
        builder.add_node("model", self.node(model, asynchronous))
        builder.add_edge(self.graph.START, "user")
        builder.add_edge("user", "model")
        end = self.graph.END
        builder.add_conditional_edges(
            "model",
            lambda state: "user" if state["turns"] < turns else end,
            ["user", end],
        )
        return builder

    def in_sqlite(self, run: Any) -> dict[str, float]:
        sqlite = import_module(f"{self.name}.checkpoint.sqlite").SqliteSaver
        with tempfile.TemporaryDirectory() as folder:
            with sqlite.from_conn_string(str(Path(folder) / "bench.sqlite")) as saver:
                run(saver)
            return {
                "bytes": sum(file.stat().st_size for file in Path(folder).iterdir())
            }


def growth(ticks: list[float]) -> dict[str, float]:
    """How many times as long the last tenth of the turns took as the first."""
    tenth = max(1, len(ticks) // 10)
    first, last = ticks[tenth] - ticks[0], ticks[-1] - ticks[-1 - tenth]
    return {"growth": last / first}


def runs(graph: Any, given: Any, steps: int, asynchronous: bool, **options: Any) -> Job:
    """A job that runs a graph from the start."""
    config = {
        "recursion_limit": steps + 10,
        "configurable": {"thread_id": "bench"},
    }
    method = graph.ainvoke if asynchronous else graph.invoke
    return lambda: method(given, config, **options)


def imported(package: str) -> float:
    """Seconds that importing takes in a new process, less those of an empty one."""
    return started(f"import {package}.graph") - started("pass")


def started(program: str) -> float:
    began = perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True)
    return perf_counter() - began
