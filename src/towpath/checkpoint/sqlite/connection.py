"""Running programs on SQLite connections, one transaction each.

Writers take turns: within the process by a lock, which is fair and cheap, and
between processes by `BEGIN IMMEDIATE`, which waits up to the busy timeout. A
transaction that starts as a reader and becomes a writer could fail at once
instead of waiting, so none does. In WAL mode readers neither wait nor make
anyone wait, and each thread that reads gets a connection of its own.

A database in memory, or a connection that the caller opened, is one connection
for everything.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal, TypeVar

from towpath.checkpoint.programs import Program
from towpath.errors import PersistenceError

R = TypeVar("R")
Synchronous = Literal["OFF", "NORMAL", "FULL", "EXTRA"]

_IDLE_MAX: Final = 8
"""How many reading connections are kept for later."""


class Connections:
    """The connections to one database."""

    def __init__(
        self,
        target: str | sqlite3.Connection,
        *,
        busy_timeout_s: float = 30.0,
        synchronous: Synchronous = "FULL",
    ) -> None:
        if synchronous not in ("OFF", "NORMAL", "FULL", "EXTRA"):
            raise ValueError(f"unknown `synchronous` mode {synchronous!r}")
        self._timeout_s = busy_timeout_s
        self._synchronous = synchronous
        self._lock = threading.RLock()
        self._idle: list[sqlite3.Connection] = []
        self._closed = False
        self._owned = isinstance(target, str)
        if isinstance(target, str):
            self._path = target
            self.writer = self._open()
        else:
            self._path = ""
            self.writer = target
            self.writer.execute("PRAGMA journal_mode = WAL")
        self._shared = not self._owned or _in_memory(self._path)

    def _open(self) -> sqlite3.Connection:
        try:
            return self._connect()
        except sqlite3.Error as error:
            raise self._failure(error) from error

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path,
            timeout=self._timeout_s,
            isolation_level=None,
            check_same_thread=False,
            uri=self._path.startswith("file:"),
        )
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        except BaseException:
            connection.close()
            raise
        return connection

    def write(self, program: Program[R], *, durable: bool = True) -> R:
        """Run a program that may write; all of it is stored, or nothing.

        What need not be `durable` may be forgotten when the machine fails, and
        costs no waiting for the disk.
        """
        with self._lock:
            self._check_open()
            if durable or not self._owned:
                return self._run(self.writer, "BEGIN IMMEDIATE", program)
            self.writer.execute("PRAGMA synchronous = OFF")
            try:
                return self._run(self.writer, "BEGIN IMMEDIATE", program)
            finally:
                self.writer.execute(f"PRAGMA synchronous = {self._synchronous}")

    def read(self, program: Program[R]) -> R:
        """Run a program that only reads; all of it sees one moment."""
        if self._shared:
            with self._lock:
                self._check_open()
                return self._run(self.writer, "BEGIN", program)
        with self._reader() as connection:
            return self._run(connection, "BEGIN", program)

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        self._check_open()
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._open()
        try:
            yield connection
        finally:
            if self._closed or len(self._idle) >= _IDLE_MAX:
                connection.close()
            else:
                self._idle.append(connection)

    def _run(
        self, connection: sqlite3.Connection, begin: str, program: Program[R]
    ) -> R:
        try:
            connection.execute(begin)
            try:
                result = _obey(connection, program)
                connection.execute("COMMIT")
            except BaseException:
                connection.rollback()
                raise
        except sqlite3.Error as error:
            raise self._failure(error) from error
        return result

    @contextmanager
    def lend(self, transaction: bool) -> Iterator[sqlite3.Cursor]:
        """Lend a cursor of the writing connection."""
        with self._lock:
            self._check_open()
            cursor = self.writer.cursor()
            if transaction:
                cursor.execute("BEGIN IMMEDIATE")
            try:
                yield cursor
                self.writer.commit()
            finally:
                self.writer.rollback()  # does nothing after the commit
                cursor.close()

    def _failure(self, error: sqlite3.Error) -> PersistenceError:
        hint = None
        if "locked" in str(error) or "busy" in str(error):
            hint = (
                f"another process held the database for {self._timeout_s:g} s; "
                "raise `busy_timeout_s`, or look for a transaction left open"
            )
        elif "thread" in str(error):
            hint = "open the connection with `check_same_thread=False`"
        where = f" ({self._path})" if self._path else ""
        return PersistenceError(f"SQLite{where}: {error}", hint=hint)

    def _check_open(self) -> None:
        if self._closed:
            raise PersistenceError("this saver was closed")

    def close(self) -> None:
        """Close what was opened here, once the writer is done."""
        with self._lock:
            self._closed = True
            while self._idle:
                self._idle.pop().close()
            if self._owned:
                self.writer.close()


def _obey(connection: sqlite3.Connection, program: Program[R]) -> R:
    """Run the queries of a program and return its result."""
    try:
        query = next(program)
        while True:
            run = connection.executemany if query.many else connection.execute
            query = program.send(run(query.sql, query.args).fetchall())
    except StopIteration as stop:
        result: R = stop.value
        return result
    finally:
        program.close()


def _in_memory(path: str) -> bool:
    return path == "" or ":memory:" in path or "mode=memory" in path
