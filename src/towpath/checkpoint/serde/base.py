"""The protocols of codecs and ciphers. Nothing here loads a codec."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from towpath.errors import SerializationError


class UntypedSerializerProtocol(Protocol):
    """A codec whose bytes carry no type tag."""

    def dumps(self, obj: Any) -> bytes:
        """Encode a value."""
        ...

    def loads(self, data: bytes) -> Any:
        """Decode what `dumps` made."""
        ...


@runtime_checkable
class SerializerProtocol(Protocol):
    """A codec: a value to a (tag, bytes) pair and back."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Encode a value. The tag says how the bytes are to be read."""
        ...

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Decode what `dumps_typed` made."""
        ...


class CipherProtocol(Protocol):
    """Encrypts and decrypts bytes."""

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        """Return the cipher's name and the encrypted bytes."""
        ...

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        """Return the plain bytes."""
        ...


class SerializerCompat(SerializerProtocol):
    """Gives an untyped codec the typed methods; the tag is the type of the value."""

    def __init__(self, serde: UntypedSerializerProtocol) -> None:
        self.serde = serde

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Encode with the wrapped codec."""
        return type(obj).__name__, self.serde.dumps(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Decode with the wrapped codec."""
        return self.serde.loads(data[1])


def maybe_add_typed_methods(
    serde: SerializerProtocol | UntypedSerializerProtocol,
) -> SerializerProtocol:
    """Return `serde`, wrapped when it lacks the typed methods.

    Raises:
        SerializationError: it is no codec (TP-503).
    """
    if isinstance(serde, SerializerProtocol):
        return serde
    if not (hasattr(serde, "dumps") and hasattr(serde, "loads")):
        raise SerializationError(
            f"a serde has dumps_typed() and loads_typed(), which {serde!r} has not",
            hint="pass a codec such as JsonPlusSerializer()",
        )
    return SerializerCompat(serde)
