"""Every contestant does the same work: results are compared with what is expected."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.adapters import OURS, present
from bench.clock import Effort, measure
from bench.workloads import WORKLOADS, Workload

ONCE = Effort(sample_s=0, budget_s=0, rounds_min=1, rounds_max=1)
SMALL = {
    "chain-10",
    "chain-10-async",
    "fan-10-async",
    "wide-100",
    "state-pydantic",
    "chat-50-sqlite",
    "chat-50-none-async",
    "chat-50-sqlite-async",
    "ask-memory",
    "ask-sqlite",
    "snapshot-1-memory",
    "nested-1",
    "stream-custom",
    "stream-messages",
    "stream-checkpoints-memory",
    "tokens",
    "compile-10",
}
CHOSEN = [each for each in WORKLOADS if each.name in SMALL]


@pytest.fixture(autouse=True, scope="module")
def quick_collections() -> Iterator[None]:
    """Leave what the contestants import out of the collections between samples."""
    present()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.differential
@pytest.mark.parametrize("workload", CHOSEN, ids=lambda workload: workload.name)
def test_who_takes_part_gets_the_expected_result(workload: Workload) -> None:
    samples = measure(workload, present(), ONCE)
    assert OURS in samples
    assert all(each.times for each in samples.values())


@pytest.mark.differential
def test_a_conversation_of_a_crowd_is_weighed() -> None:
    crowd = next(each for each in WORKLOADS if each.name == "crowd-memory")
    few = replace(crowd, size=5, units=5, expected=5)
    samples = measure(few, present(), ONCE)
    assert 0 < samples["raw"].held < samples[OURS].held


def test_who_does_less_is_told() -> None:
    chain = next(each for each in WORKLOADS if each.name == "chain-10")
    with pytest.raises(RuntimeError, match="towpath returns 10 for chain-10, not 11"):
        measure(replace(chain, expected=11), present(), ONCE)


def test_names_of_workloads_are_unique() -> None:
    names = [each.name for each in WORKLOADS]
    assert len(set(names)) == len(names)
