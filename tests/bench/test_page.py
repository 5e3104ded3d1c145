"""What was measured becomes a table, a drawing and a page, and says who wins."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.clock import Samples, Time
from bench.growth import AXES, Line, lines
from bench.page import page
from bench.plot import growth, ratios
from bench.workloads import WORKLOADS

from bench import report

FACTS = {
    "versions": {"towpath": "1", "langgraph": "1", "burr": "1", "raw": "3"},
    "python": "CPython",
    "system": "here",
    "processor": "one",
    "cores": 1,
    "load": [0.0],
}


def row(name: str, **microseconds: float) -> report.Row:
    workload = next(each for each in WORKLOADS if each.name == name)
    samples = {
        contestant: Samples([Time(spent / 1e6, spent / 1e6)], stored=1000)
        for contestant, spent in microseconds.items()
    }
    return report.Row(workload, samples)


def test_a_row_compares_with_the_peer_and_with_the_best_of_the_others() -> None:
    measured = row("loop", towpath=2, langgraph=200, burr=20, raw=0.1)
    told = report.Table(["towpath", "langgraph", "burr", "raw"]).line(measured).split()
    assert ["100x", "10.0x", "*"] == told[-3:]


def test_a_row_whose_goal_is_missed_is_marked() -> None:
    assert report.remark(row("loop", towpath=2, langgraph=90)) == "-"
    assert report.remark(row("loop", towpath=2, langgraph=200, burr=15)) == "-"
    assert report.remark(row("loop", towpath=2, raw=1)) == ""


def test_the_table_and_the_page_say_who_wins_and_why() -> None:
    lost = row("compile-100", towpath=10, langgraph=100, burr=5, raw=1)
    assert report.remark(lost).split() == ["burr", "wins"]
    told = page(report.document(FACTS, [lost]))
    assert "* **burr**: build and compile 100 nodes. burr checks names" in told


def test_plain_python_wins_no_row() -> None:
    assert row("loop", towpath=2, floor=1, raw=0.5).winner is None


def test_a_streamed_run_is_compared_with_a_plain_one() -> None:
    rows = [row("stream-invoke", towpath=10), row("stream-values", towpath=15)]
    assert {"stream-values": {"towpath": 1.5}} == report.streamed(rows)


def test_drawings_are_well_formed() -> None:
    rows = [row("loop", towpath=2, langgraph=200, burr=1), row("import", towpath=2)]
    for drawn in (
        ratios(report.document(FACTS, rows)),
        growth("<title>", "steps", {"none": [(1, 2.0), (10, 2.5)]}),
    ):
        assert ET.fromstring(drawn).tag.endswith("svg")


def test_the_slope_is_the_last_tenth_over_the_first() -> None:
    rising = Line("steps", "none", "steps", [(n, float(n)) for n in range(1, 21)])
    assert rising.slope == pytest.approx((19 + 20) / (1 + 2))
    assert "GROWS" in rising.told()


@pytest.mark.slow
@pytest.mark.parametrize("axis", AXES, ids=lambda axis: axis.name)
def test_every_axis_is_measured_along_its_way(axis) -> None:
    (line,) = lines(replace(axis, savers=axis.savers[:1], most=0), rounds=1)
    places = [place for place, _ in line.points]
    assert places == sorted(set(places))
    assert len(places) >= 20
    assert all(cost >= 0 for _, cost in line.points)
