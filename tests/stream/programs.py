"""Graphs that the tests of event streams read."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from typing_extensions import TypedDict

from towpath.testing.api import Api


class Count(TypedDict):
    n: int


def add(state: Count) -> Count:
    return {"n": state["n"] + 1}


def fail(state: Count) -> Count:
    raise ValueError("bad node")


def chain(lib: Api, *nodes: Any, **options: Any) -> Any:
    """Return a compiled graph of nodes `n0`, `n1`, ... one after the other."""
    graph = lib.StateGraph(Count)
    before = lib.START
    for number, node in enumerate(nodes):
        graph.add_node(f"n{number}", node)
        graph.add_edge(before, f"n{number}")
        before = f"n{number}"
    return graph.compile(**options)


def asking(lib: Api) -> Any:
    """Return a node that asks for the count."""

    def ask(state: Count) -> Count:
        return {"n": lib.interrupt("how many?")}

    return ask


def speaks(text: str, **more: Any) -> GenericFakeChatModel:
    """Return a chat model that says `text`, word by word when it is streamed."""
    return GenericFakeChatModel(messages=iter([AIMessage(text, **more)]))


def chat(lib: Api, node: Any, **options: Any) -> Any:
    """Return a compiled graph over messages with one node, `call`."""
    graph = lib.StateGraph(lib.MessagesState)
    graph.add_node("call", node)
    graph.add_edge(lib.START, "call")
    return graph.compile(**options)


def read(run: Any) -> list[Any]:
    """Return what a reader gets, and after it what was raised."""
    found: list[Any] = []
    try:
        found.extend(told(event) for event in run)
    except Exception as error:
        found.append(error)
    return found


def told(event: Any) -> Any:
    """Return an event without its time."""
    if isinstance(event, dict) and event.get("type") == "event":
        params = {k: v for k, v in event["params"].items() if k != "timestamp"}
        return {**event, "params": params}
    return event


def tried(call: Any) -> Any:
    """Return what a call returns, or the type by which what it raises is caught."""
    try:
        return call()
    except Exception as error:
        kinds = type(error).__mro__
        ours = (kind for kind in kinds if not kind.__module__.startswith("towpath."))
        return next(ours).__name__
