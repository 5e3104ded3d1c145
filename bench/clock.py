"""Take samples: contestants take turns, each with work enough for the clock."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from bench.adapters import Adapter, Job
from bench.workloads import WAITING, Workload


@dataclass(frozen=True)
class Effort:
    """How much time a workload may take."""

    sample_s: float
    budget_s: float
    rounds_min: int
    rounds_max: int


QUICK = Effort(sample_s=0.005, budget_s=1.0, rounds_min=1, rounds_max=5)
FULL = Effort(sample_s=0.02, budget_s=6.0, rounds_min=3, rounds_max=15)


@dataclass(frozen=True)
class Time:
    """Seconds on processors and on the wall."""

    cpu: float
    wall: float

    def __sub__(self, other: Time) -> Time:
        return Time(max(0.0, self.cpu - other.cpu), max(0.0, self.wall - other.wall))

    def __truediv__(self, parts: float) -> Time:
        return Time(self.cpu / parts, self.wall / parts)


@dataclass
class Samples:
    """What one contestant needed for one unit, round by round."""

    times: list[Time] = field(default_factory=list)
    stored: int = 0
    held: int = 0

    @property
    def middle(self) -> Time:
        return Time(
            median(each.cpu for each in self.times),
            median(each.wall for each in self.times),
        )


Sampler = Callable[[], Time]


def measure(
    workload: Workload, adapters: Sequence[Adapter], effort: Effort
) -> dict[str, Samples]:
    """Return the samples of each contestant that can do the workload."""
    samples = {adapter.name: Samples() for adapter in adapters}
    with ExitStack() as opened:
        samplers = {}
        for adapter in adapters:
            make = _importing if workload.kind == "import" else _working
            sampler = make(workload, adapter, effort, samples[adapter.name], opened)
            if sampler is not None:
                samplers[adapter.name] = sampler
        for _ in _rounds(effort):
            for name, sampler in samplers.items():
                gc.collect()
                samples[name].times.append(sampler() / workload.units)
    for adapter in adapters:
        if adapter.name in samplers and workload.kind in WAITING:
            samples[adapter.name].held = _held(workload, adapter)
    return {name: samples[name] for name in samplers}


def _held(workload: Workload, adapter: Adapter) -> int:
    """Return the bytes of a waiting conversation; tracing them takes time."""
    with _ready(workload, adapter) as job:
        return job.held() if job is not None and job.begin is None else 0


def _rounds(effort: Effort) -> Iterator[int]:
    """Count rounds until the time is used up."""
    start = time.perf_counter()
    for number in range(effort.rounds_max):
        spent = time.perf_counter() - start
        # A round that would exceed the budget by more than half is not begun.
        enough = number and spent + 0.5 * spent / number > effort.budget_s
        if enough and number >= effort.rounds_min:
            return
        yield number


def _working(
    workload: Workload,
    adapter: Adapter,
    effort: Effort,
    samples: Samples,
    opened: ExitStack,
) -> Sampler | None:
    if workload.lasting:
        # What a run stored would slow down the next: each sample starts afresh.
        with _ready(workload, adapter) as tried:
            able = tried is not None
        return (lambda: _afresh(workload, adapter, samples)) if able else None
    job = opened.enter_context(_ready(workload, adapter))
    if job is None:
        return None
    once = opened.enter_context(_runner(workload, job))
    first, result = once(1)
    _check(result, workload, adapter)
    warm = once(1)[0]  # the first may have imported what it needs
    if min(first.wall, warm.wall) > effort.budget_s:
        # Once is enough of what takes longer than the whole row may.
        return lambda: warm
    repeats = max(1, round(effort.sample_s / max(warm.cpu, 1e-7)))
    return lambda: once(repeats)[0] / repeats


def _afresh(workload: Workload, adapter: Adapter, samples: Samples) -> Time:
    with _ready(workload, adapter, samples) as job:
        assert job is not None
        with _runner(workload, job) as once:
            spent, result = once(1)
        _check(result, workload, adapter)
    return spent


@contextmanager
def _ready(
    workload: Workload, adapter: Adapter, samples: Samples | None = None
) -> Iterator[Job | None]:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        job = adapter.prepare(workload, Path(folder))
        try:
            yield job
        finally:
            if job is not None:
                job.close()
            if job is not None and samples is not None:
                samples.stored = job.stored()


def _check(result: object, workload: Workload, adapter: Adapter) -> None:
    if result != workload.expected:
        raise RuntimeError(
            f"{adapter.name} returns {result!r} for {workload.name}, "
            f"not {workload.expected!r}"
        )


Repeat = Callable[[int], tuple[Time, object]]


@contextmanager
def _runner(workload: Workload, job: Job) -> Iterator[Repeat]:
    """Yield a function that does the work some times and returns time and result."""
    if not workload.asynchronous:
        yield lambda repeats: _calls(job, repeats)
        return
    with asyncio.Runner() as runner:
        if job.begin is not None:
            runner.run(job.begin())
        try:
            # Timed within the loop: entering it is not the engine's price.
            yield lambda repeats: runner.run(_awaits(job, repeats))
        finally:
            if job.end is not None:
                runner.run(job.end())


def _calls(job: Job, repeats: int) -> tuple[Time, object]:
    result = None
    start = _now()
    for _ in range(repeats):
        result = job.run()
    return _now() - start, result


async def _awaits(job: Job, repeats: int) -> tuple[Time, object]:
    result = None
    start = _now()
    for _ in range(repeats):
        result = await job.run()
    return _now() - start, result


def _now() -> Time:
    return Time(time.process_time(), time.perf_counter())


def _importing(
    workload: Workload,
    adapter: Adapter,
    effort: Effort,
    samples: Samples,
    opened: ExitStack,
) -> Sampler | None:
    if adapter.importing() == "pass":
        return None
    compiled = opened.enter_context(tempfile.TemporaryDirectory(prefix="bench-"))
    # Byte code is compiled once per installation, so not within a sample.
    _python(adapter.importing(), compiled)
    return lambda: _python(adapter.importing(), compiled) - _python("pass", compiled)


def _python(text: str, compiled: str) -> Time:
    """Return what a new Python needs for `text`, its own start included."""
    search = os.pathsep.join(path for path in sys.path if path)
    surroundings = {**os.environ, "PYTHONPATH": search, "PYTHONPYCACHEPREFIX": compiled}
    surroundings.pop("PYTHONDONTWRITEBYTECODE", None)
    start = _children()
    subprocess.run([sys.executable, "-c", text], check=True, env=surroundings)
    return _children() - start


def _children() -> Time:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Time(used.ru_utime + used.ru_stime, time.perf_counter())
