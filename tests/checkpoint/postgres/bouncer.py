"""A real pooler in transaction mode before the server: PgBouncer, if there is one.

It is the machine's own (`apt install pgbouncer`), or the one that the variable
`TOWPATH_TEST_PGBOUNCER` names.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

VARIABLE = "TOWPATH_TEST_PGBOUNCER"
CONFIG = """
[databases]
bounced = host={host} {port} dbname={dbname} user={user} {path}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own_port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 2
server_lifetime = 1
ignore_startup_parameters = extra_float_digits
"""


def program() -> str | None:
    """Return where the program is."""
    named = os.environ.get(VARIABLE)
    return named or shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")


@contextmanager
def bounced(dsn: str) -> Iterator[str]:
    """Start a pooler before a schema; yield the connection string through it."""
    known = conninfo_to_dict(dsn)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        own_port = free.getsockname()[1]
    text = CONFIG.format(
        host=known.get("host") or "127.0.0.1",
        port=f"port={known['port']}" if known.get("port") else "",
        dbname=known["dbname"],
        user=known["user"],
        path=f"connect_query='SET search_path = {known['application_name']}'",
        own_port=own_port,
    )
    through = make_conninfo(
        host="127.0.0.1", port=own_port, dbname="bounced", user="anyone"
    )
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "pgbouncer.ini")
        config.write_text(text, "utf-8")
        Path(folder).chmod(0o755)
        # It refuses to be root.
        other = ["-u", "nobody"] if os.getuid() == 0 else []
        running = subprocess.Popen(
            [str(program()), *other, str(config)], stderr=subprocess.DEVNULL
        )
        try:
            wait_for(through, running)
            yield through
        finally:
            running.terminate()
            running.wait()


def wait_for(dsn: str, running: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 20
    while True:
        try:
            psycopg.connect(dsn).close()
        except psycopg.OperationalError:
            if running.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return
