"""`langgraph.stream.stream_channel`."""

from __future__ import annotations

from towpath.compat.peer.stream import StreamChannel

__all__ = ("StreamChannel",)
