"""Our savers under the peer's conformance kit; run under the hook only."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

folder = Path(tempfile.mkdtemp())


@checkpointer_test(name="memory")
async def memory() -> AsyncIterator[InMemorySaver]:
    yield InMemorySaver()


@checkpointer_test(name="sqlite")
async def sqlite() -> AsyncIterator[SqliteSaver]:
    with SqliteSaver.from_conn_string(":memory:") as saver:
        yield saver


@checkpointer_test(name="sqlite aio")
async def sqlite_aio() -> AsyncIterator[AsyncSqliteSaver]:
    async with AsyncSqliteSaver.from_conn_string(str(folder / "aio.db")) as saver:
        yield saver


@checkpointer_test(name="postgres")
async def postgres() -> AsyncIterator[object]:
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

    async with AsyncPostgresSaver.from_conn_string(os.environ["DATABASE_URL"]) as saver:
        await saver.setup()
        yield saver


async def run() -> bool:
    kinds = [memory, sqlite, sqlite_aio]
    if os.environ.get("DATABASE_URL"):
        kinds.append(postgres)
    passed = True
    for kind in kinds:
        report = await validate(kind)
        report.print_report()
        passed = passed and report.passed_all()
    return passed


sys.exit(0 if asyncio.run(run()) else 1)
