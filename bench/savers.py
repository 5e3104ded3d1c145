"""Savers for figures that do not depend on how fast a disk is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from towpath.checkpoint.memory import InMemorySaver
from towpath.checkpoint.sqlite import SqliteSaver


@contextmanager
def unsynced(saver: str) -> Iterator[Any]:
    """Yield a saver by its name, None for "none"; SQLite waits for no disk."""
    match saver:
        case "memory":
            yield InMemorySaver()
        case "sqlite":
            with TemporaryDirectory(prefix="bench-") as folder:
                path = str(Path(folder) / "threads.db")
                with SqliteSaver(path, synchronous="OFF") as file:
                    yield file
        case _:
            yield None
