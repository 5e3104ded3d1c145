"""`langgraph._internal._runnable`: what tool nodes of others derive from."""

from __future__ import annotations

from towpath.integrations.runnable import RunnableCallable, RunnableLike

__all__ = ("RunnableCallable", "RunnableLike")
