"""The hot path takes no more instructions than its budget allows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bench.budget import ALLOWED, ROWS, exceeded, python, stored

ROOT = Path(__file__).resolve().parents[2]


def test_the_hot_path_stays_within_its_budget() -> None:
    """In an interpreter of its own: with langchain loaded, runs look for tracers."""
    assert {row.name for row in ROWS} == set(stored()[python()])
    search = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    done = subprocess.run(
        [sys.executable, "-m", "bench.budget"],
        env={**os.environ, "PYTHONPATH": search},
        capture_output=True,
        text=True,
    )
    assert 0 == done.returncode, (
        f"{done.stdout}{done.stderr}\n"
        "take it back, or say why it must be and run `make budget ARGS=--write`"
    )


def test_what_is_over_the_budget_is_named() -> None:
    budget = {"one": 100, "two": 100}
    assert [] == exceeded({"one": round(100 * ALLOWED), "two": 50}, budget)
    [line] = exceeded({"one": 100, "two": 111}, budget)
    assert line.startswith("two: 111")
