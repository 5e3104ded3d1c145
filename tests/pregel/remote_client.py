"""A client of a server that is not there: it notes calls, and answers by a script."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from copy import deepcopy
from typing import Any

from langgraph_sdk.schema import StreamPart

THREAD = {"configurable": {"thread_id": "T"}}
QUESTION = {"value": "sure?", "id": "q1", "resumable": True, "ns": ["a:1"]}
ASKED = {"__interrupt__": [QUESTION]}
PLACE = {"thread_id": "T", "checkpoint_ns": "", "checkpoint_id": "C"}
BELOW = {
    "values": {"b": 1}, "next": [], "tasks": [], "metadata": {"s": 1},
    "created_at": "then", "checkpoint": {**PLACE, "checkpoint_map": {"": "C"}},
    "parent_checkpoint": None, "interrupts": [],
}  # fmt: skip
TASK = {"error": None, "interrupts": [], "state": None, "checkpoint": None}
STATE = {
    "values": {"a": 1},
    "next": ["n"],
    "metadata": {"source": "loop", "step": 1},
    "created_at": "now",
    "checkpoint": {**PLACE, "checkpoint_map": {}},
    "parent_checkpoint": {**PLACE, "checkpoint_id": "P", "checkpoint_map": {}},
    "interrupts": [{"value": "sure?", "id": "q1"}],
    "tasks": [
        {**TASK, "id": "t1", "name": "n", "interrupts": [QUESTION], "result": {"z": 1}},
        {**TASK, "id": "t2", "name": "m", "state": BELOW},
        {**TASK, "id": "t3", "name": "o", "error": "broke",
         "checkpoint": {"thread_id": "T", "checkpoint_ns": "o:t3"}},
    ],
}  # fmt: skip
GRAPH = {
    "nodes": [
        {"id": "__start__", "type": "schema", "data": "__start__"},
        {"id": "a", "type": "runnable", "data": {"id": ["x"], "name": "A"}},
        {"id": "b", "data": {"name": "b"}, "metadata": {"k": 1}},
    ],
    "edges": [
        {"source": "__start__", "target": "a"},
        {"source": "a", "target": "b", "conditional": True, "data": "yes"},
    ],
}


def part(event: str, told: Any) -> StreamPart:
    return StreamPart(event, told)


def values(**state: Any) -> StreamPart:
    return part("values", state)


class Client:
    """Any method of any attribute, as a blocking client or one that is awaited."""

    def __init__(self, *parts: Any, awaited: bool = False) -> None:
        self.parts = parts
        self.awaited = awaited
        self.calls: list[Any] = []

    def __getattr__(self, room: str) -> Room:
        if room.startswith("_"):
            raise AttributeError(room)
        return Room(self, room)


class Room:
    def __init__(self, client: Client, name: str) -> None:
        self.client, self.name = client, name

    def __getattr__(self, method: str) -> Any:
        if method.startswith("_"):
            raise AttributeError(method)

        def call(*args: Any, **given: Any) -> Any:
            if "stream_mode" in given:  # a set: neither order nor number matters
                given["stream_mode"] = sorted(set(given["stream_mode"]))
            self.client.calls.append((self.name, method, args, given))
            answer = self.answer(method)
            if not self.client.awaited:
                return iter(answer) if method == "stream" else answer
            return later(answer) if method == "stream" else soon(answer)

        return call

    def answer(self, method: str) -> Any:
        answers = {
            "stream": deepcopy(self.client.parts),
            "get_state": STATE, "get_graph": GRAPH,
            "get_history": [STATE, {**STATE, "next": []}],
            "update_state": {"checkpoint": STATE["checkpoint"]},
        }  # fmt: skip
        return answers[method]


async def soon(answer: Any) -> Any:
    return answer


async def later(parts: Iterator[Any]) -> AsyncIterator[Any]:
    for each in parts:
        yield each
