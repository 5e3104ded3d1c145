"""The same work without a library: what nobody can do faster in Python.

A loop over functions, a thread pool or bare asyncio tasks for the fan-out, and
one SQLite transaction per step that stores what the step changed.
"""

from __future__ import annotations

import asyncio
import json
import platform
import sqlite3
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.adapters import Job
from bench.adapters.graphs import MODEL, USER
from bench.workloads import (
    Chat,
    Colour,
    FanOut,
    Loop,
    Nested,
    Sequential,
    Wide,
    Workload,
)


class RawAdapter:
    """Plain Python."""

    name = "raw"
    version = f"python {platform.python_version()}"

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(8)

    def prepare(self, workload: Workload, colour: Colour) -> Job | None:
        if colour == "async":
            return prepare_async(workload)
        match workload:
            case Sequential(size) | Loop(size):
                return lambda: count(size)
            case Nested():
                return lambda: count(Nested.STEPS)
            case FanOut(size):
                return lambda: list(self.pool.map(work, range(size)))
            case Wide(size):
                return lambda: touch(size)
            case Chat(size, "none"):
                return lambda: talk(size)
            case Chat(size, "sqlite"):
                return lambda: talk_stored(size)
        return None


def adapter() -> RawAdapter:
    return RawAdapter()


def prepare_async(workload: Workload) -> Job | None:
    match workload:
        case Sequential(size) | Loop(size):
            return lambda: acount(size)
        case Nested():
            return lambda: acount(Nested.STEPS)
        case FanOut(size):
            return lambda: afan_out(size)
    return None


def add(state: dict[str, int]) -> dict[str, int]:
    return {"n": state["n"] + 1}


async def aadd(state: dict[str, int]) -> dict[str, int]:
    return {"n": state["n"] + 1}


def count(size: int) -> dict[str, int]:
    state = {"n": 0}
    for _ in range(size):
        state.update(add(state))
    return state


async def acount(size: int) -> dict[str, int]:
    state = {"n": 0}
    for _ in range(size):
        state.update(await aadd(state))
    return state


def work(item: int) -> dict[str, list[int]]:
    return {"done": [item]}


async def awork(item: int) -> dict[str, list[int]]:
    return {"done": [item]}


async def afan_out(size: int) -> list[Any]:
    tasks = [asyncio.ensure_future(awork(number)) for number in range(size)]
    return [await task for task in tasks]


def touch(size: int) -> dict[str, int]:
    state = {f"k{number}": 0 for number in range(size)}
    while state["k0"] < Wide.STEPS:
        state.update({"k0": state["k0"] + 1, "k1": state["k1"] + 2})
    return state


def talk(turns: int) -> list[Any]:
    messages: list[Any] = []
    for _ in range(turns):
        messages += [USER]
        messages += [MODEL]
    return messages


def talk_stored(turns: int) -> dict[str, int]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "raw.sqlite"
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("CREATE TABLE message (step INTEGER PRIMARY KEY, body)")
        for step in range(2 * turns):
            body = json.dumps(MODEL if step % 2 else USER)
            connection.execute("INSERT INTO message VALUES (?, ?)", (step, body))
        connection.close()
        return {"bytes": path.stat().st_size}
