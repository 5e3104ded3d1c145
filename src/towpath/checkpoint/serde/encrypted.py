"""A codec around another that encrypts what that makes.

It works with any saver, store and cache, since it only sees values: it cannot
bind them to their place as `Keyring.seal` does.
"""

from __future__ import annotations

import os
from typing import Any, Final

from towpath.checkpoint.serde.base import CipherProtocol, SerializerProtocol
from towpath.checkpoint.serde.jsonplus import JsonPlusSerializer
from towpath.checkpoint.serde.keyring import InvalidKeyError, SealError

_KEY: Final = "LANGGRAPH_AES_KEY"
_NAME: Final = "aes"
_PART_SIZE: Final = 16
"""Of the nonce and of the authentication tag, in bytes."""


class EncryptedSerializer(SerializerProtocol):
    """Encodes with `serde`, then encrypts with `cipher`.

    Values that were stored before there was a cipher are read as they are,
    unless `accept_plain` is off.
    """

    def __init__(
        self,
        cipher: CipherProtocol,
        serde: SerializerProtocol | None = None,
        *,
        accept_plain: bool = True,
    ) -> None:
        self.cipher = cipher
        self.serde = JsonPlusSerializer() if serde is None else serde
        self._accept_plain = accept_plain

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Encode and encrypt. The cipher's name is added to the tag."""
        tag, data = self.serde.dumps_typed(obj)
        name, encrypted = self.cipher.encrypt(data)
        return f"{tag}+{name}", encrypted

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Decrypt and decode.

        Raises:
            SealError: the value cannot be decrypted (TP-510).
            DeserializationError: the inner codec cannot read it (TP-504).
        """
        tag, mark, name = data[0].partition("+")
        if not mark:
            if self._accept_plain:
                return self.serde.loads_typed(data)
            raise SealError(f"a stored value of the form {tag!r} is not encrypted")
        return self.serde.loads_typed((tag, self._decrypted(name, data[1])))

    def _decrypted(self, name: str, encrypted: bytes) -> bytes:
        try:
            return self.cipher.decrypt(name, encrypted)
        except SealError:
            raise
        except Exception as error:
            raise SealError(
                f"a stored value was not decrypted by {name!r}: another key, or it "
                f"was changed"
            ) from error

    @classmethod
    def from_pycryptodome_aes(
        cls, serde: SerializerProtocol | None = None, **kwargs: Any
    ) -> EncryptedSerializer:
        """Encrypt with pycryptodome's AES, in the mode EAX if none is given.

        Args:
            serde: The codec of the values; ours if there is none.
            kwargs: `key`, of 16, 24 or 32 bytes, otherwise taken from the
                environment variable LANGGRAPH_AES_KEY; `mode`, one that
                authenticates and has nonces of 16 bytes, as EAX and GCM;
                whatever else `Crypto.Cipher.AES.new` takes.

        Raises:
            InvalidKeyError: there is no key, or it has another size (TP-620).
            ValueError: the mode does not authenticate.
        """
        key = kwargs.pop("key", None)
        return cls(_Aes(_key_of_environment() if key is None else key, kwargs), serde)


def _key_of_environment() -> bytes:
    text = os.environ.get(_KEY)
    if text is None:
        raise InvalidKeyError(f"the environment variable {_KEY} is not set")
    return text.encode()


class _Aes(CipherProtocol):
    """AES as pycryptodome has it: nonce, authentication tag, encrypted bytes."""

    def __init__(self, key: bytes, options: dict[str, Any]) -> None:
        try:
            from Crypto.Cipher import AES
        except ImportError as error:
            raise ImportError(
                "from_pycryptodome_aes needs pycryptodome: pip install pycryptodome"
            ) from error
        if len(key) not in {16, 24, 32}:
            raise InvalidKeyError(
                f"an AES key has 16, 24 or 32 bytes, not {len(key)}",
            )
        self._key = key
        self._options = {"mode": AES.MODE_EAX, **options}
        self._new = AES.new
        probe = self._cipher()
        if not hasattr(probe, "verify") or len(probe.nonce) != _PART_SIZE:
            raise ValueError("AES needs a mode that authenticates, as EAX or GCM")

    def _cipher(self, **options: Any) -> Any:
        return self._new(self._key, **self._options, **options)

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        cipher = self._cipher()
        encrypted, proof = cipher.encrypt_and_digest(plaintext)
        return _NAME, cipher.nonce + proof + encrypted

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        if ciphername != _NAME:
            raise SealError(f"a stored value is encrypted by {ciphername!r}, not AES")
        nonce = ciphertext[:_PART_SIZE]
        proof = ciphertext[_PART_SIZE : 2 * _PART_SIZE]
        plain: bytes = self._cipher(nonce=nonce).decrypt_and_verify(
            ciphertext[2 * _PART_SIZE :], proof
        )
        return plain
