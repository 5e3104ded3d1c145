"""The shape of questions and answers that agent front ends know.

A tool that asks a person to look at an action passes a list of
`HumanInterrupt` to `interrupt()`, and gets a list of `HumanResponse`.
"""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import TypedDict

__all__ = ("ActionRequest", "HumanInterrupt", "HumanInterruptConfig", "HumanResponse")


class HumanInterruptConfig(TypedDict):
    """What a person may do."""

    allow_ignore: bool
    """Skip the action."""
    allow_respond: bool
    """Say something instead."""
    allow_edit: bool
    """Change the action's arguments."""
    allow_accept: bool
    """Let it happen."""


class ActionRequest(TypedDict):
    """What is about to be done."""

    action: str
    """The name of the action: mostly a tool's."""
    args: dict[str, Any]


class HumanInterrupt(TypedDict):
    """A question about one action."""

    action_request: ActionRequest
    config: HumanInterruptConfig
    description: str | None
    """What to show to the person."""


class HumanResponse(TypedDict):
    """A person's answer."""

    type: Literal["accept", "ignore", "response", "edit"]
    args: str | ActionRequest | None
    """None, the text of a response, or the edited action."""
