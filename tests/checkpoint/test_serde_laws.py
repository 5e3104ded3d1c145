"""Laws of the codec: exact for every value, harmless for every input."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import enum
import pathlib
import re
import zoneinfo
from typing import Any, Generic, NamedTuple, TypeVar

import pydantic
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from towpath.checkpoint.serde import RecordedError, register
from towpath.checkpoint.serde.jsonplus import JsonPlusSerializer
from towpath.errors import DeserializationError, SerializationError
from towpath.types import Command, Interrupt, Overwrite, Send

serde = JsonPlusSerializer(learn=False)
quick = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)

# Classes of a program's


@register
class Colour(enum.Enum):
    RED = "r"
    BLUE = ("b", 1)


@register
class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@register
class Word(enum.StrEnum):
    YES = "y"


@register
class Rights(enum.IntFlag):
    READ = 1
    WRITE = 2


@register
class Pair(NamedTuple):
    left: Any
    right: Any = None


@register
@dataclasses.dataclass
class Plain:
    x: Any
    late: Any = dataclasses.field(init=False, default=None)


@register
@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    x: Any


T = TypeVar("T")


@register
@dataclasses.dataclass(slots=True)
class Base(Generic[T]):
    a: T


@register
@dataclasses.dataclass
class Mixed(Base[T]):
    b: Any


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")

    x: Any = None
    _hidden: Any = pydantic.PrivateAttr(default=None)


class Box(pydantic.BaseModel, Generic[T]):
    content: T


register(Model)
register(Box[Any])


class Text(str):  # noqa: SLOT000
    """A class nobody registers, as the three below."""


class Whole(int):
    pass


class Items(list):
    pass


class Table(dict):
    pass


# Values

MARKERS = [
    "lc",
    "type",
    "id",
    "kwargs",
    "__type__",
    "__overwrite__",
    "$",
    "",
    "py/object",
]
texts = (
    st.text()
    | st.sampled_from(MARKERS)
    | st.text(st.characters(categories=["Cs", "L"]))
)
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu"]
zones = st.none() | st.sampled_from(ZONES).map(zoneinfo.ZoneInfo) | st.just(dt.UTC)

hashable_atoms = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(2**200), max_value=2**200)
    | st.floats(allow_nan=False)
    | texts
    | st.binary()
    | st.decimals(allow_nan=False)
    | st.fractions()
    | st.complex_numbers(allow_nan=False)
    | st.uuids()
    | st.dates()
    | st.datetimes(timezones=zones)
    | st.times()
    | st.timedeltas()
    | st.ip_addresses()
)
members = st.sampled_from([*Colour, *Level, *Word, *Rights, Rights.READ | Rights.WRITE])
patterns = st.builds(
    re.compile,
    st.text("ab", max_size=3) | st.binary(max_size=0),
    st.sampled_from([0, re.I]),
)
ranges = st.builds(range, st.integers(), st.integers(), st.integers(1))
paths = st.text("ab/. ").flatmap(
    lambda text: st.sampled_from(
        [pathlib.PurePosixPath(text), pathlib.PureWindowsPath(text), pathlib.Path(text)]
    )
)
hashable_atoms |= members | patterns | ranges | paths
atoms = hashable_atoms | st.binary().map(bytearray)
atoms |= st.floats() | st.decimals(allow_nan=True) | st.complex_numbers()
keys = st.recursive(hashable_atoms, lambda inner: st.tuples(inner, inner), max_leaves=3)


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    few = st.lists(inner, max_size=5)
    return (
        few
        | few.map(tuple)
        | st.builds(collections.deque, few, st.none() | st.integers(0, 5))
        | st.dictionaries(texts, inner, max_size=5)
        | st.dictionaries(keys, inner, max_size=5)
        | st.dictionaries(keys, inner, max_size=5).map(collections.OrderedDict)
        | st.dictionaries(keys, inner, max_size=5).map(collections.Counter)
        | st.builds(
            collections.defaultdict,
            st.sampled_from([None, int, list, dict, collections.deque]),
            st.dictionaries(keys, inner, max_size=5),
        )
        | st.sets(keys, max_size=5)
        | st.frozensets(keys, max_size=5)
        | objects(inner)
    )


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return (
        st.builds(Pair, inner, inner)
        | st.builds(Plain, inner)
        | st.builds(Frozen, inner)
        | st.builds(Mixed, inner, inner)
        | st.builds(model, inner, inner)
        | st.builds(Box[Any], content=inner)
        | st.builds(Send, texts, inner)
        | st.builds(Overwrite, inner)
        | st.builds(Interrupt, inner, id=texts)
        | st.builds(Command, update=inner, resume=inner)
        | st.builds(ValueError, inner)
    )


def model(x: Any, hidden: Any) -> Model:
    made = Model(x=x, extra=hidden)
    made._hidden = hidden
    return made


values = st.recursive(atoms, containers, max_leaves=20)


def spelled(value: Any) -> Any:
    """Spell a value out, with every type in it, so that `==` is exact."""
    cls = type(value)
    if isinstance(value, dict):
        pairs = [(spelled(key), spelled(item)) for key, item in value.items()]
        return cls, pairs, getattr(value, "default_factory", None)
    if isinstance(value, (list, tuple, collections.deque)):
        return cls, [spelled(item) for item in value], getattr(value, "maxlen", None)
    if isinstance(value, (set, frozenset)):
        return cls, sorted((spelled(item) for item in value), key=repr)
    if isinstance(value, pydantic.BaseModel):
        held = (value.__dict__, value.__pydantic_extra__, value.__pydantic_private__)
        return cls, spelled(held), value.model_fields_set
    if isinstance(value, (Command, Interrupt, Overwrite, Send)) or (
        dataclasses.is_dataclass(value)
    ):
        names = [
            *getattr(cls, "__dataclass_fields__", ()),
            *getattr(cls, "__slots__", ()),
        ]
        return cls, [(name, spelled(getattr(value, name, "unset"))) for name in names]
    if isinstance(value, BaseException):
        return cls, spelled(value.args)
    if isinstance(value, re.Pattern):
        return cls, value.pattern, value.flags
    return cls, repr(value)  # -0.0, NaN, zones and folds are told apart there


@quick
@given(values)
@example(
    {"lc": 1, "type": "constructor", "id": ["builtins", "eval"], "kwargs": {"x": 1}}
)
@example({"__overwrite__": {"__type__": ["\ud800"]}})
@example([{"a": [bytearray(b"x")]}, b"x"])
@example({True: 1, 2: 2, 3.0: 3, "1": 4})
@example([1, True, 1.0, 0, -0.0, False, float("nan")])
@example(Base[int](1))
@example(RecordedError("a.B", "why"))
def test_every_value_comes_back_exactly(value):
    assert spelled(value) == spelled(serde.loads_typed(serde.dumps_typed(value)))


@quick
@given(values)
def test_decoded_values_share_nothing(value):
    """What one decoding gave may be changed; the next one gives the same again."""
    stored = serde.dumps_typed(value)
    before = spelled(value)
    spoil(serde.loads_typed(stored))
    assert before == spelled(serde.loads_typed(stored))
    assert before == spelled(value)


def spoil(value: Any) -> None:
    """Change every container in a value."""
    if isinstance(value, (list, tuple, collections.deque)):
        for item in value:
            spoil(item)
    if isinstance(value, dict):
        for item in value.values():
            spoil(item)
    if isinstance(value, (Plain, Mixed, Model)):
        spoil(vars(value))
    if isinstance(value, (list, dict, set, bytearray, collections.deque)):
        value.clear()


@quick
@given(
    values,
    st.sampled_from([Text("x"), Whole(1), Items([1]), Table(a=1), object()]),
    st.data(),
)
def test_what_nobody_registered_is_refused_wherever_it_stands(value, odd, data):
    """A subclass is never stored as its base."""
    place = data.draw(st.sampled_from(["list", "tuple", "value", "field", "object"]))
    holder = {
        "list": [value, odd],
        "tuple": (value, {"a": (odd,)}),
        "value": {1: value, "odd": odd},
        "field": Model(x=value, extra=[odd]),
        "object": Frozen(Plain(odd)),
    }[place]
    try:
        serde.dumps_typed(holder)
    except SerializationError as error:
        assert type(odd).__name__ in str(error)
        assert "register(" in error.hint
    else:
        raise AssertionError(f"{odd!r} was stored")


@quick
@given(st.binary(max_size=200))
def test_arbitrary_bytes_decode_or_are_a_clean_error(data):
    try:
        serde.loads_typed(("tp1", data))
    except DeserializationError:
        pass


@quick
@given(values, st.data())
def test_damaged_bytes_decode_or_are_a_clean_error(value, data):
    tag, good = serde.dumps_typed(value)
    assume(tag == "tp1" and good)
    bad = bytearray(good)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(bad) - 1))
        bad[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(bad)))
    for damaged in (bytes(bad), bytes(bad[:cut])):
        try:
            serde.loads_typed((tag, damaged))
        except DeserializationError:
            pass
