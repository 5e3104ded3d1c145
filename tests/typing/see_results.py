"""Results: what comes of a run, by what was asked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any, TypedDict, assert_type

from pydantic import BaseModel

from towpath import Command, CompiledStateGraph, StateGraph
from towpath.types import GraphOutput, Interrupt, StreamMode, StreamPart

Namespace = tuple[str, ...]


class State(TypedDict, total=False):
    topic: str
    count: int


class Answer(TypedDict):
    count: int


@dataclass
class Data:
    topic: str


class Model(BaseModel):
    topic: str = ""


typed = StateGraph(State).compile()
data = StateGraph(Data).compile()
model = StateGraph(Model).compile()
whole = StateGraph(int).compile()
narrow = StateGraph(State, output_schema=Answer).compile()

# -- invoke: a dict for every state with keys, with `__interrupt__` among them -----

assert_type(typed.invoke({"topic": "x"}), dict[str, Any])
assert_type(data.invoke(Data("x")), dict[str, Any])
assert_type(model.invoke(Model()), dict[str, Any])
assert_type(whole.invoke(1), Any)
assert_type(typed.invoke(Command(resume=1)), dict[str, Any])
assert_type(typed.invoke(None, {"configurable": {}}), dict[str, Any])
data.invoke(Data("x"))["topic"]
data.invoke(Data("x"))["__interrupt__"]
data.invoke(Data("x")).topic  # error: attr-defined
model.invoke(Model()).topic  # error: attr-defined

assert_type(typed.invoke({}, output_keys="topic"), Any)
assert_type(typed.invoke({}, stream_mode="updates"), Any)

# -- version="v2": what the schema says, and the questions apart -------------------

assert_type(typed.invoke({}, version="v2"), GraphOutput[State])
assert_type(data.invoke(Data("x"), version="v2").value.topic, str)
assert_type(model.invoke(Model(), version="v2").value.topic, str)
assert_type(narrow.invoke({}, version="v2").value["count"], int)
assert_type(narrow.invoke({}, version="v2").interrupts, tuple[Interrupt[Any], ...])
assert_type(whole.invoke(1, version="v2").value, int)
narrow.invoke({}, version="v2").value["topic"]  # error: typeddict-item
data.invoke(Data("x"), version="v2").value.topics  # error: attr-defined
typed.invoke({}, version="v3")  # error: call-overload
assert_type(
    typed.invoke({}, version="v2", stream_mode="updates"),
    list[StreamPart[State, State]],
)

# -- stream: payloads by mode, and what stands before them -------------------------

assert_type(typed.stream({}), Iterator[dict[str, Any]])
assert_type(data.stream(Data("x"), stream_mode="values"), Iterator[dict[str, Any]])
assert_type(whole.stream(1, stream_mode="values"), Iterator[Any])
assert_type(typed.stream({}, stream_mode="custom"), Iterator[Any])
assert_type(typed.stream({}, subgraphs=True), Iterator[tuple[Namespace, Any]])
for token, about in typed.stream({}, stream_mode="messages"):
    assert_type(about, dict[str, Any])
    print(token.content)
for mode, chunk in typed.stream({}, stream_mode=["updates", "custom"]):
    assert_type(mode, str)
    print(chunk["node"])
for ns, mode, chunk in typed.stream(
    {}, stream_mode=("updates", "tasks"), subgraphs=True
):
    assert_type(ns, Namespace)
    print(mode, chunk)
for part in narrow.stream({}, version="v2", stream_mode=["values", "custom"]):
    if part["type"] == "values":
        assert_type(part["data"], Answer)
        assert_type(part["interrupts"], tuple[Interrupt[Any], ...])
    elif part["type"] == "checkpoints":
        assert_type(part["data"]["values"], State)
    elif part["type"] == "updates":
        assert_type(part["data"], dict[str, Any])
for told in data.stream(Data("x"), version="v2"):
    if told["type"] == "values":
        told["data"].topics  # error: attr-defined
typed.stream({}, stream_mode="value")  # error: call-overload
typed.stream({}, subgraphs="yes")  # error: call-overload
typed.stream({"topics": "x"})  # error: call-overload

# -- several runs ------------------------------------------------------------------

assert_type(typed.batch([{"topic": "x"}, Command(resume=1)]), list[dict[str, Any]])
assert_type(data.batch([Data("x")], version="v2"), list[GraphOutput[Data]])
assert_type(typed.batch([{}], return_exceptions=True), list[Any])
typed.batch([{"topics": "x"}])  # error: list-item
typed.batch({"topic": "x"})  # error: call-overload

# -- in the other colour, and what is only known when it runs ------------------------


async def arun() -> None:
    assert_type(await typed.ainvoke({}), dict[str, Any])
    assert_type(await data.ainvoke(Data("x"), version="v2"), GraphOutput[Data])
    assert_type(typed.astream({}), AsyncIterator[dict[str, Any]])
    async for mode, chunk in typed.astream({}, stream_mode=["updates", "custom"]):
        print(mode.upper(), chunk["node"])
    async for ns, payload in typed.astream({}, stream_mode="custom", subgraphs=True):
        print(ns[0], payload)
    assert_type(await typed.abatch([{}]), list[dict[str, Any]])


def unknown(
    graph: CompiledStateGraph[Any, Any, Any, Any],
    mode: StreamMode,
    flag: bool,
    options: dict[str, Any],
) -> None:
    print(graph.invoke({"any": 1})["any"])
    assert_type(typed.invoke({}, stream_mode=mode), Any)
    assert_type(typed.stream({}, stream_mode=mode, subgraphs=flag), Iterator[Any])
    typed.invoke({}, **options)
