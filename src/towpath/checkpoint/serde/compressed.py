"""A codec around another that compresses large values with Zstandard (RFC 8878).

Encrypted bytes do not shrink, so compression goes inside of encryption:
`EncryptedSerializer(cipher, CompressedSerializer())`.
"""

from __future__ import annotations

from typing import Any, Final

from towpath.checkpoint.serde.base import SerializerProtocol
from towpath.checkpoint.serde.jsonplus import JsonPlusSerializer
from towpath.errors import DeserializationError

_MARK: Final = ".zstd"
"""Ends the tag of a compressed value; part of the stored format."""
_CHUNK: Final = 1 << 20


class CompressedSerializer(SerializerProtocol):
    """Encodes with `serde`, and compresses what is larger than `over` bytes.

    Small values, and those that do not shrink, are stored as they are; so are
    those larger than `limit` bytes. A stored value that would grow beyond
    `limit` is refused, whatever size it claims.

    Raises:
        ImportError: zstandard is not installed.
    """

    def __init__(
        self,
        serde: SerializerProtocol | None = None,
        *,
        level: int = 3,
        over: int = 4096,
        limit: int = 1 << 30,
    ) -> None:
        self.serde = JsonPlusSerializer() if serde is None else serde
        self._zstd = _zstandard()
        self._level = level
        self._over = over
        self._limit = limit

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Encode, and compress if that makes the value smaller."""
        tag, data = self.serde.dumps_typed(obj)
        if not self._over < len(data) <= self._limit:
            return tag, data
        small: bytes = self._zstd.ZstdCompressor(level=self._level).compress(data)
        return (tag + _MARK, small) if len(small) < len(data) else (tag, data)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Decompress and decode.

        Raises:
            DeserializationError: the bytes are damaged, or too large (TP-504).
        """
        tag, content = data
        if not tag.endswith(_MARK):
            return self.serde.loads_typed(data)
        return self.serde.loads_typed((tag.removesuffix(_MARK), self._grown(content)))

    def _grown(self, small: bytes) -> bytes:
        try:
            size = self._zstd.frame_content_size(small)
            if not 0 <= size <= self._limit:
                raise DeserializationError(
                    f"a compressed value of {size} bytes is over the limit of "
                    f"{self._limit}",
                    hint="CompressedSerializer(limit=...) sets it",
                )
            return self._read(small, size)
        except self._zstd.ZstdError as error:
            raise DeserializationError(
                f"a compressed value is damaged: {error}"
            ) from error

    def _read(self, small: bytes, size: int) -> bytes:
        # In chunks, because the size is only claimed: no more memory is taken
        # than there are bytes to fill it.
        data = bytearray()
        with self._zstd.ZstdDecompressor().stream_reader(small) as reader:
            while chunk := reader.read(min(_CHUNK, size + 1 - len(data))):
                data += chunk
        if len(data) != size:
            raise DeserializationError("a compressed value has not the size it claims")
        return bytes(data)


def _zstandard() -> Any:
    try:
        import zstandard
    except ImportError as error:
        raise ImportError(
            "compressed values need zstandard: pip install 'towpath[zstd]'"
        ) from error
    return zstandard
