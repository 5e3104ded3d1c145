"""Section E of the reports, as far as the memory and SQLite savers go.

Leases (59, 60), crash safety (61, 62), growth (69), Postgres (73) and
retention (75) have tests of their own.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from towpath import InMemorySaver
from towpath.checkpoint.sqlite.aio import AsyncSqliteSaver

from .kit import THREAD, Log, chain, logs, wire

# -- row 65: a cancelled run --------------------------------------------------


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
async def test_a_cancelled_run_keeps_the_same_in_every_mode(durability: Any) -> None:
    calls: Counter = Counter()
    started = asyncio.Event()

    async def fast(state: Log) -> Any:
        calls["fast"] += 1
        return {"log": ["fast"]}

    async def slow(state: Log) -> Any:
        calls["slow"] += 1
        if calls["slow"] == 1:
            started.set()
            await asyncio.sleep(60)
        return {"log": ["slow"]}

    builder = wire(
        ("__start__", "a"),
        ("a", "fast"),
        ("a", "slow"),
        a=logs("a"),
        fast=fast,
        slow=slow,
    )
    app = builder.compile(InMemorySaver())
    run = asyncio.ensure_future(app.ainvoke({"log": []}, THREAD, durability=durability))
    await started.wait()
    await asyncio.sleep(0.02)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run

    state = await app.aget_state(THREAD)
    assert (("slow",), ["a", "fast"]) == (state.next, state.values["log"])
    assert ["a", "fast", "slow"] == (await app.ainvoke(None, THREAD))["log"]
    assert {"fast": 1, "slow": 2} == calls


# -- rows 71, 72: savers and event loops --------------------------------------


async def test_a_blocking_call_of_a_saver_inside_its_loop_does_not_hang(
    tmp_path: Path,
) -> None:
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "a.db")) as saver:
        app = chain(a=logs("a")).compile(saver)
        await app.ainvoke({"log": []}, THREAD)
        found = saver.get_tuple(THREAD)
        assert found is not None
        config = {"configurable": {"thread_id": "2", "checkpoint_ns": ""}}
        saved = saver.put(config, found.checkpoint, found.metadata, {})
        saver.put_writes(saved, [("log", ["w"])], "task")
        assert [("task", "log", ["w"])] == [
            tuple(one) for one in (await saver.aget_tuple(saved)).pending_writes
        ]


async def test_a_blocking_run_inside_a_loop_does_not_hang(tmp_path: Path) -> None:
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "a.db")) as saver:
        app = chain(a=logs("a")).compile(saver)
        assert ["a"] == app.invoke({"log": []}, THREAD)["log"]
        assert app.get_state(THREAD) == await app.aget_state(THREAD)
