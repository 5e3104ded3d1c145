"""Running programs on SQLite connections, one transaction each.

Writers take turns: within the process by a lock, and between processes by
`BEGIN IMMEDIATE`, which waits up to the busy timeout. Whoever has its turn takes
along all who wait by then, in one transaction with one fsync: group commit. A
transaction that starts as a reader and becomes a writer could fail at once
instead of waiting, so none does. In WAL mode readers neither wait nor make
anyone wait, and each thread that reads gets a connection of its own.

A database in memory, or a connection that the caller opened, is one connection
for everything.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from towpath.checkpoint.programs import Program
from towpath.checkpoint.sqlite.group import Job, Queue, fail, finish
from towpath.errors import PersistenceError

R = TypeVar("R")
Synchronous = Literal["OFF", "NORMAL", "FULL", "EXTRA"]

_ERRORS: Final = (sqlite3.Error, UnicodeEncodeError)
"""What SQLite says, and what Python says of text that SQLite cannot hold."""
_PAUSE_S: Final = 0.005
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
        equip: Callable[[sqlite3.Connection], object] | None = None,
    ) -> None:
        """`equip` gives each connection what its programs need, as an extension."""
        if synchronous not in ("OFF", "NORMAL", "FULL", "EXTRA"):
            raise ValueError(f"unknown `synchronous` mode {synchronous!r}")
        self._timeout_s = busy_timeout_s
        self._synchronous = synchronous
        self._equip = equip
        self._lock = threading.RLock()
        self._idle: list[sqlite3.Connection] = []
        self._queue = Queue()
        self._closed = False
        self._owned = isinstance(target, str)
        if isinstance(target, str):
            self._path = target
            self.writer = self._open()
        else:
            self._path = ""
            self.writer = target
            self._make_wal(self.writer)
            if equip is not None:
                equip(self.writer)
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
            self._make_wal(connection)
            connection.execute(f"PRAGMA synchronous = {self._synchronous}")
            if self._equip is not None:
                self._equip(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _make_wal(self, connection: sqlite3.Connection) -> None:
        """Have a database write ahead.

        When several processes open a new one, SQLite tells all but one of them at
        once that it is locked, whatever the timeout: so they are to ask again.
        """
        until = time.monotonic() + self._timeout_s
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > until:
                    raise
                time.sleep(_PAUSE_S)
            else:
                return

    def write(self, program: Program[R], *, durable: bool = True) -> R:
        """Run a program that may write; all of it is stored, or nothing.

        What need not be `durable` may be forgotten when the machine fails, and
        costs no waiting for the disk.
        """
        if self._lock.acquire(blocking=False):
            try:
                if self._queue.is_empty():  # as nearly always in one conversation
                    return self._write_alone(program, durable)
            finally:
                self._lock.release()
        job = Job(program, durable=durable)
        self._queue.add(job)
        with self._lock:
            if not job.done:  # nobody has done it along with theirs meanwhile
                self._write_waiting()
        return job.outcome()

    def _write_alone(self, program: Program[R], durable: bool) -> R:
        self.check_open()
        if durable or not self._owned:
            return self._run(self.writer, "BEGIN IMMEDIATE", program)
        with self._synchronised(durable):
            return self._run(self.writer, "BEGIN IMMEDIATE", program)

    def submit(self, job: Job[Any]) -> bool:
        """Leave a program to `drain`; tell whether that has to be called."""
        return self._queue.add(job, drained=True)

    def drain(self) -> None:
        """Run what was submitted, as many programs in one transaction as there are."""
        while self._queue.goes_on():
            with self._lock:
                self._write_waiting()

    def _write_waiting(self) -> None:
        """Run the programs that wait, in one transaction: they share its fsync."""
        jobs = self._queue.take()
        try:
            self.check_open()
            with self._synchronised(any(job.durable for job in jobs)):
                self._write_together(jobs)
        except Exception as error:
            fail(jobs, error)
        except BaseException as error:
            # It is for the thread that happens to commit for all of them.
            stopped = PersistenceError("the transaction was interrupted")
            stopped.__cause__ = error
            fail(jobs, stopped)
            raise
        finally:
            finish(jobs)

    @contextmanager
    def _synchronised(self, durable: bool) -> Iterator[None]:
        if durable or not self._owned:
            yield
            return
        self.writer.execute("PRAGMA synchronous = OFF")
        try:
            yield
        finally:
            self.writer.execute(f"PRAGMA synchronous = {self._synchronous}")

    def _write_together(self, jobs: Sequence[Job[Any]]) -> None:
        writer = self.writer
        if len(jobs) == 1:
            [job] = jobs
            job.result = self._run(writer, "BEGIN IMMEDIATE", job.program)
            return
        try:
            writer.execute("BEGIN IMMEDIATE")
            try:
                for job in jobs:
                    self._run_apart(writer, job)
                writer.execute("COMMIT")
            except BaseException:
                writer.rollback()
                raise
        except _ERRORS as error:
            raise self._failure(error) from error

    def _run_apart(self, writer: sqlite3.Connection, job: Job[Any]) -> None:
        """Run one program of several; when it fails, only that is undone."""
        writer.execute("SAVEPOINT one")
        try:
            job.result = _obey(writer, job.program)
        except Exception as error:
            if not writer.in_transaction:
                raise  # the database has undone them all
            writer.execute("ROLLBACK TO one")
            if isinstance(error, _ERRORS):
                error = self._failure(error)
            job.fail(error)
        writer.execute("RELEASE one")

    def read(self, program: Program[R]) -> R:
        """Run a program that only reads; all of it sees one moment."""
        if self._shared:
            with self._lock:
                self.check_open()
                return self._run(self.writer, "BEGIN", program)
        self.check_open()
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._open()
        try:
            return self._run(connection, "BEGIN", program)
        finally:
            # Put back before it is asked whether all was closed: whoever closes it
            # at the same time finds it here, or leaves it to this thread.
            self._idle.append(connection)
            if self._closed or len(self._idle) > _IDLE_MAX:
                with suppress(IndexError):
                    self._idle.pop().close()

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
        except _ERRORS as error:
            raise self._failure(error) from error
        return result

    @contextmanager
    def lend(self, transaction: bool) -> Iterator[sqlite3.Cursor]:
        """Lend a cursor of the writing connection."""
        with self._lock:
            self.check_open()
            cursor = self.writer.cursor()
            if transaction:
                cursor.execute("BEGIN IMMEDIATE")
            try:
                yield cursor
                self.writer.commit()
            finally:
                self.writer.rollback()  # does nothing after the commit
                cursor.close()

    def size(self) -> int:
        """Tell how many bytes the database takes, its log included."""
        with self._lock, self._explained():
            self.check_open()
            [(_, _, path), *_] = self.writer.execute("PRAGMA database_list")
            [(size,)] = self.writer.execute(
                "SELECT page_count * page_size"
                " FROM pragma_page_count(), pragma_page_size()"
            )
        files = [Path(path), Path(f"{path}-wal")] if path else []
        return sum(file.stat().st_size for file in files if file.is_file()) or int(size)

    def vacuum(self) -> None:
        """Write the database anew without the space that is free, and empty its log.

        It waits for readers as a writer does, and needs as much space again.
        """
        with self._lock, self._explained():
            self.check_open()
            self.writer.execute("VACUUM")
            self.writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._failure(error) from error

    def _failure(self, error: sqlite3.Error | UnicodeEncodeError) -> PersistenceError:
        hint = None
        if isinstance(error, UnicodeEncodeError):
            hint = "names and keys must be text without lone surrogates"
        elif "locked" in str(error) or "busy" in str(error):
            hint = (
                f"another process held the database for {self._timeout_s:g} s; "
                "raise `busy_timeout_s`, or look for a transaction left open"
            )
        elif "thread" in str(error):
            hint = "open the connection with `check_same_thread=False`"
        where = f" ({self._path})" if self._path else ""
        return PersistenceError(f"SQLite{where}: {error}", hint=hint)

    def check_open(self) -> None:
        """Refuse to go on when it was closed."""
        if self._closed:
            raise PersistenceError(
                "this database was closed",
                hint="run the graph inside the saver's `with`, or open another one",
            )

    def close(self) -> None:
        """Close what was opened here, once the writer is done."""
        with self._lock:
            self._closed = True
            with suppress(IndexError):
                while True:
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
