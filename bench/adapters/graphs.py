"""The workloads as graphs: one program for both libraries, found by `Api`."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

from bench.adapters.base import said
from bench.workloads import (
    CROWD_TURNS,
    LOOP_STEPS,
    TOKENS,
    VISITS,
    WIDE_STEPS,
    Workload,
)
from towpath.testing.api import Api


@dataclass
class Plan:
    """A graph that is not compiled yet, its input and how to read its output."""

    builder: Any
    given: dict[str, Any]
    result: Callable[[dict[str, Any]], object]
    warm: dict[str, Any] | None = None
    """A small input of the same form."""
    gate: Gate | None = None


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


class Said(TypedDict):
    said: str


class Answered(TypedDict):
    draft: str
    answer: str


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
    return {"messages": said(state["turn"]), "turn": state["turn"] + 1}


async def async_talk(state: Chat) -> dict[str, Any]:
    return {"messages": said(state["turn"]), "turn": state["turn"] + 1}


def count(output: dict[str, Any]) -> object:
    return output["count"]


@dataclass
class CountObject:
    count: int = 0


def add_one_to_object(state: Any) -> Count:
    return {"count": state.count + 1}


def state_of(variant: str) -> type:
    """Return a class of states that count."""
    if variant == "dataclass":
        return CountObject
    from pydantic import create_model

    return create_model("CountModel", count=(int, 0))


def row(api: Api, workload: Workload, node: Any = None) -> Any:
    """Return a builder with `size` nodes, one after the other."""
    variant = workload.variant if workload.kind == "chain" else ""
    builder = api.StateGraph(state_of(variant) if variant else Count)
    if node is None:
        node = async_add_one if workload.asynchronous else add_one
    previous = api.START
    for number in range(workload.size):
        name = f"node_{number}"
        builder.add_node(name, node)
        builder.add_edge(previous, name)
        previous = name
    builder.add_edge(previous, api.END)
    return builder


def routed(route: Callable[[Any], Any], workload: Workload) -> Callable[[Any], Any]:
    """Return a router of the colour of the run: a blocking one would hop threads."""
    if not workload.asynchronous:
        return route

    async def aroute(state: Any) -> Any:
        return route(state)

    return aroute


def chain(api: Api, workload: Workload) -> Plan:
    node = add_one_to_object if workload.variant else None
    return Plan(row(api, workload, node), {"count": 0}, count)


def stream(api: Api, workload: Workload) -> Plan:
    """The chain, whose nodes say something where the mode is about that."""
    node = None
    if workload.variant.endswith("custom"):
        get_stream_writer = api.get_stream_writer

        def node(state: Count) -> Count:
            get_stream_writer()(state["count"])
            return {"count": state["count"] + 1}

    return Plan(row(api, workload, node), {"count": 0}, count)


def tokens(api: Api, workload: Workload) -> Plan:
    builder = api.StateGraph(Said)
    speaker = model()
    builder.add_node("say", lambda state: {"said": speaker.invoke("speak").content})
    builder.add_edge(api.START, "say")
    return Plan(builder, {"said": ""}, lambda output: output["said"])


def model() -> Any:
    """Return a model that answers at once, word by word."""
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, AIMessageChunk
    from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

    class Speaker(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "speaker"

        def _stream(self, messages, stop=None, run_manager=None, **options):
            for _ in range(TOKENS):
                chunk = ChatGenerationChunk(message=AIMessageChunk(content="word "))
                if run_manager is not None:
                    run_manager.on_llm_new_token("word ", chunk=chunk)
                yield chunk

        def _generate(self, messages, stop=None, run_manager=None, **options):
            said = AIMessage(content="word " * TOKENS)
            return ChatResult(generations=[ChatGeneration(message=said)])

    return Speaker()


def ask(api: Api, workload: Workload) -> Plan:
    interrupt = api.interrupt
    builder = api.StateGraph(Answered)
    builder.add_node("draft", lambda state: {"draft": "a lock and a gate"})
    builder.add_node("review", lambda state: {"answer": interrupt(state["draft"])})
    builder.add_edge(api.START, "draft")
    builder.add_edge("draft", "review")
    return Plan(builder, {"draft": ""}, lambda output: output["answer"])


def messages(api: Api, workload: Workload) -> Plan:
    """The chat as most agents have it: messages with ids, which may be replaced."""
    from langchain_core.messages import convert_to_messages

    def talk(state: Any) -> dict[str, Any]:
        turn = state["turn"]
        new = convert_to_messages(said(turn))
        for side, message in enumerate(new):
            message.id = f"{turn}-{side}"
        return {"messages": new, "turn": turn + 1}

    keys = {"messages": Annotated[list, api.add_messages], "turn": int, "turns": int}
    return chat(api, workload, talk, TypedDict("Talk", keys))  # type: ignore[misc]


class Gate:
    """Where conversations of a crowd wait, as long as it is closed."""

    def __init__(self) -> None:
        self._missing = 0
        self._opened: asyncio.Event | None = None

    async def wait(self) -> None:
        if self._opened is None:
            return
        self._missing -= 1
        if not self._missing:
            self._full.set()
        await self._opened.wait()

    def close(self, crowd: int) -> None:
        """Have everyone wait; `full` returns when so many do."""
        self._missing = crowd
        self._opened, self._full = asyncio.Event(), asyncio.Event()

    async def full(self) -> None:
        await self._full.wait()

    def open(self) -> None:
        assert self._opened is not None
        self._opened.set()
        self._opened = None


def crowd(api: Api, workload: Workload) -> Plan:
    """A short conversation with a gate in its middle."""
    gate = Gate()

    async def talk_at_gate(state: Chat) -> dict[str, Any]:
        if state["turn"] == CROWD_TURNS // 2:
            await gate.wait()
        return {"messages": said(state["turn"]), "turn": state["turn"] + 1}

    plan = chat(api, workload, talk_at_gate)
    plan.given = {"messages": [], "turn": 0, "turns": CROWD_TURNS}
    plan.gate = gate
    return plan


def loop(api: Api, workload: Workload) -> Plan:
    builder = api.StateGraph(Count)
    node = async_add_one if workload.asynchronous else add_one
    builder.add_node("ping", node)
    builder.add_node("pong", node)
    builder.add_edge(api.START, "ping")
    builder.add_edge("ping", "pong")

    def route(state: Count) -> str:
        return "ping" if state["count"] < LOOP_STEPS else api.END

    builder.add_conditional_edges("pong", routed(route, workload), ["ping", api.END])
    return Plan(builder, {"count": 0}, count)


def fan(api: Api, workload: Workload) -> Plan:
    send, size = api.Send, workload.size
    builder = api.StateGraph(Tally)
    builder.add_node("weigh", async_weigh if workload.asynchronous else weigh)

    def spread(state: Tally) -> list[Any]:
        return [send("weigh", {"weight": weight}) for weight in range(size)]

    builder.add_conditional_edges(api.START, routed(spread, workload), ["weigh"])
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


def chat(api: Api, workload: Workload, node: Any = None, state: type = Chat) -> Plan:
    builder = api.StateGraph(state)
    if node is None:
        node = async_talk if workload.asynchronous else talk
    builder.add_node("talk", node)
    builder.add_edge(api.START, "talk")

    def route(state: Any) -> str:
        return "talk" if state["turn"] < state["turns"] else api.END

    builder.add_conditional_edges("talk", routed(route, workload), ["talk", api.END])
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
    "snapshot": chat,
    "history": chat,
    "ask": ask,
    "crowd": crowd,
    "stream": stream,
    "tokens": tokens,
    "nested": nested,
    "messages": messages,
}
