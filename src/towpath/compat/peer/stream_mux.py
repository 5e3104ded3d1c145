"""`langgraph.stream._mux`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from towpath.compat.peer.stream import StreamMux, StreamTransformer

__all__ = ("StreamMux", "TransformerFactory")

TransformerFactory: TypeAlias = Callable[[tuple[str, ...]], StreamTransformer]
