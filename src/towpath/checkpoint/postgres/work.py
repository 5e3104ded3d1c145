"""One program on its way to a result, over as many transactions as it takes.

Like the programs themselves this does no I/O. `Work.steps` is a generator of
calls of psycopg (`cursor.execute` with its arguments, `cursor.fetchall`), made
blocking or awaited by whoever runs it, and is sent what they return. On a
connection in pipeline mode, `execute` does not wait for the server. Only the
rows of a query do, so a program costs one round trip for each query whose rows
it asks for, and one for everything after the last of them, `COMMIT` included.

A connection may be lost at any time. Before `COMMIT` was sent, nothing has
happened, and the program is run again. After that nobody knows, and Postgres is
asked what became of the transaction. A program that takes no lock leaves nobody
to ask, and may be run twice: it only inserts what may be there already.

No statement depends on the session: there are no prepared statements, no
settings, and locks end with their transaction. So any connection will do, also
one of a pooler that gives every transaction another.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import Any, Final, Generic, TypeVar

from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from towpath.checkpoint.postgres.dialect import (
    bound,
    loaded,
    lock_number,
    translate,
)
from towpath.checkpoint.postgres.failure import (
    UndecidedError,
    explain,
    is_unreachable,
    may_pass,
)
from towpath.checkpoint.programs import Program, Query, Row

R = TypeVar("R")
Step = Callable[[], Any]
"""A call of psycopg, to be made blocking or to be awaited."""
Steps = Generator[Step, Any, R]

READ: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
"""For a program that only reads: all of it sees one moment."""
WRITE: Final = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
"""For one that may write: what it reads after a lock is what the last one left."""

# The number of the transaction comes along, for the case that nobody hears
# whether it was committed.
_LOCK: Final = "SELECT pg_advisory_xact_lock(%b), pg_current_xact_id()::text"
_STATUS: Final = "SELECT pg_xact_status(%b::xid8)"

_ATTEMPTS_MAX: Final = 7
_PAUSE_S: Final = 0.05
_PAUSE_S_MAX: Final = 1.0


class Work(Generic[R]):
    """A program, what is known of its transaction, and how often it failed."""

    def __init__(self, make: Callable[[], Program[R]], begin: str) -> None:
        self._make = make
        self._begin = begin
        self._failures = 0
        self._waited_s = 0.0
        self._connection: Any = None
        self._locked: Any = None
        """The cursor that took a lock."""
        self._number: str | None = None
        """The number of a transaction that may be committed."""
        self._result: R | None = None

    def steps(self, connection: Any) -> Steps[R]:
        """Run the program on a connection in one transaction.

        Where the connection is in one already, it is part of that.
        """
        self._connection = connection
        if self._number is not None and (yield from self._was_committed()):
            result: Any = self._result
            return result  # type: ignore[no-any-return]  # of that attempt
        idle = connection.info.transaction_status == TransactionStatus.IDLE
        if idle:
            yield partial(self._cursor().execute, self._begin)
        self._result = yield from self._obey(self._make())
        if idle:
            self._number = yield from self._transaction_number()
            yield partial(self._cursor().execute, "COMMIT")
        return self._result

    def pause_after(self, error: Exception, patience_s: float) -> float:
        """Return how many seconds to wait before the next attempt.

        Where there was no connection, for `patience_s` in all.

        Raises:
            PersistenceError: another attempt would be no better, or was not.
        """
        self._failures += 1
        connection, self._connection = self._connection, None
        if connection is None:
            goes_on = self._waited_s < patience_s and is_unreachable(error)
        else:
            goes_on = self._failures < _ATTEMPTS_MAX and may_pass(error, connection)
        if not goes_on:
            raise explain(error) from error
        pause_s = min(_PAUSE_S * self._failures**2, _PAUSE_S_MAX)
        if connection is not None and self._failures == 1:
            pause_s = 0.0  # it was lost long ago, as a rule
        self._waited_s += pause_s
        return pause_s

    def _cursor(self) -> Any:
        # Statements under way do not share a cursor: it would mix their rows.
        return self._connection.cursor(binary=True, row_factory=tuple_row)

    def _obey(self, program: Program[R]) -> Steps[R]:
        try:
            query = next(program)
            while True:
                query = program.send((yield from self._query(query)))
        except StopIteration as stop:
            result: R = stop.value
            return result
        finally:
            program.close()

    def _query(self, query: Query) -> Steps[list[Row]]:
        if query.lock is not None:
            self._locked = self._cursor()
            yield partial(self._locked.execute, _LOCK, (lock_number(query.lock),))
        statement, cursor = translate(query.sql), self._cursor()
        if query.many:
            rows = [bound(args) for args in query.args]
            yield partial(cursor.executemany, statement.sql, rows)
            return []
        yield partial(cursor.execute, statement.sql, bound(query.args))
        return loaded((yield cursor.fetchall)) if statement.returns else []

    def _transaction_number(self) -> Steps[str | None]:
        cursor, self._locked = self._locked, None
        # Not worth a round trip of its own where no rows came after the lock.
        if cursor is None or cursor.pgresult is None:
            return None
        _, number = yield cursor.fetchone
        return str(number)

    def _was_committed(self) -> Steps[bool]:
        cursor = self._cursor()
        yield partial(cursor.execute, _STATUS, (self._number,))
        (status,) = yield cursor.fetchone
        if status == "in progress":
            raise UndecidedError("a transaction of a lost connection is under way")
        self._number = None
        return bool(status == "committed")


def obey(steps: Steps[R]) -> R:
    """Make the calls of a generator, and return its result."""
    reply = None
    try:
        while True:
            reply = steps.send(reply)()
    except StopIteration as stop:
        result: R = stop.value
        return result
    finally:
        steps.close()


async def obey_async(steps: Steps[R]) -> R:
    """Await the calls of a generator, and return its result."""
    reply = None
    try:
        while True:
            reply = await steps.send(reply)()
    except StopIteration as stop:
        result: R = stop.value
        return result
    finally:
        steps.close()
