"""Looking into a database without a saver, which would make or change its tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from towpath.checkpoint.postgres.failure import explain


@dataclass(frozen=True, slots=True)
class Look:
    """A database that is open for reading only."""

    version: str
    """Of the server."""
    query: Callable[[str], Sequence[Sequence[Any]]]


@contextmanager
def looked_into(dsn: str, *, timeout_s: int = 10) -> Iterator[Look]:
    """Open a database for reading.

    Raises:
        PersistenceError: it cannot be opened or read (TP-501).
    """
    try:
        with psycopg.connect(dsn, connect_timeout=timeout_s) as connection:
            connection.read_only = True
            number = connection.info.server_version
            yield Look(
                f"{number // 10000}.{number % 10000}",
                lambda sql: connection.execute(sql.encode()).fetchall(),
            )
    except psycopg.Error as error:
        raise explain(error) from error
