"""A store in Postgres, through psycopg 3 and its pool."""

from __future__ import annotations

from towpath.errors import MissingExtraError

try:
    from towpath.store.postgres.aio import AsyncPostgresStore
    from towpath.store.postgres.base import PoolConfig, PostgresStore
except ModuleNotFoundError as missing:
    raise MissingExtraError(
        f"`{missing.name}` is not installed", hint="pip install 'towpath[postgres]'"
    ) from missing

__all__ = ("AsyncPostgresStore", "PoolConfig", "PostgresStore")
