"""What the recipes share: two colours of run, three savers, small graphs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from towpath import InMemorySaver, SqliteSaver

from .kit import Colour


@pytest.fixture(params=["sync", "loop"])
def colour(request: pytest.FixtureRequest) -> Iterator[Colour]:
    """Run graphs blocking, and under asyncio."""
    with Colour(asynchronous=request.param == "loop") as colour:
        yield colour


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """Keep threads in memory, in a file, and on a server."""
    if request.param == "memory":
        yield InMemorySaver()
        return
    if request.param == "postgres":
        dsn = request.getfixturevalue("postgres")
        from towpath.checkpoint.postgres import PostgresSaver

        opened: Any = PostgresSaver(dsn)
    else:
        opened = SqliteSaver.from_conn_string(str(tmp_path / "threads.db"))
    with opened as database:
        yield database
