"""Every saver of ours passes the suite that outside authors are given."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from towpath.checkpoint.base import BaseCheckpointSaver, Capabilities
from towpath.checkpoint.memory import InMemorySaver
from towpath.checkpoint.serde.keyring import Keyring
from towpath.checkpoint.sqlite import SqliteSaver
from towpath.testing.conformance import SaverConformance, checks


class TestMemory(SaverConformance):
    @contextmanager
    def open(self) -> Iterator[BaseCheckpointSaver]:
        with InMemorySaver() as saver:
            yield saver


class TestSqliteInMemory(SaverConformance):
    @contextmanager
    def open(self) -> Iterator[BaseCheckpointSaver]:
        with SqliteSaver(":memory:") as saver:
            yield saver


class TestSqliteFile(SaverConformance):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path):
        self.path = str(tmp_path / "threads.db")

    @contextmanager
    def open(self) -> Iterator[BaseCheckpointSaver]:
        with SqliteSaver(self.path, synchronous="OFF") as saver:
            yield saver


class TestSqliteConnection(SaverConformance):
    @contextmanager
    def open(self) -> Iterator[BaseCheckpointSaver]:
        connection = sqlite3.connect(":memory:", check_same_thread=False)
        with SqliteSaver(connection) as saver:
            yield saver
        connection.close()


class TestPostgres(SaverConformance):
    @pytest.fixture(autouse=True)
    def _database(self, postgres):
        self.dsn = postgres

    @contextmanager
    def open(self) -> Iterator[BaseCheckpointSaver]:
        from towpath.checkpoint.postgres import PostgresSaver

        with PostgresSaver.from_conn_string(self.dsn) as saver:
            yield saver


class TestPostgresUnprepared(SaverConformance):
    @pytest.fixture(autouse=True)
    def _database(self, postgres):
        self.dsn = postgres

    @contextmanager
    def open(self) -> Iterator[BaseCheckpointSaver]:
        from towpath.checkpoint.postgres import PostgresSaver

        with PostgresSaver(self.dsn, prepare=False) as saver:
            yield saver


class TestSqliteEncrypted(SaverConformance):
    @contextmanager
    def open(self) -> Iterator[BaseCheckpointSaver]:
        with SqliteSaver(":memory:", encryption=Keyring(b"k" * 32)) as saver:
            yield saver


class TestPostgresEncrypted(SaverConformance):
    @pytest.fixture(autouse=True)
    def _database(self, postgres):
        self.dsn = postgres

    @contextmanager
    def open(self) -> Iterator[BaseCheckpointSaver]:
        from towpath.checkpoint.postgres import PostgresSaver

        with PostgresSaver(self.dsn, encryption=Keyring(b"k" * 32)) as saver:
            yield saver


class Minimal(InMemorySaver):
    """A saver that leaves out what it need not have."""

    capabilities = Capabilities()

    def copy_thread(self, source_thread_id, target_thread_id):
        raise NotImplementedError


class TestMinimal(SaverConformance):
    @contextmanager
    def open(self) -> Iterator[BaseCheckpointSaver]:
        yield Minimal()


def test_the_suite_is_usable_without_pytest():
    ran = [check.run() for check in checks(InMemorySaver)]
    assert 50 < len(ran)
