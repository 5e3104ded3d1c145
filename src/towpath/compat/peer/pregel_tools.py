"""`langgraph.pregel._tools`: how a running tool streams parts of its output."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final

_tool_call_writer: Final[ContextVar[Callable[[Any], None] | None]] = ContextVar(
    "langgraph_tool_call_writer", default=None
)
