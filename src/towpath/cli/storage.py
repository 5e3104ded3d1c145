"""Open the database of a command, and look up what threads it holds."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import click

from towpath.checkpoint.base.summary import ThreadSummary
from towpath.checkpoint.serde.keyring import Keyring
from towpath.checkpoint.sqlite import SqliteSaver
from towpath.cli.plain import to_plain
from towpath.cli.problem import Problem, nearest
from towpath.constants import ERROR, INTERRUPT, RESUME, START, TASKS
from towpath.errors import PersistenceError, UnknownCheckpointError
from towpath.warnings import TowpathWarning

PAGE: Final = 200
SEARCHED: Final = 1000
"""How many threads are looked through for a name like the one that was given."""
_SETTING = re.compile(r"\s*(host|hostaddr|dbname|user|service|port)\s*=")
"""How the other form of an address begins: `host=localhost dbname=towpath`."""
_PASSWORD = re.compile(r"\bpassword\s*=\s*('(\\.|[^'\\])*'|\S+)\s*")


@contextmanager
def open_saver(db: str, *, create: bool) -> Iterator[Any]:
    """Open the database that `--db` names: a server's, or a SQLite file."""
    with ExitStack() as stack:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", TowpathWarning)
            opened = open_postgres(db) if is_server(db) else open_sqlite(db, create)
            saver = stack.enter_context(opened)
        for warning in told:
            click.echo(f"note: {warning.message}", err=True)
        yield saver


def is_server(db: str) -> bool:
    """Tell the address of a Postgres server, in both its forms, from a file's name."""
    is_address = db.startswith(("postgresql://", "postgres://"))
    return is_address or _SETTING.match(db) is not None


def without_password(db: str) -> str:
    """Return `--db` as it may be shown."""
    if not is_server(db):
        return db
    if _SETTING.match(db):
        return _PASSWORD.sub("", db).strip()
    parts = urlsplit(db)
    account, at, place = parts.netloc.rpartition("@")
    user = account.partition(":")[0]
    return urlunsplit(parts._replace(netloc=f"{user}{at}{place}"))


@contextmanager
def open_postgres(dsn: str) -> Iterator[Any]:
    """Open a database of a server, whose tables are made if it has none."""
    try:
        from towpath.checkpoint.postgres import PostgresSaver

        saver = PostgresSaver.from_conn_string(dsn, encryption=keys())
        saver.setup()
    except PersistenceError as error:
        raise Problem(error.message, hint=error.hint) from error
    with saver:
        yield saver


@contextmanager
def open_sqlite(db: str, create: bool) -> Iterator[Any]:
    """Open a SQLite database; only a run may create one."""
    path = Path(db)
    if not create and not path.is_file():
        near = (str(file) for file in path.parent.glob("*.db"))
        hint = nearest(db, near) or "the first `towpath run` makes it; --db names it"
        raise Problem(f"there is no database {db!r}", hint=hint)
    if not path.parent.is_dir():
        raise Problem(f"there is no folder {str(path.parent)!r} for the database")
    if path.is_file() and path.stat().st_size and not is_sqlite(path):
        raise Problem(f"{db!r} is not a SQLite database")
    with SqliteSaver.from_conn_string(db, encryption=keys()) as saver:
        yield saver


def keys() -> Keyring | None:
    """Return the keys of the environment, if there are any."""
    if not os.environ.get("TOWPATH_AES_KEY"):
        return None
    return Keyring.from_env()


def is_sqlite(path: Path) -> bool:
    """Tell a database by its first bytes."""
    with path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\0"


@dataclass(slots=True)
class Thread:
    """What a database knows of a thread without its graph."""

    id: str
    checkpoints: int = 0
    step: int | None = None
    changed: str | None = None
    questions: list[str] = field(default_factory=list)
    status: str = "done"
    waiting_for: list[str] = field(default_factory=list)
    """What is asked of whom answers, or the nodes that would run next."""
    bytes: int | None = None


def threads(saver: Any) -> Iterator[Thread]:
    """List the threads, the last changed one first; they are read page by page."""
    after = None
    while page := saver.threads(limit=PAGE, after=after):
        yield from map(at_a_glance, page)
        after = page[-1]


def at_a_glance(found: ThreadSummary) -> Thread:
    """Say how a thread stands."""
    newest = found.newest
    return Thread(
        found.id,
        checkpoints=found.checkpoints,
        step=newest.metadata.get("step"),
        changed=newest.checkpoint["ts"],
        questions=open_questions(newest),
        status=status_of(newest),
        waiting_for=waiting_for(newest),
        bytes=found.bytes,
    )


def open_questions(saved: Any) -> list[str]:
    """Return the ids of the questions that wait at a checkpoint."""
    return [question.id for question in questions_of(saved)]


def waiting_for(saved: Any) -> list[str]:
    """Say what a thread waits for: its questions, or else the nodes that are next."""
    questions = questions_of(saved)
    if not questions:
        return list(dict.fromkeys(next_nodes(saved)))
    values = (to_plain(question.value) for question in questions)
    return [
        str(value.get("question", value)) if isinstance(value, dict) else str(value)
        for value in values
    ]


def questions_of(saved: Any) -> list[Any]:
    """Return the questions that wait at a checkpoint."""
    answered = {
        task for task, channel, _ in saved.pending_writes or () if channel == RESUME
    }
    return [
        question
        for task, channel, questions in saved.pending_writes or ()
        if channel == INTERRUPT and task not in answered
        for question in questions
    ]


def refused_questions(saved: Any) -> list[Any]:
    """Return the questions of tasks that failed, to which another answer may be given.

    Where the answer was the reason, it is still asked.
    """
    writes = saved.pending_writes or ()
    failed = {task for task, channel, _ in writes if channel == ERROR}
    return [
        question
        for task, channel, questions in writes
        if channel == INTERRUPT and task in failed
        for question in questions
    ]


def status_of(saved: Any) -> str:
    """Say how a thread stands at a checkpoint: done, waiting, failed, unfinished."""
    if open_questions(saved):
        return "waiting"
    following = next_nodes(saved)
    if following == [START]:
        return "input refused"
    if any(channel == ERROR for _, channel, _ in saved.pending_writes or ()):
        return "failed"
    return "unfinished" if following else "done"


def next_nodes(saved: Any) -> list[str]:
    """Name the nodes that run next, read from the channels that start them."""
    names = []
    for channel, value in saved.checkpoint["channel_values"].items():
        if channel == START:
            names.append(START)
        elif channel == TASKS:
            names += [packet.node for packet in value or ()]
        elif channel.startswith("branch:to:"):
            names.append(channel.removeprefix("branch:to:"))
        elif channel.startswith("join:") and isinstance(value, set):
            awaited, _, node = channel.removeprefix("join:").rpartition(":")
            names += [node] if value == set(awaited.split("+")) else []
    return names


def require_thread(saver: Any, config: dict[str, Any]) -> None:
    """Refuse a thread, or a checkpoint of it, that the database does not hold."""
    settings = config["configurable"]
    with suppress(UnknownCheckpointError):
        if saver.get_tuple(config) is not None:
            return
    thread, checkpoint = settings["thread_id"], settings.get("checkpoint_id")
    if checkpoint is not None:
        require_thread(saver, {"configurable": {"thread_id": thread}})
        raise Problem(
            f"thread {thread!r} has no checkpoint {checkpoint!r}",
            hint=f"`towpath history --thread {thread}` lists them",
        )
    hint = nearest(thread, (one.id for one in islice(threads(saver), SEARCHED)))
    raise Problem(f"there is no thread {thread!r}", hint=hint)
