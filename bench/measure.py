"""Taking turns: every adapter does the work once, then every one again.

What else the machine does hits all of them alike, and the median of the rounds
is not moved by one that was disturbed.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter
from typing import Any

from bench.adapters import Adapter, Job
from bench.workloads import Colour, Import, Workload


@dataclass(slots=True)
class Result:
    """What one workload took each adapter, in seconds per unit, round by round."""

    workload: Workload
    colour: Colour
    seconds: dict[str, list[float]] = field(default_factory=dict)
    facts: dict[str, dict[str, float]] = field(default_factory=dict)
    """What else an adapter has to tell: bytes on disk, growth of the turns."""

    def median(self, name: str) -> float | None:
        rounds = self.seconds.get(name)
        return median(rounds) if rounds else None

    def ratio(self, name: str, to: str) -> float | None:
        """How many times as long `name` takes as `to`."""
        slow, fast = self.median(name), self.median(to)
        return slow / fast if slow and fast else None


@dataclass(frozen=True, slots=True)
class Effort:
    """How often a workload is repeated: at least, at most, and for how long."""

    rounds_min: int
    rounds_max: int
    budget_s: float


FACTS = {"bytes", "growth"}
QUICK = Effort(3, 7, 2.0)
FULL = Effort(5, 25, 20.0)


def measure(
    workloads: Sequence[Workload], adapters: Sequence[Adapter], effort: Effort
) -> Iterator[Result]:
    """Measure each workload in each of its colours."""
    for workload in workloads:
        for colour in workload.colours:
            result = interleaved(workload, colour, adapters, effort)
            if result.seconds:
                yield result


def interleaved(
    workload: Workload, colour: Colour, adapters: Sequence[Adapter], effort: Effort
) -> Result:
    result = Result(workload, colour)
    jobs = [(each.name, each.prepare(workload, colour)) for each in adapters]
    ready = [(name, job) for name, job in jobs if job is not None]
    for _, job in ready:
        once(job, workload, colour)  # what is only done the first time
    began = perf_counter()
    for number in range(effort.rounds_max):
        if number >= effort.rounds_min and perf_counter() - began > effort.budget_s:
            break
        for name, job in ready:
            seconds, told = once(job, workload, colour)
            result.seconds.setdefault(name, []).append(seconds / workload.units)
            if isinstance(told, dict) and told.keys() & FACTS:
                result.facts[name] = told
    return result


def once(job: Job, workload: Workload, colour: Colour) -> tuple[float, Any]:
    """Do the work once; return how long it took, and what it returned."""
    gc.collect()
    if colour == "async":
        return asyncio.run(awaited(job))
    began = perf_counter()
    told = job()
    seconds = perf_counter() - began
    return (told if isinstance(workload, Import) else seconds), told


async def awaited(job: Job) -> tuple[float, Any]:
    began = perf_counter()
    told = await job()
    return perf_counter() - began, told
