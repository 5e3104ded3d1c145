"""Graph callbacks hear when a run stops at a question, and when it goes on."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest

from towpath import START, Command, InMemorySaver, StateGraph, interrupt
from towpath.callbacks import GraphCallbackHandler


class Log(TypedDict):
    log: Annotated[list, operator.add]


class Ear(GraphCallbackHandler):
    """Writes down what it hears."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[tuple[Any, ...]] = []

    def on_interrupt(self, event: Any) -> None:
        asked = [question.value for question in event.interrupts]
        self.heard.append(("interrupt", event.status, event.checkpoint_ns, asked))

    def on_resume(self, event: Any) -> None:
        depth = len(event.checkpoint_ns)
        self.heard.append(("resume", event.status, depth))


def asking(**options: Any) -> Any:
    child = StateGraph(Log)
    child.add_node("ask", lambda _: {"log": [interrupt("sure?")]})
    child.add_edge(START, "ask")
    graph = StateGraph(Log)
    graph.add_node("first", lambda _: {"log": ["first"]})
    graph.add_node("child", child.compile())
    graph.add_edge(START, "first")
    graph.add_edge("first", "child")
    return graph.compile(checkpointer=InMemorySaver(), **options)


def blocking(graph: Any, given: Any, config: Any) -> Any:
    return graph.invoke(given, config)


def looping(graph: Any, given: Any, config: Any) -> Any:
    return asyncio.run(graph.ainvoke(given, config))


@pytest.mark.parametrize("run", [blocking, looping])
def test_a_question_and_its_answer_are_heard(run: Callable[..., Any]) -> None:
    ear, graph = Ear(), asking()
    config = {"configurable": {"thread_id": "1"}, "callbacks": [ear]}

    run(graph, {"log": []}, config)
    run(graph, Command(resume="yes"), config)

    assert [
        ("interrupt", "pending", (), ["sure?"]),
        ("resume", "pending", 0),
        ("resume", "pending", 1),
    ] == ear.heard


def test_breakpoints_are_heard_with_their_kind() -> None:
    ear = Ear()
    graph = asking(interrupt_before=["first"], interrupt_after=["first"])
    config = {"configurable": {"thread_id": "1"}, "callbacks": [ear]}

    graph.invoke({"log": []}, config)
    graph.invoke(None, config)

    assert [
        ("interrupt", "interrupt_before", (), []),
        ("resume", "pending", 0),
        ("interrupt", "interrupt_after", (), []),
    ] == ear.heard


def test_a_stream_does_not_show_what_callbacks_hear() -> None:
    config = {"configurable": {"thread_id": "1"}, "callbacks": [Ear()]}
    chunks = list(asking().stream({"log": []}, config, stream_mode=["updates"]))
    assert ["updates"] * len(chunks) == [mode for mode, _ in chunks]
