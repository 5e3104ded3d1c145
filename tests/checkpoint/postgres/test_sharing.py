"""Several processes use one database, and nothing depends on a session."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from typing import TypedDict

import pytest

psycopg = pytest.importorskip("psycopg")
from psycopg_pool import ConnectionPool  # noqa: E402

from towpath import START, StateGraph  # noqa: E402
from towpath.checkpoint.postgres import PostgresSaver  # noqa: E402
from towpath.testing.conformance_saver import Blocking, Branch, at, values  # noqa: E402

WORKER = """
import sys
from towpath.checkpoint.base import empty_checkpoint
from towpath.checkpoint.postgres import PostgresSaver

dsn, name = sys.argv[1:]
sys.stdin.read(1)  # all start at once
with PostgresSaver.from_conn_string(dsn) as saver:
    config = {"configurable": {"thread_id": "shared", "checkpoint_ns": ""}}
    for step in range(30):
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {name: [name, step], "both": name}
        checkpoint["channel_versions"] = {name: step + 1, "both": step + 1}
        new = checkpoint["channel_versions"]
        config = saver.put(config, checkpoint, {"step": step, "who": name}, new)
        saver.put_writes(config, [("x", step)], name)
"""


def start(dsn, name):
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, dsn, name],
        env={"PYTHONPATH": "src"},
        stdin=subprocess.PIPE,
    )


@pytest.mark.slow
def test_processes_that_start_at_once_share_a_new_database(postgres):
    workers = [start(postgres, f"p{n}") for n in range(4)]
    for worker in workers:
        worker.stdin.close()
    assert [0, 0, 0, 0] == [worker.wait() for worker in workers]
    with PostgresSaver(postgres) as saver:
        found = list(saver.list(at("shared")))
        assert 120 == len(found)
        for item in found:
            who, step = item.metadata["who"], item.metadata["step"]
            assert {who: [who, step], "both": who} == values(item)
            assert [(who, "x", step)] == item.pending_writes


def test_the_peers_tables_may_be_in_the_same_database(postgres):
    with psycopg.connect(postgres, autocommit=True) as connection:
        for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes"):
            connection.execute(f"CREATE TABLE {table} (thread_id TEXT)")
    with PostgresSaver(postgres) as saver:
        Branch(Blocking(saver), at()).put({"a": 1})
        assert {"a": 1} == values(saver.get_tuple(at()))


class Said(TypedDict):
    said: str


@pytest.mark.parametrize("colour", ["sync", "loop"])
async def test_nothing_is_held_while_a_node_runs(postgres, postgres_server, colour):
    """No transaction is open, and no lock is taken, however long it takes."""
    seen = []

    def node(state):
        with psycopg.connect(postgres_server.dsn) as connection:
            locks = connection.execute(
                "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid)"
                " WHERE a.application_name = %s",
                [psycopg.conninfo.conninfo_to_dict(postgres)["application_name"]],
            ).fetchone()
        seen.append((locks, set(postgres_server.sessions(postgres))))
        return {"said": "hello"}

    builder = StateGraph(Said)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    thread = {"configurable": {"thread_id": "1"}}
    async with PostgresSaver(postgres) as saver:
        app = builder.compile(checkpointer=saver)
        given = {"said": "hi"}
        if colour == "sync":
            app.invoke(given, thread, durability="sync")
        else:
            await app.ainvoke(given, thread, durability="sync")
    assert [((0,), {"idle"})] == seen


def test_nothing_is_left_in_a_session(postgres):
    """So any connection will do for the next transaction, as behind a pooler."""
    settings = {"autocommit": True, "prepare_threshold": None}
    opened = ConnectionPool(
        postgres, min_size=1, max_size=1, kwargs=settings, open=True
    )
    with opened as pool, PostgresSaver(pool, prepare=False) as saver:
        with pool.connection() as connection:
            before = state_of(connection)
        branch = Branch(Blocking(saver), at())
        branch.put({"n": -1})
        for number in range(20):
            config = branch.put({"n": number}, writes=[("task", "", [("x", number)])])
            saver.get_tuple(config)
        saver.copy_thread("t", "u")
        saver.prune(["t"])
        saver.delete_thread("u")
        with pool.connection() as connection:
            assert before == state_of(connection)
            assert (
                []
                == connection.execute(
                    "SELECT name FROM pg_prepared_statements"
                ).fetchall()
            )


def state_of(connection):
    return connection.execute(
        "SELECT (SELECT json_agg(s ORDER BY name) FROM pg_settings s)::text,"
        " (SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid()"
        " AND locktype = 'advisory'), pg_listening_channels()"
        " FROM (VALUES (1)) AS one"
    ).fetchall()


def test_every_transaction_may_have_another_session(postgres):
    with ExitStack() as opened:
        savers = [opened.enter_context(PostgresSaver(postgres)) for _ in range(3)]
        branch = Branch(Blocking(savers[0]), at())
        for number in range(9):
            branch.saver = Blocking(savers[number % 3])
            branch.put({"n": number, "same": "x"})
        assert {"n": 8, "same": "x"} == values(savers[0].get_tuple(at()))
