"""What is particular to the saver in SQLite."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading

import pytest

from towpath.checkpoint.base import empty_checkpoint
from towpath.checkpoint.programs import MIGRATIONS
from towpath.checkpoint.sqlite import SqliteSaver
from towpath.checkpoint.sqlite.aio import AsyncSqliteSaver
from towpath.constants import INTERRUPT
from towpath.errors import PersistenceError
from towpath.testing.conformance_saver import Blocking, Branch, at, id_of, values


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "threads.db")


def put(saver, changes, thread="t"):
    return Branch(Blocking(saver), at(thread)).put(changes)


def count(saver, table):
    [(number,)] = saver.conn.execute(f"SELECT count(*) FROM towpath_{table}")
    return number


# Opening and closing


def test_what_was_stored_is_there_after_reopening(path):
    with SqliteSaver.from_conn_string(path) as saver:
        put(saver, {"a": (1, {2})})
    with SqliteSaver(path) as saver:
        assert {"a": (1, {2})} == values(saver.get_tuple(at()))


async def test_one_class_serves_both_colours(path):
    async with AsyncSqliteSaver.from_conn_string(path) as saver:
        await saver.setup()
        config = await saver.aput(at(), empty_checkpoint(), {"step": 0}, {})
        # The blocking methods, on the loop's own thread: no dead-lock.
        saver.put_writes(config, [("x", 1)], "task")
        assert [("task", "x", 1)] == saver.get_tuple(config).pending_writes
        assert 1 == len([found async for found in saver.alist(None)])


async def test_many_async_calls_at_once_all_arrive(path):
    async with AsyncSqliteSaver.from_conn_string(path) as saver:

        async def converse(name: str) -> None:
            config = at(name)
            for step in range(5):
                config = await saver.aput(
                    config, empty_checkpoint(), {"step": step}, {}
                )
                await saver.aput_writes(config, [("x", step)], "task")
                assert id_of(config) == id_of((await saver.aget_tuple(at(name))).config)

        await asyncio.gather(*(converse(f"t{n}") for n in range(20)))
        assert 100 == len([found async for found in saver.alist(None)])


async def test_an_async_call_stores_what_was_handed_over_when_it_was_made(path):
    async with AsyncSqliteSaver.from_conn_string(path) as saver:
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {"a": [1]}
        checkpoint["channel_versions"] = {"a": 1}
        task = asyncio.ensure_future(
            saver.aput(at(), checkpoint, {"step": 0}, {"a": 1})
        )
        checkpoint["channel_values"]["a"].append(2)
        config = await task
        written = [1]
        task = asyncio.ensure_future(saver.aput_writes(config, [("x", written)], "t"))
        written.append(2)
        await task
        found = await saver.aget_tuple(config)
        assert {"a": [1]} == values(found)
        assert [("t", "x", [1])] == found.pending_writes


def test_setting_up_twice_does_nothing(path):
    with SqliteSaver(path) as saver:
        saver.setup()
        saver.setup()
    with SqliteSaver(path) as saver:
        assert len(MIGRATIONS) == count(saver, "migrations")


def test_a_closed_saver_says_so(path):
    with SqliteSaver(path) as saver:
        pass
    with pytest.raises(PersistenceError, match=r"closed\s+hint: run the graph inside"):
        saver.get_tuple(at())


def test_tables_of_a_newer_version_are_refused(path):
    with SqliteSaver(path) as saver:
        saver.conn.execute("INSERT INTO towpath_migrations (v) VALUES (1000)")
    with pytest.raises(PersistenceError, match="1001") as caught, SqliteSaver(path):
        pass
    assert "upgrade" in caught.value.hint


def test_the_peers_tables_may_be_in_the_same_file(path):
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE checkpoints (thread_id TEXT)")
    connection.execute("CREATE TABLE writes (thread_id TEXT)")
    connection.close()
    with SqliteSaver(path) as saver:
        put(saver, {"a": 1})
        assert {"a": 1} == values(saver.get_tuple(at()))


def test_a_connection_of_the_callers_is_used_and_left_open():
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    with SqliteSaver(connection) as saver:
        put(saver, {"a": 1})
        assert saver.conn is connection
    assert connection.execute(
        "SELECT count(*) FROM towpath_checkpoints"
    ).fetchone() == (1,)
    connection.close()


def test_a_connection_bound_to_a_thread_is_an_error_that_says_what_to_do():
    connection = sqlite3.connect(":memory:")
    saver = SqliteSaver(connection)
    saver.setup()
    with pytest.raises(PersistenceError) as caught:
        asyncio.run(saver.aget_tuple(at()))
    assert "check_same_thread=False" in caught.value.hint
    saver.close()
    connection.close()


def test_a_cursor_can_be_borrowed(path):
    with SqliteSaver(path) as saver:
        with saver.cursor() as cursor:
            cursor.execute("CREATE TABLE mine (x)")
            cursor.execute("INSERT INTO mine VALUES (1)")
        with pytest.raises(ZeroDivisionError), saver.cursor() as cursor:
            cursor.execute("INSERT INTO mine VALUES (2)")
            raise ZeroDivisionError
        with saver.cursor(transaction=False) as cursor:
            assert [(1,)] == cursor.execute("SELECT x FROM mine").fetchall()


@pytest.mark.parametrize(("mode", "number"), [("OFF", 0), ("NORMAL", 1), ("FULL", 2)])
def test_how_safe_a_commit_is_can_be_chosen(path, mode, number):
    with SqliteSaver(path, synchronous=mode) as saver:
        assert (number,) == saver.conn.execute("PRAGMA synchronous").fetchone()
    with SqliteSaver(path) as saver:
        assert (2,) == saver.conn.execute("PRAGMA synchronous").fetchone()
        assert ("wal",) == saver.conn.execute("PRAGMA journal_mode").fetchone()
    with pytest.raises(ValueError, match="synchronous"):
        SqliteSaver(path, synchronous="FULL; DROP TABLE x")


# Sharing a file


def test_a_listing_holds_no_lock_between_its_pages(path):
    with SqliteSaver(path) as saver, SqliteSaver(path, busy_timeout_s=0.1) as other:
        branch = Branch(Blocking(saver), at())
        for number in range(100):
            branch.put({"n": number})
        listing = saver.list(at())
        next(listing)
        put(other, {"a": 1}, "other")
        put(saver, {"a": 1}, "another")
        assert 99 == len(list(listing))


def test_a_writer_waits_for_another_up_to_its_timeout(path):
    with SqliteSaver(path, busy_timeout_s=0.05) as saver:
        saver.setup()
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(PersistenceError, match="locked") as caught:
            put(saver, {"a": 1})
        assert "busy_timeout_s" in caught.value.hint
        assert saver.get_tuple(at()) is None, "readers do not wait"
        holder.rollback()
        holder.close()
        put(saver, {"a": 1})


def test_threads_share_a_saver(path):
    with SqliteSaver(path, synchronous="OFF") as saver:

        def work(name: str) -> None:
            branch = Branch(Blocking(saver), at(name))
            for number in range(20):
                saver.put_writes(branch.put({"n": number}), [("x", number)], "task")
                assert number == values(saver.get_tuple(at(name)))["n"]

        threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert 160 == len(list(saver.list(None)))


WORKER = """
import sys
from towpath.checkpoint.base import empty_checkpoint
from towpath.checkpoint.sqlite import SqliteSaver

path, name = sys.argv[1:]
with SqliteSaver(path, synchronous="OFF") as saver:
    config = {"configurable": {"thread_id": "shared", "checkpoint_ns": ""}}
    for step in range(40):
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {name: [name, step], "both": name}
        checkpoint["channel_versions"] = {name: step + 1, "both": step + 1}
        new = checkpoint["channel_versions"]
        config = saver.put(config, checkpoint, {"step": step, "who": name}, new)
        saver.put_writes(config, [("x", step)], name)
"""


@pytest.mark.slow
def test_processes_share_a_file(path):
    names = [f"p{n}" for n in range(4)]
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, path, name], env={"PYTHONPATH": "src"}
        )
        for name in names
    ]
    assert [0, 0, 0, 0] == [worker.wait() for worker in workers]
    with SqliteSaver(path) as saver:
        found = list(saver.list(at("shared")))
        assert 160 == len(found)
        for item in found:
            who, step = item.metadata["who"], item.metadata["step"]
            assert {who: [who, step], "both": who} == values(item)
            assert [(who, "x", step)] == item.pending_writes


def test_another_process_deleting_the_thread_does_not_tear_a_checkpoint(path):
    with SqliteSaver(path) as saver, SqliteSaver(path) as other:
        branch = Branch(Blocking(saver), at())
        branch.put({"kept": "x", "n": 0})
        other.delete_thread("t")
        assert {"kept": "x", "n": 1} == values(saver.get_tuple(branch.put({"n": 1})))


# What it costs


def statements(connection, action):
    seen: list[str] = []
    connection.set_trace_callback(seen.append)
    action()
    connection.set_trace_callback(None)
    return len(seen)


def test_the_number_of_queries_does_not_grow_with_the_rows():
    with SqliteSaver(":memory:") as saver:
        branch = Branch(Blocking(saver), at())
        for number in range(60):
            saver.put_writes(branch.put({"a": number, "b": 1}), [("x", 1)] * 3, "task")
        few = statements(saver.conn, lambda: list(saver.list(at(), limit=2)))
        many = statements(saver.conn, lambda: list(saver.list(at(), limit=60)))
        assert few == many <= 6
        assert 6 >= statements(saver.conn, lambda: saver.get_tuple(at()))


def test_an_unchanged_value_is_stored_once(path):
    with SqliteSaver(path, synchronous="OFF") as saver:
        branch = Branch(Blocking(saver), at())
        branch.put({"big": os.urandom(100_000), "n": f"{0:040}"})
        for number in range(1, 51):
            branch.put({"n": f"{number:040}"})
        assert 52 == count(saver, "cells")
        [(pages,)] = saver.conn.execute("PRAGMA page_count")
        assert pages * 4096 < 200_000


def test_a_program_that_fails_leaves_nothing_behind():
    with SqliteSaver(":memory:") as saver:
        saver.conn.execute(
            "CREATE TRIGGER no_writes BEFORE INSERT ON towpath_writes"
            " BEGIN SELECT RAISE(ABORT, 'disk on fire'); END"
        )
        branch = Branch(Blocking(saver), at())
        parent = branch.put({"a": "a" * 40})
        with pytest.raises(PersistenceError, match="disk on fire"):
            branch.put({"a": "b" * 40}, writes=[("task", "", [(INTERRUPT, 1)])])
        assert id_of(parent) == id_of(saver.get_tuple(at()).config)
        assert 1 == count(saver, "cells")


def test_what_is_no_database_is_a_clean_error(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not a database " * 100)
    with pytest.raises(PersistenceError, match="not a database"):
        SqliteSaver(str(path))
    with pytest.raises(PersistenceError, match=r"no such folder.*unable to open"):
        SqliteSaver(str(tmp_path / "no such folder" / "threads.db"))
