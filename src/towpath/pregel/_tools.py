"""What a tool that runs here sends pieces of its output with, if anybody listens."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final

ToolCallWriter = Callable[[Any], None]

_tool_call_writer: Final[ContextVar[ToolCallWriter | None]] = ContextVar(
    "towpath_tool_call_writer", default=None
)
