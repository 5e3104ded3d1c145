"""Print what was measured, as a table for people and as JSON for programs."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.adapters import FLOORS, OURS, PEER, RAW, Adapter
from bench.clock import Samples
from bench.goals import STREAM_MOST, Goal, bound, goals
from bench.workloads import Workload

WIDTH = 10
# The run without a stream of which a streamed one is a multiple.
PLAIN = {
    "stream-custom": "stream-invoke-custom",
    "stream-checkpoints-memory": "stream-invoke-memory",
}


@dataclass(frozen=True)
class Row:
    """One workload and what each contestant needed for a unit of it."""

    workload: Workload
    samples: Mapping[str, Samples]

    def middle(self, name: str, clock: str = "") -> float | None:
        """Return the median of a contestant in seconds, by the clock to trust."""
        if name not in self.samples:
            return None
        return getattr(self.samples[name].middle, clock or self.workload.clock)

    def ratio(self, name: str, clock: str = "") -> float | None:
        """Return how many times longer a contestant takes than ours."""
        ours, theirs = self.middle(OURS, clock), self.middle(name, clock)
        return theirs / ours if ours and theirs else None

    @property
    def best(self) -> str | None:
        """The fastest of the other engines."""
        others = [name for name in self.samples if name not in {OURS, *FLOORS}]
        return min(others, key=lambda name: self.middle(name) or 0, default=None)

    @property
    def winner(self) -> str | None:
        """The other engine that is faster than ours, if there is one."""
        best = self.best
        return best if best and (self.ratio(best) or 1) < 1 else None

    @property
    def reached(self) -> bool | None:
        """Whether all goals of the row are reached, as far as they can be judged."""
        judged = [self._judge(goal) for goal in goals(self.workload.name)]
        known = [each for each in judged if each is not None]
        return all(known) if known else None

    def _judge(self, goal: Goal) -> bool | None:
        if goal.most_s:
            ours = self.middle(OURS)
            return None if ours is None else ours <= goal.most_s
        ratio = self.ratio(goal.versus)
        return None if ratio is None else ratio >= goal.times


def machine(adapters: Sequence[Adapter]) -> dict[str, Any]:
    """Return where the figures come from."""
    return {
        "versions": {adapter.name: adapter.version for adapter in adapters},
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "load": [round(each, 2) for each in os.getloadavg()],
    }


def _processor() -> str:
    facts = Path("/proc/cpuinfo")
    lines = facts.read_text("utf-8").splitlines() if facts.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if "model name" in line)
    return next(names, platform.processor() or "unknown")


def head(facts: Mapping[str, Any]) -> str:
    """Return where the figures come from, and how to read the table."""
    versions = ", ".join(
        f"{name} {version}" for name, version in facts["versions"].items()
    )
    place = f"{facts['system']}, {facts['cores']} cores: {facts['processor']}"
    return "\n".join(
        (
            versions,
            f"{facts['python']}, {place}; load {facts['load'][0]}",
            "Medians per unit; cpu or wall is the clock of the row. peer/ours and",
            "best/ours: how many times longer langgraph, and the fastest of the other",
            "engines, take. *: the goals of the row are reached, -: they are not.",
        )
    )


class Table:
    """A table with a column for each contestant that is there."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def head(self) -> str:
        titles = ("ours" if name == OURS else name[:WIDTH] for name in self._names)
        first = ["workload", "unit", "clock"]
        return self._joined([*first, *titles, "peer/ours", "best/ours", ""])

    def line(self, row: Row) -> str:
        workload = row.workload
        cells = [workload.name, workload.unit, workload.clock]
        cells += [duration(row.middle(name)) for name in self._names]
        best = row.ratio(row.best) if row.best else None
        cells += [times(row.ratio(PEER)), times(best), remark(row)]
        return self._joined(cells)

    def _joined(self, cells: Sequence[str]) -> str:
        words, figures, last = cells[:3], cells[3:-1], cells[-1]
        widths = (22, 9, 5)
        left = (cell.ljust(width) for cell, width in zip(words, widths, strict=True))
        right = (cell.rjust(WIDTH) for cell in figures)
        return " ".join((*left, *right, last)).rstrip()


def remark(row: Row) -> str:
    """Return the mark of a row, and who wins it, if not we."""
    mark = {True: "*", False: "-", None: ""}[row.reached]
    return f"{mark} {row.winner} wins" if row.winner else mark


def foot(rows: Sequence[Row]) -> str:
    """Return the lines below the rows."""
    judged = [row.reached for row in rows if row.reached is not None]
    lines = [f"goals reached: {sum(judged)} of {len(judged)} rows that have one"]
    for row in rows:
        lines += _bytes("on disk after", "stored", row)
        lines += _bytes("held by each that waits in", "held", row)
    return "\n".join([*lines, *_streamed(rows)])


def _bytes(title: str, which: str, row: Row) -> list[str]:
    sizes = {name: getattr(each, which) for name, each in row.samples.items()}
    told = [f"{name} {amount(number)}" for name, number in sizes.items() if number]
    if not told:
        return []
    most = bound(which, row.workload.name, sizes.get(RAW, 0))
    goal = f" (goal: {amount(most)})" if most else ""
    return [f"{title} {row.workload.name}: {', '.join(told)}{goal}"]


def _streamed(rows: Sequence[Row]) -> list[str]:
    lines = [
        f"{mode} over plain invoke: "
        + ", ".join(f"{name} {times(ratio)}" for name, ratio in ratios.items())
        for mode, ratios in streamed(rows).items()
    ]
    return [*lines, f"(goal: {STREAM_MOST}x)"] if lines else []


def streamed(rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    """Return how much longer a run takes that is streamed, mode by mode."""
    found = {row.workload.name: row for row in rows if row.workload.kind == "stream"}
    ratios: dict[str, dict[str, float]] = {}
    for name, row in found.items():
        plain = found.get(PLAIN.get(name, "stream-invoke"))
        if plain is None or row.workload.variant.startswith("invoke"):
            continue
        ratios[name] = {
            each: (row.middle(each) or 0) / (plain.middle(each) or 1)
            for each in row.samples
        }
    return ratios


def document(facts: Mapping[str, Any], rows: Sequence[Row]) -> dict[str, Any]:
    """Return everything, times in seconds per unit."""
    return {
        "machine": dict(facts),
        "workloads": [_entry(row) for row in rows],
        "streamed": streamed(rows),
    }


def _entry(row: Row) -> dict[str, Any]:
    others = [name for name in row.samples if name != OURS]
    return {
        **asdict(row.workload),
        "clock": row.workload.clock,
        "ratio": {
            clock: {name: row.ratio(name, clock) for name in others}
            for clock in ("cpu", "wall")
        },
        "best": row.best,
        "winner": row.winner,
        "reached": row.reached,
        "contestants": {name: _summary(each) for name, each in row.samples.items()},
    }


def _summary(samples: Samples) -> dict[str, Any]:
    summary: dict[str, Any] = {"rounds": len(samples.times)}
    for clock in ("cpu", "wall"):
        times = [getattr(each, clock) for each in samples.times]
        middle = getattr(samples.middle, clock)
        summary[clock] = {"median": middle, "min": min(times), "max": max(times)}
    return {**summary, "stored_bytes": samples.stored, "held_bytes": samples.held}


def duration(seconds: float | None) -> str:
    """Return a time in a unit in which it is easy to read."""
    if seconds is None:
        return "-"
    for size, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= size:
            return f"{three(seconds / size)} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{three(ratio)}x"


def three(number: float) -> str:
    """Return about three digits: more would be noise."""
    digits = 2 if number < 10 else 1 if number < 100 else 0
    return f"{number:,.{digits}f}"


def amount(number: float) -> str:
    """Return bytes in a unit in which they are easy to read."""
    for size, unit in ((1e6, "MB"), (1e3, "kB")):
        if number >= size:
            return f"{three(number / size)} {unit}"
    return f"{number:.0f} B"
