"""Random graphs for the simulator, whose nodes depend on nothing but their state.

A plot is drawn from a seed, faster than Hypothesis draws one: thousands of
them, each crashed everywhere, fit into a minute. Layers of nodes follow one
another, wired in one of several ways; nodes differ in how they do their work.
Every node logs what it saw of the state, so that a stale read, a lost write or
a wrong order shows up in the values. What fails does so by its attempt, and is
as deterministic as the rest.
"""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Annotated, Any, TypedDict

from towpath import Migration
from towpath.func import task
from towpath.graph import END, START, StateGraph
from towpath.runtime import Runtime, get_runtime
from towpath.testing.simulate import Clock
from towpath.types import CachePolicy, Command, RetryPolicy, Send, interrupt


def merge(left: dict[str, int], right: dict[str, int]) -> dict[str, int]:
    return {**left, **right}


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    total: Annotated[int, operator.add]
    tags: Annotated[dict[str, int], merge]
    rounds: Annotated[int, operator.add]
    item: Annotated[int, max]


class Broken(Exception):
    """What nodes raise that are meant to fail."""


RETRY = RetryPolicy(initial_interval=2.0, max_attempts=3, retry_on=Broken, jitter=True)

AT_ONCE = RETRY._replace(initial_interval=0.0, jitter=False)


def seen(state: State) -> str:
    """A short text that tells two states apart."""
    log, tags = state.get("log", []), state.get("tags", {})
    parts = [len(log), state.get("total", 0), state.get("item", "")]
    return "/".join(map(str, [*parts, *sorted(tags)]))


def update(name: str, state: State, *more: str) -> State:
    size = len(state.get("log", []))
    return {
        "log": [f"{name}:{seen(state)}", *more],
        "total": size + 1,
        "tags": {name: size},
    }


# -- how a node does its work -------------------------------------------------


def plain(name: str) -> Any:
    return lambda state: update(name, state)


def awaits(name: str) -> Any:
    async def node(state: State) -> State:
        for _ in range(len(name)):
            await asyncio.sleep(0)
        return update(name, state)

    return node


def yields(name: str) -> Any:
    def node(state: State) -> Any:
        yield {"log": [f"{name} first"]}
        yield update(name, state)

    return node


def ayields(name: str) -> Any:
    async def node(state: State) -> Any:
        yield {"log": [f"{name} first"]}
        await asyncio.sleep(0)
        yield update(name, state)

    return node


def asks(name: str) -> Any:
    return lambda state: update(name, state, f"{name} {interrupt(f'{name}?')}")


def asks_twice(name: str) -> Any:
    async def node(state: State) -> State:
        first = interrupt(f"{name} first?")
        await asyncio.sleep(0)
        return update(name, state, first, interrupt(f"{name} then?"))

    return node


def calls_tasks(name: str) -> Any:
    """Two tasks at once, one of which calls a third; a step; another task."""

    @task(name=f"{name} leaf")
    def leaf(n: int) -> str:
        return f"leaf {n}"

    @task(name=f"{name} middle")
    async def middle(n: int) -> str:
        return f"middle of {await leaf(n)}"

    async def node(state: State, runtime: Runtime[Any]) -> State:
        futures = [leaf(1), middle(2)]
        found = [await future for future in futures]
        found.append(await runtime.step("step", lambda: f"step {len(found)}"))
        found.append(await leaf(3))
        return update(name, state, *found)

    return node


def calls_asking(name: str) -> Any:
    """Tasks that ask and one that fails at first, beside a question of the node's."""

    @task(name=f"{name} asking")
    def asking(n: int) -> str:
        return f"heard {interrupt(f'{name} task {n}?')}"

    @task(name=f"{name} flaky", retry_policy=AT_ONCE)
    async def flaky() -> str:
        if get_runtime().execution_info.node_attempt < 2:
            raise Broken(name)
        return "in the end"

    async def node(state: State) -> State:
        futures = [asking(1), flaky(), asking(2)]
        found = [await future for future in futures]
        return update(name, state, *found, interrupt(f"{name} after?", key="after"))

    return node


def retries(name: str) -> Any:
    def node(state: State, runtime: Runtime[Any]) -> State:
        if runtime.execution_info.node_attempt < 3:
            raise Broken(name)
        return update(name, state)

    return node


def fails(name: str) -> Any:
    def node(state: State) -> State:
        raise Broken(name)

    return node


def handler(name: str) -> Any:
    def node(state: State, error: Exception) -> State:
        return update(f"{name} handled", state)

    return node


def writes_nothing(name: str) -> Any:
    return lambda state: None


def commands(name: str) -> Any:
    return lambda state: Command(update=update(name, state))


def calls(name: str, child: Any) -> Any:
    def node(state: State) -> State:
        answer = child.invoke({"log": [f"{name} calls"]})
        return update(name, state, *answer.get("log", []))

    return node


def acalls(name: str, child: Any) -> Any:
    async def node(state: State) -> State:
        answer = await child.ainvoke({"log": [f"{name} calls"]})
        return update(name, state, *answer.get("log", []))

    return node


BOTH: tuple[Callable[[str], Any], ...] = (
    plain, plain, plain, yields, asks, retries, fails, writes_nothing, commands,
)  # fmt: skip
ASYNC: tuple[Callable[[str], Any], ...] = (
    awaits, ayields, asks_twice, calls_tasks, calls_asking,
)  # fmt: skip
ASKING = (asks, asks_twice, calls_asking)
CALLING = (calls_tasks, calls_asking)


def slow(clock: Clock, seconds: float, name: str) -> Any:
    def node(state: State) -> State:
        clock.sleep(seconds)
        return update(name, state)

    return node


# -- plots ----------------------------------------------------------------------


@dataclass
class Plot:
    """Draws one graph from a seed."""

    seed: int
    asks: bool = True
    awaits: bool = True
    """Whether nodes may be coroutines, which a blocking run cannot call."""
    children: int = 2
    """How many levels of subgraphs there may be."""
    lasting: bool = True
    """Whether subgraphs may keep their state from call to call."""
    prefix: str = ""
    nodes: int = 100
    """How many nodes there may be, those of subgraphs included."""
    hurries: bool = False
    """Whether what is tried again is so without waiting."""
    calls: bool = True
    """Whether nodes may call tasks, which begin as the nodes come to it."""
    version: int | None = None
    migrations: Sequence[Migration] = ()
    suffix: str = ""
    """What the names of the graph's own nodes end in: they may change in a version."""
    random: Random = field(init=False)
    told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = Random(f"{self.seed}{self.prefix}")

    def chance(self, of: int) -> bool:
        return self.random.randrange(of) == 0

    def compile(self, **options: Any) -> Any:
        self.named: dict[str, str] = {START: START, END: END}
        self.builder: Any = StateGraph(
            State, version=self.version, migrations=self.migrations
        )
        # Whether every node of the last layer runs, so that a join gets them all.
        self.certain = True
        self.joins = False
        layers: list[list[str]] = [[START]]
        for index in range(self.random.randint(1, 3 if self.prefix else 4)):
            width = min(self.random.choice((1, 1, 2, 3)), self.nodes)
            self.nodes -= width
            if not width:
                break
            names = [f"{self.prefix}{'abcd'[index]}{n}" for n in range(width)]
            way = self.way(layers[-1])
            # Several tasks of one subgraph would share the state that it keeps.
            lasting = self.lasting and way != self.send
            for name in names:
                self.node(name, lasting=lasting)
            self.told.append(f"{layers[-1]} {way.__name__} {names}")
            way(layers[-1], names)
            layers.append(names)
        self.end(layers[1:])
        for when in ("interrupt_before", "interrupt_after"):
            if self.asks and self.chance(10):
                chosen = self.random.choice(self.random.choice(layers[1:]))
                options[when] = [self.named[chosen]]
                self.told.append(f"{when} {options[when]}")
        return self.builder.compile(**options)

    def label(self, name: str) -> str:
        """Name a node as this version does."""
        self.named[name] = f"{name}{self.suffix}"
        return self.named[name]

    def node(self, name: str, *, lasting: bool) -> None:
        options: dict[str, Any] = {}
        if self.chance(12):
            options["defer"] = True
        if self.chance(12):
            options["cache_policy"] = CachePolicy()
        work, action = self.work(name, lasting)
        if work == "retries":
            options["retry_policy"] = AT_ONCE if self.hurries else RETRY
        if work == "fails":
            self.certain = False  # what a handler takes over does not go on
            options["error_handler"] = handler(name)
            if self.chance(2):
                options["retry_policy"] = AT_ONCE if self.hurries else RETRY
        self.told.append(f"{name} {work} {' '.join(options)}")
        self.builder.add_node(self.label(name), action, **options)

    def work(self, name: str, lasting: bool) -> tuple[str, Any]:
        if self.children and self.nodes and self.chance(5):
            return self.child(name, lasting)
        makers = BOTH + (ASYNC if self.awaits else ())
        make = self.random.choice(makers)
        left_out = () if self.asks else ASKING
        if not self.calls:
            left_out += CALLING
        if make in left_out:
            make = plain
        return make.__name__, make(name)

    def child(self, name: str, lasting: bool) -> tuple[str, Any]:
        persist = self.random.choice((None, None, None, lasting or None))
        inner = Plot(
            self.seed,
            self.asks,
            self.awaits,
            self.children - 1,
            lasting,
            f"{name}_",
            self.nodes,
            self.hurries,
            self.calls,
        )
        graph = inner.compile(checkpointer=persist)
        self.nodes = inner.nodes
        self.told += inner.told
        kind = self.random.randrange(3)
        if kind == 0:
            if self.awaits:
                return f"acalls {persist}", acalls(name, graph)
            return f"calls {persist}", calls(name, graph)
        return f"child {persist}", graph

    def way(self, first: list[str]) -> Any:
        """How the next layer is wired to `first`."""
        ways = [self.each, self.each, self.send]
        if first != [START]:
            ways += [self.branch, self.branch]
        if len(first) > 1 and self.certain:
            ways += [self.join, self.join]
        way = self.random.choice(ways)
        self.certain = self.certain and way in (self.each, self.join)
        self.joins = self.joins or way == self.join
        return way

    def each(self, first: list[str], second: list[str]) -> None:
        for target in second:
            for source in first:
                self.builder.add_edge(self.named[source], self.named[target])

    def join(self, first: list[str], second: list[str]) -> None:
        for target in second:
            joined = [self.named[source] for source in first]
            self.builder.add_edge(joined, self.named[target])

    def branch(self, first: list[str], second: list[str]) -> None:
        second = [self.named[target] for target in second]
        for source in (self.named[source] for source in first):

            def route(state: State) -> list[str]:
                size = len(state.get("log", []))
                return [second[size % len(second)], second[0]][: 1 + size % 2]

            self.builder.add_conditional_edges(source, route, [*second, END])

    def send(self, first: list[str], second: list[str]) -> None:
        count = self.random.randint(0 if len(first) > 1 else 1, 3)
        first = [self.named[source] for source in first]
        second = [self.named[target] for target in second]

        def route(state: State) -> list[Any]:
            sends: list[Any] = [
                Send(second[n % len(second)], {"item": n, "log": ["sent"]})
                for n in range(count)
            ]
            return sends

        self.builder.add_conditional_edges(first[0], route, second)
        for source in first[1:]:
            self.builder.add_edge(source, second[-1])

    def end(self, layers: list[list[str]]) -> None:
        """Now and then go round again, twice at most."""
        last = layers[-1]
        if self.chance(3) and not self.joins:
            again = self.label(f"{self.prefix}again")
            self.builder.add_node(again, lambda state: {"rounds": 1})
            self.builder.add_edge(self.named[last[0]], again)
            back = self.named[layers[0][0]]
            self.told.append(f"again {back}")

            def route(state: State) -> str:
                return back if state.get("rounds", 0) < 2 else END

            self.builder.add_conditional_edges(again, route, [back, END])


INPUT: State = {"log": ["in"]}


def factory(graph: Any) -> Callable[[Any], Any]:
    """The graph with the saver it is given: compiled once, it has no memory."""
    return partial(with_saver, graph)


def with_saver(graph: Any, saver: Any) -> Any:
    return graph.copy({"checkpointer": saver})
