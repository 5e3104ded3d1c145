"""Opening a database of LangGraph's savers, through their own packages."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from towpath.importing.failure import ThreadImportError

SQLITE: Final = "sqlite:///"
SERVERS: Final = ("postgresql://", "postgres://")
TABLES: Final = {"checkpoints", "writes"}


@contextmanager
def open_source(url: str) -> Iterator[Any]:
    """Open a database by `sqlite:///file`, a file's path, or `postgresql://...`.

    A SQLite file is opened for reading only.

    Raises:
        ThreadImportError: there is none, it is none of theirs, or the package of
            its saver is not installed (TP-511).
    """
    if url.startswith(SERVERS):
        opened = package("postgres").PostgresSaver.from_conn_string(url)
        with opened as saver:
            yield saver
        return
    if "://" in url and not url.startswith(SQLITE):
        raise ThreadImportError(
            f"{url.partition('://')[0]}:// is no kind of database known here",
            hint="sqlite:///file.db or postgresql://user@host/name",
        )
    path = Path(url.removeprefix(SQLITE))
    if not path.is_file():
        raise ThreadImportError(f"there is no database {str(path)!r}")
    kind = package("sqlite").SqliteSaver
    address = f"{path.absolute().as_uri()}?mode=ro"
    with closing(
        sqlite3.connect(address, uri=True, check_same_thread=False)
    ) as connection:
        check_tables(connection, path)
        saver = kind(connection)
        saver.is_setup = True  # or it would make its tables
        yield saver


def package(name: str) -> Any:
    """The module of a saver.

    Raises:
        ThreadImportError: it is not installed (TP-511).
    """
    try:
        return import_module(f"langgraph.checkpoint.{name}")
    except ImportError as error:
        raise ThreadImportError(
            f"reading this database needs its own package, langgraph-checkpoint-{name}",
            hint=f"pip install langgraph langgraph-checkpoint-{name}",
        ) from error


def check_tables(connection: sqlite3.Connection, path: Path) -> None:
    try:
        rows = connection.execute("SELECT name FROM sqlite_master").fetchall()
    except sqlite3.DatabaseError as error:
        raise ThreadImportError(f"{str(path)!r} cannot be read: {error}") from error
    if TABLES - {name for (name,) in rows}:
        raise ThreadImportError(
            f"{str(path)!r} holds no threads of LangGraph's SqliteSaver",
            hint="it has no tables `checkpoints` and `writes`",
        )
