"""Whatever bytes are read: a value, or one clean error; no import, no flood."""

from __future__ import annotations

import dataclasses
import enum
import sys
import tracemalloc
from typing import NamedTuple

import ormsgpack
import pydantic
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from towpath.checkpoint.serde import register
from towpath.checkpoint.serde.jsonplus import JsonPlusSerializer
from towpath.checkpoint.serde.kinds import DECODERS, OBJECT, RAW_DECODERS
from towpath.errors import DeserializationError

# What can be absent is here, so that its kinds are met.
pytest.importorskip("numpy")
pd = pytest.importorskip("pandas")
pytest.importorskip("langchain_core.messages")

serde = JsonPlusSerializer(learn=False)
quick = settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


@register
@dataclasses.dataclass
class Record:
    x: int


@register
class Model(pydantic.BaseModel):
    x: int = 0


@register
class Pair(NamedTuple):
    left: int
    right: int


@register
class Level(enum.IntFlag):
    LOW = 1


NAMES = [
    *(f"{cls.__module__}:{cls.__qualname__}" for cls in (Record, Model, Pair, Level)),
    *("Send", "Interrupt", "Command", "Overwrite", "TimeoutPolicy", "DeltaSnapshot"),
    *("numpy:array", "numpy:scalar", "numpy:dtype", "langchain:HumanMessage"),
    *("pandas:DataFrame", "pandas:Series", "pandas:Index", "pandas:Array"),
    *("pandas:Timestamp", "pandas:Timedelta", "pandas:Period", "pandas:Interval"),
    *("pydantic:HttpUrl", "os:system", "builtins:eval", "subprocess:Popen"),
]
WORDS = ["C", "<i8", "|O", "flat", "range", "multi", "Masked", "StringDtype", "os"]
WORDS += ["", "list", "UTC", "ValueError", "IPv4Network", "0.0.0.0/0", "PosixPath"]


def extension(code, payload):
    return ormsgpack.Ext(code, ormsgpack.packb(payload))


def hostile(inner):
    few = st.lists(inner, max_size=6)
    codes = st.sampled_from(sorted(DECODERS))
    return (
        few
        | st.dictionaries(st.text(max_size=3), inner, max_size=4)
        | st.builds(extension, codes, inner)
        | st.builds(extension, codes, few)
        | st.builds(
            lambda name, content: extension(OBJECT, [name, content]),
            st.sampled_from(NAMES),
            inner,
        )
    )


atoms = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(WORDS)
    | st.binary(max_size=20)
    | st.builds(
        ormsgpack.Ext, st.sampled_from(sorted(RAW_DECODERS)), st.binary(max_size=20)
    )
    | st.builds(ormsgpack.Ext, st.integers(0, 127), st.binary(max_size=20))
    | st.just(extension(28, [0, 2**60, 1]))
    | st.just(extension(37, ["IPv6Network", "::/0"]))
)


@quick
@given(st.recursive(atoms, hostile, max_leaves=12))
@pytest.mark.filterwarnings("ignore")  # of pandas, about what it is given
def test_well_formed_bytes_of_nonsense_decode_or_are_a_clean_error(content):
    data = ormsgpack.packb(content)
    before = set(sys.modules)
    try:
        serde.loads_typed(("tp1", data))
    except DeserializationError:
        pass
    grown = set(sys.modules) - before
    assert set() == {
        name
        for name in grown
        # These have a fixed home each; see `langchain`, `pydantic` and `zoneinfo`.
        if name.partition(".")[0] not in {"langchain_core", "pydantic", "tzdata"}
    }


ENDLESS = [
    extension(28, [0, 2**62, 1]),
    extension(37, ["IPv6Network", "::/0"]),
    extension(37, ["IPv4Network", "0.0.0.0/0"]),
]


@pytest.mark.parametrize("endless", ENDLESS, ids=["range", "network", "old network"])
@pytest.mark.parametrize(
    "wrap",
    [
        *(lambda part, code=code: extension(code, part) for code in sorted(DECODERS)),
        lambda part: extension(6, ["ValueError", part, []]),
        lambda part: extension(6, ["ValueError", [], part]),
        lambda part: extension(6, [None, part, []]),
        lambda part: extension(OBJECT, [NAMES[1], {"x": 1, "": [part, None, None]}]),
        *(
            lambda part, name=name: extension(OBJECT, [name, part])
            for name in (*NAMES, "DeltaReplay")
        ),
        lambda part: extension(OBJECT, part),
        lambda part: extension(OBJECT, ["numpy:array", ["|u1", part, "C", b""]]),
        lambda part: extension(OBJECT, ["numpy:array", ["|u1", [2**62], "C", part]]),
        lambda part: extension(OBJECT, ["pandas:Index", ["flat", part, None, None]]),
        lambda part: extension(OBJECT, ["pandas:Interval", part]),
        lambda part: extension(
            OBJECT, ["pandas:Array", ["StringDtype", "python", True, part]]
        ),
    ],
)
def test_what_goes_on_for_ever_is_not_gone_through(endless, wrap):
    tracemalloc.start()
    try:
        with pytest.raises(DeserializationError):
            serde.loads_typed(("tp1", ormsgpack.packb(wrap(endless))))
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_a_range_of_pandas_is_not_filled_in():
    long = extension(OBJECT, ["pandas:Index", ["range", 0, 2**60, 1, None]])
    short = pd.Series([1], index=pd.RangeIndex(3, 4))
    assert short.equals(serde.loads_typed(serde.dumps_typed(short)))
    scalar = extension(OBJECT, ["numpy:scalar", ["<i8", b"\0" * 8]])
    for payload in (
        ["pandas:Series", [scalar, long, None, {}, True]],
        ["pandas:Series", [long, long, None, {}, True]],
        ["pandas:Array", ["CategoricalDtype", long, long, False]],
        ["pandas:Array", ["IntervalDtype", long, long, "left"]],
        ["pandas:Array", ["PeriodDtype", long, "D"]],
        ["pandas:Array", ["DatetimeTZDtype", long, None]],
    ):
        with pytest.raises(DeserializationError):
            serde.loads_typed(("tp1", ormsgpack.packb(extension(OBJECT, payload))))


@pytest.mark.parametrize(
    "data",
    [
        b"\xdd\x0f\xff\xff\xff" * 250,
        b"\xdf\x0f\xff\xff\xff\xa1a" * 250,
        b"\xdb\xff\xff\xff\xff",
        b"\xc9\xff\xff\xff\xff\x05",
    ],
    ids=["lists", "dicts", "text", "extension"],
)
def test_a_declared_length_takes_no_memory(data):
    tracemalloc.start()
    try:
        with pytest.raises(DeserializationError):
            serde.loads_typed(("tp1", data))
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
