"""`AsyncPostgresStore`, the peer's name for the async colour of `PostgresStore`."""

from __future__ import annotations

from towpath.store.postgres.base import PoolConfig, PostgresStore
from towpath.store.sql import AsyncSweeping

__all__ = ("AsyncPostgresStore", "PoolConfig")


class AsyncPostgresStore(AsyncSweeping, PostgresStore):
    """`PostgresStore`, whose sweeper is a task of the event loop."""

    async def aclose(self) -> None:
        """Stop sweeping, and close what was opened here."""
        await self.stop_ttl_sweeper()
        await super().aclose()
