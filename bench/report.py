"""Print what was measured, as a table for people and as JSON for programs."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.adapters import OURS, PEER, RAW, Adapter
from bench.clock import Samples
from bench.workloads import Workload

TARGET = 25
"""How many times faster than the peer a unit of work is to be, at first."""
COLUMNS = (
    ("workload", 17),
    ("unit", -6),
    ("ours", 9),
    ("peer", 9),
    ("raw", 9),
    ("peer/ours", 11),
    ("ours", 10),
    ("peer", 9),
    ("raw", 9),
    ("peer/ours", 10),
)


@dataclass(frozen=True)
class Row:
    """One workload and what each contestant needed for a unit of it."""

    workload: Workload
    samples: Mapping[str, Samples]

    def middle(self, name: str, clock: str) -> float | None:
        """Return the median of a contestant in seconds."""
        if name not in self.samples:
            return None
        return getattr(self.samples[name].middle, clock)

    def ratio(self, clock: str) -> float | None:
        """Return how many times longer the peer takes."""
        ours, peer = self.middle(OURS, clock), self.middle(PEER, clock)
        return peer / ours if ours and peer else None

    @property
    def reached(self) -> bool:
        """Whether the target is reached on the clock of the processors."""
        return (self.ratio("cpu") or 0) >= TARGET


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
    """Return the lines above the rows."""
    versions = ", ".join(
        f"{name} {version}" for name, version in facts["versions"].items()
    )
    cells = [name.ljust(-width) if width < 0 else name for name, width in COLUMNS]
    clocks = f"{'':25}{'CPU time per unit':^38}{'':3}{'wall time per unit':^38}"
    place = f"{facts['system']}, {facts['cores']} cores: {facts['processor']}"
    return "\n".join(
        (
            f"{versions} (raw is plain Python)",
            f"{facts['python']}, {place}; load {facts['load'][0]}",
            f"peer/ours: how many times longer the peer takes; *: {TARGET} or more",
            "",
            clocks.rstrip(),
            _line(cells),
        )
    )


def line(row: Row) -> str:
    """Return one row of the table."""
    cells = [row.workload.name, row.workload.unit]
    for clock in ("cpu", "wall"):
        cells += [duration(row.middle(name, clock)) for name in (OURS, PEER, RAW)]
        cells.append(times(row.ratio(clock)))
    cells[5] += "*" if row.reached else " "
    return _line(cells)


def foot(rows: Sequence[Row]) -> str:
    """Return the lines below the rows."""
    lines = []
    compared = [row for row in rows if row.ratio("cpu") is not None]
    if compared:
        reached = sum(row.reached for row in compared)
        lines.append(f"{TARGET}x reached: {reached} of {len(compared)}")
    for row in rows:
        if row.workload.saver in {"sqlite", "postgres"}:
            sizes = [
                f"{name} {each.stored / 1e6:,.2f} MB"
                for name, each in row.samples.items()
            ]
            lines.append(f"on disk after {row.workload.name}: {', '.join(sizes)}")
    return "\n".join(lines)


def document(facts: Mapping[str, Any], rows: Sequence[Row]) -> dict[str, Any]:
    """Return everything, times in seconds per unit."""
    return {
        "machine": dict(facts),
        "target": TARGET,
        "workloads": [_entry(row) for row in rows],
    }


def _entry(row: Row) -> dict[str, Any]:
    return {
        **asdict(row.workload),
        "ratio": {clock: row.ratio(clock) for clock in ("cpu", "wall")},
        "reached": row.reached,
        "contestants": {name: _summary(each) for name, each in row.samples.items()},
    }


def _summary(samples: Samples) -> dict[str, Any]:
    summary: dict[str, Any] = {"rounds": len(samples.times)}
    for clock in ("cpu", "wall"):
        times = [getattr(each, clock) for each in samples.times]
        middle = getattr(samples.middle, clock)
        summary[clock] = {"median": middle, "min": min(times), "max": max(times)}
    return {**summary, "stored_bytes": samples.stored}


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


def _line(cells: Sequence[str]) -> str:
    return " ".join(
        cell.ljust(abs(width)) if number < 2 else cell.rjust(width)
        for number, (cell, (_, width)) in enumerate(zip(cells, COLUMNS, strict=True))
    ).rstrip()
