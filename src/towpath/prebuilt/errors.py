"""Errors of tool nodes and agents.

They are the peer's `ValueError`s with a code: what a program did wrong, never
what a model did.
"""

from __future__ import annotations

from towpath.errors import TowpathError


class ToolInputError(TowpathError, ValueError):
    """A tool node was given no tool calls, or not what its tools need."""

    code = "TP-220"


class MissingFieldError(ToolInputError, KeyError):
    """A tool wants a field of the state that is not there."""


class ToolResultError(TowpathError, ValueError):
    """A tool returned what would leave its call without an answer."""

    code = "TP-221"


class ChatHistoryError(TowpathError, ValueError):
    """The conversation has a tool call that nothing answers."""

    code = "TP-222"
    hint = (
        "add a ToolMessage with that `tool_call_id`, or remove the message that "
        "made the call"
    )
