"""A task or step whose result somebody had does not run again, whatever happens."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import workflow

pytestmark = pytest.mark.slow


def repeated(lines: list[str]) -> Iterator[str]:
    """What began although its result had been seen."""
    seen = set()
    for line in lines:
        what, name, *_ = line.split()
        if what == "has":
            seen.add(name)
        elif name in seen:
            yield name


@pytest.mark.parametrize("colour", ["sync", "loop"])
def test_result_that_was_had_survives_a_kill(tmp_path: Path, colour: str) -> None:
    subprocess.run(
        [sys.executable, workflow.__file__, str(tmp_path), colour],
        check=True,
        env={"PYTHONPATH": "src"},
    )
    logs = sorted(tmp_path.glob("dies-*.log"))

    assert 12 == len(logs)
    for log in logs:
        lines = log.read_text().splitlines()
        begun = {tuple(line.split()[1:]) for line in lines if line.startswith("begin")}
        assert [] == list(repeated(lines))
        assert len(dict(begun)) == len(begun)  # what is repeated keeps its key
        values = log.with_suffix(".json").read_text()
        assert (tmp_path / "whole.json").read_text() == values
