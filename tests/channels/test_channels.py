"""What the channels promise beyond what the peer's do."""

from __future__ import annotations

import collections.abc
import copy
import operator
import pickle
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple, NotRequired, Required

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towpath.channels import (
    AnyValue,
    BaseChannel,
    BinaryOperatorAggregate,
    DeltaChannel,
    EphemeralValue,
    LastValue,
    LastValueAfterFinish,
    NamedBarrierValue,
    NamedBarrierValueAfterFinish,
    Topic,
    UntrackedValue,
)
from towpath.constants import MISSING
from towpath.errors import (
    ConcurrentUpdateError,
    EmptyChannelError,
    InvalidGraphError,
    InvalidUpdateError,
)
from towpath.types import Overwrite

Make = Callable[[], BaseChannel[Any, Any, Any]]


def concat(state: Any, writes: Any) -> Any:
    return [*state, *writes]


EVERY: dict[str, Make] = {
    "last": lambda: LastValue(int),
    "last after finish": lambda: LastValueAfterFinish(int),
    "any": lambda: AnyValue(int),
    "ephemeral": lambda: EphemeralValue(int),
    "untracked": lambda: UntrackedValue(int),
    "topic": lambda: Topic(int),
    "accumulating topic": lambda: Topic(int, True),
    "sum": lambda: BinaryOperatorAggregate(int, operator.add),
    "optional": lambda: BinaryOperatorAggregate(int | None, max),
    "delta": lambda: DeltaChannel(concat),
    "barrier": lambda: NamedBarrierValue(int, {1, 2}),
    "barrier after finish": lambda: NamedBarrierValueAfterFinish(int, {1, 2}),
}
every = pytest.mark.parametrize("make", EVERY.values(), ids=EVERY.keys())


class Chair:
    def __init__(self, legs: int) -> None:
        self.legs = legs


# -- the contract --------------------------------------------------------------


@every
def test_empty_channel_raises_a_coded_error(make: Make) -> None:
    channel = make()
    if not channel.is_available():
        with pytest.raises(EmptyChannelError) as caught:
            channel.get()
        assert "TP-204" == caught.value.code


@every
def test_channel_that_does_not_tick_is_unchanged_by_a_step_without_writes(
    make: Make,
) -> None:
    channel = make()
    channel.update([1])
    channel.finish()
    before = channel.checkpoint()

    assert channel.ticks or channel.update([]) is False
    assert channel.ticks or before == channel.checkpoint()


@every
def test_single_says_whether_a_second_write_is_refused(make: Make) -> None:
    try:
        make().update([1, 2])
        refused = False
    except ConcurrentUpdateError:
        refused = True

    assert make().single is refused


@every
def test_copy_is_independent(make: Make) -> None:
    channel = make()
    channel.update([1])
    twin = channel.copy()
    before = twin.checkpoint()

    channel.update([2])
    channel.finish()
    channel.consume()

    assert before == twin.checkpoint()
    assert channel.key == twin.key


@every
def test_checkpoint_is_not_changed_by_later_writes(make: Make) -> None:
    channel = make()
    channel.update([1])
    kept = channel.checkpoint()
    frozen = copy.deepcopy(kept)

    channel.update([2])

    assert frozen == kept


@every
def test_restored_channel_goes_on_as_the_stored_one(make: Make) -> None:
    channel = make()
    channel.update([1])
    restored = make().from_checkpoint(channel.checkpoint())
    if isinstance(channel, UntrackedValue):
        assert not restored.is_available()
        return

    channel.update([2])
    restored.update([2])

    assert channel.checkpoint() == restored.checkpoint()
    assert channel.is_available() == restored.is_available()


@every
def test_fresh_channel_is_made_of_missing(make: Make) -> None:
    used = make()
    used.update([1])

    fresh = used.from_checkpoint(MISSING)

    assert make().from_checkpoint(MISSING).checkpoint() == fresh.checkpoint()


@every
def test_channels_are_compared_by_kind_and_not_hashed(make: Make) -> None:
    used = make()
    used.update([1])

    assert make() == used
    assert used != 5
    with pytest.raises(TypeError):
        hash(used)


@every
def test_key_survives(make: Make) -> None:
    channel = make()
    channel.key = "mine"

    assert "mine" == channel.copy().key
    assert "mine" == channel.from_checkpoint(channel.checkpoint()).key


@every
def test_types_are_told(make: Make) -> None:
    assert make().ValueType is not None
    assert make().UpdateType is not None


def test_none_is_a_value() -> None:
    channel = LastValue(int)
    channel.update([None])

    assert channel.is_available()
    assert channel.get() is None
    assert LastValue(int).from_checkpoint(None).is_available()


def test_concurrent_writes_name_the_channel_and_the_way_out() -> None:
    channel = LastValue(int, "text")

    with pytest.raises(ConcurrentUpdateError) as caught:
        channel.update(["a", "b"])

    error = caught.value
    assert ("TP-203", "text") == (error.code, error.channel)
    assert "INVALID_CONCURRENT_GRAPH_UPDATE" in str(error)
    assert "reducer" in str(error)
    blamed = error.blame(["draft", "review"])
    assert "Written by `draft`, `review`." in str(blamed)
    assert ("draft", "review") == blamed.tasks


def test_guard_names_the_way_out() -> None:
    with pytest.raises(ConcurrentUpdateError, match="guard=False"):
        EphemeralValue(int).update([1, 2])


def test_user_channel_needs_only_the_abstract_methods() -> None:
    class Largest(BaseChannel[int, int, int]):
        ValueType = UpdateType = int

        def __init__(self, typ: Any, key: str = "") -> None:
            super().__init__(typ, key)
            self.top = MISSING

        def update(self, values: Any) -> bool:
            self.top = max(values, default=self.top)
            return bool(values)

        def get(self) -> int:
            if self.top is MISSING:
                raise EmptyChannelError
            return self.top

        def from_checkpoint(self, checkpoint: Any) -> Largest:
            twin = Largest(self.typ, self.key)
            twin.top = checkpoint
            return twin

    channel = Largest(int)
    assert (False, MISSING) == (channel.is_available(), channel.checkpoint())
    channel.update([2, 5, 3])
    assert (5, 5, True) == (channel.get(), channel.copy().get(), channel.ticks)
    assert (False, False, False) == (
        channel.consume(),
        channel.finish(),
        channel.single,
    )


# -- reducers -----------------------------------------------------------------

STARTS: list[tuple[Any, Any]] = [
    (collections.abc.Sequence, []),
    (collections.abc.MutableSequence[int], []),
    (collections.abc.Set, set()),
    (collections.abc.Mapping[str, int], {}),
    (Annotated[list, "doc"], []),
    (Required[list], []),
    (NotRequired[Annotated[dict, "doc"]], {}),
    (Annotated[NotRequired[set], "doc"], set()),
    (collections.abc.Iterable, MISSING),
    (list | None, MISSING),
    (Chair, MISSING),
]


@pytest.mark.parametrize(("typ", "expected"), STARTS, ids=repr)
def test_reducer_starts_from_the_empty_value(typ: Any, expected: Any) -> None:
    assert expected == BinaryOperatorAggregate(typ, operator.add).checkpoint()


def test_first_write_is_taken_as_it_is_when_there_is_no_empty_value() -> None:
    calls = []
    channel = BinaryOperatorAggregate(Chair, lambda a, b: calls.append((a, b)) or b)

    channel.update(["first"])

    assert ([], "first") == (calls, channel.get())


def test_first_overwrite_is_unwrapped_when_there_is_no_empty_value() -> None:
    channel = BinaryOperatorAggregate(Chair, operator.add)

    channel.update([Overwrite(5)])

    assert 5 == channel.get()


def test_reducer_starts_from_the_given_value() -> None:
    channel = BinaryOperatorAggregate(list, operator.add, start=lambda: [5])
    channel.update([[1]])

    assert [5, 1] == channel.get()
    assert [5] == channel.from_checkpoint(MISSING).get()


@pytest.mark.parametrize(
    "mark",
    [
        Overwrite([9]),
        {"__overwrite__": [9]},
        {"value": [9], "type": "__overwrite__"},
    ],
    ids=["object", "key", "json"],
)
@pytest.mark.parametrize(
    "make",
    [
        lambda: BinaryOperatorAggregate(list, operator.add),
        lambda: DeltaChannel(lambda a, ws: [*a, *(x for w in ws for x in w)]),
    ],
    ids=["reducer", "delta"],
)
def test_overwrite_replaces_the_value_and_drops_the_rest(make: Make, mark: Any) -> None:
    channel = make()
    channel.update([[0]])

    assert channel.update([[1], mark, [2]])
    assert [9] == channel.get()
    with pytest.raises(ConcurrentUpdateError, match="only one Overwrite"):
        channel.update([mark, mark])


def test_dict_that_only_looks_like_an_overwrite_is_folded() -> None:
    channel = BinaryOperatorAggregate(dict, operator.or_)
    channel.update([{"__overwrite__": 1, "x": 2}, {"type": "other", "value": 3}])

    assert {
        "__overwrite__": 1,
        "x": 2,
        "type": "other",
        "value": 3,
    } == channel.get()


def test_delta_takes_a_step_in_one_call() -> None:
    calls: list[Any] = []
    channel = DeltaChannel(lambda state, writes: [*state, calls.append(writes)])

    channel.update([1, 2])

    assert [[1, 2]] == calls


@given(st.lists(st.lists(st.integers(), max_size=3), max_size=6))
def test_delta_equals_a_plain_reducer(steps: list[list[int]]) -> None:
    delta = DeltaChannel(concat).from_checkpoint(MISSING)
    plain = BinaryOperatorAggregate(list, operator.add)

    for step in steps:
        assert delta.update(step) == plain.update([[write] for write in step])
        assert delta.get() == plain.get()
        assert delta.checkpoint() == plain.checkpoint()


def test_delta_restores_the_peers_snapshots() -> None:
    class Snapshot(NamedTuple):
        value: Any

    restored = DeltaChannel(concat).from_checkpoint(Snapshot([1]))

    assert [1] == restored.get()


def test_delta_without_an_empty_value_says_so() -> None:
    with pytest.raises(InvalidUpdateError, match="no empty value"):
        DeltaChannel(concat, list | None).update([1])
    with pytest.raises(InvalidGraphError, match="snapshot_frequency"):
        DeltaChannel(concat, snapshot_frequency=0)


def test_none_in_place_of_a_delta_empties_it() -> None:
    channel = DeltaChannel(concat)
    channel.update([Overwrite(None)])

    assert [] == channel.get()


# -- topics and barriers -------------------------------------------------------


def test_accumulating_topic_keeps_all_steps() -> None:
    topic = Topic(int, True)
    steps = [topic.update([1, [2, 3]]), topic.update([]), topic.update([4])]

    assert ([True, False, True], [1, 2, 3, 4]) == (steps, topic.get())


def test_clearing_a_topic_is_a_change() -> None:
    topic = Topic(int)
    topic.update([1])

    assert [True, False] == [topic.update([]), topic.update([])]


def test_topic_restores_the_old_pair() -> None:
    assert [2] == Topic(int).from_checkpoint(({1}, [2])).get()


def test_barrier_refuses_a_name_it_does_not_wait_for() -> None:
    with pytest.raises(InvalidUpdateError, match="Value c not in"):
        NamedBarrierValue(str, {"a"}).update(["c"])


def test_deferred_barrier_opens_only_after_the_rest() -> None:
    barrier = NamedBarrierValueAfterFinish(str, {"a", "b"})
    barrier.update(["a", "b"])
    shut = barrier.is_available()

    assert (False, True, True) == (shut, barrier.finish(), barrier.is_available())
    assert (True, False) == (barrier.consume(), barrier.is_available())


def test_missing_is_one_object_everywhere() -> None:
    assert MISSING is copy.deepcopy(MISSING) is copy.copy(MISSING)
    assert MISSING is pickle.loads(pickle.dumps(MISSING))
    assert "MISSING" == repr(MISSING)


def test_a_copy_has_a_container_of_its_own() -> None:
    def extend(left: list[str], right: list[str]) -> list[str]:
        left.extend(right)
        return left

    channel = BinaryOperatorAggregate(list, extend).from_checkpoint(["a"])
    channel.copy().update([["b"]])
    assert ["a"] == channel.get()


def test_a_fold_does_not_change_a_list_that_somebody_holds() -> None:
    channel = BinaryOperatorAggregate(list, operator.add)
    channel.update([[1]])
    held = channel.get()

    channel.update([[2], [3]])

    assert ([1], [1, 2, 3]) == (held, channel.get())


def test_a_list_that_nobody_else_holds_grows_in_place() -> None:
    """A chat's history is not copied for every message."""
    channel = BinaryOperatorAggregate(list, operator.add)
    channel.update([[1]])
    before = id(channel.get())

    channel.update([[2]])

    assert before == id(channel.get())
