"""The mux of a run: what is built in, then what the graph and the caller add."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from towpath.stream._mux import StreamMux, TransformerFactory
from towpath.stream._types import StreamTransformer
from towpath.stream.transformers import (
    LifecycleTransformer,
    MessagesTransformer,
    SubgraphTransformer,
    ValuesTransformer,
)

BUILTIN: Final[tuple[TransformerFactory, ...]] = (
    ValuesTransformer,
    MessagesTransformer,
    LifecycleTransformer,
    SubgraphTransformer,
)


def mux_of(factories: Sequence[TransformerFactory], *, is_async: bool) -> StreamMux:
    """Make a run's mux.

    Raises:
        TypeError: an instance among the factories: subgraphs need their own.
    """
    for factory in factories:
        if isinstance(factory, StreamTransformer):
            raise TypeError(
                f"got an instance of {type(factory).__name__}: pass the class, or a "
                "function of a namespace like `lambda scope: MyTransformer(scope)`, "
                "for subgraphs get transformers of their own"
            )
    return StreamMux(factories=[*BUILTIN, *factories], is_async=is_async)


def modes_of(mux: StreamMux) -> tuple[str, ...]:
    """The stream modes that a mux's transformers need."""
    needed = (mode for t in mux._transformers for mode in t.required_stream_modes)
    return tuple(dict.fromkeys(needed))
