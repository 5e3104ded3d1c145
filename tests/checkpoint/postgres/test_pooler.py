"""Behind a pooler in transaction mode every transaction has another session."""

from __future__ import annotations

import asyncio
import operator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Annotated, TypedDict

import pytest

psycopg = pytest.importorskip("psycopg")

from towpath import START, StateGraph  # noqa: E402
from towpath.checkpoint.postgres import PostgresSaver  # noqa: E402
from towpath.store.postgres import PostgresStore  # noqa: E402
from towpath.testing.rows import strays  # noqa: E402

from .bouncer import bounced, program  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(program() is None, reason="pgbouncer is not installed"),
]


class State(TypedDict):
    log: Annotated[list[str], operator.add]


def graph(saver):
    builder = StateGraph(State)
    for name in "abc":
        builder.add_node(name, lambda state, name=name: {"log": [name]})
        builder.add_edge(START, name)
    builder.add_sequence([("end", lambda state: {"log": ["end"]})])
    builder.add_edge(["a", "b", "c"], "end")
    return builder.compile(checkpointer=saver)


@pytest.fixture
def pooled(postgres):
    with bounced(postgres) as dsn:
        yield dsn


@pytest.mark.parametrize("prepare", [True, False])
def test_runs_of_several_programs_share_two_sessions(pooled, prepare):
    with ExitStack() as stack, ThreadPoolExecutor(8) as threads:
        savers = [
            stack.enter_context(PostgresSaver(pooled, prepare=prepare))
            for _ in range(4)
        ]

        def talk(number):
            thread = {"configurable": {"thread_id": f"{number % 8}"}}
            made = graph(savers[number % 4])
            if number % 2:
                return made.invoke({"log": [f"{number}"]}, thread)
            return asyncio.run(made.ainvoke({"log": [f"{number}"]}, thread))

        list(threads.map(talk, range(48)))
        for number in range(8):
            thread = {"configurable": {"thread_id": f"{number}"}}
            log = graph(savers[0]).get_state(thread).values["log"]
            rounds = [f"{number + 8 * turn}" for turn in range(6)]
            assert sorted(rounds) == sorted(set(log) - {*"abc", "end"})
            assert [*"abc", "end"] * 6 == [word for word in log if word not in rounds]
        assert [] == strays(savers[0])
        for saver in savers:
            asyncio.run(saver.aclose())


def test_a_store_does_as_well(pooled):
    with PostgresStore(pooled) as store, ThreadPoolExecutor(8) as threads:

        def keep(number):
            store.put(("n", str(number % 3)), str(number), {"number": number})
            return store.get(("n", str(number % 3)), str(number)).value["number"]

        assert [*range(60)] == list(threads.map(keep, range(60)))
        assert 20 == len(store.search(("n", "1"), limit=100))
