"""Every store of ours passes the suite for stores, and so does the peer's where
it means the same."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

import towpath.store.memory as memory
import towpath.store.sql as sql
from towpath.store.memory import InMemoryStore
from towpath.store.sqlite import AsyncSqliteStore, SqliteStore
from towpath.testing.conformance_store import StoreConformance


class WithClock(StoreConformance):
    """A suite for which time passes at its word."""

    @pytest.fixture(autouse=True)
    def clock(self, monkeypatch):
        ahead = [0]
        seconds, microseconds = memory.now_s, sql.now_us
        monkeypatch.setattr(memory, "now_s", lambda: seconds() + ahead[0])
        monkeypatch.setattr(
            sql, "now_us", lambda: microseconds() + ahead[0] * 1_000_000
        )

        def pass_time(seconds):
            ahead[0] += seconds

        self.pass_time = pass_time


class TestInMemoryStore(WithClock):
    @contextmanager
    def open(self, index=None):
        yield InMemoryStore(index=index)


class TestSqliteStoreInAFile(WithClock):
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path):
        self.path = str(tmp_path / "store.db")

    def open(self, index=None):
        return SqliteStore.from_conn_string(self.path, index=index)


class TestAsyncSqliteStoreInMemory(WithClock):
    def open(self, index=None):
        return AsyncSqliteStore(":memory:", index=index)


class TestPostgresStore(WithClock):
    @pytest.fixture(autouse=True)
    def dsn(self, postgres):
        self.dsn = postgres

    def open(self, index=None):
        from towpath.store.postgres import PostgresStore

        return PostgresStore.from_conn_string(self.dsn, index=index)


class TestPostgresStoreWithoutPgvector(TestPostgresStore):
    def open(self, index=None):
        from towpath.store.postgres import PostgresStore

        class Plain(PostgresStore):
            def _find_extension(self):
                yield from ()

        return Plain(self.dsn, index=index)
