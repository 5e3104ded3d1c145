"""What went wrong with Postgres, and what to do about it."""

from __future__ import annotations

from typing import Any, Final

import psycopg
from psycopg_pool import PoolClosed, PoolTimeout

from towpath.errors import PersistenceError

_CONFLICTS: Final = ("40001", "40P01")  # serialization failure, deadlock
_CONFUSED: Final = ("26000", "42P05")
_GONE: Final = ("57P01", "57P02", "57P03")  # shut down, crashed, not up yet
_RIGHTS: Final = (
    "let a role that may make tables call `setup()` once, and grant this one "
    "SELECT, INSERT, UPDATE and DELETE on them"
)
_POOLER: Final = (
    "behind a pooler in transaction mode nothing can be prepared: open connections "
    "with `prepare_threshold=None`"
)
_BLOCKED: Final = (
    "a blocking call in an event loop waits for what the loop itself is storing: await "
    "the async method (`ainvoke`), or make the call in a thread (`asyncio.to_thread`)"
)
_HINTS: Final = (
    ("26000", _POOLER),
    ("28", "check the user and the password of the connection string"),
    ("3D000", "create the database first, or correct its name"),
    ("42501", _RIGHTS),
    ("42P05", _POOLER),
    ("25006", "the server is a standby or read-only; connect to the primary"),
    ("53300", "lower `pool_size_max`, or put a pooler before the server"),
    ("53", "the server is out of disk, memory or connections"),
    ("55P03", _BLOCKED),
    ("57014", "a statement or lock timeout of the server ended it"),
)
"""By the first characters of an SQLSTATE, the more exact first."""


class UndecidedError(psycopg.OperationalError):
    """The server has not finished a transaction whose connection was lost."""


def is_confused(error: Exception) -> bool:
    """Tell whether a prepared statement was missing, or was there already."""
    return isinstance(error, psycopg.Error) and error.sqlstate in _CONFUSED


def is_unreachable(error: Exception) -> bool:
    """Tell whether an error is that no connection could be made."""
    return isinstance(error, psycopg.OperationalError) and not isinstance(
        error, (PoolClosed, PoolTimeout)
    )


def may_pass(error: Exception, connection: Any) -> bool:
    """Tell whether another attempt may succeed where one on `connection` failed."""
    if not isinstance(error, psycopg.Error):
        return False
    if isinstance(error, UndecidedError):
        return True
    state = error.sqlstate
    if state is None:
        return bool(connection.closed)
    return state in _CONFLICTS or state in _GONE or state.startswith("08")


def explain(error: Exception) -> PersistenceError:
    """Make the error to raise for one of psycopg's."""
    if isinstance(error, UnicodeEncodeError):
        return PersistenceError(
            f"Postgres cannot hold the text {error.object!r:.100}",
            hint="ids and names of channels must be text that UTF-8 can encode, "
            "without lone surrogates; the database should be in UTF-8",
        )
    return PersistenceError(f"Postgres: {str(error).strip()}", hint=_hint(error))


def _hint(error: Exception) -> str | None:
    if isinstance(error, PoolClosed):
        return "open the pool before the saver is used, close it afterwards"
    if isinstance(error, PoolTimeout):
        return (
            "the server cannot be reached, or all connections were busy that long: "
            "see the log of `psycopg.pool`, raise `pool_size_max` or `timeout_s`"
        )
    state = error.sqlstate if isinstance(error, psycopg.Error) else None
    if state is None and isinstance(error, psycopg.OperationalError):
        return "is the server running, and is the connection string right?"
    return next(
        (hint for start, hint in _HINTS if (state or "").startswith(start)), None
    )
