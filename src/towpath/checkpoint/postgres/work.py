"""One program on its way to a result, over as many transactions as it takes.

Like the programs themselves this does no I/O. `Work.steps` is a generator of
calls that wait for the server, made blocking or awaited by whoever runs it. Only
rows need waiting for, so a program costs one round trip for each query whose
rows it asks for, and one for everything after the last of them, `COMMIT`
included.

A connection may be lost at any time. Before `COMMIT` was sent, nothing has
happened, and the program is run again. After that nobody knows, and Postgres is
asked what became of the transaction. A program that takes no lock leaves nobody
to ask, and may be run twice: it only inserts what may be there already.

No statement depends on the session: there are no settings, and locks end with
their transaction. So any connection will do, also one of a pooler that gives
every transaction another. Statements are prepared until a pooler shows in that a
prepared one is missing, or there already; from then on they are not.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, Final, Generic, TypeVar

from psycopg.pq import TransactionStatus

from towpath.checkpoint.postgres.dialect import lock_number, translate
from towpath.checkpoint.postgres.failure import (
    UndecidedError,
    explain,
    is_confused,
    is_unreachable,
    may_pass,
)
from towpath.checkpoint.postgres.link import Link, Prepared, Reply, Step
from towpath.checkpoint.programs import Program, Query, Row

R = TypeVar("R")
Steps = Generator[Step, Any, R]

READ: Final = (b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",)
"""For a program that only reads: all of it sees one moment."""
WRITE: Final = (b"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",)
"""For one that may write: what it reads after a lock is what the last one left."""
WRITE_BEHIND: Final = (*WRITE, b"SET LOCAL synchronous_commit = off")
"""For one whose result may be forgotten when the server fails."""

# The number of the transaction comes along, for the case that nobody hears
# whether it was committed.
_LOCK: Final = b"SELECT pg_advisory_xact_lock($1), pg_current_xact_id()::text"
_STATUS: Final = b"SELECT pg_xact_status($1::xid8)"

_ATTEMPTS_MAX: Final = 7
_PAUSE_S: Final = 0.05
_PAUSE_S_MAX: Final = 1.0


class Work(Generic[R]):
    """A program, what is known of its transaction, and how often it failed.

    Without `begin` it is no transaction, and of one statement.
    """

    def __init__(
        self,
        make: Callable[[], Program[R]],
        begin: Sequence[bytes],
        prepared: Prepared | None = None,
    ) -> None:
        self._make = make
        self._begin = begin
        self._prepared = prepared
        self._failures = 0
        self._waited_s = 0.0
        self._connection: Any = None
        self._link: Link
        self._locked: Reply | None = None
        """What came of taking a lock."""
        self._number: str | None = None
        """The number of a transaction that may be committed."""
        self._result: R | None = None

    def steps(self, connection: Any) -> Steps[R]:
        """Run the program on a connection in one transaction.

        Where the connection is in one already, it is part of that.
        """
        self._connection = connection
        idle = connection.info.transaction_status == TransactionStatus.IDLE
        self._link = Link(connection, self._prepared)
        try:
            if self._number is not None and (yield from self._was_committed()):
                result: Any = self._result
                return result  # type: ignore[no-any-return]  # of that attempt
            return (yield from self._transact(self._begin if idle else ()))
        finally:
            self._link.leave()

    def _transact(self, begin: Sequence[bytes]) -> Steps[R]:
        link, self._locked = self._link, None
        for statement in begin:
            link.send(statement)
        try:
            result = self._result = yield from self._obey(self._make())
        except Exception:
            # The program's own. The server's leave the link ended.
            yield link.end()
            raise
        if begin:
            self._number = self._transaction_number()
            link.send(b"COMMIT")
        yield link.end()
        return result

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
            passes = self._unprepares(error) or may_pass(error, connection)
            goes_on = self._failures < _ATTEMPTS_MAX and passes
        if not goes_on:
            raise explain(error) from error
        pause_s = min(_PAUSE_S * self._failures**2, _PAUSE_S_MAX)
        if connection is not None and self._failures == 1:
            pause_s = 0.0  # it was lost long ago, as a rule
        self._waited_s += pause_s
        return pause_s

    def _unprepares(self, error: Exception) -> bool:
        """Do without prepared statements where a pooler has confused them."""
        if self._prepared is None or not is_confused(error):
            return False
        self._prepared.in_use = False
        return True

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
        link, statement = self._link, translate(query.sql)
        if query.lock is not None:
            self._locked = link.send(_LOCK, (lock_number(query.lock),))
        if query.many:
            for args in query.args:
                link.send(statement.sql, args)
            return []
        reply = link.send(statement.sql, query.args)
        if not statement.returns:
            return []
        yield link.receive()
        return link.rows(reply)

    def _transaction_number(self) -> str | None:
        # Not worth a round trip of its own where no rows came after the lock.
        if self._locked is None or self._locked.result is None:
            return None
        [(_, number)] = self._link.rows(self._locked)
        return str(number)

    def _was_committed(self) -> Steps[bool]:
        reply = self._link.send(_STATUS, (self._number,))
        yield self._link.end()
        [(status,)] = self._link.rows(reply)
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
