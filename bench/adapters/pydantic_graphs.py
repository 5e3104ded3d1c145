"""pydantic-graph: typed steps, joined by edges; every step is a coroutine.

Its graphs are built once, run with a state object of their own, and not
instrumented. There is no persistence, and only asynchronous runs are compared: a
blocking one starts a loop for the same coroutines.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

from pydantic_graph import GraphBuilder, StepContext, reduce_sum

from bench.adapters.base import Awaited, said
from bench.workloads import LOOP_STEPS


@dataclass
class Count:
    count: int = 0


@dataclass
class Chat:
    messages: list[dict[str, str]] = field(default_factory=list)
    turn: int = 0


async def add_one(context: StepContext[Count, None, None]) -> None:
    context.state.count += 1


async def add_one_more(context: StepContext[Count, None, None]) -> int:
    context.state.count += 1
    return context.state.count


async def weigh(context: StepContext[None, None, int]) -> int:
    return context.inputs


async def talk(context: StepContext[Chat, None, object]) -> int:
    state = context.state
    state.messages += said(state.turn)
    state.turn += 1
    return state.turn


def row(size: int) -> Any:
    builder = GraphBuilder(state_type=Count, auto_instrument=False)
    steps = [builder.step(add_one, node_id=f"node_{index}") for index in range(size)]
    places = [builder.start_node, *steps, builder.end_node]
    for before, after in pairwise(places):
        builder.add_edge(before, after)
    return builder.build()


def compiling(size: int) -> int:
    row(size)
    return size


def chain(size: int) -> Callable[[], Awaitable[object]]:
    return partial(counting, row(size))


async def counting(graph: Any) -> object:
    state = Count()
    await graph.run(state=state)
    return state.count


def loop(size: int) -> Callable[[], Awaitable[object]]:
    builder = GraphBuilder(state_type=Count, output_type=int, auto_instrument=False)
    ping = builder.step(add_one, node_id="ping")
    pong = builder.step(add_one_more, node_id="pong")
    builder.add_edge(builder.start_node, ping)
    builder.add_edge(ping, pong)
    builder.add(until(builder, pong, ping, LOOP_STEPS))
    return partial(counting, builder.build())


def until(builder: GraphBuilder[Any, Any, Any, Any], step: Any, back: Any, n: int):
    """Return the way from a step that returns how far it is: back, or to the end."""
    more = builder.match(int, matches=lambda reached: reached < n).to(back)
    done = builder.match(int).to(builder.end_node)
    return builder.edge_from(step).to(builder.decision().branch(more).branch(done))


def fan(size: int) -> Callable[[], Awaitable[object]]:
    builder = GraphBuilder(input_type=list[int], output_type=int, auto_instrument=False)
    weighing = builder.step(weigh, node_id="weigh")
    total = builder.join(reduce_sum, initial=0)
    builder.add_mapping_edge(builder.start_node, weighing)
    builder.add_edge(weighing, total)
    builder.add_edge(total, builder.end_node)
    graph = builder.build()
    return lambda: graph.run(inputs=list(range(size)))


def chat(size: int) -> Callable[[], Awaitable[object]]:
    builder = GraphBuilder(state_type=Chat, output_type=int, auto_instrument=False)
    talking = builder.step(talk, node_id="talk")
    builder.add_edge(builder.start_node, talking)
    builder.add(until(builder, talking, talking, size))
    graph = builder.build()

    async def run() -> int:
        state = Chat()
        await graph.run(state=state)
        return len(state.messages)

    return run


class PydanticGraph(Awaited):
    name = "pydantic-graph"
    module = "pydantic_graph"
    compiling = staticmethod(compiling)
    makers = {"chain": chain, "loop": loop, "fan": fan, "chat": chat}
