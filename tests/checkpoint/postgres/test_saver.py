"""What is particular to the saver in Postgres."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from dataclasses import astuple

import pytest

psycopg = pytest.importorskip("psycopg")
from psycopg.rows import dict_row  # noqa: E402
from psycopg_pool import AsyncConnectionPool, ConnectionPool  # noqa: E402

from towpath.checkpoint.base import empty_checkpoint  # noqa: E402
from towpath.checkpoint.postgres import (  # noqa: E402
    PostgresSaver,
    ShallowPostgresSaver,
)
from towpath.checkpoint.postgres.aio import AsyncPostgresSaver  # noqa: E402
from towpath.checkpoint.programs import MIGRATIONS  # noqa: E402
from towpath.checkpoint.serde.keyring import Keyring, SealError  # noqa: E402
from towpath.errors import PersistenceError  # noqa: E402
from towpath.testing.conformance_saver import (  # noqa: E402
    Blocking,
    Branch,
    at,
    id_of,
    values,
)

from .wire import Wire  # noqa: E402


def put(saver, changes, thread="t"):
    return Branch(Blocking(saver), at(thread)).put(changes)


def ask(dsn, sql, *args):
    with psycopg.connect(dsn) as connection:
        cursor = connection.execute(sql, args)
        return cursor.fetchall() if cursor.description else None


def count(dsn, table):
    [(number,)] = ask(dsn, f"SELECT count(*) FROM towpath_{table}")
    return number


# Opening and closing


def test_what_was_stored_is_there_after_reopening(postgres):
    with PostgresSaver.from_conn_string(postgres) as saver:
        put(saver, {"a": (1, {2})})
    with PostgresSaver(postgres) as saver:
        assert {"a": (1, {2})} == values(saver.get_tuple(at()))


def test_the_peers_way_of_opening_one(postgres):
    with PostgresSaver.from_conn_string(postgres, pipeline=True) as saver:
        saver.setup()
        put(saver, {"a": 1})
        assert {"a": 1} == values(saver.get_tuple(at()))


async def test_one_class_serves_both_colours(postgres):
    async with AsyncPostgresSaver.from_conn_string(postgres) as saver:
        await saver.setup()
        config = await saver.aput(at(), empty_checkpoint(), {"step": 0}, {})
        # The blocking methods, on the loop's own thread: no dead-lock.
        saver.put_writes(config, [("x", 1)], "task")
        assert [("task", "x", 1)] == saver.get_tuple(config).pending_writes
        assert 1 == len([found async for found in saver.alist(None)])


async def test_an_async_call_stores_what_was_handed_over_when_it_was_made(postgres):
    async with AsyncPostgresSaver.from_conn_string(postgres) as saver:
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {"a": [1]}
        checkpoint["channel_versions"] = {"a": 1}
        task = asyncio.ensure_future(
            saver.aput(at(), checkpoint, {"step": 0}, {"a": 1})
        )
        checkpoint["channel_values"]["a"].append(2)
        assert {"a": [1]} == values(await saver.aget_tuple(await task))


def test_tables_are_made_at_first_use(postgres):
    saver = PostgresSaver(postgres)
    assert saver.get_tuple(at()) is None
    saver.close()
    assert len(MIGRATIONS) == count(postgres, "migrations")


async def test_in_a_loop_setting_up_is_awaited(postgres):
    saver = PostgresSaver(postgres)
    await saver.setup()
    await saver.setup()
    assert len(MIGRATIONS) == count(postgres, "migrations")
    await saver.aclose()


def test_a_closed_saver_says_so(postgres):
    with PostgresSaver(postgres) as saver:
        pass
    with pytest.raises(PersistenceError, match="closed"):
        saver.get_tuple(at())
    with pytest.raises(PersistenceError, match="closed"):
        asyncio.run(saver.aget_tuple(at()))


def test_every_event_loop_has_connections_of_its_own(postgres, postgres_server):
    with PostgresSaver(postgres) as saver:
        put(saver, {"a": 1})
        for _ in range(3):
            found = asyncio.run(saver.aget_tuple(at()))
            assert {"a": 1} == values(found)
            assert 1 == sessions(postgres_server, postgres, 1)
    assert 0 == sessions(postgres_server, postgres, 0)


async def test_leaving_the_context_closes_the_connections(postgres, postgres_server):
    async with AsyncPostgresSaver.from_conn_string(postgres) as saver:
        await asyncio.gather(*(saver.aget_tuple(at()) for _ in range(5)))
        saver.get_tuple(at())
        assert postgres_server.sessions(postgres)
    assert 0 == sessions(postgres_server, postgres, 0)


def sessions(server, dsn, expected):
    """Return the number of open connections, giving them time to become that."""
    deadline = time.monotonic() + 10
    while expected != (found := len(server.sessions(dsn))):
        if time.monotonic() > deadline:
            break
    return found


# Connections of the caller's


def test_a_pool_of_the_callers_is_used_and_left_open(postgres):
    settings = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    with ConnectionPool(postgres, min_size=1, max_size=2, kwargs=settings) as pool:
        with PostgresSaver(pool) as saver:
            put(saver, {"a": 1})
            assert {"a": 1} == values(asyncio.run(saver.aget_tuple(at())))
        with pool.connection() as connection:
            found = connection.execute("SELECT 1 AS one").fetchone()
            assert {"one": 1} == found


async def test_an_async_pool_of_the_callers_is_used_and_left_open(postgres):
    settings = {"row_factory": dict_row}
    opened = AsyncConnectionPool(
        postgres, min_size=1, max_size=2, kwargs=settings, open=False
    )
    async with opened as pool:
        async with AsyncPostgresSaver(pool) as saver:
            await asyncio.gather(
                *(
                    saver.aput(at(f"t{n}"), empty_checkpoint(), {"step": 0}, {})
                    for n in range(10)
                )
            )
            assert 10 == len(list(saver.list(None))), "blocking, beside the pool"
        async with pool.connection() as connection:
            assert await (await connection.execute("SELECT 1")).fetchone()


@pytest.mark.parametrize("autocommit", [True, False])
def test_a_connection_of_the_callers_is_used_and_left_open(postgres, autocommit):
    with psycopg.connect(postgres, autocommit=autocommit) as connection:
        with PostgresSaver(connection) as saver:
            put(saver, {"a": 1})
            assert 1 == count(postgres, "checkpoints"), "committed"
            assert {"a": 1} == values(asyncio.run(saver.aget_tuple(at())))
        assert not connection.closed
        assert 0 == connection.info.transaction_status


@pytest.mark.parametrize("autocommit", [True, False])
async def test_so_is_an_async_connection(postgres, autocommit):
    connect = psycopg.AsyncConnection.connect
    async with await connect(postgres, autocommit=autocommit) as connection:
        async with AsyncPostgresSaver(connection) as saver:
            await asyncio.gather(
                *(
                    saver.aput(at(f"t{n}"), empty_checkpoint(), {"step": 0}, {})
                    for n in range(5)
                )
            )
            assert 5 == len(list(saver.list(None)))
        assert not connection.closed


def test_a_transaction_of_the_callers_is_not_ended(postgres):
    with psycopg.connect(postgres) as connection:
        saver = PostgresSaver(connection)
        saver.setup()
        connection.execute("SELECT 1")
        put(saver, {"a": 1})
        assert {"a": 1} == values(saver.get_tuple(at()))
        connection.rollback()
        assert saver.get_tuple(at()) is None


@pytest.mark.parametrize("autocommit", [True, False])
def test_a_connection_may_be_in_a_pipeline_of_the_callers(postgres, autocommit):
    with (
        psycopg.connect(postgres, autocommit=autocommit) as connection,
        connection.pipeline() as pipe,
    ):
        saver = PostgresSaver(connection, pipe)
        connection.execute("CREATE TABLE mine (x BIGINT)")
        put(saver, {"a": 1})
        assert {"a": 1} == values(saver.get_tuple(at()))
        with pytest.raises(ValueError, match="not empty"):
            saver.copy_thread("t", "t")
        assert {"a": 1} == values(saver.get_tuple(at()))
        connection.execute("INSERT INTO mine VALUES (1)")
        assert [(1,)] == connection.execute("SELECT x FROM mine").fetchall()


async def test_so_may_an_async_connection(postgres):
    connect = psycopg.AsyncConnection.connect
    async with (
        await connect(postgres, autocommit=True) as connection,
        connection.pipeline() as pipe,
    ):
        saver = AsyncPostgresSaver(connection, pipe)
        config = await saver.aput(at(), empty_checkpoint(), {"step": 0}, {})
        assert id_of(config) == id_of((await saver.aget_tuple(at())).config)
        await saver.aclose()


def test_what_is_no_connection_is_refused():
    with pytest.raises(TypeError, match="connection string"):
        PostgresSaver(7)


# Text


@pytest.mark.parametrize(
    "text", ["a\0b", "\0", "\1", "\1\1", "\1\2\0", "%s ? %", "é'\"\\"]
)
def test_any_text_names_a_thread_and_a_channel(postgres, text):
    with PostgresSaver(postgres) as saver:
        config = put(saver, {text: 1}, thread=text)
        saver.put_writes(config, [(text, 2)], text)
        found = saver.get_tuple(at(text))
        assert text == found.config["configurable"]["thread_id"]
        assert {text: 1} == values(found)
        assert [(text, text, 2)] == found.pending_writes
        assert saver.get_tuple(at(text + "\1")) is None


def test_text_that_no_encoding_has_is_an_error_that_says_so(postgres):
    with PostgresSaver(postgres) as saver:
        with pytest.raises(PersistenceError, match="ud800") as caught:
            saver.get_tuple(at("\ud800"))
        assert "surrogates" in caught.value.hint
        put(saver, {"a": 1})


def test_ids_compare_bytewise(postgres):
    with PostgresSaver(postgres) as saver:
        made = ["B", "a", "é", "\0", "\1", "b", "_", "\0\0", "\1\1", "\0\1"]
        for name in made:
            checkpoint = empty_checkpoint()
            checkpoint["id"] = name
            saver.put(at(), checkpoint, {"step": 0}, {})
        found = [id_of(item.config) for item in saver.list(at())]
        assert sorted(made, reverse=True) == found
        assert max(made) == id_of(saver.get_tuple(at()).config)


# Sharing


async def test_many_async_calls_at_once_all_arrive(postgres):
    async with AsyncPostgresSaver.from_conn_string(postgres) as saver:

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


def test_threads_share_a_saver_and_a_thread(postgres):
    with PostgresSaver(postgres) as saver:

        def work(name: str) -> None:
            branch = Branch(Blocking(saver), at("shared"))
            for number in range(20):
                saver.put_writes(branch.put({name: number}), [("x", number)], name)

        workers = [threading.Thread(target=work, args=(f"w{n}",)) for n in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        found = list(saver.list(at("shared")))
        assert 160 == len(found)
        for item in found:
            [(name, number)] = values(item).items()
            assert [(name, "x", number)] == item.pending_writes


async def test_writes_of_many_tasks_may_make_one_namespace(postgres):
    async with AsyncPostgresSaver.from_conn_string(postgres) as saver:
        config = at("new", id="not yet stored")
        await asyncio.gather(
            *(saver.aput_writes(config, [("x", n)], f"task-{n}") for n in range(20))
        )
        assert 20 == count(postgres, "writes")
        assert 1 == count(postgres, "spaces")


def test_another_process_deleting_the_thread_does_not_tear_a_checkpoint(postgres):
    with PostgresSaver(postgres) as saver, PostgresSaver(postgres) as other:
        branch = Branch(Blocking(saver), at())
        branch.put({"kept": "x", "n": 0})
        other.delete_thread("t")
        assert {"kept": "x", "n": 1} == values(saver.get_tuple(branch.put({"n": 1})))


def test_cleaning_up_while_others_write_tears_no_checkpoint(postgres):
    with PostgresSaver(postgres) as saver:
        over = threading.Event()

        def clean() -> None:
            while not over.is_set():
                saver.prune(["t"])
                saver.delete_for_runs(["doomed"])

        cleaner = threading.Thread(target=clean)
        cleaner.start()
        branch = Branch(Blocking(saver), at())
        try:
            for number in range(60):
                run = "doomed" if number % 3 else "kept"
                config = branch.put({"n": number, "same": "x"}, {"run_id": run})
                found = saver.get_tuple(config)
                assert found is None or {"n": number, "same": "x"} == values(found)
        finally:
            over.set()
            cleaner.join()


async def test_a_cancelled_call_leaves_the_saver_usable(postgres):
    async with AsyncPostgresSaver.from_conn_string(postgres, pool_size_max=2) as saver:
        for delay in range(40):
            call = saver.aput(at(), empty_checkpoint(), {"step": delay}, {})
            task = asyncio.ensure_future(call)
            for _ in range(delay):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        config = await saver.aput(at("u"), empty_checkpoint(), {"step": 0}, {})
        assert id_of(config) == id_of((await saver.aget_tuple(at("u"))).config)


# Encryption and space


def test_no_value_and_no_metadata_can_be_read_without_a_key(postgres):
    old, new = b"o" * 32, b"n" * 32

    def stored():
        tables = ("spaces", "checkpoints", "cells", "writes")
        return "".join(
            row
            for table in tables
            for (row,) in ask(postgres, f"SELECT t::text FROM towpath_{table} t")
        )

    def fill(saver):
        branch = Branch(Blocking(saver), at())
        config = branch.put({"a": ["SECRET"]}, {"user": "SECRET"})
        saver.put_writes(config, [("w", "SECRET")], "task")

    with PostgresSaver(postgres) as saver:
        fill(saver)
        assert 3 == stored().count(b"SECRET".hex())
        saver.delete_thread("t")
    with PostgresSaver(postgres, encryption=Keyring(old)) as saver:
        fill(saver)
        saver.copy_thread("t", "u")
        assert b"SECRET".hex() not in stored()
    with PostgresSaver(postgres, encryption=Keyring(new, old)) as saver:
        assert (2, 2, 2, 2) == astuple(saver.rotate())[:4]
    with PostgresSaver(postgres, encryption=Keyring(new)) as saver:
        assert {"a": ["SECRET"]} == values(saver.get_tuple(at("u")))
        ask(postgres, "UPDATE towpath_spaces SET thread = 'v' WHERE thread = 'u'")
        with pytest.raises(SealError):
            saver.get_tuple(at("v"))


async def test_a_vacuum_runs_in_both_colours_and_on_a_connection_of_the_callers(
    postgres,
):
    async with PostgresSaver(postgres) as saver:
        put(saver, {"a": 1})
        assert await saver.avacuum() >= 0
    with psycopg.connect(postgres, autocommit=True) as connection:
        saver = PostgresSaver(connection)
        assert saver.vacuum() >= 0
        with connection.transaction(), pytest.raises(PersistenceError, match="VACUUM"):
            saver.vacuum()
        assert {"a": 1} == values(saver.get_tuple(at()))


# Prepared statements


def test_statements_are_prepared_and_stay_so_after_a_failure(postgres):
    with psycopg.connect(postgres, autocommit=True) as connection:
        saver = PostgresSaver(connection)
        branch = Branch(Blocking(saver), at())
        branch.put({"n": 0})
        prepared = "SELECT count(*) FROM pg_prepared_statements"
        [(before,)] = connection.execute(prepared).fetchall()
        for _ in range(2):
            with pytest.raises(ValueError, match="not empty"):
                saver.copy_thread("t", "t")
        connection.execute("ALTER TABLE towpath_writes RENAME TO away")
        for _ in range(2):
            with pytest.raises(PersistenceError, match="towpath_writes"):
                saver.put_writes(branch.config, [("x", 1)], "task")
        connection.execute("ALTER TABLE away RENAME TO towpath_writes")
        saver.put_writes(branch.config, [("x", 1)], "task")
        branch.put({"n": 1})
        [(after,)] = connection.execute(prepared).fetchall()
        assert 3 < before < after < 30


def test_a_pooler_that_loses_prepared_statements_is_noticed(postgres):
    with psycopg.connect(postgres, autocommit=True) as connection:
        saver = PostgresSaver(connection)
        branch = Branch(Blocking(saver), at())
        for number in range(3):
            branch.put({"n": number})
            connection.execute("DEALLOCATE ALL")
        assert {"n": 2} == values(saver.get_tuple(at()))
        prepared = "SELECT count(*) FROM pg_prepared_statements"
        assert (0,) == connection.execute(prepared).fetchone()


def test_so_is_one_whose_sessions_have_those_of_others(postgres):
    with psycopg.connect(postgres, autocommit=True) as connection:
        savers = [PostgresSaver(connection) for _ in range(3)]
        for number, saver in enumerate(savers):
            put(saver, {"n": number}, f"t{number}")
            assert {"n": number} == values(saver.get_tuple(at(f"t{number}")))


# Keeping the newest only


async def test_a_shallow_saver_keeps_the_newest_checkpoint(postgres):
    with ShallowPostgresSaver.from_conn_string(postgres) as saver:
        branch = Branch(Blocking(saver), at())
        for number in range(3):
            config = branch.put({"n": f"{number:040}", "same": "x" * 40})
            saver.put_writes(config, [("x", number)], "task")
        [found] = saver.list(at())
        assert {"n": f"{2:040}", "same": "x" * 40} == values(found)
        assert [("task", "x", 2)] == found.pending_writes
        assert id_of(config) == id_of((await saver.aget_tuple(at())).config)
        assert {"checkpoints": 1, "cells": 2, "writes": 1} == {
            table: count(postgres, table)
            for table in ("checkpoints", "cells", "writes")
        }


# What it costs


@pytest.mark.parametrize("tasks", [0, 1, 50])
def test_a_commit_costs_two_round_trips_whatever_it_stores(postgres, tasks):
    with Wire(postgres) as wire, PostgresSaver(wire.dsn) as saver:
        branch = Branch(Blocking(saver), at())
        branch.put({"a": 1})
        writes = [(f"task-{n}", "", [("x", n), ("y", n)]) for n in range(tasks)]
        trips = wire.trips
        branch.put({f"k{n}": n for n in range(50)}, writes=writes)
        assert 2 == wire.trips - trips


def test_the_number_of_round_trips_does_not_grow_with_the_rows(postgres):
    with Wire(postgres) as wire, PostgresSaver(wire.dsn) as saver:
        branch = Branch(Blocking(saver), at())
        for number in range(60):
            saver.put_writes(branch.put({"a": number, "b": 1}), [("x", 1)] * 3, "task")

        def trips(action):
            before = wire.trips
            action()
            return wire.trips - before

        few = trips(lambda: list(saver.list(at(), limit=2)))
        assert few == trips(lambda: list(saver.list(at(), limit=60))) <= 6
        assert 4 >= trips(lambda: saver.get_tuple(at()))


def test_an_unchanged_value_is_stored_once(postgres):
    with PostgresSaver(postgres) as saver:
        branch = Branch(Blocking(saver), at())
        branch.put({"big": os.urandom(100_000), "n": f"{0:040}"})
        for number in range(1, 51):
            branch.put({"n": f"{number:040}"})
        assert 52 == count(postgres, "cells")
