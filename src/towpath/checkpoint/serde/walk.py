"""Encodes step by step what ormsgpack refused in one call.

Slower, but it takes all that the codec can store: ints beyond 64 bits, lone
surrogates, keys that are not str, deep nesting. And it knows where it is: the
error for what cannot be stored has the path to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import ormsgpack

from towpath.checkpoint.nul import is_unicode
from towpath.checkpoint.serde.kinds import (
    ERROR,
    NEST,
    OBJECT,
    PAIRS,
    TEXT,
    error_summary,
)
from towpath.errors import SerializationError

OPTIONS: Final = (
    ormsgpack.OPT_PASSTHROUGH_BIG_INT
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_SUBCLASS
    | ormsgpack.OPT_PASSTHROUGH_TUPLE
    | ormsgpack.OPT_PASSTHROUGH_UUID
)

DEPTH_MAX: Final = 32
"""How deep extensions may be nested in each other. Each level may nest lists as
deep as ormsgpack allows: twice as many levels of hostile bytes would overflow
the stack of a thread, which is the end of the process."""
_NEST_MAX: Final = 100
"""How deep lists and dicts may be nested within one extension: what ormsgpack
takes, less some room."""
_WORDS_MAX: Final = 60
"""How much of a key a path shows."""

_INT_MIN: Final = -(1 << 63)
_INT_MAX: Final = (1 << 64) - 1
_ATOMS: Final = frozenset({type(None), bool, float, bytes})

Form = tuple[int, Any, bool]
"""What an extension is made of: its code, its payload, and whether that is raw
bytes. The payload of an object is a list: the name of its class, its content."""

_Path = tuple[Any, Any, bool] | None
"""How a value was reached: the path before the last step, that step, and whether
it is a key of a dict rather than a place in a list."""


class Walk:
    """One encoding, step by step."""

    def __init__(self, form: Callable[[object], Form]) -> None:
        self._form = form
        self._depth = 0

    def encode(self, value: object) -> bytes:
        try:
            return self._pack(value, None)
        except RecursionError:
            raise _nested(None) from None

    def _pack(self, value: object, path: _Path) -> bytes:
        return _packed(self._plain(value, path, 0))

    def _plain(self, value: Any, path: _Path, depth: int) -> Any:
        """Return what ormsgpack can pack, with everything else as an `Ext`."""
        cls = type(value)
        if cls in _ATOMS or (cls is int and _INT_MIN <= value <= _INT_MAX):
            return value
        if cls is str:
            return value if is_unicode(value) else _surrogates(value)
        if cls is list or cls is dict:
            return self._container(value, path, depth)
        return self._extension(value, path)

    def _container(self, value: Any, path: _Path, depth: int) -> Any:
        if depth == _NEST_MAX:
            return self._nested(NEST, value, path)
        if type(value) is list:
            return self._items(value, path, depth)
        if all(type(key) is str and is_unicode(key) for key in value):
            return {
                key: self._plain(item, (path, key, True), depth + 1)
                for key, item in value.items()
            }
        return self._pairs(value, path)

    def _items(self, values: Iterable[Any], path: _Path, depth: int) -> list[Any]:
        return [
            self._plain(item, (path, place, False), depth + 1)
            for place, item in enumerate(values)
        ]

    def _pairs(self, value: dict[Any, Any], path: _Path) -> ormsgpack.Ext:
        self._enter(path)
        plain: list[Any] = []
        for key, item in value.items():
            step = (path, key, True)
            plain += self._plain(key, step, 1), self._plain(item, step, 1)
        self._depth -= 1
        return ormsgpack.Ext(PAIRS, _packed(plain))

    def _extension(self, value: object, path: _Path) -> ormsgpack.Ext:
        try:
            code, payload, raw = self._form(value)
        except Exception as error:
            raise _refused(value, path, error) from error
        if raw:
            return ormsgpack.Ext(code, payload)
        if code == ERROR:
            return self._error(value, payload, path)
        return self._nested(code, payload, path)

    def _nested(self, code: int, payload: Any, path: _Path) -> ormsgpack.Ext:
        self._enter(path)
        if code == OBJECT:
            name, content = payload
            packed = _packed([name, self._plain(content, path, 1)])
        else:
            packed = self._pack(payload, path)
        self._depth -= 1
        return ormsgpack.Ext(code, packed)

    def _enter(self, path: _Path) -> None:
        if self._depth == DEPTH_MAX:
            raise _nested(path)
        self._depth += 1

    def _error(self, value: Any, payload: object, path: _Path) -> ormsgpack.Ext:
        depth = self._depth
        try:
            return self._nested(ERROR, payload, path)
        except SerializationError:
            # What happened must be recorded, whatever it carries along.
            self._depth = depth
            return self._nested(ERROR, error_summary(value), path)


def _packed(plain: object) -> bytes:
    packed: bytes = ormsgpack.packb(plain, None, OPTIONS)
    return packed


def _surrogates(text: str) -> ormsgpack.Ext:
    return ormsgpack.Ext(TEXT, text.encode("utf-8", "surrogatepass"))


def _spelled(path: _Path) -> str:
    steps = []
    while path is not None:
        path, step, is_key = path
        steps.append(_key(step) if is_key else f"[{step}]")
    return "$" + "".join(reversed(steps))


def _key(key: object) -> str:
    if type(key) is str and key.isidentifier():
        return f".{key}"
    try:
        return f"[{repr(key)[:_WORDS_MAX]}]"
    except Exception:  # the key's own, or an int too long to be printed
        return f"[a {type(key).__qualname__}]"


def _refused(value: object, path: _Path, error: Exception) -> SerializationError:
    """Add the path to what kept a value from being taken apart."""
    where = _spelled(path)
    if isinstance(error, SerializationError):
        return SerializationError(f"at `{where}`: {error.message}", hint=error.hint)
    kind = type(value).__qualname__
    return SerializationError(f"at `{where}`: a `{kind}` was not encoded: {error}")


def _nested(path: _Path) -> SerializationError:
    where = f" at `{_spelled(path):.200}`" if path else ""
    return SerializationError(f"the value{where} is nested too deeply, or holds itself")
