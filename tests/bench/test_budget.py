"""The hot path takes no more instructions than its budget allows."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.budget import ALLOWED, ROWS, Row, count, exceeded, python, stored


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_hot_path_stays_within_its_budget(row: Row) -> None:
    budget = stored()[python()]
    assert [] == exceeded({row.name: count(row)}, budget), (
        "take it back, or say why it must be and run `make budget ARGS=--write`"
    )


def test_what_is_over_the_budget_is_named() -> None:
    budget = {"one": 100, "two": 100}
    assert [] == exceeded({"one": round(100 * ALLOWED), "two": 50}, budget)
    [line] = exceeded({"one": 100, "two": 111}, budget)
    assert line.startswith("two: 111")
