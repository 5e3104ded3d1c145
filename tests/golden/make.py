"""Write databases as this version of Towpath leaves them, for later ones to read.

    python -m tests.golden.make
    python -m tests.golden.make codec

A folder is written for each version of the tables, or for another change, which is
named; it is checked in and never changes. What is read of it now lies beside it.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
from psycopg.sql import Literal
from tests.golden import story

from towpath.checkpoint.postgres import PostgresSaver
from towpath.checkpoint.postgres.dialect import translate
from towpath.checkpoint.programs import MIGRATIONS, VERSIONS
from towpath.checkpoint.sqlite import SqliteSaver
from towpath.testing.postgres_server import PostgresServer

HERE = Path(__file__).parent
TABLES = ("spaces", "checkpoints", "cells", "writes", "leases", "migrations")


def sqlite(folder: Path) -> None:
    path = Path(tempfile.mkdtemp()) / "threads.sqlite"
    with SqliteSaver(str(path)) as saver:
        story.live(saver)
        write(folder / "sqlite.json", story.told(saver))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA page_size = 512")
        connection.execute("VACUUM")
    shutil.move(path, folder / "threads.sqlite")


def postgres(folder: Path) -> None:
    with PostgresServer.started() as server:
        dsn = server.new_schema()
        with PostgresSaver(dsn) as saver:
            story.live(saver)
            write(folder / "postgres.json", story.told(saver))
        with psycopg.connect(dsn) as connection:
            text = "\n".join(dump(connection))
    (folder / "threads.sql").write_text(text + "\n", "utf-8")


def dump(connection: psycopg.Connection) -> Iterator[str]:
    """Yield the statements that make the tables and fill them again."""
    yield f"CREATE TABLE {VERSIONS} (v BIGINT PRIMARY KEY);"
    for statement in (each for version in MIGRATIONS for each in version):
        yield f"{translate(statement).sql.decode()};"
    for table in TABLES:
        rows = connection.execute(
            f"SELECT * FROM towpath_{table} ORDER BY 1, 2"
            if table != "migrations"
            else f"SELECT * FROM {VERSIONS}"
        )
        names = ", ".join(column.name for column in rows.description or ())
        for row in rows:
            values = ", ".join(Literal(value).as_string(connection) for value in row)
            yield f"INSERT INTO towpath_{table} ({names}) VALUES ({values});"
    for table in ("spaces", "cells"):
        [(newest,)] = connection.execute(f"SELECT max(id) FROM towpath_{table}")
        yield f"ALTER TABLE towpath_{table} ALTER COLUMN id RESTART WITH {newest + 1};"


def write(path: Path, told: object) -> None:
    path.write_text(json.dumps(told, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    made = HERE / "_".join(["tables", str(len(MIGRATIONS)), *sys.argv[1:]])
    if made.exists():
        raise SystemExit(f"{made} is there, and later versions rely on it")
    made.mkdir()
    sqlite(made)
    postgres(made)
    print(made)
