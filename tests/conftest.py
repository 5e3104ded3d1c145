"""What tests of every folder share: a real Postgres, an interpreter apart."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from towpath.testing.servers import NoServerError

if TYPE_CHECKING:
    from towpath.testing.postgres_server import OwnServer, PostgresServer
    from towpath.testing.redis_server import RedisServer

# How long an example takes says more of the machine than of what is tested.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture
def printed_apart() -> Callable[[str], str]:
    """Run a program in an interpreter of its own, and return what it prints."""

    def run(program: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONPATH": "src"},
        )
        return done.stdout

    return run


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One server for all tests of a process, started by the first that needs it."""
    servers = server_module()
    try:
        with servers.PostgresServer.started() as server:
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
    servers = server_module()
    try:
        with servers.OwnServer.opened(durable=True) as server:
            yield server
    except NoServerError as none:
        pytest.skip(str(none))


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """One Redis for all tests of a process, started by the first that needs it."""
    if find_spec("redis") is None:
        pytest.skip("redis is not installed: pip install 'towpath[redis]'")
    from towpath.testing.redis_server import RedisServer

    try:
        with RedisServer.started() as server:
            yield server
    except NoServerError as none:
        pytest.skip(str(none))


def server_module():
    if find_spec("psycopg") is None:
        pytest.skip("psycopg is not installed: pip install 'towpath[postgres]'")
    import towpath.testing.postgres_server as servers

    return servers
