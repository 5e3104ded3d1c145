"""State classes become channels."""

from __future__ import annotations

import dataclasses
import functools
import operator
import typing
from typing import Annotated, Any, Generic, NamedTuple, NotRequired, TypedDict, TypeVar

import pytest
import typing_extensions
from pydantic import BaseModel, Field

from towpath.channels import (
    BinaryOperatorAggregate,
    DeltaChannel,
    EphemeralValue,
    LastValue,
    Topic,
    UntrackedValue,
)
from towpath.constants import MISSING
from towpath.errors import (
    ChannelConflictError,
    InvalidGraphError,
    InvalidReducerError,
)
from towpath.managed import IsLastStep, RemainingSteps
from towpath.managed.is_last_step import IsLastStepManager, RemainingStepsManager
from towpath.schema import class_channels, merge_channels

T = TypeVar("T")


def add(a: Any, b: Any) -> Any:
    return a + b


def kinds(schema: Any) -> dict[str, str]:
    channels = class_channels(schema).channels
    return {key: type(channel).__name__ for key, channel in channels.items()}


class Adder:
    def __call__(self, a: Any, b: Any) -> Any:
        return a + b


class Doubled(LastValue[int]):
    def update(self, values: Any) -> bool:
        return super().update([value * 2 for value in values])


class Everything(TypedDict, total=False):
    plain: int
    doc: Annotated[int, "doc"]
    reduced: Annotated[list, operator.add]
    reduced_doc: Annotated[list, "doc", operator.add]
    reducer_not_last: Annotated[list, operator.add, "doc"]
    optional: NotRequired[Annotated[list, operator.add]]
    optional_inside: Annotated[NotRequired[list], operator.add]
    read_only: typing_extensions.ReadOnly[Annotated[list, operator.add]]
    called: Annotated[list, Adder()]
    builtin: Annotated[int, max]
    partial: Annotated[list, functools.partial(add)]
    topic: Annotated[list, Topic]
    cell: Annotated[int, EphemeralValue(int)]
    both: Annotated[list, operator.add, Topic(int)]
    delta: Annotated[dict, DeltaChannel(add)]
    mine: Annotated[int, Doubled]
    hidden: Annotated[int, UntrackedValue]
    last: IsLastStep
    left: NotRequired[RemainingSteps]


REDUCER = "BinaryOperatorAggregate"


def test_a_field_is_what_its_annotation_says() -> None:
    assert {
        "plain": "LastValue",
        "doc": "LastValue",
        "reduced": REDUCER,
        "reduced_doc": REDUCER,
        "reducer_not_last": "LastValue",
        "optional": REDUCER,
        "optional_inside": REDUCER,
        "read_only": REDUCER,
        "called": REDUCER,
        "builtin": REDUCER,
        "partial": REDUCER,
        "topic": "Topic",
        "cell": "EphemeralValue",
        "both": "Topic",
        "delta": "DeltaChannel",
        "mine": "Doubled",
        "hidden": "UntrackedValue",
    } == kinds(Everything)


def test_managed_values_are_apart() -> None:
    fields = class_channels(Everything)

    expected = {"last": IsLastStepManager, "left": RemainingStepsManager}
    assert expected == fields.managed
    assert list(Everything.__annotations__) == list(fields.hints)


def test_channels_know_their_key_and_type() -> None:
    channels = class_channels(Everything).channels

    assert all(key == channel.key for key, channel in channels.items())
    assert (list, dict, int) == (
        channels["topic"].typ,
        channels["delta"].typ,
        channels["mine"].typ,
    )


def test_channel_of_an_annotation_is_not_shared() -> None:
    shared = EphemeralValue(int)

    class One(TypedDict):
        a: Annotated[int, shared]
        b: Annotated[int, shared]

    One.__annotations__ = dict.fromkeys("ab", Annotated[int, shared])
    channels = class_channels(One).channels

    assert channels["a"] is not channels["b"]
    assert "" == shared.key


@dataclasses.dataclass
class Data:
    a: int
    b: Annotated[int, operator.add] = 5
    c: Annotated[list, operator.add] = dataclasses.field(default_factory=lambda: [1])
    shared: typing.ClassVar[int] = 3


class Model(BaseModel):
    a: int
    b: Annotated[int, operator.add] = 5
    c: Annotated[list, operator.add, Field(description="x")] = Field(
        default_factory=lambda: [1]
    )
    d: Annotated[list, Field(description="x"), operator.add] = []
    e: Annotated[int, Field(gt=1)] = 3
    last: IsLastStep = False
    shared: typing.ClassVar[int] = 3
    _private: int = 4


class Plain:
    a: int
    b: Annotated[list, operator.add]


class Pair(NamedTuple):
    a: int


class Nothing(TypedDict):
    pass


def test_dataclass_fields_are_found() -> None:
    assert {"a": "LastValue", "b": REDUCER, "c": REDUCER} == kinds(Data)


def test_reducers_of_model_fields_are_found_beside_constraints() -> None:
    reduced = {"b": REDUCER, "c": REDUCER, "d": REDUCER}

    assert {"a": "LastValue", **reduced, "e": "LastValue"} == kinds(Model)
    assert ["last"] == list(class_channels(Model).managed)


def test_other_classes_declare_what_they_annotate() -> None:
    assert {"a": "LastValue", "b": REDUCER} == kinds(Plain)
    assert {"a": "LastValue"} == kinds(Pair)
    assert {} == kinds(Nothing)


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        *((typ, "LastValue") for typ in (list, int, str, dict, list[int], Any)),
        (int | None, "LastValue"),
        (Annotated[list, operator.add], REDUCER),
        (Annotated[list, Topic], "Topic"),
    ],
    ids=repr,
)
def test_a_plain_type_is_one_root_channel(schema: Any, kind: str) -> None:
    assert {"__root__": kind} == kinds(schema)


# -- inheritance and generics ----------------------------------------------------


class Base(TypedDict, Generic[T]):
    a: T
    b: Annotated[list[T], operator.add]


class Sub(Base[int], total=False):
    c: Annotated[T, operator.add]


class GenericModel(BaseModel, Generic[T]):
    a: T
    b: Annotated[list[T], operator.add] = []


@dataclasses.dataclass
class GenericData(Generic[T]):
    a: T
    b: Annotated[T, operator.add]


@pytest.mark.parametrize("schema", [Base[int], GenericModel[int], GenericData[int]])
def test_type_variables_of_a_generic_state_are_resolved(schema: Any) -> None:
    fields = class_channels(schema)

    assert fields.hints["a"] is int
    assert BinaryOperatorAggregate(int, operator.add) == fields.channels["b"]


def test_type_variables_are_resolved_through_bases() -> None:
    hints = class_channels(Sub).hints

    assert ["a", "b", "c"] == list(hints)
    assert (int, Annotated[list[int], operator.add]) == (hints["a"], hints["b"])


def test_resolved_variable_gives_the_reducer_its_start() -> None:
    assert 0 == class_channels(GenericData[int]).channels["b"].get()


# -- names that are hard to find --------------------------------------------------


def test_annotations_may_name_what_only_the_function_knows() -> None:
    def keep(a: Any, b: Any) -> Any:
        return b or a

    class Local(TypedDict):
        a: Annotated[list, keep]
        b: list[Inner]

    class Inner(TypedDict):
        x: int

    assert {"a": REDUCER, "b": "LastValue"} == kinds(Local)


def test_models_may_name_what_only_the_function_knows() -> None:
    class Local(BaseModel):
        a: list[Inner] = []

    class Inner(BaseModel):
        x: int = 0

    assert {"a": "LastValue"} == kinds(Local)


def test_unknown_name_is_a_build_error_that_says_which() -> None:
    class Odd(TypedDict):
        a: Annotated[list, nowhere]  # noqa: F821

    class OddModel(BaseModel):
        a: list[nowhere] = []  # noqa: F821

    for schema in (Odd, OddModel):
        with pytest.raises(InvalidGraphError, match="`nowhere`, which cannot be found"):
            class_channels(schema)


# -- reducers -----------------------------------------------------------------


async def later(a: Any, b: Any) -> Any:
    return a


BAD = {
    "one": lambda a: a,
    "three": lambda a, b, c: a,
    "three with default": lambda a, b, c=1: a,
    "any number": lambda *a: a,
    "one and any number": lambda a, *b: a,
    "needs a name": lambda a, b, *, c: a,
    "none": lambda: 1,
    "class": Adder,
    "type": int,
    "async": later,
}
GOOD = {
    "two": lambda a, b: a,
    "default": lambda a, b=1: a,
    "positional": lambda a, /, b: a,
    "named": lambda a, b, *, c=1: a,
    "any names": lambda a, b, **k: a,
    "object": Adder(),
    "partial": functools.partial(lambda a, b, c: a, c=1),
    "builtin": max,
    "method": set.union,
}


@pytest.mark.parametrize("reducer", BAD.values(), ids=BAD.keys())
def test_wrong_reducer_is_a_build_error_naming_the_field(reducer: Any) -> None:
    schema = TypedDict("schema", {"text": Annotated[list, reducer]})

    with pytest.raises(InvalidReducerError) as caught:
        class_channels(schema)

    assert "TP-102" == caught.value.code
    assert "`text`" in str(caught.value)
    assert "Expected (a, b) -> c. Got" in str(caught.value)


@pytest.mark.parametrize("reducer", GOOD.values(), ids=GOOD.keys())
def test_reducer_of_two_values_is_taken(reducer: Any) -> None:
    schema = TypedDict("schema", {"text": Annotated[list, reducer]})

    assert {"text": REDUCER} == kinds(schema)


@pytest.mark.parametrize("item", ["doc", 5, None])
def test_metadata_that_is_not_callable_says_nothing(item: Any) -> None:
    schema = TypedDict("schema", {"text": Annotated[list, item]})

    assert {"text": "LastValue"} == kinds(schema)


# -- defaults -----------------------------------------------------------------


@pytest.mark.parametrize("schema", [Data, Model], ids=["dataclass", "model"])
def test_default_is_what_a_reducer_starts_from(schema: Any) -> None:
    """LG#5225: field default 5, a node adds 1: 6."""
    channels = class_channels(schema, use_defaults=True).channels
    channels["b"].update([1])

    assert (6, [1]) == (channels["b"].get(), channels["c"].get())
    assert not channels["a"].is_available()


@pytest.mark.parametrize("schema", [Data, Model], ids=["dataclass", "model"])
def test_default_is_ignored_when_told_to(schema: Any) -> None:
    channels = class_channels(schema).channels
    channels["b"].update([1])

    assert (1, []) == (channels["b"].get(), channels["c"].get())


def test_start_is_made_anew_for_every_run() -> None:
    channel = class_channels(Data, use_defaults=True).channels["c"]
    channel.from_checkpoint(MISSING).get().append(2)

    assert [1] == channel.from_checkpoint(MISSING).get()


def test_reducer_field_without_default_starts_empty() -> None:
    @dataclasses.dataclass
    class Required:
        a: Annotated[int, operator.add]
        b: Annotated[int, operator.add] = dataclasses.field(init=False)

    fields = class_channels(Required, use_defaults=True)

    assert ({}, 0, 0) == (
        fields.starts,
        fields.channels["a"].get(),
        fields.channels["b"].get(),
    )


# -- several schemas --------------------------------------------------------------


def channels_of(annotation: Any) -> dict[str, Any]:
    return class_channels(TypedDict("schema", {"a": annotation})).channels


ADD = Annotated[list, operator.add]
MUL = Annotated[list, operator.mul]


@pytest.mark.parametrize(
    ("known", "new"),
    [
        (ADD, MUL),
        (ADD, Annotated[list, Topic]),
        (Annotated[list, Topic], Annotated[list, EphemeralValue]),
    ],
)
def test_one_key_with_two_channels_is_a_conflict(known: Any, new: Any) -> None:
    with pytest.raises(ChannelConflictError, match="'a' already exists") as caught:
        merge_channels(channels_of(known), channels_of(new))

    assert isinstance(caught.value, ValueError)
    assert "TP-103" == caught.value.code


@pytest.mark.parametrize(
    "other", [ADD, Annotated[list, Topic]], ids=["reducer", "topic"]
)
def test_plain_field_gives_way(other: Any) -> None:
    kept = channels_of(other)

    assert type(kept["a"]) is type(merge_channels(channels_of(list), kept)["a"])
    assert kept == merge_channels(kept, channels_of(list))


def test_merging_adds_keys_and_changes_nothing_given() -> None:
    known, new = channels_of(ADD), class_channels(Data).channels
    new.pop("a")

    merged = merge_channels(known, new)

    assert ["a", "b", "c"] == list(merged)
    assert ["a"] == list(known)


def test_start_value_is_kept_whichever_schema_declares_it() -> None:
    plain = {"b": class_channels(Data).channels["b"]}
    started = {"b": class_channels(Data, use_defaults=True).channels["b"]}

    assert 5 == merge_channels(plain, started)["b"].get()
    assert 5 == merge_channels(started, plain)["b"].get()
