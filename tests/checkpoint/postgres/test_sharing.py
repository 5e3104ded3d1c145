"""Several processes use one database, and nothing depends on a session."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TypedDict

import pytest

psycopg = pytest.importorskip("psycopg")
from psycopg_pool import ConnectionPool  # noqa: E402

from towpath import START, StateGraph  # noqa: E402
from towpath.checkpoint.base.lease import Lease  # noqa: E402
from towpath.checkpoint.postgres import PostgresSaver  # noqa: E402
from towpath.errors import LeaseLostError  # noqa: E402
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


GATE = """
CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_advisory_xact_lock_shared(42); RETURN NEW; END $$;
CREATE TRIGGER gate BEFORE INSERT ON towpath_writes FOR EACH ROW EXECUTE FUNCTION gate()
"""


def waiting(admin, dsn):
    """Count the connections of a schema that wait for a lock."""
    schema = psycopg.conninfo.conninfo_to_dict(dsn)["application_name"]
    [(count,)] = admin.execute(
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE application_name = %s AND wait_event_type = 'Lock'",
        [schema],
    )
    return count


def until(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.parametrize("successor", ["begin_run", "delete_thread"])
def test_writes_of_an_owner_come_before_its_successor_or_not_at_all(
    postgres, postgres_server, successor
):
    """Stopped between the check of its lease and its writes, it keeps the lease."""
    first, second = Lease("shared"), Lease("shared")
    with (
        ThreadPoolExecutor() as threads,
        PostgresSaver(postgres) as saver,
        PostgresSaver(postgres) as other,
        psycopg.connect(postgres_server.dsn, autocommit=True) as admin,
    ):
        branch = Branch(Blocking(saver), at("shared"))
        stored = branch.put({"a": 1})
        saver.begin_run(at("shared"), first)
        schema = psycopg.conninfo.conninfo_to_dict(postgres)["application_name"]
        admin.execute(f"SET search_path = {schema}".encode())
        admin.execute("UPDATE towpath_leases SET expires = 0")
        first.end()  # its process counts as dead
        admin.execute(GATE)
        admin.execute("SELECT pg_advisory_lock(42)")
        written = saver.stage_writes(stored, [("task", "", [("a", 2)])], lease=first)
        writing = threads.submit(written.run)
        until(lambda: waiting(admin, postgres) == 1)
        calls = {
            "begin_run": lambda: other.begin_run(at("shared"), second),
            "delete_thread": lambda: other.delete_thread("shared"),
        }
        taking = threads.submit(calls[successor])
        until(lambda: waiting(admin, postgres) == 2 or taking.done())
        assert not taking.done()
        admin.execute("SELECT pg_advisory_unlock(42)")
        writing.result()
        if successor == "begin_run":
            assert [("task", "a", 2)] == taking.result().pending_writes
        else:
            assert 1 == taking.result().writes
            assert [(0,)] == admin.execute(
                "SELECT count(*) FROM towpath_writes"
            ).fetchall()
        with pytest.raises(LeaseLostError):
            saver.stage_writes(stored, [("later", "", [("a", 3)])], lease=first).run()
