"""Encryption of what is stored, with keys that can be changed.

A `Keyring` seals with its current key and opens with that and the retired ones,
so a key is changed by putting a new one in front: old values stay readable, and
`needs_rotation` tells which to write again. The cipher is AES-256 in Galois/
Counter Mode (NIST SP 800-38D), which also authenticates. What a value belongs to
(thread, namespace, checkpoint) goes along as associated data: whoever can write
to the database can neither change a value nor put it into another's place.

A sealed value is the id of its key, a random nonce, and what the cipher makes of
it. With random nonces one key is good for 2**32 values; change it before that.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from towpath.checkpoint.serde.base import CipherProtocol
from towpath.errors import DeserializationError, TowpathError

MARK: Final = "+a256gcm"
"""Ends the tag of a sealed value; part of the stored format."""
_NAME: Final = MARK[1:]

_SECRET_SIZE: Final = 32
_ID_SIZE: Final = 8
_NONCE_SIZE: Final = 12
_HEAD_SIZE: Final = _ID_SIZE + _NONCE_SIZE


class SealError(DeserializationError):
    """A sealed value cannot be opened: another key, another place, or changed."""

    code = "TP-510"


class InvalidKeyError(TowpathError, ValueError):
    """What was given as a key of encryption is none."""

    code = "TP-620"
    hint = 'make one: python -c "import secrets; print(secrets.token_hex(32))"'


@dataclass(frozen=True)
class Key:
    """A key of 32 random bytes; its id, which is no secret, tells it from others.

    Raises:
        InvalidKeyError: the secret has another length (TP-620).
    """

    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.secret) != _SECRET_SIZE:
            size = len(self.secret)
            raise InvalidKeyError(f"a key has {_SECRET_SIZE} bytes, not {size}")

    @cached_property
    def id(self) -> bytes:
        """8 bytes from which the secret cannot be found."""
        named = hashlib.sha256(b"the id of a towpath key:" + self.secret)
        return named.digest()[:_ID_SIZE]

    @cached_property
    def cipher(self) -> Any:
        """AES-GCM with this key."""
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError as error:
            raise ImportError(
                "a keyring encrypts with cryptography: pip install 'towpath[crypto]'"
            ) from error
        return AESGCM(self.secret)

    @classmethod
    def from_text(cls, text: str) -> Key:
        """Read a key written as 64 hexadecimal digits, or in base64.

        Raises:
            InvalidKeyError: it is neither (TP-620).
        """
        plain = text.strip()
        try:
            if len(plain) == 2 * _SECRET_SIZE:
                return cls(bytes.fromhex(plain))
            standard = plain.replace("-", "+").replace("_", "/")
            return cls(base64.b64decode(standard + "=" * (-len(plain) % 4), None, True))
        except (binascii.Error, ValueError):
            # The text is secret, and so is an error that quotes it.
            raise InvalidKeyError(
                f"a key is 32 bytes in hexadecimal or base64; this is neither, with "
                f"{len(plain)} characters"
            ) from None


def context_of(*parts: str) -> bytes:
    """Join names, such as those of a thread and a checkpoint, without ambiguity.

    >>> context_of("a", "bc") == context_of("ab", "c")
    False
    """
    encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
    return b"".join(b"%d:%b" % (len(part), part) for part in encoded)


class Keyring(CipherProtocol):
    """Seals with the current key, and opens with any.

    With `accept_plain`, values that were stored before there was a key are
    opened as they are. Leave it off once they are gone: whoever can write to the
    database could put such values there.

    It is also a cipher for `EncryptedSerializer`, which knows of no context.

    >>> ring = Keyring(b"k" * 32)
    >>> tag, sealed = ring.seal("tp1", b"secret", context_of("thread", "checkpoint"))
    >>> ring.unseal(tag, sealed, context_of("thread", "checkpoint"))
    ('tp1', b'secret')
    """

    def __init__(
        self, current: bytes | Key, *retired: bytes | Key, accept_plain: bool = False
    ) -> None:
        self._current, *_ = keys = [_key(given) for given in (current, *retired)]
        self._keys = {key.id: key for key in keys}
        self.accept_plain = accept_plain
        self._head = self._current.id
        self._encrypt = self._current.cipher.encrypt

    @classmethod
    def from_env(
        cls, name: str = "TOWPATH_AES_KEY", *, accept_plain: bool = False
    ) -> Keyring:
        """Read keys from an environment variable: the current one, then others.

        They are separated by commas, each in hexadecimal or base64.

        Raises:
            InvalidKeyError: the variable is not set, or holds no keys (TP-620).
        """
        keys = [Key.from_text(part) for part in os.environ.get(name, "").split(",")]
        return cls(*keys, accept_plain=accept_plain)

    def __repr__(self) -> str:
        return f"Keyring({', '.join(key_id.hex() for key_id in self.key_ids)})"

    @property
    def key_ids(self) -> Iterable[bytes]:
        """The ids of the keys, the current one first."""
        return self._keys.keys()

    def seal(self, tag: str, data: bytes, context: bytes) -> tuple[str, bytes]:
        """Encrypt a stored value. The tag is bound to it, as is its context."""
        return tag + MARK, self._closed(data, _bound(tag, context))

    def unseal(self, tag: str, data: bytes, context: bytes) -> tuple[str, bytes]:
        """Undo `seal`, with the same context.

        Raises:
            SealError: the key is missing, or the value was changed, belongs
                elsewhere or was never sealed (TP-510).
        """
        if not tag.endswith(MARK):
            if self.accept_plain:
                return tag, data
            raise SealError(
                f"a stored value of the form {tag!r} is not encrypted",
                hint="if it is older than the key: Keyring(..., accept_plain=True)",
            )
        plain = tag[: -len(MARK)]
        return plain, self._opened(data, _bound(plain, context))

    def needs_rotation(self, tag: str, data: bytes) -> bool:
        """Tell whether a stored value is not sealed with the current key."""
        return not (tag.endswith(MARK) and data.startswith(self._head))

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        """Encrypt without a context; return the cipher's name, too."""
        return _NAME, self._closed(plaintext, b"")

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        """Undo `encrypt`.

        Raises:
            SealError: as `unseal` (TP-510).
        """
        if ciphername != _NAME:
            raise SealError(f"the cipher {ciphername!r} is not a keyring's")
        return self._opened(ciphertext, b"")

    def _closed(self, data: bytes, bound: bytes) -> bytes:
        nonce = os.urandom(_NONCE_SIZE)
        sealed: bytes = self._encrypt(nonce, data, bound)
        return self._head + nonce + sealed

    def _opened(self, data: bytes, bound: bytes) -> bytes:
        key_id = data[:_ID_SIZE]
        key = self._keys.get(key_id)
        if key is None:
            raise SealError(
                f"a stored value is sealed with the key {key_id.hex()}, which is not "
                f"among {', '.join(known.hex() for known in self._keys)}",
                hint="give the keyring its key as a retired one: Keyring(new, old)",
            )
        try:
            plain: bytes = key.cipher.decrypt(
                data[_ID_SIZE:_HEAD_SIZE], data[_HEAD_SIZE:], bound
            )
        except Exception as error:
            raise SealError(
                f"a stored value sealed with the key {key_id.hex()} was changed, or "
                f"belongs to another thread or checkpoint"
            ) from error
        return plain


def _key(given: bytes | Key) -> Key:
    return given if isinstance(given, Key) else Key(given)


def _bound(tag: str, context: bytes) -> bytes:
    """Return what a sealed value is bound to. It is never empty."""
    return b"%d:%b:%b" % (len(tag), tag.encode(), context)
