"""A state class declares the channels that the peer's builder makes of it."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NotRequired, Required, TypedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import create_model

from towpath.channels import EphemeralValue, LastValue, Topic, UntrackedValue
from towpath.constants import MISSING
from towpath.managed import IsLastStep
from towpath.schema import as_update, class_channels, shape_of

state_graph = pytest.importorskip("langgraph.graph").StateGraph
peer_channels = pytest.importorskip("langgraph.channels")
peer_managed = pytest.importorskip("langgraph.managed")

pytestmark = pytest.mark.differential

TYPES = [int, str, list, list[int], dict, set, Sequence[int], Mapping[str, int], Any]
TYPES += [int | None, list | None]


def first(a: Any, b: Any) -> Any:
    return a


# (ours, theirs): what is written into the same class for each library.
METADATA = [
    *((x, x) for x in (operator.add, first, "doc", 5, None)),
    (Topic, peer_channels.Topic),
    (LastValue, peer_channels.LastValue),
    (UntrackedValue(int), peer_channels.UntrackedValue(int)),
    (EphemeralValue(int, False), peer_channels.EphemeralValue(int, False)),
]
WRAPPERS = [lambda t: t, lambda t: NotRequired[t], lambda t: Required[t]]


@st.composite
def annotations(draw: st.DrawFn) -> tuple[Any, Any]:
    if draw(st.integers(0, 9)) == 0:
        return IsLastStep, peer_managed.IsLastStep
    ours = theirs = draw(st.sampled_from(TYPES))
    for mine, other in draw(st.lists(st.sampled_from(METADATA), max_size=3)):
        ours, theirs = Annotated[ours, mine], Annotated[theirs, other]
    wrap = draw(st.sampled_from(WRAPPERS))
    return wrap(ours), wrap(theirs)


def seen(channel: Any) -> Any:
    # Not the key: the peer sets it on an instance that several fields share.
    value = channel.get() if channel.is_available() else None
    return type(channel).__name__, value


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from("abcd"), annotations(), min_size=1))
def test_typed_dict_declares_the_same_channels(fields: dict[str, Any]) -> None:
    ours = class_channels(TypedDict("State", {k: a for k, (a, _) in fields.items()}))
    theirs = state_graph(TypedDict("State", {k: b for k, (_, b) in fields.items()}))

    expected = {key: seen(channel) for key, channel in theirs.channels.items()}
    assert expected == {key: seen(channel) for key, channel in ours.channels.items()}
    assert list(theirs.managed) == list(ours.managed)


def run(schema: Any, given: Any, returned: Any) -> Any:
    """What a node of the peer gets, and what is then in the state."""
    got = []

    def node(state: Any) -> Any:
        got.append(state)
        return returned

    builder = state_graph(schema)
    builder.add_node("node", node)
    builder.add_edge("__start__", "node")
    try:
        return got, builder.compile().invoke(given)
    except (TypeError, ValueError) as error:
        return got, type(error).__name__


def same(schema: Any, given: Any, returned: Any) -> Any:
    """The same, of our parts: channels, shape and updates."""
    fields, shape, got = class_channels(schema), shape_of(schema), []
    channels = {k: c.from_checkpoint(MISSING) for k, c in fields.channels.items()}

    def state() -> dict[str, Any]:
        return {k: c.get() for k, c in channels.items() if c.is_available()}

    try:
        for key, value in as_update(given, shape.keys) or ():
            channels[key].update([value])
        got.append(shape.make(state()) if shape.make else state())
        for key, value in as_update(returned, shape.keys) or ():
            channels[key].update([value])
    except (TypeError, ValueError) as error:
        return got, type(error).__name__
    return got, state()


@dataclasses.dataclass
class Data:
    a: int
    b: int | None = 5
    c: Annotated[list[int], operator.add] = dataclasses.field(default_factory=list)


Model = create_model(
    "Model",
    a=(int, ...),
    b=(int | None, 5),
    c=(Annotated[list[int], operator.add], []),
    d=(str | None, None),
)
PARTS = [
    *({"a": 1}, {"a": "1"}, {"b": None, "a": 2}, {"a": 1, "c": [1]}, {"b": 3}),
    *(
        Data(1),
        Data(2, None, [3]),
        Model(a=1),
        Model(a=1, b=None, c=[2]),
        Model(a=3, d="x"),
    ),
]


@pytest.mark.parametrize("schema", [Data, Model], ids=["dataclass", "model"])
@pytest.mark.parametrize("given", PARTS, ids=repr)
@pytest.mark.parametrize("returned", [*PARTS, None, {}], ids=repr)
def test_node_gets_and_writes_the_same(schema: Any, given: Any, returned: Any) -> None:
    assert run(schema, given, returned) == same(schema, given, returned)
