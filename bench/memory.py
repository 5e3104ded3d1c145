"""What a waiting conversation holds in memory, and what a finished run leaves: nothing.

    make bench-memory
    python -m bench.memory --runs 1000

A *habit* (`bench.habits`) is a way to use a graph over and over. After many runs, each
on a thread of its own that is deleted when it is over, as many objects must be alive
as before. Objects are counted by type among those the collector knows
(`gc.get_objects`), and without types among all (`sys.getallocatedblocks`), texts and
numbers included. So are threads.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.adapters.libraries import Towpath
from bench.habits import CASES, Habit
from bench.report import amount
from bench.savers import unsynced
from bench.workloads import WORKLOADS


@dataclass(frozen=True)
class Residue:
    """What is there after many runs that was not there before."""

    runs: int
    objects: Counter[str]
    blocks: int

    @property
    def growing(self) -> dict[str, int]:
        """Types of which more than one object in ten runs has stayed."""
        return {
            name: number
            for name, number in self.objects.items()
            if number > self.runs / 10 + ALLOWED.get(name, CHANCE)
        }

    @property
    def leaks(self) -> bool:
        """Whether something stays with each run, or with each other one."""
        return bool(self.growing) or self.blocks > self.runs / 2


Census = tuple[Counter[str], int]
"""How many objects of each type are alive, and how many blocks of memory."""

# How many objects of a type may be more by chance, however few the runs are.
CHANCE = 3
# A connection of sqlite3 drops what it knows of dead cursors after 200 new ones.
ALLOWED = {"ReferenceType": 2 * 200}


@contextmanager
def unseen() -> Iterator[None]:
    """Leave out of counts, and of collections, what is alive now."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def census() -> Census:
    """Count what is alive, by type and in all."""
    for _ in range(3):  # Finalizers may set free what the next collection finds.
        gc.collect()
    names = Counter(type(each).__qualname__ for each in gc.get_objects())
    names["running threads"] = threading.active_count()
    return names, sys.getallocatedblocks()


def residue(habit: Habit, saver: str, runs: int) -> Residue:
    """Use a graph `runs` times and as often again, and return what both left.

    What one half left and the other did not is no leak but a cache that was filled.
    """
    with unseen(), unsynced(saver) as kept:
        graph = habit.graph(kept)
        if habit.asynchronous:
            counts = asyncio.run(_acounts(habit, graph, kept, runs))
        else:
            counts = _counts(habit, graph, kept, runs)
    (before, fewest), (between, middle), (after, most) = counts
    objects = (between - before) & (after - between)
    return Residue(runs, objects, min(middle - fewest, most - middle))


def rounds(runs: int) -> Iterator[range]:
    """Yield the numbers of runs of three rounds, the first to get warm."""
    yield range(max(10, runs // 10))
    yield from (range(runs), range(runs))


def _counts(habit: Habit, graph: Any, kept: Any, runs: int) -> list[Census]:
    found = []
    for numbers in rounds(runs):
        for number in numbers:
            _once(habit, graph, kept, f"run-{number}")
        found.append(census())
    return found


async def _acounts(habit: Habit, graph: Any, kept: Any, runs: int) -> list[Census]:
    found = []
    for numbers in rounds(runs):
        for number in numbers:
            await _aonce(habit, graph, kept, f"run-{number}")
        found.append(census())
    return found


def _once(habit: Habit, graph: Any, saver: Any, thread: str) -> None:
    habit.act(graph, {"configurable": {"thread_id": thread}})
    if saver is not None:
        saver.delete_thread(thread)


async def _aonce(habit: Habit, graph: Any, saver: Any, thread: str) -> None:
    acting = habit.act(graph, {"configurable": {"thread_id": thread}})
    assert acting is not None
    await acting
    if saver is not None:
        await saver.adelete_thread(thread)


def waiting() -> Iterator[str]:
    """Yield what conversations hold that wait, in a node or for an answer."""
    for workload in WORKLOADS:
        if workload.name in {"crowd-none", "crowd-memory", "ask-memory"}:
            with TemporaryDirectory(prefix="bench-") as folder:
                job = Towpath().prepare(workload, Path(folder))
                assert job is not None
                yield f"{workload.name:14} {amount(job.held()):>9} each"
                job.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Print both; the exit status tells whether anything is left."""
    parser = argparse.ArgumentParser(prog="python -m bench.memory")
    parser.add_argument("--runs", type=int, default=10_000)
    options = parser.parse_args(arguments)
    print("held by a conversation that waits:", *waiting(), sep="\n  ")
    print(f"left by a run, mean of {options.runs}:")
    leaks = False
    for habit, saver in CASES:
        left = residue(habit, saver, options.runs)
        leaks = leaks or left.leaks
        blocks = left.blocks / options.runs
        print(f"  {habit.name:15} {saver:8} {blocks:8.3f} blocks  {left.growing or ''}")
    return 1 if leaks else 0


if __name__ == "__main__":
    sys.exit(main())
