"""Checkpoint ids: unique, in order of time, valid UUIDs."""

from __future__ import annotations

import os
import threading
import time
import uuid

import pytest

from towpath.checkpoint.base.id import UUID, checkpoint_id, uuid6


def test_ids_of_one_process_are_strictly_increasing():
    made = [checkpoint_id() for _ in range(5000)]
    assert sorted(set(made)) == made


def test_ids_increase_though_the_clock_stands_still(monkeypatch):
    monkeypatch.setattr(time, "time_ns", lambda: 1_700_000_000_000_000_000)
    made = [checkpoint_id() for _ in range(100)]
    assert sorted(set(made)) == made


def test_ids_of_several_threads_are_unique():
    made: list[str] = []

    def work() -> None:
        made.extend([checkpoint_id() for _ in range(2000)])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 16_000 == len(set(made))


def test_an_id_is_a_uuid_of_version_6_that_holds_the_time():
    at = time.time()
    read = UUID(checkpoint_id())
    assert (6, uuid.RFC_4122) == (read.version, read.variant)
    assert abs(at - (read.time - 0x01B21DD213814000) / 1e7) < 5


def test_uuid6_is_ordered_with_the_ids():
    first, second, third = checkpoint_id(), str(uuid6()), checkpoint_id()
    assert first < second < third


def test_uuid6_takes_node_and_sequence():
    made = uuid6(node=0x123456789ABC, clock_seq=0x1FFF)
    assert (0x123456789ABC, 0x1FFF) == (made.node, made.clock_seq)
    assert (6, uuid.RFC_4122) == (made.version, made.variant)


def test_an_id_is_greater_than_one_of_a_clock_that_is_ahead():
    ahead = "2" + checkpoint_id()[1:]
    made = checkpoint_id(after=ahead)
    assert ahead < made
    assert 6 == UUID(made).version
    assert made != checkpoint_id(after=ahead), "two children are two checkpoints"


def test_one_id_of_the_far_future_does_not_drag_the_clock_along():
    checkpoint_id(after="f" + checkpoint_id()[1:])
    assert checkpoint_id() < "2"


@pytest.mark.parametrize(
    "after", ["not an id", "z", "ffffffff-ffff-6fff-bfff-ffffffffffff"]
)
def test_an_id_after_what_is_none_of_ours_is_still_made(after):
    assert 6 == UUID(checkpoint_id(after=after)).version


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_draws_another_tail():
    import multiprocessing

    context = multiprocessing.get_context("fork")
    with context.Pool(1) as pool:
        childs = pool.apply(checkpoint_id)
    assert childs[19:] != checkpoint_id()[19:]
