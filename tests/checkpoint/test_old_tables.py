"""A database that an older version made is brought up to date and reads as before."""

import json
import operator
import sqlite3
import threading
from pathlib import Path
from typing import Annotated, TypedDict

import pytest

from towpath import START, StateGraph
from towpath.checkpoint.programs import MIGRATIONS
from towpath.checkpoint.sqlite import SqliteSaver
from towpath.testing.conformance_saver import Blocking, Branch, at, values
from towpath.testing.rows import strays

GOLDEN = Path(__file__).parents[1] / "golden"
OLD = "tables-1"
"""The tables of the first version, and what a saver of that version read in them."""
TABLES = ("spaces", "checkpoints", "cells", "writes", "leases")


@pytest.fixture
def path(tmp_path):
    """A file as the first version left it."""
    path = tmp_path / "threads.db"
    with sqlite3.connect(path) as connection:
        connection.executescript((GOLDEN / f"{OLD}.sql").read_text("utf-8"))
    connection.close()
    return str(path)


def expected():
    return json.loads((GOLDEN / f"{OLD}.json").read_text("utf-8"))


def read(saver):
    told = [
        (f.config, f.checkpoint, f.metadata, f.parent_config, f.pending_writes)
        for f in saver.list(None)
    ]
    return json.loads(json.dumps(told, default=plain))


def plain(value):
    return sorted(value) if isinstance(value, set) else repr(value)


def by_thread(told):
    return sorted(told, key=lambda one: json.dumps(one[0]))


def test_it_reads_as_before(path):
    with SqliteSaver(path) as saver:
        assert expected() == read(saver)
        assert [] == strays(saver)
        rows = saver.conn.execute("SELECT count(*) FROM towpath_migrations")
        assert (len(MIGRATIONS),) == rows.fetchone()


def test_what_is_put_on_what_was_there_builds_on_it(path):
    with SqliteSaver(path) as saver:
        newest = saver.get_tuple(at("by hand"))
        branch = Branch(Blocking(saver), newest.config)
        branch.values = dict(values(newest))
        branch.versions = dict(newest.checkpoint["channel_versions"])
        grown = [*values(newest)["list"], "item 6"]
        branch.put({"list": grown}, writes=[("task", "path", [("list", ["item 6"])])])
        found = saver.get_tuple(at("by hand"))
        assert {**values(newest), "list": grown} == values(found)
        before = saver.get_tuple(found.parent_config)
        assert ("task", "list", ["item 6"]) in before.pending_writes
        rest = [one for one in read(saver) if one in expected()]
        assert len(expected()) - 1 == len(rest), "all but the one with a new write"
        assert [] == strays(saver)


def test_copies_and_what_is_pruned_of_it_are_whole(path):
    with SqliteSaver(path) as saver:
        copied = saver.copy_thread("by hand", "copy")
        one, other = (
            [(values(f), f.pending_writes) for f in saver.list(at(thread))]
            for thread in ("by hand", "copy")
        )
        assert one == other
        assert len(one) == copied.checkpoints
        saver.prune(["by hand"])
        assert one[:1] == [
            (values(f), f.pending_writes) for f in saver.list(at("by hand"))
        ]
        assert [] == strays(saver)


class State(TypedDict):
    log: Annotated[list[str], operator.add]


def test_several_may_open_it_at_once_and_go_on(path):
    graph = StateGraph(State)
    graph.add_node("say", lambda state: {"log": [f"{len(state['log'])}"]})
    graph.add_edge(START, "say")
    start = threading.Barrier(4)
    failures = []

    def go_on(number):
        try:
            start.wait()
            with SqliteSaver(path) as saver:
                app = graph.compile(checkpointer=saver)
                for _ in range(5):
                    app.invoke({"log": ["x"]}, at(f"new {number % 2}"))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=go_on, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [] == failures
    with SqliteSaver(path) as saver:
        told = [one for one in read(saver) if "new" not in json.dumps(one[0])]
        assert expected() == told
        for number in range(2):
            log = values(saver.get_tuple(at(f"new {number}")))["log"]
            assert 20 == len(log), "every input was applied once"
        assert [] == strays(saver)


def test_so_it_is_in_postgres(path, postgres):
    psycopg = pytest.importorskip("psycopg")
    from towpath.checkpoint.postgres import PostgresSaver
    from towpath.checkpoint.postgres.dialect import translate

    with psycopg.connect(postgres) as server, sqlite3.connect(path) as file:
        for statement in MIGRATIONS[0]:
            server.execute(translate(statement).sql)
        for table in TABLES:
            rows = file.execute(f"SELECT * FROM towpath_{table}").fetchall()
            marks = ", ".join(["%s"] * len(rows[0]))
            with server.cursor() as cursor:
                cursor.executemany(
                    f"INSERT INTO towpath_{table} VALUES ({marks})", rows
                )
        server.execute("CREATE TABLE towpath_migrations (v INTEGER PRIMARY KEY)")
        server.execute("INSERT INTO towpath_migrations (v) VALUES (0)")
    file.close()
    with PostgresSaver(postgres) as saver:
        assert by_thread(expected()) == by_thread(read(saver))
        assert [] == strays(saver)
