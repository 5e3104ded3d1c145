"""Laws of the codec: exact for every value, harmless for every input."""

from __future__ import annotations

import collections
import datetime as dt
import math
import zoneinfo
from typing import Any

from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from towpath.checkpoint.serde.jsonplus import JsonPlusSerializer
from towpath.errors import DeserializationError

serde = JsonPlusSerializer()
quick = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)

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
atoms = hashable_atoms | st.binary().map(bytearray)
keys = st.recursive(hashable_atoms, lambda inner: st.tuples(inner, inner), max_leaves=3)


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return (
        st.lists(inner, max_size=5)
        | st.lists(inner, max_size=5).map(tuple)
        | st.lists(inner, max_size=5).map(collections.deque)
        | st.dictionaries(texts, inner, max_size=5)
        | st.dictionaries(keys, inner, max_size=5)
        | st.dictionaries(texts, inner, max_size=5).map(collections.OrderedDict)
        | st.sets(keys, max_size=5)
        | st.frozensets(keys, max_size=5)
    )


values = st.recursive(atoms, containers, max_leaves=20)


def same(a: Any, b: Any) -> bool:
    """Tell whether two values are equal, and of equal types all the way down."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        pairs = zip(a.items(), b.items(), strict=True)
        return len(a) == len(b) and all(
            same(x, y) for p, q in pairs for x, y in zip(p, q, strict=True)
        )
    if isinstance(a, (list, tuple, collections.deque)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, (set, frozenset)):
        return a == b and collections.Counter(map(type, a)) == collections.Counter(
            map(type, b)
        )
    if isinstance(a, float):
        return math.copysign(1, a) == math.copysign(1, b) and a == b
    if isinstance(a, dt.datetime):
        return (a, a.tzinfo, a.fold) == (b, b.tzinfo, b.fold)
    return bool(a == b)


@quick
@given(values)
@example(
    {"lc": 1, "type": "constructor", "id": ["builtins", "eval"], "kwargs": {"x": 1}}
)
@example({"__overwrite__": {"__type__": ["\ud800"]}})
@example([{"a": [bytearray(b"x")]}, b"x"])
def test_every_value_comes_back_exactly(value):
    assert same(value, serde.loads_typed(serde.dumps_typed(value)))


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
