"""`AsyncSqliteSaver`, the peer's name for the async colour of `SqliteSaver`."""

from __future__ import annotations

from towpath.checkpoint.sqlite.saver import SqliteSaver


class AsyncSqliteSaver(SqliteSaver):
    """`SqliteSaver`, whose async methods need no class of their own."""
