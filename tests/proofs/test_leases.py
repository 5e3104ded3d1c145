"""Of two that want the same thread one has it, and the other is told so."""

from __future__ import annotations

import asyncio
import gc
import operator
import sqlite3
import threading
import weakref
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import pytest

from towpath.checkpoint.memory import InMemorySaver
from towpath.checkpoint.sqlite import SqliteSaver
from towpath.errors import (
    LeaseLostError,
    NothingToResumeError,
    UnknownInterruptError,
)
from towpath.graph import START, StateGraph
from towpath.testing.rows import strays
from towpath.types import Command, interrupt

THREAD = {"configurable": {"thread_id": "t"}}
COLOURS = ("sync", "loop")


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


@dataclass
class Store:
    """A database: how to open it once more, and how to let all leases expire."""

    open: Callable[[], Any]
    expire: Callable[[], None]


EXPIRE = "UPDATE towpath_leases SET expires = 0"


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request, tmp_path):
    if request.param == "memory":
        saver = InMemorySaver()

        def expire_in_memory():
            for lease in saver._leases._held.values():
                lease.end()  # in one process, the run is there or it is not

        return Store(lambda: saver, expire_in_memory)
    if request.param == "sqlite":
        path = str(tmp_path / "leases.sqlite")

        def expire_in_sqlite():
            with closing(sqlite3.connect(path, isolation_level=None)) as connection:
                connection.execute(EXPIRE)

        return Store(lambda: SqliteSaver(path), expire_in_sqlite)
    dsn = request.getfixturevalue("postgres")
    import psycopg

    from towpath.checkpoint.postgres import PostgresSaver

    def expire_in_postgres():
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(EXPIRE)

    return Store(lambda: PostgresSaver(dsn, pool_size_max=4), expire_in_postgres)


def close(saver):
    getattr(saver, "close", lambda: None)()


def call(graph: Any, given: Any, colour: str, **options: Any) -> Any:
    if colour == "sync":
        return graph.invoke(given, THREAD, **options)
    return asyncio.run(graph.ainvoke(given, THREAD, **options))


class Racer(threading.Thread):
    """A call in a thread of its own, and what came of it."""

    def __init__(self, work: Callable[[], Any]) -> None:
        super().__init__()
        self.work = work
        self.result: Any = None
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self.result = self.work()
        except BaseException as error:
            self.error = error


@pytest.mark.parametrize("by_id", [True, False])
@pytest.mark.parametrize("colour", COLOURS)
def test_of_two_answers_to_one_question_one_is_taken(store, colour, by_id):
    ran = []

    def node(state):
        answer = interrupt("how many?")
        ran.append(answer)
        return {"log": [answer]}

    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    savers = [store.open(), store.open()]
    graphs = [builder.compile(checkpointer=saver) for saver in savers]
    for number in range(10):
        thread = {"configurable": {"thread_id": str(number)}}
        graphs[0].invoke({"log": ["in"]}, thread)
        [asked] = graphs[0].get_state(thread).interrupts
        ran.clear()
        start = threading.Barrier(2)

        def answer(
            graph, text, asked=asked.id, start=start, thread=thread, colour=colour
        ):
            resume = Command(resume={asked: text} if by_id else text)
            start.wait()
            if colour == "sync":
                return graph.invoke(resume, thread)
            return asyncio.run(graph.ainvoke(resume, thread))

        racers = [
            Racer(lambda graph=graph, text=text: answer(graph, text))
            for graph, text in zip(graphs, ("one", "two"), strict=True)
        ]
        for racer in racers:
            racer.join()
        won = [racer.result for racer in racers if racer.error is None]
        told = [type(racer.error) for racer in racers if racer.error is not None]
        assert 1 == len(won), [racer.error for racer in racers]
        assert told[0] in (NothingToResumeError, UnknownInterruptError)
        assert [ran[0]] == ran
        assert {"log": ["in", ran[0]]} == won[0] == graphs[1].get_state(thread).values
    for saver in savers:
        close(saver)


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_who_lost_a_lease_stores_nothing_more(store, durability, colour):
    """One worker stands still so long that its lease expires; another goes on."""
    inside, go_on = threading.Event(), threading.Event()
    ran = []

    def slow(state):
        ran.append("slow")
        if len(ran) == 1:
            inside.set()
            assert go_on.wait(30)
            return {"log": ["late"]}
        return {"log": ["in time"]}

    builder = StateGraph(State)
    builder.add_node("first", lambda state: {"log": ["first"]})
    builder.add_node("slow", slow)
    builder.add_node("last", lambda state: {"log": ["last"]})
    builder.add_edge(START, "first")
    builder.add_edge("first", "slow")
    builder.add_edge("slow", "last")
    savers = [store.open(), store.open()]
    slow_graph, other = (builder.compile(checkpointer=saver) for saver in savers)
    slow_graph.invoke({"log": ["in"]}, THREAD, interrupt_before=["slow"])
    racer = Racer(lambda: call(slow_graph, None, colour, durability=durability))
    assert inside.wait(30)
    store.expire()
    told = call(other, None, colour)
    history = list(savers[1].list(THREAD))
    go_on.set()
    racer.join()

    assert {"log": ["in", "first", "in time", "last"]} == told
    assert isinstance(racer.error, LeaseLostError), racer.error
    assert history == list(savers[1].list(THREAD))
    assert told == slow_graph.get_state(THREAD).values
    again = call(slow_graph, {"log": ["again"]}, colour)["log"]
    assert [*told["log"], "again", "first", "in time", "last"] == again
    if not isinstance(savers[0], InMemorySaver):
        assert [] == strays(savers[0])
    for saver in savers:
        close(saver)


@pytest.mark.parametrize("colour", COLOURS)
def test_a_lease_that_is_lost_at_the_last_step_is_told_too(store, colour):
    """The end of a run is a commit like any other."""
    inside, go_on = threading.Event(), threading.Event()
    first = [True]

    def node(state):
        if first.pop() if first else False:
            inside.set()
            assert go_on.wait(30)
            state["log"].append("in place")
        return {"log": ["node"]}

    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    savers = [store.open(), store.open()]
    one, other = (builder.compile(checkpointer=saver) for saver in savers)
    racer = Racer(lambda: call(one, {"log": ["in"]}, colour, durability="exit"))
    assert inside.wait(30)
    store.expire()
    told = call(other, {"log": ["other"]}, colour)
    go_on.set()
    racer.join()

    assert isinstance(racer.error, LeaseLostError), racer.error
    assert {"log": ["other", "node"]} == told == one.get_state(THREAD).values
    for saver in savers:
        close(saver)


def test_renewing_leases_keeps_no_saver_alive(tmp_path):
    with closing(SqliteSaver(str(tmp_path / "db.sqlite"))) as opened:
        builder = StateGraph(State).add_node("one", lambda state: {"log": ["one"]})
        graph = builder.add_edge(START, "one").compile(checkpointer=opened)
        graph.invoke({"log": []}, THREAD)
        held = weakref.ref(opened)
    del graph, opened, builder
    gc.collect()
    assert held() is None
