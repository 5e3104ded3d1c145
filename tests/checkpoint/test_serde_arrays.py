"""numpy's and pandas' values have stored forms, and bytes import neither."""

from __future__ import annotations

import datetime as dt
import zoneinfo

import ormsgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towpath.checkpoint.serde.jsonplus import JsonPlusSerializer
from towpath.errors import DeserializationError, SerializationError

np = pytest.importorskip("numpy")
pd = pytest.importorskip("pandas")
many = pytest.importorskip("hypothesis.extra.numpy")

# Hypothesis makes some of them; numpy has begun to ask for a unit.
pytestmark = pytest.mark.filterwarnings("ignore:The 'generic' unit:DeprecationWarning")
serde = JsonPlusSerializer(learn=False)
quick = settings(max_examples=100, deadline=None)
BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")


def round_trip(value):
    return serde.loads_typed(serde.dumps_typed(value))


# numpy

dtypes = st.deferred(
    lambda: (
        many.scalar_dtypes()
        | many.byte_string_dtypes()
        | many.unicode_string_dtypes()
        | many.array_dtypes(many.scalar_dtypes(), max_size=4)
    )
).filter(lambda dtype: dtype.itemsize)
shapes = many.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


@quick
@given(many.arrays(dtypes, shapes), st.sampled_from(["C", "F", "cut", "turned"]))
def test_an_array_comes_back_as_it_was(array, layout):
    array = {
        "C": array,
        "F": np.asfortranarray(array) if array.ndim else array,
        "cut": array[::2] if array.ndim else array,
        "turned": array.T,
    }[layout]
    [back] = round_trip([array])
    assert type(back) is np.ndarray
    assert (array.dtype, array.dtype.type) == (back.dtype, back.dtype.type)
    assert array.shape == back.shape
    assert array.tobytes() == back.tobytes()
    assert array.flags.fnc == back.flags.fnc


@quick
@given(dtypes.flatmap(many.from_dtype))
def test_a_scalar_comes_back_as_it_was(scalar):
    [back] = round_trip((scalar,))
    assert type(scalar) is type(back)
    assert repr(scalar) == repr(back)


@pytest.mark.parametrize(
    "value",
    [
        np.longlong(1),
        np.str_(""),
        np.str_("a\0"),
        np.bytes_(b"a\0"),
        np.datetime64("NaT", "s"),
        np.datetime64("2024-01-01", "25s"),
        np.float16(-0.0),
        np.bool_(True),
        np.dtype("<M8[ns]"),
        np.dtype([("a", "i4"), ("b", "f8", (2, 3))]),
    ],
    ids=repr,
)
def test_values_on_the_edge_come_back(value):
    back = round_trip(value)
    assert (type(value), repr(value)) == (type(back), repr(back))


def test_a_scalar_may_be_a_key():
    [key] = round_trip({np.int64(1): "one"})
    assert type(key) is np.int64


def test_a_decoded_array_may_be_changed_and_shares_nothing():
    stored = serde.dumps_typed(np.arange(3))
    serde.loads_typed(stored)[:] = 9
    assert [0, 1, 2] == serde.loads_typed(stored).tolist()


@pytest.mark.parametrize(
    "value",
    [
        np.array([object()]),
        np.array([("a", None)], dtype=[("x", "U1"), ("y", object)]),
        np.ma.masked_array([1, 2], mask=[0, 1]),
        np.rec.array([(1,)], dtype=[("a", "i4")]),
        np.array([1], dtype=np.dtype("i4", metadata={"unit": "m"})),
        np.random.default_rng(1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_more_than_its_bytes_is_refused(value):
    with pytest.raises(SerializationError, match=r"\$\.a"):
        serde.dumps_typed({"a": value})


def array_bytes(*payload):
    content = ormsgpack.packb(["numpy:array", list(payload)])
    return ormsgpack.packb(ormsgpack.Ext(5, content))


@pytest.mark.parametrize(
    "payload",
    [
        ("|O", [1], "C", b"x" * 8),
        ("<i8", [2**40], "C", b""),
        ("<i8", [-1], "C", b"x" * 8),
        ("<i8", [-1, -1], "C", b"x" * 8),
        ("<i8", [1], "C", b"x" * 7),
        ("|V0", [2**40], "C", b""),
        ("<U0", [2**40], "C", b""),
        ("nonsense", [1], "C", b"x"),
        ([["a", "|O"]], [1], "C", b"x" * 8),
        ("<i8", [1], "Q", b"x" * 8),
    ],
    ids=repr,
)
def test_arrays_that_are_wrong_are_a_clean_error(payload):
    with pytest.raises(DeserializationError):
        serde.loads_typed(("tp1", array_bytes(*payload)))


@pytest.mark.parametrize("value", [np.arange(3), pd.Series([1])], ids=["np", "pd"])
def test_bytes_do_not_import_a_package(value, printed_apart):
    stored = serde.dumps_typed({"a": value})
    package = type(value).__module__.partition(".")[0]
    program = (
        "import sys\n"
        "from towpath.checkpoint.serde.jsonplus import JsonPlusSerializer\n"
        "from towpath.errors import DeserializationError\n"
        f"stored = {stored!r}\n"
        "try:\n    JsonPlusSerializer().loads_typed(stored)\n"
        "except DeserializationError as error:\n    print(error)\n"
        f"assert {package!r} not in sys.modules\n"
        f"import {package}\n"
        "JsonPlusSerializer().loads_typed(stored)\n"
    )
    printed = printed_apart(program)
    assert "hint: import" in printed


# pandas

INDEXES = {
    "range": pd.RangeIndex(1, 9, 2, name="r"),
    "flat": pd.Index([3, 1, 2], dtype="int8", name=("a", 1)),
    "objects": pd.Index([1, "a", None, (1, 2)], dtype=object),
    "text": pd.Index(["a", "b"], name="words"),
    "multi": pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["x", None]),
    "dates": pd.date_range("2024-01-01", periods=3, freq="D", tz="Europe/Berlin"),
    "naive": pd.DatetimeIndex(["2024-01-01", "NaT"]).as_unit("s"),
    "deltas": pd.timedelta_range("1h", periods=3),
    "periods": pd.period_range("2024-01", periods=3, freq="M"),
    "intervals": pd.interval_range(0, 3, closed="left"),
    "categories": pd.CategoricalIndex(["b", "a"], ["b", "a", "c"], ordered=True),
    "empty": pd.Index([]),
}


@pytest.mark.parametrize("name", INDEXES)
def test_an_index_comes_back_as_it_was(name):
    value = INDEXES[name]
    back = round_trip(value)
    pd.testing.assert_index_equal(value, back, exact=True, check_order=True)
    assert value.names == back.names
    assert getattr(value, "freq", None) == getattr(back, "freq", None)


COLUMNS = {
    "int": pd.Series([1, 2], dtype="int16"),
    "float": pd.Series([1.5, float("nan")]),
    "bool": pd.Series([True, False]),
    "objects": pd.Series([{"a": (1,)}, [1]], dtype=object),
    "odd": pd.Series([None, float("nan")], dtype=object),
    "words": pd.Series(["a", None]),
    "NA words": pd.Series(["a", None], dtype="string[python]"),
    "plain words": pd.Series(["a", "b"], dtype=object),
    "masked": pd.Series([1, None], dtype="Int64"),
    "masked float": pd.Series([1.5, None], dtype="Float32"),
    "masked bool": pd.Series([True, None], dtype="boolean"),
    "naive": pd.Series(pd.to_datetime(["2024-01-01", None])).dt.as_unit("ms"),
    "zoned": pd.Series(pd.date_range("2024-10-27", periods=2, freq="2h", tz=BERLIN)),
    "utc": pd.Series(pd.to_datetime(["2024-01-01", None], utc=True)),
    "deltas": pd.Series(pd.to_timedelta([1, None], unit="s")),
    "categories": pd.Series(["x", None], dtype=pd.CategoricalDtype(["y", "x"], True)),
    "periods": pd.Series(pd.period_range("2024-01", periods=2, freq="Q")),
    "intervals": pd.Series(pd.arrays.IntervalArray.from_breaks([0, 1, 2])),
    "complex": pd.Series([1 + 2j, 3]),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_series_comes_back_as_it_was(name):
    value = COLUMNS[name].rename(("n", 1))
    [back] = round_trip([value])
    pd.testing.assert_series_equal(value, back, check_exact=True, check_freq=True)
    assert [type(item) for item in value] == [type(item) for item in back]
    assert value.dtype == back.dtype


def test_a_frame_comes_back_as_it_was():
    value = pd.DataFrame(COLUMNS)
    value.attrs = {"source": ("a", 1)}
    back = round_trip({"frame": value})["frame"]
    pd.testing.assert_frame_equal(value, back, check_exact=True)
    assert (value.attrs, list(value.dtypes)) == (back.attrs, list(back.dtypes))


@pytest.mark.parametrize(
    "value",
    [
        pd.DataFrame(),
        pd.DataFrame(index=[1, 2]),
        pd.DataFrame([[1, "a"], [2, "b"]], columns=["x", "x"]),
        pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2)])),
        pd.DataFrame({"x": [1]}, index=[3]).set_flags(allows_duplicate_labels=False),
    ],
    ids=["empty", "rows", "twice", "levels", "unique"],
)
def test_frames_on_the_edge_come_back(value):
    back = round_trip(value)
    pd.testing.assert_frame_equal(value, back, check_exact=True)
    assert value.flags == back.flags


@pytest.mark.parametrize(
    "value",
    [
        pd.Timestamp("2024-01-01 12:00"),
        pd.Timestamp("2024-01-01").as_unit("s"),
        pd.Timestamp("2024-10-27 02:30").tz_localize(BERLIN, ambiguous=False),
        pd.Timestamp("2024-01-01", tz=dt.UTC),
        pd.Timedelta(1, "ns"),
        pd.Period("2024-03", "M"),
        pd.Interval(pd.Timestamp("2024"), pd.Timestamp("2025"), "both"),
        pd.NaT,
        pd.NA,
    ],
    ids=repr,
)
def test_a_scalar_of_pandas_comes_back(value):
    back = round_trip({"a": [value]})["a"][0]
    assert (type(value), repr(value)) == (type(back), repr(back))
    assert getattr(value, "fold", 0) == getattr(back, "fold", 0)
    assert getattr(value, "unit", 0) == getattr(back, "unit", 0)


class Sub(pd.DataFrame):
    pass


@pytest.mark.parametrize(
    "value",
    [
        pd.Series(pd.arrays.SparseArray([0, 1])),
        pd.bdate_range("2024", periods=2, freq="C", holidays=["2024-01-01"]),
        Sub({"a": [1]}),
        pd.Series([object()]),
        pd.DataFrame({"a": [1]}).groupby("a"),
    ],
    ids=["sparse", "holidays", "subclass", "object", "groups"],
)
def test_what_could_not_be_rebuilt_exactly_is_refused(value):
    with pytest.raises(SerializationError, match=r"\$\.a"):
        serde.dumps_typed({"a": value})
