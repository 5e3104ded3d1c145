"""`AsyncPostgresSaver`, the peer's name for the async colour of `PostgresSaver`."""

from __future__ import annotations

from towpath.checkpoint.postgres.saver import PostgresSaver
from towpath.checkpoint.postgres.shallow import AsyncShallowPostgresSaver

__all__ = ("AsyncPostgresSaver", "AsyncShallowPostgresSaver")


class AsyncPostgresSaver(PostgresSaver):
    """`PostgresSaver`, whose async methods need no class of their own."""
