"""Values to bytes and back: msgpack with extension types.

Encoding is exact or it is an error. The common case is one call into ormsgpack,
which hands every value it does not know to a hook. It refuses ints beyond 64
bits, lone surrogates, keys that are not str, and deep nesting. Where it refuses
anything, a `Walk` encodes the same value step by step, and either succeeds or
knows the path to what cannot be stored.

Decoding makes nothing but what `kinds` and the registry say, and extensions may
be nested only so deep. Whatever is wrong with the bytes, the result is a
`DeserializationError`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import ormsgpack

from towpath.checkpoint.serde.kinds import (
    DECODERS,
    ERROR,
    EXACT,
    OBJECT,
    PLAIN,
    RAW_DECODERS,
    error_encode,
)
from towpath.checkpoint.serde.registry import DEFAULT, Registry
from towpath.checkpoint.serde.walk import DEPTH_MAX, OPTIONS, Form, Walk
from towpath.errors import DeserializationError

_BUFFERS: Final = frozenset({bytearray, memoryview})


_SHORT: Final = 256
"""How long bytes are at most that are first taken for such as have no extension, which
are decoded in half the time. Of longer ones, too much might be decoded twice."""
_ARRAY: Final = b"\xdd"
"""What msgpack begins a list with, before its length in four bytes."""
_END: Final = b"towpath: end"
_MARK: Final = ormsgpack.packb(_END)

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
            return Walk(self.form).encode(value)

    def decode(self, data: bytes) -> Any:
        """Decode what `encode` made.

        Raises:
            DeserializationError: the bytes are damaged, or name a class that
                is not registered.
        """
        if len(data) <= _SHORT:
            try:  # `suppress` would take as long as that
                return ormsgpack.unpackb(data)
            except Exception:  # noqa: S110 - an extension, or damage
                pass
        return _Read(self._registry).decode(data)

    def decode_many(self, several: Sequence[bytes]) -> list[Any]:
        """Decode values that were encoded one by one, as one list of them.

        Raises:
            DeserializationError: the bytes of one are damaged, or name a class
                that is not registered.
        """
        if len(several) < 2:
            return list(map(self.decode, several))
        size = (len(several) + 1).to_bytes(4, "big")
        # A damaged one may take bytes of the next, or leave it some of its own:
        # then the mark is not where it has to be. One may also lie in so deep a
        # list that this one is too many.
        with suppress(DeserializationError):
            whole = self.decode(b"".join((_ARRAY, size, *several, _MARK)))
            values: list[Any] = whole[:-1]
            if whole[-1] == _END:
                return values
        return list(map(self.decode, several))

    def pack(self, value: object, depth: int) -> bytes:
        """Encode in one call, or raise TypeError."""
        data: bytes = ormsgpack.packb(value, self._hooks[depth], OPTIONS)
        # ormsgpack takes a bytearray for bytes. Only where the output may hold
        # either is it worth looking for one.
        if (0xC4 in data or 0xC5 in data or 0xC6 in data) and _buffered(value):
            raise TypeError
        return data

    def _extension(self, depth: int, value: object) -> ormsgpack.Ext:
        code, payload, raw = self.form(value)
        return ormsgpack.Ext(code, payload if raw else self.pack(payload, depth))

    def form(self, value: object) -> Form:
        """Take a value apart that msgpack has no form for."""
        cls = type(value)
        kind = EXACT.get(cls)
        if kind is not None:
            return kind.code, kind.encode(value), kind.raw
        if isinstance(value, BaseException) and not self._registry.knows(cls):
            return ERROR, error_encode(value), False
        entry = self._entry_of(cls)
        return OBJECT, [entry.name, entry.encode(value)], False


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
            return self._nested(code, data) if raw is None else raw(data)
        except Exception as error:
            self._error = self._error or error
            raise

    def _nested(self, code: int, data: bytes) -> Any:
        if self._depth == DEPTH_MAX:
            raise DeserializationError("stored bytes are nested too deeply")
        self._depth += 1
        payload = ormsgpack.unpackb(data, ext_hook=self._hook)
        self._depth -= 1
        if code == OBJECT:
            name, content = payload
            return self._registry.of_name(name).decode(content)
        decode = DECODERS.get(code)
        if decode is None:
            raise DeserializationError(f"stored bytes are of the unknown kind {code}")
        if type(payload) not in PLAIN:
            # Most kinds are made by going through their payload: a range or a
            # network would take a few bytes, and never end.
            raise DeserializationError(f"stored bytes of the kind {code} are damaged")
        return decode(payload)
