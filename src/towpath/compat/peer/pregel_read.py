"""`langgraph.pregel._read`."""

from __future__ import annotations

from towpath.pregel.nodes import PregelNode

__all__ = ("PregelNode",)
