"""The benchmark runs, compares what it measures, and writes what it prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    search = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    return subprocess.run(
        [sys.executable, "-m", "bench", *arguments],
        env={**os.environ, "PYTHONPATH": search},
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.differential
def test_a_quick_run_compares_all_contestants(tmp_path):
    pytest.importorskip("langgraph")
    file = tmp_path / "figures.json"

    done = bench("--quick", "--only", "chain-10", "--json", str(file))

    assert 0 == done.returncode, done.stderr
    assert "chain-10 " in done.stdout
    (entry,) = json.loads(file.read_text())["workloads"]
    assert {"towpath", "langgraph", "floor", "raw"} <= set(entry["contestants"])
    assert entry["ratio"]["cpu"]["langgraph"] > 0


@pytest.mark.slow
def test_an_unknown_workload_is_answered_with_the_known_ones():
    done = bench("--only", "chian-10")
    assert 2 == done.returncode
    assert "chain-10" in done.stderr
