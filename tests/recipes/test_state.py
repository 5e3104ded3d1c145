"""Section B of the reports: keys, reducers, schemas, isolation.

Row 32, what a child returns, is in `tests/pregel/test_shared_keys.py`;
row 37's messages are covered by `tests/programs`.
"""

from __future__ import annotations

import operator
import uuid
import warnings
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, TypeVar

import pytest
from pydantic import BaseModel, field_validator
from typing_extensions import TypedDict

from towpath import Command, InMemorySaver
from towpath.channels import DeltaChannel
from towpath.errors import InvalidUpdateError, MutatedStateError, UndeclaredKeyError
from towpath.semantics import LANGGRAPH, NATIVE
from towpath.warnings import TowpathWarning

from .kit import THREAD, Colour, Log, chain, logs, wire

# -- row 24: keys that no schema declares -------------------------------------


def returns(update: Any) -> Any:
    """Return a node that returns `update`."""

    def culprit(state: Any) -> Any:
        return update

    return culprit


def yields(state: Any) -> Any:
    """Yield a right and a wrong update."""
    yield {"log": ["right"]}
    yield {"notes": "wrong"}


UNDECLARED = [
    returns({"log": ["a"], "notes": "lost"}),
    returns({"notes": None}),
    returns(Command(update={"notes": "lost"})),
    returns([Command(update={"log": ["a"]}), Command(update={"notes": "lost"})]),
    yields,
]


@pytest.mark.parametrize("node", UNDECLARED)
def test_a_node_that_writes_an_undeclared_key_is_told(
    colour: Colour, node: Any
) -> None:
    app = wire(culprit=node).compile(InMemorySaver())
    with pytest.raises(UndeclaredKeyError) as error:
        colour.invoke(app, {"log": []})
    for word in ("culprit", "notes", "note"):
        assert word in str(error.value)


def test_an_undeclared_key_loses_nothing_of_the_thread(colour: Colour) -> None:
    wrong = [True]

    def node(state: Log) -> Any:
        return {"notes": 1} if wrong else {"note": "right"}

    app = chain(first=logs("first"), node=node).compile(InMemorySaver())
    with pytest.raises(UndeclaredKeyError):
        colour.invoke(app, {"log": []})
    assert (("node",), ["first"]) == (
        colour.state(app).next,
        colour.state(app).values["log"],
    )
    wrong.clear()
    assert {"log": ["first"], "note": "right"} == colour.invoke(app, None)


@pytest.mark.parametrize(
    "given", [{"notes": 1}, {"log": [], "notes": 1}, {"Log": []}], ids=str
)
def test_an_input_with_an_undeclared_key_is_an_error(
    colour: Colour, given: Any
) -> None:
    app = wire(a=logs("a")).compile(InMemorySaver())
    with pytest.raises(UndeclaredKeyError, match="input"):
        colour.invoke(app, given)
    assert not colour.state(app).values.get("log")
    assert ["a"] == colour.invoke(app, {"log": []})["log"]


@pytest.mark.parametrize("as_node", [None, "a"])
def test_an_update_with_an_undeclared_key_is_an_error(
    colour: Colour, as_node: str | None
) -> None:
    app = wire(a=logs("a")).compile(InMemorySaver())
    colour.invoke(app, {"log": []})
    before = colour.history(app)
    with pytest.raises(UndeclaredKeyError):
        colour.update(app, {"notes": "lost"}, as_node=as_node)
    assert before == colour.history(app)


def test_the_peer_preset_drops_undeclared_keys(colour: Colour) -> None:
    app = wire(a=returns({"log": ["a"], "notes": 1})).compile(semantics=LANGGRAPH)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert {"log": ["a"]} == colour.invoke(app, {"log": [], "more": 1})


def test_private_keys_are_declared_by_the_node_that_reads_them(colour: Colour) -> None:
    class Private(TypedDict):
        secret: str

    def reader(state: Private) -> Any:
        return {"note": state["secret"]}

    # Annotations of local classes are objects only when they are set as such.
    reader.__annotations__["state"] = Private
    app = chain(a=returns({"secret": "s"}), reader=reader).compile()
    assert {"log": [], "note": "s"} == colour.invoke(app, {"log": []})


# -- row 25: state is not shared ----------------------------------------------


class Shared(TypedDict, total=False):
    items: list
    deep: dict
    log: Annotated[list, operator.add]


# A container that grew unreturned is warned of; here it is about what it does.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*in place.*:towpath.warnings.TowpathWarning"
)


def mutates(state: Any) -> Any:
    state["items"].append("leak")
    state["deep"]["new"] = "leak"


def mutates_deeply(state: Any) -> Any:
    # What containers hold is shared, because copying it would make a step cost
    # as much as the whole state; `debug=True` finds this.
    state["deep"]["list"].append("leak")


def looks(state: Any) -> Any:
    return {"log": [list(state["items"]), dict(state["deep"])]}


SEEN = [["in"], {"list": ["in"]}]


def shared_input() -> dict[str, Any]:
    """Return an input that a node may try to change."""
    return {"items": ["in"], "deep": {"list": ["in"]}, "log": []}


def test_a_change_in_place_does_not_reach_the_caller(colour: Colour) -> None:
    given = shared_input()
    result = colour.invoke(chain(state=Shared, a=mutates).compile(), given)
    assert shared_input() == given
    assert shared_input() == result


def test_a_change_in_place_does_not_reach_a_sibling(colour: Colour) -> None:
    builder = wire(state=Shared, a=mutates, b=looks)
    assert SEEN == colour.invoke(builder.compile(), shared_input())["log"]


def test_a_change_in_place_does_not_reach_later_nodes(colour: Colour) -> None:
    builder = chain(state=Shared, a=mutates, b=looks)
    assert SEEN == colour.invoke(builder.compile(), shared_input())["log"]


def test_a_change_in_place_does_not_reach_a_branch(colour: Colour) -> None:
    seen = []

    def route(state: Any) -> str:
        seen.append((list(state["items"]), list(state["deep"]["list"])))
        return "__end__"

    builder = wire(state=Shared, a=mutates)
    builder.add_conditional_edges("a", route)
    colour.invoke(builder.compile(), shared_input())
    assert [(["in"], ["in"])] == seen


def test_stored_state_is_what_the_run_ended_with(colour: Colour, saver: Any) -> None:
    app = chain(state=Shared, a=mutates, b=looks).compile(saver)
    result = colour.invoke(app, shared_input())
    assert result == colour.state(app).values
    result["items"].append("changed by the caller")
    colour.state(app).values["deep"]["list"].append("changed by a reader")
    assert {**shared_input(), "log": SEEN} == colour.state(app).values


def test_what_a_node_returned_is_its_own_again(colour: Colour) -> None:
    kept: list = ["first"]

    def node(state: Any) -> Any:
        return {"items": kept}

    def spoils(state: Any) -> Any:
        kept.append("spoiled")
        return {"log": [list(state["items"])]}

    app = chain(state=Shared, node=node, spoils=spoils).compile(InMemorySaver())
    result = colour.invoke(app, shared_input())
    assert result["items"] == colour.state(app).values["items"]


def test_streamed_values_are_not_shared(colour: Colour) -> None:
    app = chain(state=Shared, a=logs("a"), b=looks).compile()
    chunks = colour.stream(app, shared_input(), stream_mode="values")
    chunks[0]["items"].append("changed by a reader")
    assert ["in"] == chunks[-1]["items"]


def test_debug_names_the_node_that_changes_state_in_place(colour: Colour) -> None:
    app = chain(state=Shared, culprit=mutates).compile(debug=True)
    with pytest.raises(MutatedStateError, match=r"culprit[\s\S]*items"):
        colour.invoke(app, shared_input())


@pytest.mark.filterwarnings("default")
def test_a_change_in_place_that_is_not_returned_is_warned_of(colour: Colour) -> None:
    app = chain(state=Shared, culprit=mutates).compile()
    with pytest.warns(TowpathWarning, match=r"culprit[\s\S]*in place"):
        colour.invoke(app, shared_input())


class Plain(TypedDict, total=False):
    name: str
    count: int


class Model(BaseModel):
    name: str = ""
    count: int = 0


@dataclass
class Record:
    name: str = ""
    count: int = 0


def assigns(state: Any) -> Any:
    state["count"] = 9


def sets(state: Any) -> Any:
    state.count = 9


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("given", [{"name": "a"}, {"name": "a", "count": 1}])
def test_a_key_that_is_assigned_and_not_returned_is_warned_of(
    colour: Colour, given: Any
) -> None:
    app = chain(state=Plain, culprit=assigns).compile()
    with pytest.warns(TowpathWarning, match=r"culprit[\s\S]*count"):
        assert given == colour.invoke(app, given)


@pytest.mark.filterwarnings("error")
def test_assigning_to_the_state_and_returning_it_is_no_loss(colour: Colour) -> None:
    def node(state: Any) -> Any:
        state["count"] = 9
        return state

    def reads(state: Any) -> Any:
        assert "a" == state["name"]

    for debug in (False, True):
        app = chain(state=Plain, node=node, reads=reads).compile(debug=debug)
        assert 9 == colour.invoke(app, {"name": "a", "count": 1})["count"]


@pytest.mark.parametrize(
    ("schema", "node"), [(Plain, assigns), (Model, sets), (Record, sets)]
)
def test_debug_names_the_node_that_assigns_and_returns_nothing(
    colour: Colour, schema: Any, node: Any
) -> None:
    app = chain(state=schema, culprit=node).compile(debug=True)
    with pytest.raises(MutatedStateError, match=r"culprit[\s\S]*count"):
        colour.invoke(app, {"name": "a"})


def test_debug_finds_a_change_deep_in_a_container(colour: Colour) -> None:
    app = chain(state=Shared, culprit=mutates_deeply).compile(debug=True)
    with pytest.raises(MutatedStateError, match=r"culprit[\s\S]*deep"):
        colour.invoke(app, shared_input())


def test_a_deep_change_does_not_reach_the_callers_input(colour: Colour) -> None:
    given = shared_input()
    colour.invoke(chain(state=Shared, a=mutates_deeply).compile(), given)
    assert shared_input() == given


def test_debug_lets_returned_changes_pass(colour: Colour) -> None:
    def node(state: Any) -> Any:
        return {"items": [*state["items"], "new"]}

    app = chain(state=Shared, node=node).compile(debug=True)
    assert ["in", "new"] == colour.invoke(app, shared_input())["items"]


# -- row 26: defaults of reducer fields ---------------------------------------


class CountModel(BaseModel):
    n: Annotated[int, operator.add] = 5
    items: Annotated[list, operator.add] = ["default"]


@dataclass
class CountData:
    n: Annotated[int, operator.add] = 5
    items: Annotated[list, operator.add] = field(default_factory=lambda: ["default"])


@pytest.mark.parametrize("state", [CountModel, CountData])
def test_a_default_is_what_the_reducer_starts_from(colour: Colour, state: Any) -> None:
    app = chain(state=state, a=returns({"n": 1, "items": ["a"]})).compile()
    assert {"n": 6, "items": ["default", "a"]} == colour.invoke(app, {})
    assert {"n": 8, "items": ["default", "a"]} == colour.invoke(app, {"n": 2})


@pytest.mark.parametrize("state", [CountModel, CountData])
def test_a_default_is_made_anew_for_each_run(colour: Colour, state: Any) -> None:
    app = chain(state=state, a=returns({"items": ["a"]})).compile()
    runs = [colour.invoke(app, {})["items"] for _ in range(2)]
    assert [["default", "a"], ["default", "a"]] == runs


def test_the_peer_preset_ignores_such_defaults(colour: Colour) -> None:
    app = chain(state=CountModel, a=returns({"n": 1})).compile(semantics=LANGGRAPH)
    assert 1 == colour.invoke(app, {})["n"]


# -- rows 28, 29: updates of a pydantic state are validated -------------------


class Person(BaseModel):
    name: str = ""
    height: float = 0.0

    @field_validator("name")
    @classmethod
    def capitalise(cls, value: str) -> str:
        return value.capitalize()


@pytest.mark.parametrize("place", ["first", "last", "update"])
def test_a_wrong_type_is_blamed_on_its_writer(colour: Colour, place: str) -> None:
    wrong, right = returns({"height": "tall"}), returns({"height": 1})
    nodes = (
        {"culprit": wrong, "fine": right} if place == "first" else {"culprit": wrong}
    )
    if place == "update":
        nodes = {"fine": right}
    app = chain(state=Person, **nodes).compile(InMemorySaver())
    with pytest.raises((InvalidUpdateError, ValueError)) as error:
        colour.invoke(app, {"name": "bob"})
        colour.update(app, {"height": "tall"}, as_node="fine")
    assert "height" in str(error.value)
    if place != "update":
        assert "culprit" in str(error.value) + str(
            getattr(error.value, "__notes__", "")
        )


@pytest.mark.parametrize("last", [True, False], ids=["last", "not last"])
def test_corrections_of_a_validator_are_kept(
    colour: Colour, saver: Any, last: bool
) -> None:
    nodes = {"a": returns({"name": "ada", "height": "2"})}
    if not last:
        nodes["b"] = returns({"height": 3})
    app = chain(state=Person, **nodes).compile(saver)
    result = colour.invoke(app, {"name": "bob"})
    assert "Ada" == result["name"] == colour.state(app).values["name"]
    assert isinstance(result["height"], float)


def test_corrections_of_the_input_are_kept(colour: Colour) -> None:
    app = chain(state=Person, a=returns({"height": 1})).compile(InMemorySaver())
    assert "Bob" == colour.invoke(app, {"name": "bob"})["name"]
    assert "Bob" == colour.state(app).values["name"]


# -- rows 33 to 36: schemas of all kinds --------------------------------------


class Secret(TypedDict):
    secret: str


class Reader:
    """A callable object as a node with a private schema."""

    def __call__(self, state: Secret) -> Any:
        return {"note": state["secret"]}

    def method(self, state: Secret) -> Any:
        return self(state)


@pytest.mark.parametrize("node", [Reader(), Reader().method], ids=["object", "method"])
def test_objects_and_methods_may_have_private_schemas(
    colour: Colour, node: Any
) -> None:
    app = chain(a=returns({"secret": "s"}), reader=node).compile()
    assert "s" == colour.invoke(app, {"log": []})["note"]


T = TypeVar("T")


class Item(BaseModel):
    n: int


class Box(BaseModel, Generic[T]):
    value: T


class Generics(BaseModel):
    box: Box[Item]
    id: uuid.UUID


@pytest.mark.parametrize("semantics", [NATIVE, LANGGRAPH], ids=["native", "peer"])
def test_pydantic_fields_keep_their_types(colour: Colour, semantics: Any) -> None:
    seen = []

    def look(state: Generics) -> Any:
        seen.append((type(state.box.value), type(state.id)))

    app = chain(state=Generics, a=look, b=look).compile(
        InMemorySaver(), semantics=semantics
    )
    given = {"box": {"value": {"n": 1}}, "id": "12345678123456781234567812345678"}
    colour.invoke(app, given)
    assert [(Item, uuid.UUID)] * 2 == seen


class Partial(BaseModel):
    first: str
    later: int


class OnlyFirst(BaseModel):
    first: str


def test_a_node_needs_only_the_keys_of_its_schema(colour: Colour) -> None:
    def early(state: OnlyFirst) -> Any:
        return {"later": len(state.first)}

    def late(state: Partial) -> Any:
        return {"first": state.first * state.later}

    builder = wire(("__start__", "early"), ("early", "late"), state=Partial, late=late)
    builder.add_node("early", early, input_schema=OnlyFirst)
    app = builder.compile()
    assert {"first": "abab", "later": 2} == colour.invoke(app, {"first": "ab"})


# -- row 39: a delta channel equals a plain one -------------------------------


def extend(state: list, writes: Any) -> list:
    return state + [item for write in writes for item in write]


class Twins(TypedDict, total=False):
    plain: Annotated[list, operator.add]
    delta: Annotated[list, DeltaChannel(extend, list, snapshot_frequency=3)]


def both(name: str) -> Any:
    return returns({"plain": [name], "delta": [name]})


def equal(values: dict[str, Any]) -> bool:
    """Compare the twins in a state."""
    return values.get("plain", []) == values.get("delta", [])


def test_deltas_follow_forks_updates_and_parallel_writers(
    colour: Colour, saver: Any
) -> None:
    builder = wire(
        ("__start__", "a"),
        ("a", "b"),
        ("a", "c"),
        ("b", "d"),
        state=Twins,
        **{name: both(name) for name in "abcd"},
    )
    app = builder.compile(saver)
    for name in ("1", "2"):
        colour.invoke(app, {"plain": [name], "delta": [name]})
    for old in colour.history(app):
        colour.update(app, {"plain": ["u"], "delta": ["u"]}, old.config, as_node="a")
        assert equal(colour.state(app).values)
        assert equal(colour.invoke(app, None))
        assert equal(colour.invoke(app, None, old.config))
    assert all(equal(one.values) for one in colour.history(app))


def test_deltas_survive_a_change_of_the_schema(colour: Colour, saver: Any) -> None:
    class Before(TypedDict, total=False):
        delta: Annotated[list, operator.add]

    class After(TypedDict, total=False):
        delta: Annotated[list, DeltaChannel(extend, list)]

    add = returns({"delta": ["x"]})
    for state in (Before, After, After):
        result = colour.invoke(
            chain(state=state, a=add).compile(saver), {"delta": ["in"]}, THREAD
        )
    assert ["in", "x"] * 3 == result["delta"]
