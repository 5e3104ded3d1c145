"""Threads are listed by a row of each, whatever their states and histories weigh."""

from __future__ import annotations

import asyncio
import operator
import sqlite3
from contextlib import closing
from typing import Annotated, Any, TypedDict

import pytest

from towpath import START, StateGraph, interrupt
from towpath.checkpoint.base.summary import ThreadSummary
from towpath.checkpoint.memory import InMemorySaver
from towpath.checkpoint.sqlite import SqliteSaver


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


def asks(state: State) -> State:
    return {"log": [interrupt("?")]}


def graph(saver: Any) -> Any:
    inner = StateGraph(State).add_node("asks", asks).add_edge(START, "asks").compile()
    builder = StateGraph(State)
    builder.add_node("says", lambda state: {"log": ["said" * 1000]})
    builder.add_node("inner", inner)
    builder.add_edge(START, "says").add_edge("says", "inner")
    return builder.compile(saver)


def thread(name: str) -> Any:
    return {"configurable": {"thread_id": name}}


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def saver(request: pytest.FixtureRequest, tmp_path: Any) -> Any:
    if request.param == "memory":
        yield InMemorySaver()
    elif request.param == "sqlite":
        with SqliteSaver(tmp_path / "threads.db") as opened:
            yield opened
    else:
        from towpath.checkpoint.postgres import PostgresSaver

        dsn = request.getfixturevalue("postgres")
        with PostgresSaver.from_conn_string(dsn) as opened:
            opened.setup()
            yield opened


def test_each_thread_is_told_of_and_the_last_changed_comes_first(saver: Any) -> None:
    app = graph(saver)
    for name in ("a", "b\0é", "c", "a"):
        app.invoke({"log": [name]}, thread(name))

    found = saver.threads()

    assert ["a", "c", "b\0é"] == [one.id for one in found]
    assert [6, 3, 3] == [one.checkpoints for one in found]
    for one in found:
        whole = saver.get_tuple(thread(one.id))
        own = whole.checkpoint["channel_values"]
        shown = {name: own[name] for name in own if name != "log"}
        checkpoint = {**whole.checkpoint, "channel_values": shown}
        assert whole._replace(checkpoint=checkpoint) == one.newest
        assert saver.delete_thread(one.id, dry_run=True).bytes == one.bytes
    assert found == asyncio.run(saver.athreads())


def test_pages_of_threads_tell_of_each_once(saver: Any) -> None:
    app = graph(saver)
    names = [f"thread {number}" for number in range(5)]
    for name in names:
        app.invoke({"log": []}, thread(name))
    listed: list[ThreadSummary] = []
    while page := saver.threads(limit=2, after=listed[-1] if listed else None):
        assert len(page) <= 2
        listed += page
    assert names[::-1] == [one.id for one in listed]
    assert [] == saver.threads(limit=0)
    with pytest.raises(ValueError, match="negative"):
        saver.threads(limit=-1)


@pytest.mark.parametrize("threads", [1, 20])
def test_a_page_takes_as_few_statements_for_many_threads(threads: int) -> None:
    memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    with closing(memory) as connection:
        saver = SqliteSaver(connection)
        app = graph(saver)
        for number in range(threads):
            app.invoke({"log": []}, thread(str(number)))
        asked: list[str] = []
        connection.set_trace_callback(asked.append)
        assert threads == len(saver.threads())
        connection.set_trace_callback(None)
        reads = [sql for sql in asked if sql.startswith(("SELECT", "WITH"))]
        # The newest checkpoints, their frames, values and writes, and three sums.
        assert len(reads) <= 7
