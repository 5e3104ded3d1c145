"""How many bytecode instructions the hot path takes, against a stored budget.

    make budget                           # compare; fails at 10 % more than the budget
    python -m bench.budget --write        # store what is counted now

Instructions that the interpreter executes do not depend on the machine or on
what else runs there, so a test can hold them to a bound where a clock could
not. They depend on the version of Python: each has a budget of its own. What C
code does in one instruction is not seen; `make bench` measures that.

A row is counted in two sizes, and the difference is divided by the difference
of the sizes, so that what a run costs to begin and to end is not in it; that is
in the row of a run of one node.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType
from typing import Any, Final

from bench.adapters.base import Job
from bench.adapters.libraries import Towpath
from bench.workloads import WORKLOADS, Workload

BUDGETS: Final = Path(__file__).with_name("budget.json")
ALLOWED: Final = 1.10
"""A row may take this many times its budget before it fails."""


@dataclass(frozen=True)
class Row:
    """What one unit of a kind of work costs."""

    name: str
    workload: str
    """The workload of the benchmark that is run, in two sizes."""
    sizes: tuple[int, int]
    per_size: int = 1
    """How many units one of the size has."""


ROWS: Final = (
    Row("superstep", "chain-100", (10, 60)),
    Row("superstep, async", "chain-100-async", (10, 60)),
    Row("run of one node", "chain-100", (0, 1)),
    # Only the async fan-out: the blocking one runs in other threads.
    Row("task of a fan-out, async", "fan-100-async", (10, 60)),
    Row("turn of a chat", "chat-50-none", (10, 60)),
    Row("turn of a chat, memory", "chat-50-memory", (10, 60)),
    Row("turn of a chat, SQLite", "chat-50-sqlite", (10, 60)),
    Row("level of subgraphs", "nested-1", (1, 3), per_size=100),
    Row("node to compile", "compile-100", (10, 60)),
)


class Counter:
    """Counts the instructions of Python code that this thread executes."""

    def __init__(self) -> None:
        self.count = 0
        self._thread = threading.get_ident()

    def enter(self, frame: FrameType, event: str, arg: object) -> Any:
        """Have `step` called for each instruction of a frame."""
        frame.f_trace_lines = False
        frame.f_trace_opcodes = True
        return self.step

    def step(self, frame: FrameType, event: str, arg: object) -> Any:
        self.count += event == "opcode"
        return self.step

    def executed(self, code: CodeType, offset: int) -> None:
        self.count += threading.get_ident() == self._thread


@contextmanager
def counting() -> Iterator[Counter]:
    """Count what this thread executes."""
    counter = Counter()
    if sys.version_info >= (3, 12):
        tool, event = sys.monitoring.PROFILER_ID, sys.monitoring.events.INSTRUCTION
        sys.monitoring.use_tool_id(tool, "budget")
        sys.monitoring.register_callback(tool, event, counter.executed)
        sys.monitoring.set_events(tool, event)
        try:
            yield counter
        finally:
            sys.monitoring.set_events(tool, 0)
            sys.monitoring.free_tool_id(tool)
        return
    before = sys.gettrace()
    sys.settrace(counter.enter)
    try:
        yield counter
    finally:
        sys.settrace(before)


def count(row: Row) -> int:
    """Return the instructions of one unit, rounded."""
    small, large = row.sizes
    workload = next(each for each in WORKLOADS if each.name == row.workload)
    more = _spent(replace(workload, size=large))
    less = _spent(replace(workload, size=small)) if small else 0
    return round((more - less) / ((large - small) * row.per_size))


def _spent(workload: Workload) -> int:
    with TemporaryDirectory() as folder:
        job = Towpath().prepare(workload, Path(folder))
        assert job is not None
        with closing(job):
            _run(job)  # what is made once per process or graph is made now
            with counting() as counter:
                _run(job)
            return counter.count


def _run(job: Job) -> None:
    outcome = job.run()
    if asyncio.iscoroutine(outcome):
        asyncio.run(outcome)


def python() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def stored() -> dict[str, dict[str, int]]:
    """Return the budgets: row by row for each version of Python."""
    if not BUDGETS.exists():
        return {}
    budgets: dict[str, dict[str, int]] = json.loads(BUDGETS.read_text())
    return budgets


def exceeded(counted: dict[str, int], budget: dict[str, int]) -> list[str]:
    """Return a line for each row that takes more than it is allowed."""
    return [
        f"{name}: {number} instructions, budget {budget[name]}"
        for name, number in counted.items()
        if number > budget[name] * ALLOWED
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Count every row, print it beside its budget, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.budget", description=__doc__)
    parser.add_argument("--write", action="store_true", help="store what is counted")
    options = parser.parse_args(arguments)
    counted = {row.name: count(row) for row in ROWS}
    budgets = stored()
    budget = budgets.get(python(), {})
    for name, number in counted.items():
        print(f"{name:28} {number:7}   budget {budget.get(name, '-'):>7}")
    if options.write:
        budgets[python()] = counted
        BUDGETS.write_text(json.dumps(dict(sorted(budgets.items())), indent=2) + "\n")
        return 0
    over = exceeded(counted, budget)
    print("\n".join(["", *over]) if over else "within the budget")
    return 1 if over else 0


if __name__ == "__main__":
    raise SystemExit(main())
