"""`langgraph.utils.runnable`: the public name of `RunnableCallable`."""

from __future__ import annotations

from towpath.integrations.runnable import RunnableCallable

__all__ = ("RunnableCallable",)
