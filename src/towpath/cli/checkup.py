"""What `towpath doctor` looks at. Nothing is changed or created by looking.

Each check yields findings: what was looked at, how it is, and what to do where it is
not well. A database is asked directly, as opening it the usual way would bring its
tables up to date.
"""

from __future__ import annotations

import importlib.metadata
import platform
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import quote

from towpath.checkpoint.base.lease import is_dead
from towpath.checkpoint.programs import MIGRATIONS
from towpath.cli.problem import Problem
from towpath.cli.project import find_project, shown
from towpath.cli.show import size
from towpath.cli.storage import is_server, is_sqlite, keys, without_password
from towpath.errors import PersistenceError, TowpathError
from towpath.version import __version__

Health = Literal["ok", "note", "warning", "failed"]
Query = Callable[[str], Sequence[Sequence[Any]]]

OLDEST_PYTHON: Final = (3, 11)
NEWEST_PYTHON: Final = (3, 13)
OLDEST_SQLITE: Final = (3, 24, 0)
"""The first with upserts."""
EXTRAS: Final = {
    "cli": ("click", "rich"),
    "langchain": ("langchain_core",),
    "postgres": ("psycopg", "psycopg_pool"),
    "redis": ("redis",),
    "crypto": ("cryptography",),
    "zstd": ("zstandard",),
    "draw": ("resvg_py",),
    "vec": ("sqlite_vec",),
    "remote": ("langgraph_sdk",),
    "server": ("starlette", "uvicorn"),
    "ray": ("ray",),
    "otel": ("opentelemetry",),
}
DISTRIBUTIONS: Final = {"opentelemetry": "opentelemetry-api"}
"""Of modules that are not called as what they come in."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    subject: str
    health: Health
    told: str
    hint: str | None = None


def environment() -> Iterator[Finding]:
    """Look at Towpath, Python and SQLite."""
    yield Finding("towpath", "ok", __version__)
    version = sys.version_info[:2]
    name = f"{platform.python_implementation()} {platform.python_version()}"
    if version < OLDEST_PYTHON:
        yield Finding("python", "failed", name, "use Python 3.11 or newer")
    elif version > NEWEST_PYTHON:
        yield Finding(
            "python", "note", f"{name}, newer than those Towpath is tested on"
        )
    else:
        yield Finding("python", "ok", name)
    sqlite = sqlite3.sqlite_version
    fine = sqlite3.sqlite_version_info >= OLDEST_SQLITE
    older = None if fine else "use a Python with SQLite 3.24 or newer"
    yield Finding("sqlite", "ok" if fine else "failed", sqlite, older)


def extras() -> Iterator[Finding]:
    """Look at which extras are installed, and whether entirely."""
    for extra, modules in EXTRAS.items():
        missing = [module for module in modules if find_spec(module) is None]
        if not missing:
            versions = (f"{module} {version_of(module)}" for module in modules)
            yield Finding(f"extra {extra}", "ok", ", ".join(versions))
        elif len(missing) < len(modules):
            hint = f"pip install 'towpath[{extra}]'"
            told = f"{', '.join(missing)} is missing"
            yield Finding(f"extra {extra}", "warning", told, hint)
        else:
            yield Finding(f"extra {extra}", "note", "not installed")


def version_of(module: str) -> str:
    """Return the version of a module's distribution."""
    try:
        name = DISTRIBUTIONS.get(module, module.replace("_", "-"))
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"


def settings() -> Iterator[Finding]:
    """Look at the project's file, and the keys of the environment."""
    try:
        project = find_project()
    except Problem as problem:
        yield Finding("project", "failed", problem.message, problem.hint)
    else:
        names = ", ".join(map(shown, project.files))
        yield Finding("project", "ok" if names else "note", names or "no file")
    try:
        ring = keys()
    except TowpathError as error:
        yield Finding("encryption", "failed", str(error.message), error.hint)
    else:
        told = "keys in TOWPATH_AES_KEY" if ring else "no key: nothing is encrypted"
        yield Finding("encryption", "ok" if ring else "note", told)


def database(db: str) -> Iterator[Finding]:
    """Look at the database that `--db` names."""
    name = without_password(db)
    if is_server(db):
        yield from server(db, name)
        return
    file = Path(db)
    if not file.is_file():
        is_place = file.parent.is_dir()
        told = f"{name}: none yet" if is_place else f"no folder for {name}"
        hint = "the first `towpath run` makes it" if is_place else "make the folder"
        yield Finding("database", "note" if is_place else "failed", told, hint)
        return
    if file.stat().st_size and not is_sqlite(file):
        yield Finding("database", "failed", f"{name} is no SQLite database")
        return
    try:
        # To look must not make tables. Nor files: where nobody has the database open,
        # there is no -wal, and SQLite is told to make none.
        alone = not file.with_name(f"{file.name}-wal").exists()
        uri = f"file:{quote(str(file.resolve()))}?mode=ro&immutable={int(alone)}"
        with closing(sqlite3.connect(uri, uri=True, timeout=5)) as connection:
            yield from sqlite_file(file, lambda sql: connection.execute(sql).fetchall())
    except sqlite3.Error as error:
        broken = "restore it from a backup" if "malformed" in str(error) else None
        yield Finding("database", "failed", f"{name}: {error}", broken)


def sqlite_file(file: Path, query: Query) -> Iterator[Finding]:
    """Look into a SQLite database."""
    [(verdict,)] = query("PRAGMA quick_check(1)")
    if verdict != "ok":
        yield Finding(
            "database", "failed", f"{file}: {verdict}", "restore it from a backup"
        )
        return
    yield Finding("database", "ok", f"{file} opens, {size(file.stat().st_size)}")
    if writes_ahead(file):
        yield Finding("journal", "ok", "WAL")
    else:
        hint = "the next run makes it WAL; without, readers and writers wait"
        yield Finding("journal", "warning", "not WAL", hint)
    tables = {name for (name,) in query("SELECT name FROM sqlite_master")}
    yield from schema(tables, query)


def writes_ahead(file: Path) -> bool:
    """Tell a database in WAL mode by its header, as the file format has it."""
    with file.open("rb") as opened:
        return opened.read(20)[18:] == b"\x02\x02"


def server(db: str, name: str) -> Iterator[Finding]:
    """Look into a Postgres database."""
    try:
        from towpath.checkpoint.postgres.look import looked_into

        with looked_into(db) as look:
            yield Finding("database", "ok", f"{name} opens, Postgres {look.version}")
            rows = look.query(
                "SELECT table_name FROM information_schema.tables "
                "WHERE table_schema = ANY (current_schemas(false))"
            )
            yield from schema({str(row[0]) for row in rows}, look.query)
    except PersistenceError as error:
        told = error.message.partition("\n")[0]
        yield Finding("database", "failed", f"{name}: {told}", error.hint)


def schema(tables: set[str], query: Query) -> Iterator[Finding]:
    """Look at the version of the tables, at threads and at leases."""
    newest = len(MIGRATIONS)
    if "checkpoints" in tables:
        told = "has tables here, too; its threads are seen after `towpath import`"
        yield Finding("langgraph", "note", told)
    if "towpath_migrations" not in tables:
        yield Finding("schema", "note", "no tables yet", "the next run makes ours")
        return
    [(version,)] = query("SELECT max(v) FROM towpath_migrations")
    done = 0 if version is None else version + 1
    if done > newest:
        told = f"version {done}, this Towpath knows {newest}"
        yield Finding("schema", "failed", told, "upgrade towpath")
        return
    if done < newest:
        told = f"version {done} of {newest}: {newest - done} migrations are pending"
        yield Finding("schema", "warning", told, "the next run brings it up to date")
    else:
        yield Finding("schema", "ok", f"version {done}, the newest")
    if {"towpath_spaces", "towpath_leases"} <= tables:
        yield from leases(query)


def leases(query: Query) -> Iterator[Finding]:
    """Look at who holds threads, and whether they are alive."""
    [(count,)] = query("SELECT count(DISTINCT thread) FROM towpath_spaces")
    yield Finding("threads", "ok", str(count))
    held = query("SELECT thread, owner FROM towpath_leases WHERE owner IS NOT NULL")
    dead = [str(thread) for thread, owner in held if has_died(str(owner))]
    if dead:
        names = ", ".join(sorted(dead)[:5]) + (", ..." if len(dead) > 5 else "")
        told = f"{len(dead)} held by runs that died: {names}"
        hint = "`towpath resume` goes on with them; nothing has to be unlocked"
        yield Finding("leases", "warning", told, hint)
    else:
        yield Finding("leases", "ok", f"{len(held)} held, none by a run that died")


def has_died(owner: str) -> bool:
    """Tell whether the owner of a lease is known to be gone."""
    try:
        return is_dead(owner)
    except ValueError:  # not written by this version
        return False


def all_findings(db: str) -> Iterator[Finding]:
    """Look at everything."""
    yield from environment()
    yield from extras()
    yield from settings()
    yield from database(db)
