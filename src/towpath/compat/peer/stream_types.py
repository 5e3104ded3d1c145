"""`langgraph.stream._types`."""

from __future__ import annotations

from towpath.compat.peer.stream import ProtocolEvent, StreamTransformer

__all__ = ("ProtocolEvent", "StreamTransformer")
