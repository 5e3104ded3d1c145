"""`langgraph.stream.run_stream`."""

from __future__ import annotations

from towpath.compat.peer.stream import AsyncSubgraphRunStream, SubgraphRunStream

__all__ = ("AsyncSubgraphRunStream", "SubgraphRunStream")
