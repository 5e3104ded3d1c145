"""Values to bytes and back: msgpack with extension types.

Encoding is exact or it is an error. The common case is one call into ormsgpack,
which hands every value it does not know to a hook. It refuses ints beyond 64
bits, lone surrogates, keys that are not str, and deep nesting. Where it refuses
anything, `_Walk` encodes the same value step by step, and either succeeds or
knows the path to what cannot be stored.

Decoding makes nothing but what `kinds` and the registry say, and extensions may
be nested only so deep. Whatever is wrong with the bytes, the result is a
`DeserializationError`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

import ormsgpack

from towpath.checkpoint.serde.kinds import (
    DECODERS,
    ERROR,
    EXACT,
    NEST,
    OBJECT,
    PAIRS,
    RAW_DECODERS,
    TEXT,
    error_encode,
    error_summary,
)
from towpath.checkpoint.serde.registry import DEFAULT, Registry
from towpath.errors import DeserializationError, SerializationError

_OPTIONS: Final = (
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

_INT_MIN: Final = -(1 << 63)
_INT_MAX: Final = (1 << 64) - 1
_ATOMS: Final = frozenset({type(None), bool, float, bytes})
_BUFFERS: Final = frozenset({bytearray, memoryview})


class _Form(NamedTuple):
    """What an extension is made of."""

    code: int
    payload: Any
    name: str | None = None
    raw: bool = False


_Hook = Callable[[Any], ormsgpack.Ext]


class Codec:
    """Encodes and decodes values, with the classes of one registry."""

    def __init__(self, registry: Registry = DEFAULT, *, learn: bool = False) -> None:
        self._registry = registry
        self._entry_of = registry.learn if learn else registry.of_type
        # A hook of its own for each depth: ormsgpack calls it with the value
        # alone, and counting in the codec would mix up threads.
        hooks = [partial(self._extension, depth + 1) for depth in range(DEPTH_MAX)]
        self._hooks: tuple[_Hook, ...] = (*hooks, _too_deep)

    def encode(self, value: object) -> bytes:
        """Encode a value.

        Raises:
            SerializationError: something in it has no exact stored form. The
                message has the path to it, the hint how to register its type.
        """
        try:
            return self.pack(value, 0)
        except TypeError:
            return _Walk(self).encode(value)

    def decode(self, data: bytes) -> Any:
        """Decode what `encode` made.

        Raises:
            DeserializationError: the bytes are damaged, or name a class that
                is not registered.
        """
        return _Read(self._registry).decode(data)

    def pack(self, value: object, depth: int) -> bytes:
        """Encode in one call, or raise TypeError."""
        data: bytes = ormsgpack.packb(value, self._hooks[depth], _OPTIONS)
        # ormsgpack takes a bytearray for bytes. Only where the output may hold
        # either is it worth looking for one.
        if (b"\xc4" in data or b"\xc5" in data or b"\xc6" in data) and _buffered(value):
            raise TypeError
        return data

    def _extension(self, depth: int, value: object) -> ormsgpack.Ext:
        code, payload, name, raw = self.form(value)
        if raw:
            return ormsgpack.Ext(code, payload)
        content = payload if name is None else [name, payload]
        return ormsgpack.Ext(code, self.pack(content, depth))

    def form(self, value: object) -> _Form:
        """Take a value apart that msgpack has no form for."""
        cls = type(value)
        kind = EXACT.get(cls)
        if kind is not None:
            return _Form(kind.code, kind.encode(value), None, kind.raw)
        if isinstance(value, BaseException) and not self._registry.knows(cls):
            return _Form(ERROR, error_encode(value))
        entry = self._entry_of(cls)
        return _Form(OBJECT, entry.encode(value), entry.name)


def _too_deep(_: object) -> ormsgpack.Ext:
    raise TypeError


def _buffered(value: object) -> bool:
    """Tell whether plain lists and dicts hold a bytearray or a memoryview."""
    pending: list[Any] = [value]
    for item in pending:
        cls = type(item)
        if cls is list or cls is dict:
            children = item if cls is list else item.values()
            kinds = set(map(type, children))
            if kinds & _BUFFERS:
                return True
            if list in kinds or dict in kinds:
                pending.extend(children)
        elif cls in _BUFFERS:
            return True
    return False


_Path = tuple[Any, str] | None
"""How a value was reached: the path before the last step, and that step."""


class _Walk:
    """Encodes step by step what ormsgpack refused."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._depth = 0

    def encode(self, value: object) -> bytes:
        try:
            return self._pack(value, None)
        except RecursionError:
            raise _nested(None) from None

    def _pack(self, value: object, path: _Path) -> bytes:
        packed: bytes = ormsgpack.packb(self._plain(value, path, 0), None, _OPTIONS)
        return packed

    def _plain(self, value: Any, path: _Path, depth: int) -> Any:
        """Return what ormsgpack can pack, with everything else as an `Ext`."""
        cls = type(value)
        if cls in _ATOMS or (cls is int and _INT_MIN <= value <= _INT_MAX):
            return value
        if cls is str:
            return value if _is_unicode(value) else _surrogates(value)
        if cls is list or cls is dict:
            return self._container(value, path, depth)
        return self._extension(value, path)

    def _container(self, value: Any, path: _Path, depth: int) -> Any:
        if depth == _NEST_MAX:
            return self._nested(NEST, value, path)
        if type(value) is list:
            return [
                self._plain(item, (path, f"[{place}]"), depth + 1)
                for place, item in enumerate(value)
            ]
        if all(type(key) is str and _is_unicode(key) for key in value):
            return {
                key: self._plain(item, (path, _step(key)), depth + 1)
                for key, item in value.items()
            }
        return ormsgpack.Ext(PAIRS, self._pairs(value, path))

    def _pairs(self, value: dict[Any, Any], path: _Path) -> bytes:
        plain: list[Any] = []
        for key, item in value.items():
            step = (path, _step(key))
            plain += self._plain(key, step, 1), self._plain(item, step, 1)
        packed: bytes = ormsgpack.packb(plain, None, _OPTIONS)
        return packed

    def _extension(self, value: object, path: _Path) -> ormsgpack.Ext:
        try:
            form = self._codec.form(value)
        except Exception as error:
            raise _refused(value, path, error) from error
        if form.raw:
            return ormsgpack.Ext(form.code, form.payload)
        if form.code == ERROR:
            return self._error(value, form.payload, path)
        return self._nested(form.code, form.payload, path, form.name)

    def _nested(
        self, code: int, payload: object, path: _Path, name: str | None = None
    ) -> ormsgpack.Ext:
        if self._depth == DEPTH_MAX:
            raise _nested(path)
        self._depth += 1
        if name is None:
            packed = self._pack(payload, path)
        else:
            content = [name, self._plain(payload, path, 1)]
            packed = ormsgpack.packb(content, None, _OPTIONS)
        self._depth -= 1
        return ormsgpack.Ext(code, packed)

    def _error(self, value: Any, payload: object, path: _Path) -> ormsgpack.Ext:
        depth = self._depth
        try:
            return self._nested(ERROR, payload, path)
        except SerializationError:
            # What happened must be recorded, whatever it carries along.
            self._depth = depth
            return self._nested(ERROR, error_summary(value), path)


def _is_unicode(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _surrogates(text: str) -> ormsgpack.Ext:
    return ormsgpack.Ext(TEXT, text.encode("utf-8", "surrogatepass"))


def _step(key: object) -> str:
    """Spell a key as a step of a path."""
    plain = isinstance(key, str) and key.isidentifier()
    return f".{key}" if plain else f"[{key!r:.60}]"


def _spelled(path: _Path) -> str:
    steps = []
    while path is not None:
        path, step = path
        steps.append(step)
    return "$" + "".join(reversed(steps))


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


class _Read:
    """One decoding: how deep it is, and what went wrong in it."""

    __slots__ = ("_depth", "_error", "_registry")

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._depth = 0
        self._error: Exception | None = None

    def decode(self, data: bytes) -> Any:
        try:
            return ormsgpack.unpackb(data, ext_hook=self._hook)
        except Exception as error:
            # ormsgpack drops what its hook raised.
            cause = self._error or error
            if isinstance(cause, DeserializationError):
                raise cause from None
            raise DeserializationError(f"stored bytes are damaged: {cause}") from cause

    def _hook(self, code: int, data: bytes) -> Any:
        try:
            raw = RAW_DECODERS.get(code)
            return self._object(code, data) if raw is None else raw(data)
        except Exception as error:
            self._error = self._error or error
            raise

    def _object(self, code: int, data: bytes) -> Any:
        if self._depth == DEPTH_MAX:
            raise DeserializationError("stored bytes are nested too deeply")
        self._depth += 1
        payload = ormsgpack.unpackb(data, ext_hook=self._hook)
        self._depth -= 1
        if code != OBJECT:
            return DECODERS[code](payload)
        name, content = payload
        return self._registry.of_name(name).decode(content)
