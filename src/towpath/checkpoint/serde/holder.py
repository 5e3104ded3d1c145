"""What keeps encoded values, and so needs a codec."""

from __future__ import annotations

from functools import cached_property

from towpath.checkpoint.serde.base import SerializerProtocol, maybe_add_typed_methods


class HasSerde:
    """Something that keeps encoded values: with a codec of its own, or ours."""

    def __init__(self, *, serde: SerializerProtocol | None = None) -> None:
        if serde is not None:
            self.serde = maybe_add_typed_methods(serde)

    @cached_property
    def serde(self) -> SerializerProtocol:
        """The codec of values."""
        # Deferred, because the contracts alone need not load the codec.
        from towpath.checkpoint.serde.jsonplus import JsonPlusSerializer

        return JsonPlusSerializer()
