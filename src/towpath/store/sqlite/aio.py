"""`AsyncSqliteStore`, the peer's name for the async colour of `SqliteStore`."""

from __future__ import annotations

from towpath.store.sql import AsyncSweeping
from towpath.store.sqlite.base import SqliteStore


class AsyncSqliteStore(AsyncSweeping, SqliteStore):
    """`SqliteStore`, whose sweeper is a task of the event loop."""

    async def __aexit__(self, *exc_info: object) -> None:
        await self.stop_ttl_sweeper()
        await super().__aexit__(*exc_info)
