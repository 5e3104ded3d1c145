"""The Postgres server that all contestants use, and what a run left in it."""

from __future__ import annotations

import atexit
from contextlib import ExitStack
from functools import cache

import psycopg

from towpath.testing.postgres_server import OwnServer


@cache
def server() -> OwnServer:
    """Start a server whose commits reach the disk; it ends with the program."""
    opened = ExitStack()
    atexit.register(opened.close)
    return opened.enter_context(OwnServer.opened(durable=True))


def stored(dsn: str) -> int:
    """Return how many bytes the tables of a schema have, indexes included."""
    with psycopg.connect(dsn) as connection:
        found = connection.execute(
            "SELECT sum(pg_total_relation_size(oid)) FROM pg_class"
            " WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
        ).fetchone()
    return int(found[0])
