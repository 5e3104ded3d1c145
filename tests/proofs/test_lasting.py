"""A subgraph that keeps its state across calls takes each input once.

A run dies after the subgraph has ended and before the run itself has: what is in
the database at that moment is all that the next process finds.
"""

from __future__ import annotations

import asyncio
import operator
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from towpath import START, StateGraph
from towpath.checkpoint.sqlite import SqliteSaver

THREAD = {"configurable": {"thread_id": "t"}}


class State(TypedDict):
    log: Annotated[list[str], operator.add]
    seen: Annotated[list[list[str]], operator.add]


def copy(source: Path, target: Path) -> None:
    """Copy a database as it is after a crash: nobody holds a thread."""
    with (
        closing(sqlite3.connect(source)) as one,
        closing(sqlite3.connect(target)) as two,
    ):
        one.backup(two)
        two.execute("UPDATE towpath_leases SET owner = NULL")
        two.commit()


def graph(saver: Any, after: Any, depth: int = 1):
    """Hand the newest line to a lasting subgraph, which tells all it has ever got."""
    inner = StateGraph(State)
    inner.add_node("leaf", lambda state: {"seen": [list(state["log"])]})
    inner.add_edge(START, "leaf")
    called: Any = inner.compile(checkpointer=True)
    for _ in range(depth):
        called = around(called, lambda state: {}).compile(checkpointer=True)
    return around(called, after).compile(checkpointer=saver)


def around(called: Any, after: Any):
    def sub(state: State) -> dict[str, Any]:
        twice = [called.invoke({"log": state["log"][-1:]}) for _ in range(2)]
        return {"seen": twice[-1]["seen"][-1:]}

    outer = StateGraph(State)
    outer.add_sequence([("before", lambda state: {}), ("sub", sub), ("after", after)])
    return outer.add_edge(START, "before")


def call(made: Any, given: Any, durability: str, colour: str) -> list[str]:
    if colour == "sync":
        result = made.invoke(given, THREAD, durability=durability)
    else:
        result = asyncio.run(made.ainvoke(given, THREAD, durability=durability))
    return result["seen"][-1]


@pytest.mark.slow
@pytest.mark.parametrize("colour", ["sync", "loop"])
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("depth", [0, 1])
def test_an_input_that_a_dead_run_has_handed_on_is_taken_once(
    tmp_path, durability, colour, depth
):
    path, left = tmp_path / "threads.db", tmp_path / "left.db"

    def dies(state: State) -> dict[str, Any]:
        copy(path, left)
        return {}

    with closing(SqliteSaver(str(path))) as saver:
        first = call(graph(saver, dies, depth), {"log": ["one"]}, durability, colour)
        whole = call(graph(saver, dies, depth), {"log": ["two"]}, durability, colour)
    with closing(SqliteSaver(str(left))) as saver:
        again = graph(saver, lambda state: {}, depth)
        stopped = again.get_state(THREAD)
        assert bool(stopped.next) is (durability != "exit")
        given = None if stopped.next else {"log": ["two"]}
        assert whole == call(again, given, durability, colour)
        third = call(again, {"log": ["three"]}, durability, colour)
        assert [*whole, *["three"] * (len(whole) - len(first))] == third
