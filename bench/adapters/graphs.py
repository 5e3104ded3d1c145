"""The workloads as graphs: one program for both libraries, found by `Api`."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

from bench.adapters.base import ANSWER, QUESTION
from bench.workloads import LOOP_STEPS, VISITS, WIDE_STEPS, Workload
from towpath.testing.api import Api


@dataclass
class Plan:
    """A graph that is not compiled yet, its input and how to read its output."""

    builder: Any
    given: dict[str, Any]
    result: Callable[[dict[str, Any]], object]
    warm: dict[str, Any] | None = None
    """A small input of the same form."""


class Count(TypedDict):
    count: int


class Tally(TypedDict):
    total: Annotated[int, operator.add]


class Chat(TypedDict):
    messages: Annotated[list[dict[str, str]], operator.add]
    turn: int
    turns: int


class Touched(TypedDict):
    key_0: int
    key_1: int


def add_one(state: Count) -> Count:
    return {"count": state["count"] + 1}


async def async_add_one(state: Count) -> Count:
    return {"count": state["count"] + 1}


def weigh(sent: dict[str, int]) -> Tally:
    return {"total": sent["weight"]}


async def async_weigh(sent: dict[str, int]) -> Tally:
    return {"total": sent["weight"]}


def touch(state: Touched) -> Touched:
    return {"key_0": 1, "key_1": 1}


def talk(state: Chat) -> dict[str, Any]:
    return {"messages": [QUESTION, ANSWER], "turn": state["turn"] + 1}


def count(output: dict[str, Any]) -> object:
    return output["count"]


def row(api: Api, workload: Workload) -> Any:
    """Return a builder with `size` nodes, one after the other."""
    builder = api.StateGraph(Count)
    node = async_add_one if workload.asynchronous else add_one
    previous = api.START
    for number in range(workload.size):
        name = f"node_{number}"
        builder.add_node(name, node)
        builder.add_edge(previous, name)
        previous = name
    builder.add_edge(previous, api.END)
    return builder


def chain(api: Api, workload: Workload) -> Plan:
    return Plan(row(api, workload), {"count": 0}, count)


def loop(api: Api, workload: Workload) -> Plan:
    builder = api.StateGraph(Count)
    node = async_add_one if workload.asynchronous else add_one
    builder.add_node("ping", node)
    builder.add_node("pong", node)
    builder.add_edge(api.START, "ping")
    builder.add_edge("ping", "pong")

    def route(state: Count) -> str:
        return "ping" if state["count"] < LOOP_STEPS else api.END

    builder.add_conditional_edges("pong", route, ["ping", api.END])
    return Plan(builder, {"count": 0}, count)


def fan(api: Api, workload: Workload) -> Plan:
    send, size = api.Send, workload.size
    builder = api.StateGraph(Tally)
    builder.add_node("weigh", async_weigh if workload.asynchronous else weigh)

    def spread(state: Tally) -> list[Any]:
        return [send("weigh", {"weight": weight}) for weight in range(size)]

    builder.add_conditional_edges(api.START, spread, ["weigh"])
    builder.add_edge("weigh", api.END)
    return Plan(builder, {"total": 0}, lambda output: output["total"])


def wide(api: Api, workload: Workload) -> Plan:
    # Summed keys are there from the start and only two go in and out: input and
    # output of all keys once per run would hide what a step costs.
    keys = [f"key_{number}" for number in range(workload.size)]
    summed = Annotated[int, operator.add]
    state = TypedDict("Wide", dict.fromkeys(keys, summed))  # type: ignore[misc]
    builder = api.StateGraph(state, input_schema=Touched, output_schema=Touched)
    # The node is not annotated: it is given the whole state.
    builder.add_node("touch", lambda state: touch(state))

    def route(state: Any) -> str:
        return "touch" if state["key_0"] < WIDE_STEPS else api.END

    builder.add_edge(api.START, "touch")
    builder.add_conditional_edges("touch", route, ["touch", api.END])
    return Plan(builder, {"key_0": 0, "key_1": 0}, lambda output: output["key_1"])


def chat(api: Api, workload: Workload) -> Plan:
    builder = api.StateGraph(Chat)
    builder.add_node("talk", talk)
    builder.add_edge(api.START, "talk")

    def route(state: Chat) -> str:
        return "talk" if state["turn"] < state["turns"] else api.END

    builder.add_conditional_edges("talk", route, ["talk", api.END])
    given = {"messages": [], "turn": 0, "turns": workload.size}
    return Plan(
        builder,
        given,
        lambda output: len(output["messages"]),
        warm={**given, "turns": 2},
    )


def nested(api: Api, workload: Workload) -> Plan:
    node: Any = add_one
    for _ in range(workload.size):
        inner = api.StateGraph(Count)
        inner.add_node("inner", node)
        inner.add_edge(api.START, "inner")
        inner.add_edge("inner", api.END)
        node = inner.compile()
    builder = api.StateGraph(Count)
    builder.add_node("visit", node)
    builder.add_edge(api.START, "visit")

    def route(state: Count) -> str:
        return "visit" if state["count"] < VISITS else api.END

    builder.add_conditional_edges("visit", route, ["visit", api.END])
    return Plan(builder, {"count": 0}, count)


PLANS: dict[str, Callable[[Api, Workload], Plan]] = {
    "chain": chain,
    "loop": loop,
    "fan": fan,
    "wide": wide,
    "chat": chat,
    "nested": nested,
}
