"""The stored forms of pandas' frames, series, indexes, arrays and scalars.

Each is taken apart into simpler ones and, in the end, into numpy's arrays, so
that dtypes, names, categories and zones come back as they were. pandas is never
imported here; see `arrays`. Kinds that cannot be rebuilt exactly (sparse and
Arrow arrays, subclasses, frequencies with holidays) are refused.
"""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable
from typing import Any, Final

from towpath.checkpoint.serde.arrays import loaded
from towpath.checkpoint.serde.kinds import listed
from towpath.checkpoint.serde.registry import DEFAULT, Entry, Registry
from towpath.checkpoint.serde.shape import Shape
from towpath.errors import SerializationError

_PREFIX: Final = "pandas:"
_HELD: Final = frozenset({type(None), bool, list, str})


def _pandas() -> Any:
    return loaded("pandas")


def _is_numpys(dtype: Any) -> bool:
    return isinstance(dtype, loaded("numpy").dtype)


# Columns of values: a list stands for an array of objects


def _values(column: Any) -> Any:
    """Return what a series or an index holds: an array, or a list of objects."""
    if not _is_numpys(column.dtype):
        return column.array
    values = column.to_numpy()
    return list(values) if values.dtype.hasobject else values


def _column(values: Any) -> Any:
    """Undo `_values`."""
    if type(values) is not list:
        return _held(values)
    column = loaded("numpy").empty(len(values), dtype=object)
    for place, value in enumerate(values):  # an item may be a list itself
        column[place] = value
    return column


def _held(part: Any) -> Any:
    """Refuse what is longer than its bytes, as a range: it would be filled in."""
    pandas = _pandas()
    if type(part) in _HELD or type(part) is loaded("numpy").ndarray:
        return part
    held = (pandas.api.extensions.ExtensionArray, pandas.Index, dt.tzinfo)
    if not isinstance(part, held) or type(part) is pandas.RangeIndex:
        raise TypeError(f"a {type(part).__name__} is no part of an array")
    return part


# Extension arrays


def _category_encode(array: Any) -> list[Any]:
    return [array.codes, _filled(array.categories), array.ordered]


def _category_decode(codes: Any, categories: Any, ordered: bool) -> Any:
    pandas = _pandas()
    dtype = pandas.CategoricalDtype(categories, ordered)
    return pandas.Categorical.from_codes(codes, dtype=dtype)


def _zoned_encode(array: Any) -> list[Any]:
    return [array.asi8.view(f"M8[{array.unit}]"), array.tz]


def _zoned_decode(instants: Any, zone: Any) -> Any:
    index = _pandas().DatetimeIndex(instants)
    return index.tz_localize("UTC").tz_convert(zone).array


def _text_encode(array: Any) -> list[Any]:
    pandas, dtype = _pandas(), array.dtype
    words = [None if pandas.isna(word) else word for word in array]
    return [dtype.storage, dtype.na_value is pandas.NA, words]


def _text_decode(storage: str, is_na: bool, words: list[Any]) -> Any:
    pandas = _pandas()
    missing = pandas.NA if is_na else loaded("numpy").nan
    dtype = pandas.StringDtype(storage, na_value=missing)
    return pandas.array(words, dtype=dtype)


def _masked_encode(array: Any) -> list[Any]:
    return [array.to_numpy(array.dtype.numpy_dtype, na_value=0), array.isna()]


def _masked_decode(values: Any, mask: Any) -> Any:
    arrays = _pandas().arrays
    kinds = {"b": "BooleanArray", "f": "FloatingArray"}
    return getattr(arrays, kinds.get(values.dtype.kind, "IntegerArray"))(values, mask)


def _period_encode(array: Any) -> list[Any]:
    return [array.asi8, array.freqstr]


def _period_decode(ordinals: Any, freq: str) -> Any:
    return _pandas().PeriodIndex.from_ordinals(ordinals, freq=freq).array


def _interval_encode(array: Any) -> list[Any]:
    return [_filled(array.left), _filled(array.right), array.closed]


def _filled(index: Any) -> Any:
    """Return an index that is no range: see `_held`."""
    if type(index) is not _pandas().RangeIndex:
        return index
    return _pandas().Index(index.to_numpy(), name=index.name)


def _interval_decode(left: Any, right: Any, closed: str) -> Any:
    return _pandas().arrays.IntervalArray.from_arrays(left, right, closed)


_ARRAYS: Final[dict[str, tuple[Callable[..., Any], Callable[..., Any]]]] = {
    "CategoricalDtype": (_category_encode, _category_decode),
    "DatetimeTZDtype": (_zoned_encode, _zoned_decode),
    "StringDtype": (_text_encode, _text_decode),
    "PeriodDtype": (_period_encode, _period_decode),
    "IntervalDtype": (_interval_encode, _interval_decode),
    "Masked": (_masked_encode, _masked_decode),
}


def _array_encode(array: Any) -> list[Any]:
    dtype = array.dtype
    kind = "Masked" if hasattr(dtype, "numpy_dtype") else type(dtype).__name__
    if kind not in _ARRAYS or _is_numpys(getattr(dtype, "_dtype", None)):
        raise SerializationError(
            f"an array of the dtype {dtype} has no stored form",
            hint="convert it first: array.to_numpy()",
        )
    return [kind, *_ARRAYS[kind][0](array)]


def _array_decode(payload: Any) -> Any:
    kind, *parts = listed(payload)
    return _ARRAYS[kind][1](*map(_held, parts))


# Indexes


def _index_encode(index: Any) -> list[Any]:
    pandas = _pandas()
    if type(index) is pandas.RangeIndex:
        return ["range", index.start, index.stop, index.step, index.name]
    if type(index) is pandas.MultiIndex:
        codes = [loaded("numpy").asarray(code) for code in index.codes]
        return ["multi", list(index.levels), codes, list(index.names)]
    return ["flat", _values(index), index.name, _frequency(index)]


def _frequency(index: Any) -> str | None:
    freq = getattr(index, "freq", None)
    if freq is None or type(index).__name__ == "PeriodIndex":
        return None
    name: str = freq.freqstr
    if _pandas().tseries.frequencies.to_offset(name) != freq:
        raise SerializationError(f"the frequency {freq!r} has no stored form")
    return name


def _index_decode(payload: Any) -> Any:
    pandas = _pandas()
    kind, *parts = listed(payload)
    if kind == "range":
        start, stop, step, name = parts
        return pandas.RangeIndex(start, stop, step, name=name)
    if kind == "multi":
        levels, codes, names = parts
        return pandas.MultiIndex(
            listed(levels), list(map(_held, codes)), names=listed(names)
        )
    values, name, freq = parts
    column = _column(values)
    index = pandas.Index(column, dtype=column.dtype, name=name, copy=False)
    return index if freq is None else type(index)(index, freq=freq, name=name)


# Series and frames


def _series_encode(series: Any) -> list[Any]:
    return [_values(series), series.index, series.name, *_about(series)]


def _series_decode(payload: Any) -> Any:
    values, index, name, *about = listed(payload)
    return _with(_series(values, index, name), *about)


def _series(values: Any, index: Any, name: Any = None) -> Any:
    column = _column(values)
    if len(column) != len(index):  # one value would be repeated
        raise ValueError("a stored series does not fit its index")
    return _pandas().Series(column, index, column.dtype, name, copy=False)


def _frame_encode(frame: Any) -> list[Any]:
    columns = [_values(frame.iloc[:, place]) for place in range(frame.shape[1])]
    return [columns, frame.index, frame.columns, *_about(frame)]


def _frame_decode(payload: Any) -> Any:
    columns, index, names, *about = listed(payload)
    # By place first, because names may be equal.
    parts = {
        place: _series(values, index) for place, values in enumerate(listed(columns))
    }
    frame = _pandas().DataFrame(parts, index=index)
    frame.columns = names
    return _with(frame, *about)


def _about(held: Any) -> list[Any]:
    return [held.attrs, held.flags.allows_duplicate_labels]


def _with(held: Any, attrs: dict[Any, Any], allows_duplicates: bool) -> Any:
    held.attrs = attrs
    held.flags.allows_duplicate_labels = allows_duplicates
    return held


# Scalars


def _timestamp_encode(value: Any) -> list[Any]:
    return [value.asm8, value.tzinfo]


def _timestamp_decode(payload: Any) -> Any:
    instant, zone = payload
    value = _pandas().Timestamp(instant)
    return value if zone is None else value.tz_localize("UTC").tz_convert(zone)


_SHAPES: Final[dict[str, Shape]] = {
    "DataFrame": Shape(_frame_encode, _frame_decode),
    "Series": Shape(_series_encode, _series_decode),
    "Index": Shape(_index_encode, _index_decode),
    "Array": Shape(_array_encode, _array_decode),
    "Timestamp": Shape(_timestamp_encode, _timestamp_decode),
    "Timedelta": Shape(
        lambda value: value.asm8, lambda payload: _pandas().Timedelta(payload)
    ),
    "Period": Shape(
        lambda value: [value.ordinal, value.freqstr],
        lambda payload: _pandas().Period(ordinal=payload[0], freq=payload[1]),
    ),
    "Interval": Shape(
        lambda value: [value.left, value.right, value.closed],
        lambda payload: _pandas().Interval(*listed(payload)),
    ),
    "NaTType": Shape(lambda _: None, lambda _: _pandas().NaT),
    "NAType": Shape(lambda _: None, lambda _: _pandas().NA),
}


def _by_type(cls: type) -> Entry | None:
    """Return the entry of a class of pandas' own, if it is one of these."""
    pandas: Any = sys.modules.get("pandas")
    if pandas is None or cls.__module__.partition(".")[0] != "pandas":
        return None
    name = cls.__name__
    if issubclass(cls, pandas.Index):
        name = "Index"
    elif issubclass(cls, pandas.api.extensions.ExtensionArray):
        name = "Array"
    shape = _SHAPES.get(name)
    return None if shape is None else Entry(_PREFIX + name, cls, *shape)


def _by_name(name: str) -> Entry | None:
    kind = name.removeprefix(_PREFIX)
    if kind == name or kind not in _SHAPES:
        return None
    _pandas()
    return Entry(name, object, *_SHAPES[kind])


def register_pandas(registry: Registry = DEFAULT) -> None:
    """Let a registry find these classes when it meets them."""
    registry.find(_by_type, _by_name)
