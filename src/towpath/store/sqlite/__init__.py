"""A store in an SQLite file."""

from __future__ import annotations

from towpath.store.sqlite.aio import AsyncSqliteStore
from towpath.store.sqlite.base import SqliteStore

__all__ = ("AsyncSqliteStore", "SqliteStore")
