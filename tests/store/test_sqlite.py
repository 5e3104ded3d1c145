"""What a store in a file does beyond what every store does."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import threading
from datetime import UTC, datetime

import pytest

import towpath.store.sql as sql
from towpath.checkpoint.sqlite import SqliteSaver
from towpath.checkpoint.sqlite.aio import AsyncSqliteSaver
from towpath.errors import PersistenceError, SerializationError
from towpath.store.base import PutOp
from towpath.store.sqlite import AsyncSqliteStore, SqliteStore
from towpath.testing.conformance_store import INDEX
from towpath.warnings import TowpathWarning


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "store.db")


@pytest.fixture
def clock(monkeypatch):
    now = [1_700_000_000_000_000]
    monkeypatch.setattr(sql, "now_us", lambda: now[0])
    return now


def minutes(count):
    return count * 60_000_000


def test_items_are_there_when_the_file_is_opened_again(path):
    with SqliteStore(path, index=INDEX) as store:
        when = datetime(2024, 1, 1, tzinfo=UTC)
        store.put(("a",), "k", {"x": (1, {2}), "when": when, "t": "a"})
    with SqliteStore(path, index=INDEX) as store:
        [item] = store.search((), query="a")
        assert {"x": (1, {2}), "when": when, "t": "a"} == item.value
        assert 1.0 == pytest.approx(item.score)


def test_a_saver_and_a_store_share_a_file(path):
    with SqliteSaver(path), SqliteStore(path) as store:
        store.put(("a",), "k", {"x": 1})
    tables = "SELECT name FROM sqlite_master WHERE name LIKE 'towpath_%s'"
    connection = sqlite3.connect(path)
    assert {"towpath_items", "towpath_cells"} <= {
        n for (n,) in connection.execute(tables)
    }
    connection.close()


def test_a_connection_of_the_caller_s_stays_open(path):
    connection = sqlite3.connect(path, check_same_thread=False)
    with SqliteStore(connection) as store:
        store.put(("a",), "k", {"x": 1})
        assert connection is store.conn
    assert [(1,)] == connection.execute("SELECT count(*) FROM towpath_items").fetchall()
    connection.close()


@pytest.mark.parametrize("where", ["a file", ":memory:"])
async def test_a_connection_of_aiosqlite_names_the_file(path, where):
    aiosqlite = pytest.importorskip("aiosqlite")
    async with aiosqlite.connect(path if where == "a file" else where) as connection:
        store = AsyncSqliteStore(connection)
        assert connection is store.conn
        with pytest.raises(PersistenceError, match="aiosqlite"):
            store.get(("a",), "k")
        puts = (store.aput(("a",), str(n), {"n": n}) for n in range(9))
        await asyncio.gather(*puts)
        await store.setup()
        assert 9 == len(store.search(("a",)))
        if where == "a file":
            rows = await connection.execute_fetchall("SELECT key FROM towpath_items")
            assert 9 == len([*rows])
        store.close()
        assert [(1,)] == await connection.execute_fetchall("SELECT 1"), "still open"


async def test_a_saver_takes_a_connection_of_aiosqlite_too(path):
    aiosqlite = pytest.importorskip("aiosqlite")
    async with aiosqlite.connect(path) as connection:
        async with AsyncSqliteSaver(connection) as saver:
            assert [] == [found async for found in saver.alist(None)]
        rows = await connection.execute_fetchall("SELECT v FROM towpath_migrations")
        assert (0,) in [*rows]


def test_a_path_may_be_a_path(tmp_path):
    with SqliteStore(tmp_path / "store.db") as store:
        store.put(("a",), "k", {})
    assert (tmp_path / "store.db").exists()


def test_a_closed_store_says_so(path):
    store = SqliteStore(path)
    store.close()
    with pytest.raises(PersistenceError, match="closed"):
        store.get(("a",), "k")


def test_tables_of_a_newer_version_are_left_alone(path):
    with SqliteStore(path) as store:
        store.conn.execute("INSERT INTO towpath_store_migrations (v) VALUES (99)")
    with pytest.raises(PersistenceError, match="version 100"), SqliteStore(path):
        pass


def test_a_value_without_stored_form_is_refused(path):
    with SqliteStore(path) as store:
        with pytest.raises(SerializationError):
            store.put(("a",), "k", {"lock": threading.Lock()})
        assert [] == store.search(())


def test_a_batch_that_the_database_stops_leaves_nothing_behind(path):
    with SqliteStore(path, index=INDEX) as store:
        store.put(("a",), "old", {"t": "a"})
        store.conn.execute(
            "CREATE TRIGGER burn BEFORE INSERT ON towpath_items"
            " WHEN new.key = 'z' BEGIN SELECT RAISE(ABORT, 'disk on fire'); END"
        )
        puts = [PutOp(("a",), key, {"t": "b"}) for key in ("new", "old", "z")]
        with pytest.raises(PersistenceError, match="disk on fire"):
            store.batch([PutOp(("a",), "old", None), *puts])
        [found] = store.search((), query="a")
        assert ("old", {"t": "a"}) == (found.key, found.value)
        assert 1.0 == pytest.approx(found.score)


def test_without_a_query_the_newest_items_come_first(path):
    with SqliteStore(path) as store:
        store.batch([PutOp(("a",), key, {}) for key in "xyz"])
        assert ["z", "y", "x"] == [item.key for item in store.search(())]
        store.put(("a",), "x", {})
        assert ["x", "z", "y"] == [item.key for item in store.search(())]


def test_processes_share_a_file(path):
    program = (
        "import sys; from towpath.store.sqlite import SqliteStore\n"
        f"store = SqliteStore({path!r})\n"
        "for n in range(50): store.put(('a', sys.argv[1]), str(n), {'n': n})"
    )
    several = [
        subprocess.Popen(
            [sys.executable, "-c", program, name], env={"PYTHONPATH": "src"}
        )
        for name in ("one", "two")
    ]
    assert [0, 0] == [each.wait() for each in several]
    with SqliteStore(path) as store:
        assert 100 == len(store.search(("a",), limit=1000))


def test_threads_share_a_store(path):
    with SqliteStore(path, synchronous="OFF") as store:

        def work(name):
            for number in range(30):
                store.put((name,), str(number), {"n": number})
                store.search((name,), limit=1)

        threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert 150 == len(store.search((), limit=10_000))


# Several tasks at once


async def test_what_tasks_ask_for_together_is_embedded_and_stored_together(path):
    asked = []

    def embed(texts):
        asked.append(len(texts))
        return [[float(len(text)), 1.0] for text in texts]

    index = {"dims": 2, "embed": embed, "fields": ["t"]}
    async with AsyncSqliteStore.from_conn_string(path, index=index) as store:
        commits = []
        store.conn.set_trace_callback(
            lambda text: commits.append(text) if text == "COMMIT" else None
        )
        puts = (store.aput(("a",), str(n), {"t": "x" * n}) for n in range(50))
        await asyncio.gather(*puts)
        assert [50] == asked
        assert 1 == len(commits)


async def test_one_bad_value_fails_nobody_else(path):
    async with AsyncSqliteStore.from_conn_string(path) as store:
        good = [store.aput(("a",), str(n), {"n": n}) for n in range(5)]
        bad = store.aput(("a",), "bad", {"lock": threading.Lock()})
        ends = await asyncio.gather(*good, bad, return_exceptions=True)
        assert [None] * 5 == ends[:5]
        assert isinstance(ends[5], SerializationError)
        assert 5 == len(await store.asearch(("a",)))


def test_one_store_serves_several_loops(path):
    with SqliteStore(path) as store:
        for number in range(3):
            asyncio.run(store.aput(("a",), str(number), {"n": number}))
        assert 3 == len(store.search(("a",)))


# Lifetimes


def test_lifetimes_follow_the_store_s_rules(path, clock):
    rules = {"default_ttl": 10, "refresh_on_read": False}
    with SqliteStore(path, ttl=rules) as store:
        store.put(("a",), "default", {})
        store.put(("a",), "for good", {}, ttl=None)
        clock[0] += minutes(6)
        assert store.get(("a",), "default") is not None
        clock[0] += minutes(6)
        assert store.get(("a",), "default") is None
        assert store.get(("a",), "for good") is not None


def test_sweeping_deletes_what_has_expired_and_its_vectors(path, clock):
    with SqliteStore(path, index=INDEX) as store:
        store.put(("a",), "short", {"t": "a"}, ttl=1)
        store.put(("a",), "long", {"t": "b"}, ttl=10)
        assert 0 == store.sweep_ttl()
        clock[0] += minutes(2)
        assert [1, 0] == [store.sweep_ttl(), store.sweep_ttl()]
        for table in ("items", "vectors"):
            count = f"SELECT count(*) FROM towpath_{table}"
            assert [(1,)] == store.conn.execute(count).fetchall()


def swept(store):
    """Make the store tell when it sweeps."""
    told = threading.Event()
    sweep = store.sweep_ttl

    def telling():
        count = sweep()
        told.set()
        return count

    store.sweep_ttl = telling
    return told


def test_a_sweeper_sweeps_until_it_is_stopped(path, clock):
    with SqliteStore(path) as store:
        store.put(("a",), "k", {}, ttl=1)
        clock[0] += minutes(2)
        told = swept(store)
        ended = store.start_ttl_sweeper(0.0001)
        assert ended is store.start_ttl_sweeper(), "one sweeper is enough"
        assert told.wait(10)
        assert store.stop_ttl_sweeper(timeout=10)
        assert ended.done()
        assert [(0,)] == store.conn.execute(
            "SELECT count(*) FROM towpath_items"
        ).fetchall()
        assert store.stop_ttl_sweeper()


def test_closing_the_store_ends_its_sweeper(path):
    with SqliteStore(path, ttl={"sweep_interval_minutes": 60}) as store:
        ended = store.start_ttl_sweeper()
    assert ended.done()


def test_a_sweep_that_fails_is_told_and_tried_again(path):
    with SqliteStore(path) as store:
        fails = [True, False]
        again = threading.Event()

        def sweep():
            if fails and fails.pop(0):
                raise PersistenceError("the disk is away")
            again.set()
            return 0

        store.sweep_ttl = sweep
        with pytest.warns(TowpathWarning, match="the disk is away"):
            ended = store.start_ttl_sweeper(0.0001)
            assert again.wait(10)
            assert store.stop_ttl_sweeper(10)
        assert ended.exception() is None


async def test_the_async_sweeper_is_a_task(path, clock):
    async with AsyncSqliteStore.from_conn_string(path) as store:
        await store.setup()
        await store.aput(("a",), "k", {}, ttl=1)
        clock[0] += minutes(2)
        assert 1 == await store.sweep_ttl()
        task = await store.start_ttl_sweeper(0.0001)
        assert isinstance(task, asyncio.Task)
        assert await store.stop_ttl_sweeper(timeout=10)
        assert task.done()
        task = await store.start_ttl_sweeper()
    assert task.done()


# Vectors


async def test_an_async_embedding_serves_the_async_methods(path):
    async def embed(texts):
        return [[float(text.count("a")), float(text.count("b"))] for text in texts]

    index = {"dims": 2, "embed": embed, "fields": ["t"]}
    async with AsyncSqliteStore.from_conn_string(path, index=index) as store:
        await store.aput(("d",), "a", {"t": "aaa"})
        await store.aput(("d",), "b", {"t": "bbb"})
        found = await store.asearch(("d",), query="b")
        assert ["b", "a"] == [item.key for item in found]
        with pytest.raises(ValueError, match="async"):
            store.search(("d",), query="b")


def test_vectors_of_another_model_are_passed_over(path):
    with SqliteStore(path, index=INDEX) as store:
        store.put(("d",), "old", {"t": "a"})
    other = {"dims": 1, "embed": lambda texts: [[1.0] for _ in texts], "fields": ["t"]}
    with SqliteStore(path, index=other) as store:
        store.put(("d",), "new", {"t": "a"})
        found = store.search(("d",), query="a")
        assert [("new", 1.0), ("old", None)] == [
            (item.key, item.score) for item in found
        ]


def test_without_numpy_the_results_are_the_same(path, monkeypatch):
    import towpath.store.nearness as nearness

    with SqliteStore(path, index=INDEX) as store:
        store.batch([PutOp(("d",), str(n), {"t": "a" * n + "b"}) for n in range(9)])
        monkeypatch.setattr(store, "_nearness", None)
        with_numpy = [
            (i.key, pytest.approx(i.score)) for i in store.search((), query="ab")
        ]
        monkeypatch.setattr(nearness, "_numpy", lambda: None)
        assert with_numpy == [(i.key, i.score) for i in store.search((), query="ab")]


def test_sqlite_vec_finds_what_python_finds(path, monkeypatch):
    pytest.importorskip("sqlite_vec")
    if not hasattr(sqlite3.Connection, "enable_load_extension"):
        pytest.skip("this Python's sqlite3 loads no extensions")
    with SqliteStore(path, index=INDEX) as store:
        store.batch([PutOp(("d",), str(n), {"t": "a" * n + "b"}) for n in range(9)])
        store.put(("d",), "zero", {"t": "x"})
        store.put(("d",), "none", {"t": "x"}, index=False)
        assert store._measuring.score is not None
        by_extension = [
            (item.key, item.score and pytest.approx(item.score, abs=1e-6))
            for item in store.search((), query="ab", limit=20)
        ]
        monkeypatch.setattr(store, "_nearness", None)
        assert by_extension == [
            (item.key, item.score) for item in store.search((), query="ab", limit=20)
        ]
