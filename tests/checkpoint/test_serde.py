"""The codec: exact, or an error that names the place."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import ipaddress
import math
import pathlib
import re
import threading
import uuid
import zoneinfo
from concurrent.futures import Future
from functools import cached_property
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    TypedDict,
    TypeVar,
)

import ormsgpack
import pydantic
import pytest

from towpath.checkpoint.serde import RecordedError, register, register_schema
from towpath.checkpoint.serde.codec import DEPTH_MAX, Codec
from towpath.checkpoint.serde.event_hooks import register_serde_event_listener
from towpath.checkpoint.serde.jsonplus import JsonPlusSerializer
from towpath.checkpoint.serde.registry import Registry
from towpath.checkpoint.serde.types import _DeltaSnapshot
from towpath.errors import DeserializationError, SerializationError
from towpath.types import Command, Interrupt, Overwrite, Send

serde = JsonPlusSerializer()


def label(value: object) -> str:
    """Name a case the same in every process: without addresses and set orders."""
    if isinstance(value, (set, frozenset)):
        value = sorted(value, key=repr)
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))[:40]


def round_trip(value: Any) -> Any:
    return serde.loads_typed(serde.dumps_typed(value))


BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")

EXACT = [
    None,
    True,
    0,
    -1,
    2**63,
    2**64 - 1,
    2**64,
    -(2**63) - 1,
    10**400,
    -(10**400),
    1.5,
    -0.0,
    math.inf,
    "",
    "grün 日本 🦜",
    "\0",
    "lone \ud800 surrogate",
    b"",
    b"\xc4\xc5\xc6",
    bytearray(b"\x00\xff"),
    [],
    [bytearray(b"x"), b"x"],
    {"a": [{"b": bytearray(b"x")}]},
    (),
    (1, (2, [3, (4,)])),
    set(),
    {1, "a", (2, 3)},
    frozenset({1, frozenset({2})}),
    {},
    {1: "int", "1": "str", (1,): "tuple", None: 0, 1.5: 0, b"x": 0, frozenset(): 0},
    {"\ud800": 1},
    {"grün": {1: 2}},
    {"lc": 1, "type": "constructor", "id": ["os", "system"], "kwargs": {}},
    {"__type__": "x", "__overwrite__": [1], "$type": 1, "": 2},
    collections.OrderedDict([("b", 1), ("a", 2)]),
    collections.defaultdict(list, {"a": [1]}),
    collections.defaultdict(None, {1: 2}),
    collections.Counter("mississippi"),
    collections.deque([1, 2], maxlen=3),
    collections.deque(),
    1 + 2j,
    decimal.Decimal("1.100"),
    decimal.Decimal("-Infinity"),
    fractions.Fraction(1, 3),
    range(0, 10, 3),
    dt.datetime(2024, 5, 6, 7, 8, 9, 123456),
    dt.datetime(2024, 5, 6, tzinfo=dt.UTC),
    dt.datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN, fold=1),
    dt.datetime(
        2024, 5, 6, tzinfo=dt.timezone(dt.timedelta(hours=5, minutes=30), "IST")
    ),
    dt.date(1, 1, 1),
    dt.time(23, 59, 59, 999999, fold=1),
    dt.time(1, tzinfo=dt.UTC),
    dt.timedelta(days=-1, microseconds=1),
    dt.timezone(dt.timedelta(hours=1)),
    BERLIN,
    uuid.UUID(int=7),
    pathlib.PurePosixPath("/a/b"),
    pathlib.PureWindowsPath("c:\\a"),
    pathlib.Path("relative"),
    ipaddress.ip_address("10.0.0.1"),
    ipaddress.ip_address("::1"),
    ipaddress.ip_network("10.0.0.0/8"),
    ipaddress.ip_interface("10.0.0.1/8"),
    re.compile(r"a(?i:b)\d", re.MULTILINE),
    re.compile(rb"x"),
    ...,
    Send("node", {"a": (1,)}),
    Send("node", 1, timeout=3),
    Command(
        update={"a": 1},
        resume={"id": None},
        goto=[Send("a", 1), "b"],
        graph=Command.PARENT,
    ),
    Interrupt({"question": 1}, "id"),
    Overwrite([1]),
    _DeltaSnapshot([1, 2]),
]


@pytest.mark.parametrize("value", EXACT, ids=label)
def test_a_value_comes_back_with_its_type(value):
    back = round_trip(value)
    assert type(value) is type(back)
    assert value == back
    assert repr(value) == repr(back)


def test_nan_comes_back():
    assert math.isnan(round_trip([math.nan])[0])


def test_dates_keep_zone_and_fold():
    value = dt.datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN, fold=1)
    back = round_trip(value)
    assert BERLIN is back.tzinfo
    assert (1, value.utcoffset()) == (back.fold, back.utcoffset())


def test_a_container_keeps_what_makes_it_special():
    counted = round_trip(collections.defaultdict(list))
    counted["new"].append(1)
    assert {"new": [1]} == counted
    assert 3 == round_trip(collections.deque([1], maxlen=3)).maxlen
    assert ["b", "a"] == list(round_trip(collections.OrderedDict(b=1, a=2)))


def test_an_answer_of_none_is_kept_apart_from_no_answer():
    assert round_trip(Command(resume=None)).has_resume
    assert not round_trip(Command(update=1)).has_resume


def test_a_question_keeps_what_its_answer_must_look_like():
    class Answer(pydantic.BaseModel):
        sure: bool

    schema = round_trip(
        Interrupt("sure?", "id", response_schema=Answer)
    ).response_schema
    assert {"sure"} == schema["properties"].keys()
    assert (
        schema
        == round_trip(Interrupt("q", "id", response_schema=schema)).response_schema
    )


def test_a_dict_keeps_its_order():
    assert ["b", "a", 3, "c"] == list(round_trip({"b": 1, "a": 2, 3: 4, "c": 5}))


# Exceptions


@pytest.mark.parametrize(
    "error",
    [
        ValueError("x", 3),
        KeyError("missing"),
        OSError(2, "No such file", "name.txt"),
        FileNotFoundError(2, "No such file", "name.txt"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
        ExceptionGroup("several", [ValueError(1), TypeError("two")]),
        KeyboardInterrupt(),
    ],
    ids=label,
)
def test_a_builtin_exception_comes_back(error):
    back = round_trip(error)
    assert type(error) is type(back)
    assert str(error) == str(back)


def test_the_notes_of_an_exception_come_back():
    error = ValueError("x")
    error.add_note("seen at noon")
    assert ["seen at noon"] == round_trip(error).__notes__


class PaymentError(Exception):
    pass


def test_any_other_exception_comes_back_as_a_record():
    back = round_trip([PaymentError("declined")])[0]
    assert isinstance(back, RecordedError)
    assert back.type_name.endswith("PaymentError")
    assert "declined" == back.message
    again = round_trip(back)
    assert (back.type_name, back.message) == (again.type_name, again.message)


def test_an_exception_without_a_message_of_its_own_is_recorded():
    class Mute(Exception):
        def __str__(self) -> str:
            raise KeyError("text")

    assert "KeyError" in round_trip(Mute()).message


def test_an_exception_that_carries_what_cannot_be_stored_is_recorded():
    back = round_trip(ValueError("x", threading.Lock()))
    assert isinstance(back, RecordedError)
    assert "ValueError" == back.type_name


# Classes of the program


class Colour(enum.Enum):
    RED = "r"


class Level(enum.IntEnum):
    LOW = 1


class Kind(enum.StrEnum):
    A = "a"


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


class Pair(NamedTuple):
    left: int
    right: Any = None


@dataclasses.dataclass
class Plain:
    x: int
    tags: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    x: Any
    late: int = dataclasses.field(init=False, repr=False, compare=False)


@dataclasses.dataclass
class Derived(Plain):
    total: int = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.total = self.x * 2

    @cached_property
    def slow(self) -> int:
        return self.x + 1


class Inner(pydantic.BaseModel):
    when: dt.datetime
    colour: Colour = Colour.RED


T = TypeVar("T")


class Box(pydantic.BaseModel, Generic[T]):
    content: T


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")

    inner: Inner | None = None
    pair: tuple[int, ...] = ()
    _private: int = pydantic.PrivateAttr(default=0)
    _unset: int = pydantic.PrivateAttr()


class Sub(Model):
    more: int = 1


UserId = NewType("UserId", Frozen)


class State(TypedDict):
    models: Annotated[list[Model], "reducer"]
    values: dict[str, Plain | Frozen | Derived]
    pair: Pair
    kinds: tuple[Colour, Level, Kind, Rights]
    box: Box[int]
    user: UserId


register_schema(State)


def model() -> Model:
    made = Sub(inner=Inner(when=dt.datetime(2024, 1, 1)), pair=(1, 2), surprise={"a"})
    made._private = 7
    return made


@pytest.mark.parametrize(
    "value",
    [
        Colour.RED,
        Level.LOW,
        Kind.A,
        Rights.READ | Rights.WRITE,
        Pair(1, (2,)),
        Plain(1, ["a"]),
        Frozen({"a": (1,)}),
        Derived(3),
        Box[int](content=3),
        model(),
        [{"deep": (Plain(1), {Colour.RED: Pair(1)})}],
    ],
    ids=label,
)
def test_an_object_of_a_declared_class_comes_back(value):
    back = round_trip(value)
    assert type(value) is type(back)
    assert value == back


def test_an_enum_member_comes_back_as_itself():
    assert Colour.RED is round_trip(Colour.RED)
    assert Kind.A is round_trip({"k": Kind.A})["k"]
    assert [Kind.A] == [type(key) is Kind and key for key in round_trip({Kind.A: 1})]


def test_a_model_keeps_its_private_and_unset_fields():
    made = model()
    back = round_trip(made)
    assert 7 == back._private
    assert made.model_fields_set == back.model_fields_set
    assert {"surprise": {"a"}} == back.model_extra
    with pytest.raises(AttributeError):
        _ = back._unset


class Page(pydantic.BaseModel):
    at: pydantic.HttpUrl
    kept_in: pydantic.PostgresDsn | None = None


def test_urls_of_a_model_come_back():
    register(Page)
    page = Page(at="http://example.org/ü?a#b", kept_in="postgres://u:p@h1:1,h2:2/db")
    back = round_trip(page)
    assert page == back
    assert type(page.at) is type(back.at)


def test_a_secret_is_not_stored_unless_its_class_is_registered():
    with pytest.raises(SerializationError, match="SecretStr"):
        serde.dumps_typed([pydantic.SecretStr("x")])


def test_a_field_that_was_never_set_stays_unset():
    assert not hasattr(round_trip(Frozen(1)), "late")


def test_decoding_runs_no_code_of_the_class():
    value = Derived(3)
    value.total = 99
    assert 99 == round_trip(value).total


def test_a_cached_property_is_computed_anew():
    value = Derived(3)
    assert 4 == value.slow
    assert "slow" not in vars(round_trip(value))


def test_attributes_that_are_no_fields_come_back():
    value = Plain(1)
    value.extra = "kept"
    assert "kept" == round_trip(value).extra


def test_a_subclass_may_stand_where_its_base_was_declared():
    class Late(Plain):
        pass

    assert isinstance(round_trip(Late(1)), Late)


def test_local_names_in_a_schema_are_found():
    @dataclasses.dataclass
    class Local:
        x: int

    class LocalState(TypedDict):
        items: list[Local]

    register_schema(LocalState)
    assert Local(1) == round_trip(Local(1))


@dataclasses.dataclass
class Known:
    x: int


class HalfKnown(TypedDict):
    unknown: NoSuchName  # noqa: F821
    known: list[Known]


def test_a_name_that_only_checkers_know_does_not_hide_the_others():
    register_schema(HalfKnown)
    assert Known(1) == round_trip(Known(1))


def test_members_written_out_in_a_schema_are_declared():
    class Status(enum.Enum):
        DONE = 1

    class LiteralState(TypedDict):
        status: Literal[Status.DONE]

    register_schema(LiteralState)
    assert Status.DONE is round_trip(Status.DONE)


@dataclasses.dataclass
class Generical(Generic[T]):
    x: T


class Slotted:
    __slots__ = ("hidden", "kept")


@dataclasses.dataclass
class Half(Slotted):
    x: int
    hidden: int = 0


@dataclasses.dataclass
class Guarded:
    x: int

    @property
    def double(self) -> int:
        return self.x * 2

    @double.setter
    def double(self, value: int) -> None:
        raise AssertionError("stored bytes called a setter")


def test_a_generic_dataclass_need_not_store_its_annotation():
    register(Generical)
    assert Generical(1) == round_trip(Generical[int](1))


def test_slots_of_a_base_come_back_unless_a_subclass_hides_them():
    register(Half)
    value = Half(1, hidden=3)
    value.kept = 2
    back = round_trip(value)
    assert (1, 3, 2) == (back.x, back.hidden, back.kept)


def test_bytes_cannot_call_a_property():
    register(Guarded, name="guarded")
    content = ormsgpack.packb(["guarded", {"x": 1, "double": 7}])
    back = serde.loads_typed(("tp1", ormsgpack.packb(ormsgpack.Ext(5, content))))
    assert 2 == back.double


def test_a_default_may_be_made_from_the_other_fields():
    class Grown(pydantic.BaseModel):
        x: int

    register(Grown, name="grown by a rule")
    data = serde.dumps_typed(Grown(x=1))

    class GrownNow(pydantic.BaseModel):
        x: int
        y: int = pydantic.Field(default_factory=lambda made: made["x"] + 1)

    register(GrownNow, name="grown by a rule")
    assert 2 == serde.loads_typed(data).y


# What has no stored form


class Unknown:
    pass


@dataclasses.dataclass
class Undeclared:
    x: int = 1


class MyDict(dict):
    pass


@pytest.mark.parametrize(
    ("value", "path", "hint"),
    [
        (
            {"messages": [0, 1, {"lock": threading.Lock()}]},
            "$.messages[2].lock",
            "encode=",
        ),
        ([Undeclared()], "$[0]", "Undeclared)"),
        ({"a": (1, [Unknown()])}, "$.a[1][0]", "encode="),
        ({"odd key": {1: Unknown()}}, "$['odd key'][1]", "encode="),
        (Plain(1, [Unknown()]), "$.tags[0]", "encode="),
        (Model(inner=None, surprise=Unknown()), "$", "encode="),
        (MyDict(a=1), "$", "MyDict, encode="),
        (MyDict(a=1), "$", "store a plain dict"),
        ([memoryview(b"x")], "$[0]", "encode="),
        ([object()], "$[0]", "encode="),
    ],
    ids=label,
)
def test_what_has_no_stored_form_is_an_error_that_names_its_place(value, path, hint):
    with pytest.raises(SerializationError) as caught:
        serde.dumps_typed(value)
    assert f"`{path}" in str(caught.value)
    assert "towpath.checkpoint.serde.register(" in caught.value.hint
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (lambda: None, "keep it out of the state"),
        (len, "keep it out of the state"),
        (type, "keep it out of the state"),
        (threading, "keep it out of the state"),
        (Future(), "call its result()"),
    ],
    ids=label,
)
def test_nobody_is_told_to_register_what_cannot_be(value, hint):
    with pytest.raises(SerializationError) as caught:
        serde.dumps_typed({"a": value})
    assert hint in caught.value.hint
    assert "register" not in caught.value.hint


def test_a_path_is_what_it_was_or_an_error():
    server = pathlib.PureWindowsPath("//a/")
    assert server == round_trip(server)
    path = server / "b"
    if pathlib.PureWindowsPath(str(path)) == path:
        assert path == round_trip(path)
    else:  # in CPython 3.11
        with pytest.raises(SerializationError, match="no text makes the path"):
            serde.dumps_typed(path)


def test_a_factory_that_is_code_is_refused():
    with pytest.raises(SerializationError, match="factory"):
        serde.dumps_typed({"d": collections.defaultdict(lambda: 1)})


def test_a_value_that_holds_itself_is_an_error():
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(SerializationError, match="nested too deeply"):
        serde.dumps_typed(loop)


def test_deep_values_come_back_or_are_refused():
    value: Any = []
    for _ in range(250):
        value = [value]
    assert value == round_trip(value)
    wrapped: Any = 0
    for _ in range(DEPTH_MAX - 1):
        wrapped = (wrapped,)
    assert wrapped == round_trip(wrapped)
    for _ in range(20):
        wrapped = (wrapped,)
    with pytest.raises(SerializationError, match="nested too deeply"):
        serde.dumps_typed(wrapped)


def test_dicts_with_other_keys_come_back_from_as_deep_as_they_are_stored():
    """What cannot be read must not be written."""
    value: Any = {}
    for depth in range(DEPTH_MAX + 5):
        value = {depth: value}
        try:
            stored = serde.dumps_typed(value)
        except SerializationError as error:
            assert "nested too deeply" in str(error)
            assert depth >= DEPTH_MAX
        else:
            assert value == serde.loads_typed(stored)


@pytest.mark.parametrize("wrap", [list, tuple, lambda loop: {1: loop[0]}, Plain])
def test_a_circle_through_any_container_is_an_error(wrap):
    loop: list[Any] = []
    loop.append(wrap([loop]))
    with pytest.raises(SerializationError, match="nested too deeply"):
        serde.dumps_typed(loop)


def test_what_appears_twice_comes_back_as_two():
    shared = [1]
    first, second = round_trip([shared, shared])
    first.append(2)
    assert [1] == second


def test_a_key_that_cannot_be_printed_is_stored_or_named_by_its_type():
    assert {10**5000: 1} == round_trip({10**5000: 1})
    with pytest.raises(SerializationError, match="at `\\$\\[a int\\]`"):
        serde.dumps_typed({10**5000: Unknown()})


# The registry


def test_a_registered_class_uses_its_own_functions():
    class Celsius:
        def __init__(self, degrees: float) -> None:
            self.degrees = degrees

    register(
        Celsius, encode=lambda c: {"d": c.degrees}, decode=lambda p: Celsius(p["d"])
    )
    assert 21.5 == round_trip([Celsius(21.5)])[0].degrees


def test_register_is_a_decorator_for_plain_classes():
    @register
    @dataclasses.dataclass
    class Decorated:
        x: int

    assert Decorated(1) == round_trip(Decorated(1))


def test_the_functions_may_be_given_in_order():
    class Kelvin:
        def __init__(self, degrees: float) -> None:
            self.degrees = degrees

    register(Kelvin, lambda kelvin: (kelvin.degrees,), lambda payload: Kelvin(*payload))
    assert 3 == round_trip({"t": Kelvin(3)})["t"].degrees
    with pytest.raises(TypeError, match="go together"):
        register(Kelvin, encode=vars)


def test_what_a_function_returns_may_itself_need_one():
    class Inch:
        pass

    class Foot:
        def __init__(self, inches: list[Inch]) -> None:
            self.inches = inches

    register(Inch, lambda _: None, lambda _: Inch())
    register(Foot, lambda foot: foot.inches, Foot)
    assert [Inch] * 12 == [
        type(inch) for inch in round_trip(Foot([Inch()] * 12)).inches
    ]


def test_a_function_that_fails_is_named_with_its_place():
    class Broken:
        pass

    register(Broken, lambda _: 1 / 0, lambda _: Broken())
    with pytest.raises(SerializationError, match=r"at `\$\.a`: a `.*Broken` was not"):
        serde.dumps_typed({"a": Broken()})


def test_a_class_that_needs_functions_is_not_registered_without():
    with pytest.raises(SerializationError, match="no stored form"):
        register(Unknown)


def test_a_registered_exception_is_no_record():
    class Declined(Exception):
        pass

    register(Declined, encode=lambda e: list(e.args), decode=lambda p: Declined(*p))
    assert isinstance(round_trip(Declined("x")), Declined)


def test_bytes_of_a_class_that_is_not_registered_are_refused():
    elsewhere = Codec(Registry(), learn=True)
    data = elsewhere.encode([Undeclared(3)])
    with pytest.raises(DeserializationError, match="not registered") as caught:
        serde.loads_typed(("tp1", data))
    assert "register" in caught.value.hint


def test_who_listens_hears_of_a_refused_class(caplog):
    def fails(_):
        raise ValueError("a listener's own")

    heard = []
    data = Codec(Registry(), learn=True).encode([Undeclared(3)])
    ends = [register_serde_event_listener(each) for each in (fails, heard.append)]
    for end in ends:
        with pytest.raises(DeserializationError):
            serde.loads_typed(("tp1", data))
        end()
        end()
    with pytest.raises(DeserializationError):
        serde.loads_typed(("tp1", data))
    told = {"kind": "blocked", "module": __name__, "name": "Undeclared"}
    assert [told, told] == heard
    assert "Serde listener failed" in caplog.text


def test_a_learning_codec_takes_plain_classes_as_they_come():
    codec = Codec(Registry(), learn=True)
    assert Undeclared(3) == codec.decode(codec.encode(Undeclared(3)))
    with pytest.raises(SerializationError):
        codec.encode(Unknown())


def test_a_class_that_gained_a_field_reads_what_was_stored_before():
    @dataclasses.dataclass
    class Grown:
        x: int

    register(Grown, name="grown")
    data = serde.dumps_typed(Grown(1))

    @dataclasses.dataclass
    class GrownNow:
        x: int
        y: list[int] = dataclasses.field(default_factory=list)
        z: int = 5

    register(GrownNow, name="grown")
    assert GrownNow(1, [], 5) == serde.loads_typed(data)


def test_a_model_that_gained_a_field_reads_what_was_stored_before():
    class Grown(pydantic.BaseModel):
        x: int

    register(Grown, name="grown model")
    data = serde.dumps_typed(Grown(x=1))

    class GrownNow(pydantic.BaseModel):
        x: int
        y: list[int] = []

    register(GrownNow, name="grown model")
    assert GrownNow(x=1) == serde.loads_typed(data)


# Tags


def test_plain_bytes_are_stored_as_they_are():
    assert ("bytes", b"\x93NUMPY") == serde.dumps_typed(b"\x93NUMPY")
    assert ("null", b"") == serde.dumps_typed(None)


@pytest.mark.parametrize("tag", ["pickle", "json", "", "tp2"])
def test_bytes_of_another_codec_are_refused(tag):
    with pytest.raises(DeserializationError, match="unknown form"):
        serde.loads_typed((tag, b"\x80"))


def test_pickle_is_never_used():
    with pytest.warns(UserWarning, match="never unpickles"):
        assert JsonPlusSerializer(pickle_fallback=True)
    with pytest.raises(SerializationError):
        serde.dumps_typed(Unknown())


# Hostile bytes


def extension(code: int, data: bytes) -> bytes:
    return ormsgpack.packb(ormsgpack.Ext(code, data))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff\xa1a",
        b"\xc6\xff\xff\xff\xffab",
        b"\x81\x01\x02",
        b"\x91" * 100_000,
        b"\xa1\xff",
        extension(99, b""),
        extension(99, b"\x90"),
        extension(27, ormsgpack.packb(["1e999999999"])),
        b"\xd4\xff\x00",
        extension(5, ormsgpack.packb(["os:system", "ls"])),
        extension(5, ormsgpack.packb([["unhashable"], {}])),
        extension(5, ormsgpack.packb("short")),
        extension(5, ormsgpack.packb(["Overwrite", {"__class__": 1}])),
        extension(5, ormsgpack.packb(["Send", []])),
        extension(6, ormsgpack.packb(["SystemExit2", [], []])),
        extension(6, ormsgpack.packb(["os.system", ["ls"], []])),
        extension(17, b"short"),
        extension(19, ormsgpack.packb([[1]])),
        extension(22, ormsgpack.packb(["eval", 1, 2])),
        extension(22, ormsgpack.packb(["list", 1])),
        extension(27, ormsgpack.packb([1, 0])),
        extension(29, ormsgpack.packb([1])),
        extension(33, ormsgpack.packb([1])),
        extension(34, ormsgpack.packb("../../etc/passwd")),
        extension(35, ormsgpack.packb(["(", 0])),
        extension(36, ormsgpack.packb(["os", "x"])),
        extension(37, ormsgpack.packb(["IPv4Address", 5])),
    ],
    ids=label,
)
def test_bytes_that_are_wrong_are_a_clean_error(data):
    with pytest.raises(DeserializationError):
        serde.loads_typed(("tp1", data[:200_000]))


@pytest.mark.parametrize("nest", [1, 250])
def test_deep_bytes_neither_crash_nor_take_the_stack(nest):
    data = b"\x90"
    for _ in range(DEPTH_MAX):
        data = extension(18, b"\x91" * nest + data)
    with pytest.raises(DeserializationError):
        serde.loads_typed(("tp1", extension(18, data)))


def test_the_cause_of_a_decoding_error_is_kept():
    with pytest.raises(DeserializationError) as caught:
        serde.loads_typed(("tp1", extension(27, ormsgpack.packb([1, 0]))))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_several_values_are_decoded_as_each_by_itself() -> None:
    serde = JsonPlusSerializer()
    values = [1, "text", b"bytes", None, {"a": [decimal.Decimal("1.5")]}, (1, 2), {3}]
    cells = [serde.dumps_typed(value) for value in values]
    assert values == serde.loads_many(cells)
    plain = [cell for cell in cells if cell[0] == "tp1"]
    assert [serde.loads_typed(cell) for cell in plain] == serde.loads_many(plain)


def test_a_damaged_value_among_several_spoils_no_other() -> None:
    serde = JsonPlusSerializer()
    values = (1, [2, 3], "text", 4)
    cells = [serde.dumps_typed(value) for value in values]
    for at, (tag, data) in enumerate(cells):
        cut = [*cells[:at], (tag, data[:-1]), *cells[at + 1 :]]
        with pytest.raises(DeserializationError):
            serde.loads_many(cut)
        # What comes after a value is not looked at, alone or among several.
        longer = [*cells[:at], (tag, data + b"\x01"), *cells[at + 1 :]]
        assert [*values] == serde.loads_many(longer)
