"""Laws of savers: on any history they equal one that copies everything."""

from __future__ import annotations

import copy
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towpath.checkpoint.base import empty_checkpoint
from towpath.checkpoint.memory import InMemorySaver
from towpath.checkpoint.sqlite import SqliteSaver
from towpath.testing.conformance_saver import at, id_of

CHANNELS = ["a", "b", "messages", "it's"]
scalars = st.none() | st.integers() | st.text(max_size=5) | st.tuples(st.integers())
values = (
    scalars
    | st.lists(scalars, max_size=4)
    | st.dictionaries(st.text(max_size=3), scalars)
)
changes = st.dictionaries(st.sampled_from(CHANNELS), values, max_size=3)
steps = st.lists(
    st.tuples(
        st.integers(0, 30),  # which checkpoint it is put on
        changes,
        st.sets(st.sampled_from(CHANNELS), max_size=1),  # channels that become empty
        st.booleans(),  # whether `new_versions` is right, or empty
        st.lists(st.tuples(st.sampled_from(["x", "y"]), scalars), max_size=2),
    ),
    max_size=12,
)


class Naive:
    """Keeps a whole copy of every checkpoint."""

    def __init__(self) -> None:
        self.values: dict[str, dict[str, Any]] = {}
        self.versions: dict[str, dict[str, int]] = {}
        self.parents: dict[str, str | None] = {}
        self.writes: dict[str, list[tuple[str, str, Any]]] = {}


def embedded(stack):
    return [InMemorySaver(), stack.enter_context(SqliteSaver(":memory:"))]


@settings(max_examples=60, deadline=None)
@given(steps)
def test_any_history_reads_as_if_everything_had_been_copied(history):
    check(history, embedded)


@pytest.mark.slow
def test_so_it_does_in_postgres(postgres):
    from towpath.checkpoint.postgres import PostgresSaver

    with PostgresSaver(postgres) as saver:

        def emptied(stack):
            stack.callback(saver.delete_thread, "t")
            return [saver]

        @settings(max_examples=15, deadline=None)
        @given(steps)
        def law(history):
            check(history, emptied)

        law()


def check(history, open_savers):
    with ExitStack() as stack:
        savers = open_savers(stack)
        naive, order, counter = Naive(), [], 0
        for on, changed, emptied, honest, written in history:
            parent = order[on % len(order)] if order else None
            held = {**naive.values.get(parent, {}), **changed}
            counter += 1
            new = dict.fromkeys([*changed, *emptied], counter)
            checkpoint = empty_checkpoint()
            made = checkpoint["id"]
            checkpoint["channel_values"] = {
                k: v for k, v in held.items() if k not in emptied
            }
            checkpoint["channel_versions"] = {**naive.versions.get(parent, {}), **new}
            for saver in savers:
                saver.put(
                    at(id=parent), checkpoint, {"step": counter}, new if honest else {}
                )
                saver.put_writes(at(id=made), written, "task")
            order.append(made)
            naive.values[made] = copy.deepcopy(checkpoint["channel_values"])
            naive.versions[made] = checkpoint["channel_versions"]
            naive.parents[made] = parent
            naive.writes[made] = [
                ("task", channel, value) for channel, value in written
            ]
        for saver in savers:
            found = list(saver.list(at()))
            assert order[::-1] == [id_of(item.config) for item in found]
            for item in (*found, *(saver.get_tuple(at(id=made)) for made in order)):
                made = id_of(item.config)
                assert naive.values[made] == item.checkpoint["channel_values"]
                assert naive.versions[made] == item.checkpoint["channel_versions"]
                assert naive.writes[made] == item.pending_writes
                parent = item.parent_config and id_of(item.parent_config)
                assert naive.parents[made] == parent
