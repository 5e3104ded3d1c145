"""The form in which nodes get the state, and what they give back."""

from __future__ import annotations

import dataclasses
import operator
import uuid
from typing import Annotated, Any, ClassVar, Generic, NamedTuple, TypedDict, TypeVar

import pytest
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    RootModel,
    ValidationError,
    field_validator,
    model_validator,
)

from towpath.errors import is_invalid_resume
from towpath.managed import IsLastStep
from towpath.schema import (
    answer_schema,
    as_update,
    check_answer,
    class_channels,
    partial_shape_of,
    shape_of,
    validator_of,
)

T = TypeVar("T")


class Typed(TypedDict):
    a: int
    last: IsLastStep


@dataclasses.dataclass
class Data:
    a: int
    b: int = 5
    c: list[int] = dataclasses.field(default_factory=list)
    shared: ClassVar[int] = 1


@dataclasses.dataclass(frozen=True)
class Late:
    a: int
    b: int = dataclasses.field(init=False, default=2)


class Model(BaseModel):
    a: int
    b: int | None = 5
    c: list[int] = []
    d: uuid.UUID | None = None


class Plain:
    a: int


class Pair(NamedTuple):
    a: int
    b: int


# -- shapes -------------------------------------------------------------------


@pytest.mark.parametrize("schema", [Typed, Plain, Pair], ids=lambda s: s.__name__)
def test_dict_states_are_passed_as_they_are(schema: Any) -> None:
    shape = shape_of(schema)

    assert (None, False) == (shape.make, shape.root)
    assert "a" == shape.keys[0]


def test_managed_keys_are_read_too() -> None:
    assert ("a", "last") == shape_of(Typed).keys


def test_root_state_has_one_key() -> None:
    shape = shape_of(Annotated[list, operator.add])

    assert (("__root__",), True, None) == (shape.keys, shape.root, shape.make)


def made(schema: Any, values: dict[str, Any]) -> Any:
    make = shape_of(schema).make
    assert make is not None
    return make(values)


def test_dataclass_is_made_of_the_values_that_are_there() -> None:
    assert Data(1, c=[2]) == made(Data, {"a": 1, "c": [2]})
    with pytest.raises(TypeError, match="'a'"):
        made(Data, {"b": 1})


def test_fields_that_init_does_not_take_are_set() -> None:
    assert 7 == made(Late, {"a": 1, "b": 7}).b
    assert 2 == made(Late, {"a": 1}).b


def test_model_is_made_of_the_values_that_are_there() -> None:
    """LG#4184: a UUID stays one."""
    number = uuid.uuid4()

    assert Model(a=1, d=number) == made(Model, {"a": "1", "d": str(number)})
    with pytest.raises(ValidationError, match="Field required"):
        made(Model, {"b": 1})


class A(BaseModel):
    x: int


class Box(BaseModel, Generic[T]):
    item: T


class Boxes(BaseModel):
    box: Box[A]


def test_generic_field_keeps_its_type() -> None:
    """LG#4060."""
    assert A(x=1) == made(Boxes, {"box": {"item": {"x": 1}}}).box.item
    assert A(x=1) == made(Box[A], {"item": {"x": 1}}).item


class Aliased(BaseModel):
    a: int = Field(alias="AA")
    b: int = Field(default=1, validation_alias="BB")


def test_aliases_do_not_matter_inside_the_state() -> None:
    instance = made(Aliased, {"a": 1, "b": 2})

    assert (1, 2) == (instance.a, instance.b)


def test_partial_model_holds_what_is_there() -> None:
    """LG#5659: fields that are filled later do not fail a node before."""
    partial = partial_shape_of(Model).make
    assert partial is not None

    instance = partial({"b": "3"})

    assert (3, [], {"b"}) == (instance.b, instance.c, instance.model_fields_set)
    with pytest.raises(AttributeError, match="'a'"):
        instance.a  # noqa: B018
    assert Model(a=1) == partial({"a": 1})
    with pytest.raises(ValidationError, match="valid integer"):
        partial({"b": "x"})
    assert partial_shape_of(Typed) == shape_of(Typed)


# -- updates ------------------------------------------------------------------

KEYS = ("a", "b", "c", "d")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, []),
        ({"a": 1, "undeclared": 2}, [("a", 1), ("undeclared", 2)]),
        ({}, []),
        (Data(1), [("a", 1), ("b", 5), ("c", [])]),
        (Model(a=1), [("a", 1), ("b", 5), ("c", [])]),
        (Model(a=1, b=None), [("a", 1), ("b", None), ("c", [])]),
        (Pair(1, 2), [("a", 1), ("b", 2)]),
        (Plain(), []),
        (5, None),
        ("text", None),
        ([("a", 1)], None),
        (object(), None),
        (Data, None),
    ],
    ids=lambda case: type(case).__name__,
)
def test_what_a_value_writes(value: Any, expected: Any) -> None:
    assert expected == as_update(value, KEYS)


def test_object_writes_only_keys_of_the_state() -> None:
    assert [("a", 1)] == as_update(Data(1), ("a",))


@pytest.mark.parametrize("value", [{"a": 1}, [1], 0, ""], ids=repr)
def test_root_state_is_written_whole(value: Any) -> None:
    assert [("__root__", value)] == as_update(value, ("__root__",))


def test_nothing_is_written_to_a_root_state_by_none() -> None:
    assert [] == as_update(None, ("__root__",))


@dataclasses.dataclass
class Counted:
    n: Annotated[int, operator.add] = 5
    name: str = "x"


class CountedModel(BaseModel):
    n: Annotated[int, operator.add] = 5
    name: str = "x"


@pytest.mark.parametrize("cls", [Counted, CountedModel])
def test_default_that_a_reducer_started_from_is_not_folded_in_again(cls: Any) -> None:
    fields = class_channels(cls, use_defaults=True)

    assert [("name", "x")] == as_update(cls(), fields.hints, fields.starts)
    assert [("n", 1), ("name", "x")] == as_update(cls(n=1), fields.hints, fields.starts)
    assert [("n", 5), ("name", "x")] == as_update(cls(), fields.hints)


def test_model_that_sets_a_field_to_its_default_writes_it() -> None:
    fields = class_channels(CountedModel, use_defaults=True)

    written = as_update(CountedModel(n=5), fields.hints, fields.starts)

    assert [("n", 5), ("name", "x")] == written


# -- validation ---------------------------------------------------------------


class Checked(BaseModel):
    model_config = ConfigDict(str_strip_whitespace=True, extra="forbid")

    name: str
    age: int = Field(default=0, frozen=True)
    kids: list[Checked] = []
    log: Annotated[list[str], operator.add] = []
    least: int = 0

    @field_validator("name")
    @classmethod
    def capital(cls, value: str) -> str:
        return value.capitalize()

    @field_validator("least")
    @classmethod
    def below_age(cls, value: int, info: Any) -> int:
        assert value <= info.data["age"]
        return value

    @model_validator(mode="after")
    def whole(self) -> Checked:
        raise AssertionError("the whole model is not validated by a write")


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("name", " bob ", "Bob"),
        ("age", "3", 3),
        ("log", 5, 5),
        ("undeclared", 5, 5),
        ("least", 4, 4),
    ],
)
def test_written_value_is_corrected_by_its_field(
    key: str, value: Any, expected: Any
) -> None:
    """LG#1977, LG#4074: validated when written, and the correction is kept."""
    validate = validator_of(Checked)
    assert validate is not None

    assert expected == validate(key, value)


def test_written_value_that_does_not_fit_is_refused() -> None:
    validate = validator_of(Checked)
    assert validate is not None

    with pytest.raises(ValidationError, match="validation error for Checked"):
        validate("age", "x")


class Tree(BaseModel):
    leaves: list[Tree] = []


def test_recursive_and_generic_models_are_validated() -> None:
    tree, box = validator_of(Tree), validator_of(Box[A])
    assert tree is not None
    assert box is not None

    assert [Tree(leaves=[Tree()])] == tree("leaves", [{"leaves": [{}]}])
    assert A(x=3) == box("item", {"x": "3"})


class Reduced(BaseModel):
    log: Annotated[list[str], operator.add] = []


class Root(RootModel[list[int]]):
    pass


@pytest.mark.parametrize("schema", [Typed, Data, list, Reduced, Root])
def test_nothing_to_validate(schema: Any) -> None:
    assert validator_of(schema) is None


# -- answers ------------------------------------------------------------------


def test_answer_takes_the_form_asked_for() -> None:
    assert A(x=1) == check_answer(A, {"x": "1"})
    assert [1] == check_answer(list[int], ["1"])
    assert "as it is" == check_answer(None, "as it is")
    assert "as it is" == check_answer({"type": "integer"}, "as it is")


def test_answer_that_does_not_fit_is_marked() -> None:
    with pytest.raises(ValidationError) as caught:
        check_answer(A, {"x": "z"})

    assert is_invalid_resume(caught.value)


def test_question_carries_a_json_schema() -> None:
    assert "object" == answer_schema(A)["type"]
    assert (
        {"type": "integer"} == answer_schema(int) == answer_schema({"type": "integer"})
    )
    assert answer_schema(None) is None
