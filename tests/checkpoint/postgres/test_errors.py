"""What can be wrong with a database is said, with what to do about it."""

from __future__ import annotations

import subprocess
import sys

import pytest

psycopg = pytest.importorskip("psycopg")
from psycopg.conninfo import make_conninfo  # noqa: E402
from psycopg_pool import ConnectionPool  # noqa: E402

from towpath.checkpoint.postgres import PostgresSaver  # noqa: E402
from towpath.constants import INTERRUPT  # noqa: E402
from towpath.errors import PersistenceError  # noqa: E402
from towpath.testing.conformance_saver import (  # noqa: E402
    Blocking,
    Branch,
    at,
    id_of,
    values,
)


@pytest.fixture
def admin(postgres):
    with psycopg.connect(postgres, autocommit=True) as connection:
        yield connection


def put(saver, changes):
    return Branch(Blocking(saver), at()).put(changes)


async def test_a_server_that_is_not_there():
    dsn = "host=127.0.0.1 port=1 dbname=x"
    with (
        pytest.raises(PersistenceError, match="port 1") as caught,
        PostgresSaver.from_conn_string(dsn),
    ):
        pass
    assert "running" in caught.value.hint
    with pytest.raises(PersistenceError, match="port 1"):
        async with PostgresSaver.from_conn_string(dsn):
            pass


def test_a_database_that_is_not_there(postgres):
    dsn = make_conninfo(postgres, dbname="nowhere")
    with pytest.raises(PersistenceError, match="nowhere"), PostgresSaver(dsn):
        pass


def test_a_connection_string_that_is_none():
    with pytest.raises(PersistenceError, match="nonsense"), PostgresSaver("nonsense"):
        pass


def test_tables_of_a_newer_version_are_refused(postgres, admin):
    with PostgresSaver(postgres):
        admin.execute("INSERT INTO towpath_migrations (v) VALUES (1000)")
    with (
        pytest.raises(PersistenceError, match="1001") as caught,
        PostgresSaver(postgres),
    ):
        pass
    assert "upgrade" in caught.value.hint


@pytest.fixture
def limited(postgres, admin):
    """Return a connection string of a role that may use tables, not make them."""
    [(schema,)] = admin.execute("SELECT current_schema()").fetchall()
    role = f"{schema}_role"
    admin.execute(f"CREATE ROLE {role} LOGIN")
    admin.execute(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
    allowed = f"GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {role}"
    admin.execute(f"ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} {allowed}")
    yield make_conninfo(postgres, user=role)
    admin.execute(f"DROP OWNED BY {role}")
    admin.execute(f"DROP ROLE {role}")


def test_a_role_that_may_not_make_tables_is_told_what_to_do(limited):
    with pytest.raises(PersistenceError, match="permission") as caught:
        PostgresSaver(limited).setup()
    assert "setup()" in caught.value.hint


def test_such_a_role_may_use_tables_that_are_there(postgres, limited):
    with PostgresSaver(postgres), PostgresSaver(limited) as saver:
        put(saver, {"a": 1})
        assert {"a": 1} == values(saver.get_tuple(at()))


def test_a_pool_that_is_not_open(postgres):
    saver = PostgresSaver(ConnectionPool(postgres, open=False))
    with pytest.raises(PersistenceError, match="not open") as caught:
        saver.setup()
    assert "open the pool" in caught.value.hint


async def test_connections_that_are_all_busy(postgres):
    saver = PostgresSaver(postgres, pool_size_max=1, timeout_s=0.05)
    async with saver:
        await saver.aget_tuple(at())
        async with saver._database._lenders.looped.lend():
            with pytest.raises(PersistenceError, match="busy") as caught:
                await saver.aget_tuple(at())
    assert "pool_size_max" in caught.value.hint


def test_a_program_that_fails_leaves_nothing_behind(postgres, admin):
    with PostgresSaver(postgres) as saver:
        admin.execute(
            "CREATE FUNCTION burn() RETURNS trigger LANGUAGE plpgsql"
            " AS $$ BEGIN RAISE 'disk on fire'; END $$"
        )
        admin.execute(
            "CREATE TRIGGER no_writes BEFORE INSERT ON towpath_writes"
            " FOR EACH ROW EXECUTE FUNCTION burn()"
        )
        branch = Branch(Blocking(saver), at())
        parent = branch.put({"a": "a" * 40})
        with pytest.raises(PersistenceError, match="disk on fire"):
            branch.put({"a": "b" * 40}, writes=[("task", "", [(INTERRUPT, 1)])])
        assert id_of(parent) == id_of(saver.get_tuple(at()).config)
        assert (1,) == admin.execute("SELECT count(*) FROM towpath_cells").fetchone()


@pytest.mark.parametrize("missing", ["psycopg", "psycopg_pool"])
def test_without_the_extra_the_import_says_what_to_install(missing):
    program = f"import sys; sys.modules[{missing!r}] = None\n"
    program += "import towpath.checkpoint.postgres"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": "src"},
        capture_output=True,
        text=True,
    )
    assert "[TP-506]" in done.stderr
    assert "pip install 'towpath[postgres]'" in done.stderr
