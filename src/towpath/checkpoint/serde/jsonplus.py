"""The codec of checkpoints, stores and caches, under the peer's name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final, Literal

import ormsgpack

from towpath.checkpoint.serde.arrays import register_numpy
from towpath.checkpoint.serde.base import SerializerProtocol
from towpath.checkpoint.serde.codec import Codec
from towpath.checkpoint.serde.frames import register_pandas
from towpath.checkpoint.serde.langchain import register_langchain
from towpath.checkpoint.serde.own import register_own
from towpath.checkpoint.serde.registry import register
from towpath.checkpoint.serde.urls import register_urls
from towpath.errors import DeserializationError
from towpath.semantics import default
from towpath.warnings import warn_user

register_own()
register_langchain()
register_numpy()
register_pandas()
register_urls()

_STRICT: Final = Codec()
_LEARNING: Final = Codec(learn=True)

_INT_MIN: Final = -(1 << 63)
_INT_MAX: Final = (1 << 64) - 1
"""What msgpack has a form for."""

# What the bytes are; part of the stored format.
NULL: Final = "null"
BYTES: Final = "bytes"
VALUE: Final = "tp1"
_FORMS: Final = {VALUE: b"", NULL: b"\xc0"}
"""What the codec decodes in place of the content, if not the content itself."""
# Read, never written.
PEERS: Final = frozenset({"msgpack", "bytearray"})


class JsonPlusSerializer(SerializerProtocol):
    """Encodes values exactly, or raises; decodes only what is registered.

    With `learn` (the default under the LANGGRAPH preset), a class of data (a
    dataclass, model, enum or named tuple) that nobody registered
    is registered when it is first encoded. That suits storage which does not
    outlive the program; otherwise leave it off, and learn of a missing
    registration when the value is written rather than when it is needed.

    The peer's other parameters are accepted. They tell what stored bytes may
    import, and ours import nothing; nor is anything ever pickled.
    """

    def __init__(
        self,
        *,
        learn: bool | None = None,
        pickle_fallback: bool = False,
        allowed_json_modules: Iterable[tuple[str, ...]] | Literal[True] | None = None,  # noqa: ARG002
        allowed_msgpack_modules: Iterable[Any] | Literal[True] | None = None,  # noqa: ARG002
        __unpack_ext_hook__: Callable[[int, bytes], Any] | None = None,  # noqa: ARG002
    ) -> None:
        if pickle_fallback:
            warn_user(
                "`pickle_fallback` has no effect: Towpath never unpickles what is "
                "stored. Register the type with towpath.checkpoint.serde.register",
                UserWarning,
            )
        learns = not default().strict_codec if learn is None else learn
        self._codec = _LEARNING if learns else _STRICT

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Encode a value.

        Raises:
            SerializationError: something in it has no exact stored form.
        """
        if obj is None:
            return NULL, b""
        kind = type(obj)
        if kind is int and _INT_MIN <= obj <= _INT_MAX:
            return VALUE, ormsgpack.packb(obj)  # as the codec would, a third as long
        if kind is bytes:
            return BYTES, obj
        return VALUE, self._codec.encode(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Decode what `dumps_typed` made.

        Raises:
            DeserializationError: the bytes are damaged, name a class that is
                not registered, or were made by another codec.
        """
        tag, content = data
        if tag == VALUE:
            return self._codec.decode(content)
        if tag == NULL:
            return None
        if tag == BYTES:
            return content
        if tag in PEERS:
            return peer().read(tag, content)
        raise DeserializationError(
            f"stored bytes are of the unknown form {tag!r}", hint=_hint(tag)
        )

    def loads_many(self, several: Sequence[Sequence[Any]]) -> list[Any]:
        """Decode what `dumps_typed` made of several values, each a tag and bytes.

        Raises:
            DeserializationError: as `loads_typed`.
        """
        forms = _FORMS
        try:
            contents = [forms[each[0]] or each[1] for each in several]
        except KeyError:  # of another form
            return [self.loads_typed((each[0], each[1])) for each in several]
        return self._codec.decode_many(contents)

    def _reviver(self, value: Mapping[str, Any]) -> Any:
        # Serializers of other packages that derive from this one call it.
        return peer().revived(value)

    def with_msgpack_allowlist(
        self, extra_allowlist: Iterable[tuple[str, ...] | type]
    ) -> JsonPlusSerializer:
        """Register the classes among `extra_allowlist`, and return the codec.

        Names are passed over: only a class can be registered, not where a
        class might be imported from.
        """
        for allowed in extra_allowlist:
            if isinstance(allowed, type):
                register(allowed)
        return self


def peer() -> Any:
    """What reads the peer's forms; loaded by those who meet them."""
    return import_module("towpath.checkpoint.serde.peer")


def __getattr__(name: str) -> Any:
    # Names that servers import from here.
    homes = {
        "EXT_DELTA_SNAPSHOT": "EXT_DELTA_SNAPSHOT",
        "_msgpack_ext_hook_to_json": "msgpack_to_json",
    }
    if name not in homes:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(peer(), homes[name])


def _hint(tag: str) -> str | None:
    """Say what may read a form that is not this codec's."""
    if "+" in tag:
        return "they are encrypted: read them with the keyring or the cipher they had"
    if tag.endswith(".zstd"):
        return "they are compressed: read them with CompressedSerializer"
    return None
