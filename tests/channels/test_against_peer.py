"""Every channel does, write by write, what the peer's channel of that name does."""

from __future__ import annotations

import copy
import operator
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import towpath.channels as ours
import towpath.errors as our_errors
from towpath.constants import MISSING

theirs = pytest.importorskip("langgraph.channels")
their_errors = pytest.importorskip("langgraph.errors")
their_types = pytest.importorskip("langgraph.types")

pytestmark = pytest.mark.differential

EMPTY = theirs.LastValue(int).checkpoint()


def concat(state: Any, writes: list[Any]) -> list[Any]:
    return [*(state or []), *writes]


def either(left: Any, right: Any) -> Any:
    return left if left is not None else right


KINDS = {
    "last": lambda m: m.LastValue(int, "k"),
    "last after finish": lambda m: m.LastValueAfterFinish(int, "k"),
    "any": lambda m: m.AnyValue(int, "k"),
    "ephemeral": lambda m: m.EphemeralValue(int),
    "ephemeral, no guard": lambda m: m.EphemeralValue(int, False),
    "untracked": lambda m: m.UntrackedValue(int),
    "untracked, no guard": lambda m: m.UntrackedValue(int, False),
    "topic": lambda m: m.Topic(int),
    "barrier": lambda m: m.NamedBarrierValue(str, {"a", "b"}),
    "barrier after finish": lambda m: m.NamedBarrierValueAfterFinish(str, {"a", "b"}),
    "sum": lambda m: m.BinaryOperatorAggregate(int, operator.add),
    "list": lambda m: m.BinaryOperatorAggregate(list, operator.add),
    "first": lambda m: m.BinaryOperatorAggregate(int | None, either),
    "delta": lambda m: m.DeltaChannel(concat, list),
}


class Mark(NamedTuple):
    """An `Overwrite` before it is ours or theirs."""

    value: Any

    def of(self, module: Any) -> Any:
        return module.Overwrite(self.value)


small = st.one_of(st.none(), st.integers(0, 3))
WRITES: dict[str, st.SearchStrategy[Any]] = {
    "barrier": st.sampled_from(["a", "b"]),
    "barrier after finish": st.sampled_from(["a", "b"]),
    "topic": st.one_of(small, st.lists(small, max_size=2)),
    "sum": st.integers(0, 3) | st.integers(0, 3).map(Mark),
    "list": st.lists(small, max_size=2)
    | st.lists(small, max_size=2).map(Mark)
    | st.lists(small, max_size=2).map(lambda x: {"__overwrite__": x})
    | st.lists(small, max_size=2).map(lambda x: {"value": x, "type": "__overwrite__"}),
    "delta": small | st.lists(small, max_size=2).map(Mark),
}


@st.composite
def histories(draw: st.DrawFn) -> tuple[str, list[Any]]:
    kind = draw(st.sampled_from(sorted(KINDS)))
    write = WRITES.get(kind, small)
    event = st.one_of(
        st.lists(write, max_size=3),
        st.sampled_from(["consume", "finish", "copy"]),
        # Delta channels are stored in another way, so they are not restored here.
        st.just("copy" if kind == "delta" else "restore"),
    )
    return kind, draw(st.lists(event, max_size=8))


def stored(value: Any) -> Any:
    """Put both sentinels under one name."""
    return "EMPTY" if value is MISSING or value is EMPTY else value


def look(channel: Any, kind: str) -> Any:
    value = channel.get() if channel.is_available() else "NONE"
    kept = "-" if kind == "delta" else stored(channel.checkpoint())
    # The peer gives out its own containers, which the next write changes.
    return copy.deepcopy((value, kept))


def play(module: Any, marks: Any, errors: Any, kind: str, events: list[Any]) -> Any:
    channel, seen = KINDS[kind](module), []
    for event in events:
        result: Any = None
        if event == "copy":
            channel = channel.copy()
        elif event == "restore":
            channel = channel.from_checkpoint(channel.checkpoint())
        elif isinstance(event, str):
            result = getattr(channel, event)()
        else:
            writes = [w.of(marks) if isinstance(w, Mark) else w for w in event]
            try:
                result = channel.update(writes)
            except errors.InvalidUpdateError:
                # The peer may be left half updated; a failed step is dropped.
                seen.append("refused")
                break
        seen.append((event, result, look(channel, kind)))
    return seen


@settings(max_examples=300, deadline=None)
@given(histories())
def test_same_history_same_observations(history: tuple[str, list[Any]]) -> None:
    import towpath.types as our_types

    kind, events = history

    assert play(theirs, their_types, their_errors, kind, events) == play(
        ours, our_types, our_errors, kind, events
    )


def test_same_equality() -> None:
    def table(module: Any) -> list[list[bool]]:
        several = [make(module) for make in KINDS.values()]
        several += [
            module.LastValue(str),
            module.Topic(str),
            module.Topic(int, True),
            module.NamedBarrierValue(str, {"a"}),
            module.BinaryOperatorAggregate(int, operator.mul),
            module.BinaryOperatorAggregate(int, lambda a, b: a),
            module.BinaryOperatorAggregate(str, lambda a, b: b),
            module.BinaryOperatorAggregate(str, either),
            module.DeltaChannel(concat, dict),
            module.DeltaChannel(lambda a, b: a),
            module.DeltaChannel(either),
            module.DeltaChannel(concat, list, snapshot_frequency=5),
        ]
        return [[one == other for other in several] for one in several]

    assert table(theirs) == table(ours)


TYPES = [
    *(int, str, list, dict, set, tuple, bool, float, frozenset, bytes, complex),
    *(list[int], tuple[int, str], int | None, int | str, Any, None, type(None), "list"),
]


@pytest.mark.parametrize("typ", TYPES, ids=repr)
def test_same_start_value(typ: Any) -> None:
    def start(module: Any) -> Any:
        channel = module.BinaryOperatorAggregate(typ, operator.add)
        return look(channel, "sum")

    assert start(theirs) == start(ours)


def test_replayed_deltas_give_the_same_value() -> None:
    def value(module: Any, marks: Any) -> Any:
        empty = EMPTY if module is theirs else MISSING
        channel = module.DeltaChannel(concat, list).from_checkpoint(empty)
        o = marks.Overwrite
        writes = [1, o([5]), 2, {"__overwrite__": [6]}, 3, [4]]
        channel.replay_writes([("task", "k", w) for w in writes])
        return channel.get()

    import towpath.types as our_types

    assert value(theirs, their_types) == value(ours, our_types) == [6, 3, [4]]
