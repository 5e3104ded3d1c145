"""What tests of every folder share: a real Postgres."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from towpath.testing.postgres_server import OwnServer, PostgresServer


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One server for all tests of a process, started by the first that needs it."""
    if find_spec("psycopg") is None:
        pytest.skip("psycopg is not installed: pip install 'towpath[postgres]'")
    from towpath.testing.postgres_server import NoServerError, PostgresServer

    try:
        opened = PostgresServer.started()
        with opened as server:
            yield server
    except NoServerError as none:
        pytest.skip(str(none))


@pytest.fixture
def postgres(postgres_server: PostgresServer) -> Iterator[str]:
    """The connection string of an empty schema."""
    dsn = postgres_server.new_schema()
    yield dsn
    postgres_server.drop(dsn)


@pytest.fixture
def own_server() -> Iterator[OwnServer]:
    """A server of the test's own, which it may stop, crash and start."""
    if find_spec("psycopg") is None:
        pytest.skip("psycopg is not installed: pip install 'towpath[postgres]'")
    from towpath.testing.postgres_server import NoServerError, OwnServer

    try:
        opened = OwnServer.opened(durable=True)
        with opened as server:
            yield server
    except NoServerError as none:
        pytest.skip(str(none))
