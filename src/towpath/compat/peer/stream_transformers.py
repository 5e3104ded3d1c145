"""`langgraph.stream.transformers`."""

from __future__ import annotations

from towpath.compat.peer.stream import SubgraphStatus
from towpath.compat.peer.stream import TasksLifecycleBase as _TasksLifecycleBase

__all__ = ("SubgraphStatus", "_TasksLifecycleBase")
