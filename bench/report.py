"""Results as a table, and as JSON."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.adapters import Adapter
from bench.measure import Result

WIDTH = 14


def versions(adapters: Sequence[Adapter]) -> str:
    """What was measured, and on what."""
    machine = f"{platform.machine()}, {os.cpu_count()} CPUs"
    told = [f"python {platform.python_version()}, {sys.platform} {machine}"]
    told += [f"{each.name} {each.version}" for each in adapters if each.name != "raw"]
    return "\n".join(told)


def header(names: Sequence[str], against: str) -> str:
    columns = [f"{name:>{WIDTH}}" for name in names]
    ratios = [
        f"{f'{against}/{name}':>{WIDTH + 6}}" for name in names if name != against
    ]
    return f"{'workload':<26}{'':<7}{'per':<7}{''.join(columns)}{''.join(ratios)}"


def row(result: Result, names: Sequence[str], against: str) -> str:
    """Median times of each, and how `against` compares."""
    columns = [f"{duration(result.median(name)):>{WIDTH}}" for name in names]
    ratios = [
        f"{times(result.ratio(against, name)):>{WIDTH + 6}}"
        for name in names
        if name != against
    ]
    work = result.workload
    line = f"{work.name:<26}{result.colour:<7}{work.unit:<7}{''.join(columns)}"
    told = [f"{name} {', '.join(facts_of(result, name))}" for name in result.facts]
    return line + "".join(ratios) + ("\n    " + "; ".join(told) if told else "")


def facts_of(result: Result, name: str) -> list[str]:
    """What an adapter told besides its time, in words."""
    facts, told = result.facts[name], []
    if "bytes" in facts:
        told.append(f"{facts['bytes']:,} bytes")
    if "growth" in facts:
        told.append(f"last tenth {facts['growth']:.1f}x the first")
    return told


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    if seconds < 1e-3:
        return f"{seconds * 1e6:,.2f} us"
    return f"{seconds * 1e3:,.2f} ms"


def times(ratio: float | None) -> str:
    if ratio is None:
        return "-"
    return f"1/{1 / ratio:,.1f}" if ratio < 1 else f"{ratio:,.1f}"


def save(path: Path, adapters: Sequence[Adapter], results: Sequence[Result]) -> None:
    """Write everything that was measured, round by round."""
    told: dict[str, Any] = {
        "python": platform.python_version(),
        "machine": platform.platform(),
        "versions": {each.name: each.version for each in adapters},
        "results": [
            {
                "workload": result.workload.name,
                "colour": result.colour,
                "unit": result.workload.unit,
                "seconds": result.seconds,
                "facts": result.facts,
            }
            for result in results
        ],
    }
    path.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
