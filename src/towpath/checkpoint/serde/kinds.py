"""The stored forms of Python's own types.

A `Kind` says how values of one exact type become a payload, and back. The code
is the number of a msgpack extension type: it travels beside the data, never in
it, so no dict of a user's can be taken for one. Codes are part of the stored
format and are never reused. A payload is made of simpler values, which are
encoded in turn; those of `raw` kinds are bytes and are stored as they are.

Decoding one of these kinds builds data and nothing else: no name in the bytes
is imported, and what may be called is written down here.
"""

from __future__ import annotations

import builtins
import collections
import datetime as dt
import decimal
import fractions
import ipaddress
import itertools
import pathlib
import re
import uuid
import zoneinfo
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from towpath.checkpoint.serde.types import RecordedError
from towpath.errors import SerializationError

Payload = Any
"""A value made of types that are encoded in turn."""


class Kind(NamedTuple):
    """The stored form of one type."""

    code: int
    encode: Callable[[Any], Payload]
    decode: Callable[[Payload], Any]
    raw: bool = False


# Codes that the codec itself treats apart.
TEXT: Final = 1
"""A str that is not Unicode, because it has lone surrogates."""
INTEGER: Final = 2
"""An int beyond 64 bits."""
PAIRS: Final = 3
"""A dict whose keys are not all plain str: key, value, key, value..."""
NEST: Final = 4
"""A list or dict so deep that it is stored apart."""
OBJECT: Final = 5
"""An object of a registered class: its name, and its payload."""
ERROR: Final = 6
"""An exception of any class."""


PLAIN: Final = frozenset({type(None), str, dict, list})
"""What the payloads of Python's own types are, if they are not raw."""


def listed(items: Any) -> list[Any]:
    """Return a list, and refuse what might go on for longer than its bytes."""
    if type(items) is not list:
        raise TypeError(f"expected a list, not a {type(items).__name__}")
    return items


def flat(pairs: Iterable[tuple[Any, Any]]) -> list[Any]:
    """Return keys and values in turn, in one list."""
    return list(itertools.chain.from_iterable(pairs))


def paired(payload: list[Any]) -> Iterable[tuple[Any, Any]]:
    """Undo `flat`."""
    items = iter(payload)
    return zip(items, items, strict=True)


def _integer_encode(value: int) -> bytes:
    return value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)


def _integer_decode(payload: bytes) -> int:
    return int.from_bytes(payload, "big", signed=True)


# A factory is code, so only these may be named.
_FACTORIES: Final[dict[str, type]] = {
    cls.__name__: cls
    for cls in (
        bool,
        bytearray,
        bytes,
        collections.Counter,
        collections.OrderedDict,
        collections.deque,
        complex,
        decimal.Decimal,
        dict,
        float,
        frozenset,
        int,
        list,
        set,
        str,
        tuple,
    )
}


def _defaultdict_encode(value: collections.defaultdict[Any, Any]) -> Payload:
    factory = value.default_factory
    if factory is None:
        return [None, *flat(value.items())]
    name = getattr(factory, "__name__", "")
    if _FACTORIES.get(name) is not factory:
        raise SerializationError(
            f"a defaultdict whose factory is {factory!r} cannot be stored",
            hint=f"one of these can: {', '.join(_FACTORIES)}",
        )
    return [name, *flat(value.items())]


def _defaultdict_decode(payload: Payload) -> Any:
    name, *items = payload
    factory = None if name is None else _FACTORIES[name]
    return collections.defaultdict(factory, paired(items))


def _deque_decode(payload: Payload) -> Any:
    *items, maxlen = payload
    return collections.deque(items, maxlen)


def _fraction_decode(payload: Payload) -> fractions.Fraction:
    # A text such as "1e999999999" would be worked out, and fill the memory.
    if not all(type(part) is int for part in payload):
        raise TypeError("a fraction is made of ints")
    return fractions.Fraction(*payload)


def _datetime_encode(value: dt.datetime) -> Payload:
    return [*_date_encode(value), *_time_encode(value)]


def _datetime_decode(payload: Payload) -> dt.datetime:
    year, month, day, *clock, zone, fold = payload
    hour, minute, second, microsecond = clock
    return dt.datetime(
        year, month, day, hour, minute, second, microsecond, zone, fold=fold
    )


def _date_encode(value: dt.date) -> Payload:
    return [value.year, value.month, value.day]


def _time_encode(value: dt.datetime | dt.time) -> Payload:
    clock = [value.hour, value.minute, value.second, value.microsecond]
    return [*clock, value.tzinfo, value.fold]


def _time_decode(payload: Payload) -> dt.time:
    hour, minute, second, microsecond, zone, fold = payload
    return dt.time(hour, minute, second, microsecond, zone, fold=fold)


def _timezone_encode(value: dt.timezone) -> Payload:
    # Only `__reduce__`'s arguments tell whether the zone was given a name.
    return list(value.__getinitargs__())  # type: ignore[attr-defined]  # pickle's


def _zone_encode(value: zoneinfo.ZoneInfo) -> Payload:
    if value.key is None:
        raise TypeError("a ZoneInfo read from a file has no key to find it by")
    return value.key


_PATHS: Final[dict[str, type[pathlib.PurePath]]] = {
    cls.__name__: cls
    for cls in (
        pathlib.PurePosixPath,
        pathlib.PureWindowsPath,
        pathlib.PosixPath,
        pathlib.WindowsPath,
    )
}


def _path_encode(value: pathlib.PurePath) -> Payload:
    cls, text = type(value), str(value)
    if isinstance(value, pathlib.PureWindowsPath) and cls(text) != value:
        # In CPython 3.11, with a server but no share: its text has a slash too many.
        text = text[:-1]
        if cls(text) != value:
            raise SerializationError(
                f"no text makes the path {value!r} again, so it cannot be stored",
                hint="a network path has a server and a share: //server/share/file",
            )
    return [cls.__name__, text]


def _path_decode(payload: Payload) -> pathlib.PurePath:
    name, text = payload
    return _PATHS[name](text)


_ADDRESSES: Final[dict[str, Callable[[str], Any]]] = {
    cls.__name__: cls
    for cls in (
        ipaddress.IPv4Address,
        ipaddress.IPv6Address,
        ipaddress.IPv4Network,
        ipaddress.IPv6Network,
        ipaddress.IPv4Interface,
        ipaddress.IPv6Interface,
    )
}


def _address_decode(payload: Payload) -> Any:
    name, text = payload
    if type(text) is not str:  # an int would be taken for the address itself
        raise TypeError("expected the text of an address")
    return _ADDRESSES[name](text)


def _pattern_decode(payload: Payload) -> re.Pattern[Any]:
    pattern, flags = payload
    return re.compile(pattern, flags & ~re.DEBUG)


_EXCEPTIONS: Final[dict[str, type[BaseException]]] = {
    name: cls
    for name, cls in vars(builtins).items()
    if isinstance(cls, type) and issubclass(cls, BaseException)
}


def error_encode(value: BaseException) -> Payload:
    """Return the type's name, the arguments and the notes of an exception."""
    cls = type(value)
    notes = list(getattr(value, "__notes__", ()))
    if _EXCEPTIONS.get(cls.__name__) is cls:
        args = list(value.args)
        if isinstance(value, OSError) and value.filename is not None:
            args = [*args[:2], value.filename, None, value.filename2]
        return [cls.__name__, args, notes]
    if cls is RecordedError:
        return [None, list(value.args), notes]
    return [None, [f"{cls.__module__}.{cls.__qualname__}", _message(value)], notes]


def error_summary(value: BaseException) -> Payload:
    """Return the record of an exception whose arguments cannot be stored."""
    return [None, [type(value).__name__, _message(value)], []]


def _message(value: BaseException) -> str:
    try:
        return str(value)
    except Exception as error:  # its own: that it happened must be recorded
        return f"(its message could not be made: {type(error).__name__})"


def _error_decode(payload: Payload) -> BaseException:
    name, args, notes = payload
    made = RecordedError if name is None else _EXCEPTIONS[name]
    error = made(*listed(args))
    for note in listed(notes):
        error.add_note(note)
    return error


EXACT: Final[dict[type, Kind]] = {
    int: Kind(INTEGER, _integer_encode, _integer_decode, raw=True),
    bytearray: Kind(16, bytes, bytearray, raw=True),
    uuid.UUID: Kind(
        17, lambda value: value.bytes, lambda data: uuid.UUID(bytes=data), raw=True
    ),
    tuple: Kind(18, list, tuple),
    set: Kind(19, list, set),
    frozenset: Kind(20, list, frozenset),
    collections.OrderedDict: Kind(
        21,
        lambda value: flat(value.items()),
        lambda payload: collections.OrderedDict(paired(payload)),
    ),
    collections.defaultdict: Kind(22, _defaultdict_encode, _defaultdict_decode),
    collections.Counter: Kind(
        23,
        lambda value: flat(value.items()),
        lambda payload: collections.Counter(dict(paired(payload))),
    ),
    collections.deque: Kind(24, lambda value: [*value, value.maxlen], _deque_decode),
    complex: Kind(
        25, lambda value: [value.real, value.imag], lambda payload: complex(*payload)
    ),
    decimal.Decimal: Kind(26, str, decimal.Decimal),
    fractions.Fraction: Kind(
        27,
        lambda value: [value.numerator, value.denominator],
        _fraction_decode,
    ),
    range: Kind(
        28,
        lambda value: [value.start, value.stop, value.step],
        lambda payload: range(*payload),
    ),
    dt.datetime: Kind(29, _datetime_encode, _datetime_decode),
    dt.date: Kind(30, _date_encode, lambda payload: dt.date(*payload)),
    dt.time: Kind(31, _time_encode, _time_decode),
    dt.timedelta: Kind(
        32,
        lambda value: [value.days, value.seconds, value.microseconds],
        lambda payload: dt.timedelta(*payload),
    ),
    dt.timezone: Kind(33, _timezone_encode, lambda payload: dt.timezone(*payload)),
    zoneinfo.ZoneInfo: Kind(34, _zone_encode, zoneinfo.ZoneInfo),
    re.Pattern: Kind(35, lambda value: [value.pattern, value.flags], _pattern_decode),
    **dict.fromkeys(_PATHS.values(), Kind(36, _path_encode, _path_decode)),
    **dict.fromkeys(
        _ADDRESSES.values(),  # type: ignore[arg-type]  # these callables are types
        Kind(
            37,
            lambda value: [type(value).__name__, str(value)],
            _address_decode,
        ),
    ),
    type(...): Kind(38, lambda _: None, lambda _: ...),
}

DECODERS: Final[dict[int, Callable[[Payload], Any]]] = {
    PAIRS: lambda payload: dict(paired(payload)),
    NEST: lambda payload: payload,
    ERROR: _error_decode,
    **{kind.code: kind.decode for kind in EXACT.values() if not kind.raw},
}
"""By code, for payloads that are values."""

RAW_DECODERS: Final[dict[int, Callable[[bytes], Any]]] = {
    TEXT: lambda data: data.decode("utf-8", "surrogatepass"),
    **{kind.code: kind.decode for kind in EXACT.values() if kind.raw},
}
"""By code, for payloads that are bytes."""
