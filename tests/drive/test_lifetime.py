"""What a run holds is freed when it ends, not when the collector comes."""

from __future__ import annotations

import gc
import weakref
from typing import Any, TypedDict

import pytest

from towpath import END, START, StateGraph


class Load:
    """Something that can be seen to be freed."""


class State(TypedDict):
    load: Any
    n: int


def inner() -> Any:
    builder = StateGraph(State)
    builder.add_node("count", lambda state: {"n": state["n"] + 1})
    builder.add_edge(START, "count")
    return builder.compile()


def outer(node: Any) -> Any:
    builder = StateGraph(State)
    builder.add_node("work", node)
    builder.add_edge(START, "work")
    builder.add_conditional_edges(
        "work", lambda state: "work" if state["n"] < 3 else END, ["work", END]
    )
    return builder.compile()


@pytest.mark.parametrize("nested", [False, True])
def test_a_finished_run_is_freed_without_the_collector(nested: bool) -> None:
    graph = outer(inner() if nested else lambda state: {"n": state["n"] + 1})
    load = Load()
    seen = weakref.ref(load)
    gc.collect()
    gc.disable()
    try:
        assert graph.invoke({"load": load, "n": 0})["n"] == 3
        del load
        assert seen() is None
    finally:
        gc.enable()
