"""Warnings are told at the line of the program that led to them."""

from __future__ import annotations

import asyncio
import inspect
import operator
import warnings
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest

from towpath import START, Command, InMemorySaver, Send, StateGraph, interrupt
from towpath.semantics import LANGGRAPH


class Log(TypedDict):
    log: Annotated[list[Any], operator.add]


def graph_of(node: Any, **options: Any) -> Any:
    builder = StateGraph(Log)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    return builder.compile(semantics=LANGGRAPH, **options)


def undeclared(_: Any) -> Any:
    return {"nothing": 1}


def lost(_: Any) -> Any:
    return Command(goto="nowhere")


def sends_away(_: Any) -> Any:
    return Command(goto=Send("nowhere", 1))


THREAD = {"configurable": {"thread_id": "1"}}


def swallows(_: Any) -> Any:
    try:
        interrupt("?")
    except Exception:  # noqa: BLE001 - that is what is warned of
        return {"log": []}


@pytest.mark.parametrize("verb", ["invoke", "stream", "ainvoke"])
@pytest.mark.parametrize("node", [undeclared, lost, sends_away, swallows])
def test_a_loss_is_told_where_the_run_was_started(
    node: Callable[..., Any], verb: str
) -> None:
    app = graph_of(node, checkpointer=InMemorySaver())
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        if verb == "invoke":
            app.invoke({"log": []}, THREAD)
        elif verb == "stream":
            list(app.stream({"log": []}, THREAD, stream_mode="updates"))
        else:
            asyncio.run(app.ainvoke({"log": []}, THREAD))
    lines, first = inspect.getsourcelines(inspect.currentframe())  # type: ignore[arg-type]
    assert heard
    for one in heard:
        assert __file__ == one.filename
        assert first <= one.lineno <= first + len(lines)


def test_a_durability_that_is_nobodys_is_told() -> None:
    app = graph_of(lambda _: {"log": ["x"]})
    with pytest.warns(UserWarning, match="durability"):
        app.invoke({"log": []}, durability="exit")


def test_the_same_loss_is_told_once_by_default() -> None:
    app = graph_of(undeclared)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("default")
        for _ in range(3):
            app.invoke({"log": []})
    assert 1 == len(heard)
