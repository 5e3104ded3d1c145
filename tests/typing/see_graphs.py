"""Graphs: schemas, nodes, edges, runs, states."""

# A state whose keys may be missing is the usual one, and what nodes read of it.
# pyright: reportTypedDictNotRequiredAccess=false

from __future__ import annotations

import operator
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, TypedDict, assert_type

from towpath import (
    END,
    START,
    Command,
    CompiledStateGraph,
    InMemorySaver,
    RetryPolicy,
    Runtime,
    Send,
    StateGraph,
    get_runtime,
)
from towpath.config import get_store, get_stream_writer
from towpath.context import RunnableConfig
from towpath.runtime import ExecutionInfo
from towpath.store.base import BaseStore
from towpath.types import Interrupt, StateSnapshot


class State(TypedDict, total=False):
    topic: str
    notes: Annotated[list[str], operator.add]


class Question(TypedDict):
    topic: str


class Answer(TypedDict):
    notes: list[str]


@dataclass
class Context:
    user: str


# -- nodes ----------------------------------------------------------------------


def plain(state: State) -> State:
    return {"notes": [state["topic"]]}


async def awaited(state: State) -> State:
    return {"notes": [state["topic"]]}


def streams(state: State) -> Iterator[State]:
    yield {"notes": [state["topic"]]}


async def astreams(state: State) -> AsyncIterator[State]:
    yield {"notes": [state["topic"]]}


def injected(state: State, runtime: Runtime[Context]) -> State:
    assert_type(runtime.context, Context)
    assert_type(runtime.context.user, str)
    runtime.context.email  # error: attr-defined
    return {"notes": [runtime.context.user]}


def half(n: int, *, up: bool = False) -> int:
    return n // 2 + up


async def ahalf(n: int) -> int:
    return n // 2


async def uses_the_runtime(state: State, runtime: Runtime[Context]) -> State:
    assert_type(runtime.store, BaseStore | None)
    assert_type(await runtime.step("half", ahalf, 4), int)
    assert_type(await runtime.step("half", half, 4, up=True), Any)
    assert_type(runtime.idempotency_key, str)
    assert_type(runtime.execution_info, ExecutionInfo | None)
    assert_type(get_store(), BaseStore)
    runtime.stream_writer({"any": 1})
    get_stream_writer()({"any": 1})
    runtime.store.get(("a",), "b")  # error: union-attr
    runtime.step("half", half, "4")  # error: call-overload
    runtime.step("half", ahalf, 4, up=True)  # error: call-arg
    runtime.stream_writer()  # error: call-arg
    return {}


def configured(state: State, config: RunnableConfig) -> State:
    config["tagss"]  # error: typeddict-item
    return {"notes": config["tags"]}


def asks_for_runtime(state: State) -> State:
    runtime = get_runtime(Context)
    assert_type(runtime, Runtime[Context])
    return {"notes": [runtime.context.name]}  # error: attr-defined


def writes_an_unknown_key(state: State) -> State:
    return {"note": ["x"]}  # error: typeddict-unknown-key


def writes_a_wrong_value(state: State) -> State:
    return {"notes": "x"}  # error: typeddict-item


def takes_part(state: Question) -> Answer:
    return {"notes": [state["topic"]]}


class Callable_:
    def __call__(self, state: State) -> State:
        return state


# -- where it goes ---------------------------------------------------------------


def goes(state: State) -> Command[Literal["plain", "awaited"]]:
    if state["topic"]:
        return Command(goto="plain", update={"notes": []})
    return Command(goto="nowhere")  # error: arg-type


def goes_to_several(state: State) -> Command[Literal["plain", "awaited"]]:
    return Command(goto=["plain", Send("awaited", {"topic": "x"})])


def sends(state: State) -> list[Send]:
    return [Send("plain", {"topic": note}) for note in state["notes"]]


def sends_no_payload(state: State) -> list[Send]:
    return [Send("plain")]  # error: call-arg


def sends_to_no_name(state: State) -> Send:
    return Send(plain, state)  # error: arg-type


def routes(state: State) -> Literal["plain", "__end__"]:
    return "plain" if state["topic"] else END


# -- building ---------------------------------------------------------------------

builder = StateGraph(State, Context)
assert_type(builder, StateGraph[State, Context, State, State])
builder.add_node(plain).add_node("awaited", awaited)
builder.add_node("streams", streams)
builder.add_node("astreams", astreams)
builder.add_node("injected", injected, retry_policy=RetryPolicy(max_attempts=3))
builder.add_node("configured", configured, retry_policy=[RetryPolicy()])
builder.add_node("lambda", lambda state: {"notes": [state["topic"]]})
builder.add_node("object", Callable_())
builder.add_node("part", takes_part, input_schema=Question)
builder.add_node("graph", StateGraph(State).add_node(plain).compile())
builder.add_edge(START, "plain")
builder.add_edge(["plain", "awaited"], "streams", join="any")
builder.add_conditional_edges("plain", routes)
builder.add_conditional_edges("plain", sends, ["plain"])

builder.add_node("two", lambda state, config: {"notes": config["tags"]})
builder.add_node("partial", partial(plain))


def takes_none() -> State:
    return {"notes": []}


builder.add_node(takes_none)  # error: arg-type
builder.add_node("wide", plain, input_schema=Answer)  # error: arg-type
builder.add_node("called", plain({"topic": "x"}))  # error: arg-type
builder.add_node("number", 5)  # error: arg-type
builder.add_node("policy", plain, retry_policy=3)  # error: arg-type
builder.add_node("defer", plain, defer="yes")  # error: arg-type
builder.add_edge(1, "plain")  # error: arg-type
builder.add_edge("plain", "awaited", join="some")  # error: arg-type
RetryPolicy(max_attempts="three")  # error: arg-type
RetryPolicy(attempts=3)  # error: call-arg

narrow = StateGraph(State, input_schema=Question, output_schema=Answer)
assert_type(narrow, StateGraph[State, None, Question, Answer])
explicit: StateGraph[State, Context, Question, Answer] = StateGraph(
    State, Context, input_schema=Question, output_schema=Answer
)

# -- running ----------------------------------------------------------------------

graph = builder.compile(checkpointer=InMemorySaver())
assert_type(graph, CompiledStateGraph[State, Context, State, State])
inner = StateGraph(State).add_node("graph", graph)

config = {"configurable": {"thread_id": "1"}}
graph.invoke({"topic": "locks"}, config, context=Context("ada"))
graph.invoke(None, config)
graph.invoke(Command(resume=True), config)
graph.invoke({"topics": "locks"}, config)  # error: call-overload
graph.invoke({"topic": 1}, config)  # error: call-overload
graph.invoke({"topic": "locks"}, config, context="ada")  # error: call-overload
graph.invoke({"topic": "locks"}, durability="never")  # error: call-overload
graph.invoke({"topic": "locks"}, stream_mode="value")  # error: call-overload

typed = explicit.compile()
typed.invoke({"topic": "locks"})
typed.invoke({"notes": []})  # error: call-overload


async def arun() -> None:
    await graph.ainvoke({"topic": "locks"})
    await graph.ainvoke({"topic": 1})  # error: call-overload
    assert_type(await graph.aget_state(config), StateSnapshot)


# -- looking ----------------------------------------------------------------------

snapshot = graph.get_state(config)
assert_type(snapshot, StateSnapshot)
assert_type(snapshot.next, tuple[str, ...])
assert_type(snapshot.interrupts, tuple[Interrupt[Any], ...])
snapshot.value  # error: attr-defined
for past in graph.get_state_history(config, limit=3):
    assert_type(past, StateSnapshot)
graph.get_state_history(config, limit="three")  # error: arg-type
