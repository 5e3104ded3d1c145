"""A connection may be lost at any time, and nothing is lost or done twice."""

from __future__ import annotations

import operator
import signal
import threading
from contextlib import closing, contextmanager
from typing import Annotated, TypedDict

import pytest

psycopg = pytest.importorskip("psycopg")
from psycopg_pool import ConnectionPool  # noqa: E402

from towpath import START, StateGraph  # noqa: E402
from towpath.checkpoint.postgres import PostgresSaver  # noqa: E402
from towpath.errors import PersistenceError  # noqa: E402
from towpath.testing.conformance_colours import Looped  # noqa: E402
from towpath.testing.conformance_saver import (  # noqa: E402
    Blocking,
    Branch,
    at,
    id_of,
    values,
)

from .wire import Wire  # noqa: E402


@pytest.fixture(params=[Blocking, Looped])
def face(request):
    """Call savers by their blocking methods, and by their async ones."""
    return request.param


@contextmanager
def opened(dsn, face, **options):
    with PostgresSaver(dsn, **options) as saver, closing(face(saver)) as faced:
        yield faced


def commits(sent):
    return b"COMMIT" in sent


def inserts(sent):
    """Tell by its text, which is not sent again where statements are prepared."""
    return b"INSERT INTO towpath_cells" in sent


# Connections


def test_connections_that_the_server_ended_are_replaced(
    postgres, postgres_server, face
):
    with opened(postgres, face) as saver:
        branch = Branch(saver, at())
        for number in range(3):
            config = branch.put({"n": number})
            postgres_server.end_sessions(postgres)
            assert {"n": number} == values(saver.get_tuple(config))
            postgres_server.end_sessions(postgres)


def test_so_are_those_of_a_pool_of_the_callers(postgres, postgres_server):
    with ConnectionPool(postgres, min_size=4, max_size=4, open=True) as pool:
        pool.wait()
        with PostgresSaver(pool) as saver:
            branch = Branch(Blocking(saver), at())
            branch.put({"n": 0})
            postgres_server.end_sessions(postgres)
            assert {"n": 1} == values(saver.get_tuple(branch.put({"n": 1})))


def test_one_that_the_caller_opened_is_not_and_the_error_says_so(
    postgres, postgres_server
):
    with psycopg.connect(postgres, autocommit=True) as connection:
        saver = PostgresSaver(connection)
        saver.setup()
        postgres_server.end_sessions(postgres)
        with pytest.raises(PersistenceError, match="closed or lost") as caught:
            saver.get_tuple(at())
        assert "connection string" in caught.value.hint


# Transactions


@pytest.mark.parametrize("what", [inserts, commits])
def test_a_commit_that_did_not_arrive_is_done_again(postgres, face, what):
    with Wire(postgres) as wire, opened(wire.dsn, face, prepare=False) as saver:
        branch = Branch(saver, at())
        branch.put({"a": "a" * 40})
        wire.before = what
        config = branch.put({"a": "b" * 40}, writes=[("task", "", [("x", 1)])])
        assert 1 == wire.cuts
        assert {"a": "b" * 40} == values(saver.get_tuple(config))
        assert 2 == len(saver.list(at()))


def test_a_commit_that_arrived_is_not_done_again(postgres, face):
    with Wire(postgres) as wire, opened(wire.dsn, face) as saver:
        branch = Branch(saver, at())
        branch.put({"a": "a" * 40})
        wire.after = commits
        branch.put({"a": "b" * 40})
        assert 1 == wire.cuts
        assert [{"a": "b" * 40}, {"a": "a" * 40}] == [
            values(found) for found in saver.list(at())
        ]
        with psycopg.connect(postgres) as connection:
            cells = "SELECT count(*) FROM towpath_cells"
            assert (2,) == connection.execute(cells).fetchone(), "stored once"


def test_a_copy_that_arrived_is_not_refused_because_it_is_there(postgres, face):
    with Wire(postgres) as wire, opened(wire.dsn, face) as saver:
        Branch(saver, at("a")).put({"n": 1})
        wire.after = commits
        copied = saver.tend("copy_thread", "a", "b")
        assert 1 == wire.cuts
        assert 1 == copied.checkpoints
        assert {"n": 1} == values(saver.get_tuple(at("b")))
        with pytest.raises(ValueError, match="not empty"):
            saver.tend("copy_thread", "a", "b")


def test_writes_whose_arrival_nobody_knows_are_stored_once(postgres, face):
    with Wire(postgres) as wire, opened(wire.dsn, face) as saver:
        config = Branch(saver, at()).put({"a": 1})
        wire.after = commits
        saver.put_writes(config, [("x", 1), ("y", 2)], "task")
        assert 1 == wire.cuts
        found = saver.get_tuple(config).pending_writes
        assert [("task", "x", 1), ("task", "y", 2)] == found


def test_a_failure_that_stays_is_told_after_some_attempts(postgres):
    with Wire(postgres) as wire, PostgresSaver(wire.dsn, prepare=False) as saver:
        branch = Branch(Blocking(saver), at())
        branch.put({"a": "a" * 40})
        wire.before, wire.always = inserts, True
        with pytest.raises(PersistenceError, match="Postgres"):
            branch.put({"a": "b" * 40})
        wire.before = None
        assert 3 < wire.cuts < 20
        assert {"a": "a" * 40} == values(saver.get_tuple(at()))


# The server


class Log(TypedDict):
    log: Annotated[list, operator.add]


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
@pytest.mark.parametrize("colour", ["sync", "loop"])
async def test_a_run_survives_a_restart_of_the_server(own_server, how, colour):
    ran = []

    def node(name, act=lambda: None):
        def body(state):
            ran.append(name)
            act()
            return {"log": [name]}

        return body

    def restart():
        own_server.stop(how)
        own_server.start()

    builder = StateGraph(Log)
    builder.add_node("a", node("a"))
    builder.add_node("b", node("b", restart))
    builder.add_node("c", node("c"))
    for edge in ((START, "a"), ("a", "b"), ("b", "c")):
        builder.add_edge(*edge)
    thread = {"configurable": {"thread_id": "1"}}
    async with PostgresSaver(own_server.new_schema()) as saver:
        app = builder.compile(checkpointer=saver)
        if colour == "sync":
            result = app.invoke({"log": []}, thread, durability="sync")
        else:
            result = await app.ainvoke({"log": []}, thread, durability="sync")
        assert ["a", "b", "c"] == result["log"] == ran
        assert 5 == len(list(app.get_state_history(thread)))


@pytest.mark.slow
def test_a_call_waits_for_a_server_that_is_down_for_a_moment(own_server, face):
    with opened(own_server.new_schema(), face) as saver:
        config = Branch(saver, at()).put({"a": 1})
        own_server.stop()
        starting = threading.Timer(0.3, own_server.start)
        starting.start()
        assert id_of(config) == id_of(saver.get_tuple(at()).config)
        starting.join()


@pytest.mark.slow
def test_a_server_that_stays_down_is_an_error_after_the_timeout(own_server, face):
    with opened(own_server.new_schema(), face, timeout_s=0.3) as saver:
        Branch(saver, at()).put({"a": 1})
        own_server.stop()
        with pytest.raises(PersistenceError) as caught:
            saver.get_tuple(at())
        assert "server" in caught.value.hint
