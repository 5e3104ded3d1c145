"""Calls of tools, as a tool node gets them and as it hands them on."""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool
from typing_extensions import TypedDict, Unpack

from towpath.kernel.retry import matching
from towpath.prebuilt.errors import ToolInputError
from towpath.prebuilt.injection import ToolRuntime, field_of
from towpath.types import Command

WITH_CONTEXT = "tool_call_with_context"


class _Overrides(TypedDict, total=False):
    tool_call: ToolCall
    tool: BaseTool | None
    state: Any


@dataclass
class ToolCallRequest:
    """A call that a wrapper may let through, change, repeat or answer itself."""

    tool_call: ToolCall
    """What the model asked for."""
    tool: BaseTool | None
    """None when the node has no tool of that name."""
    state: Any
    """The state as the node got it."""
    runtime: ToolRuntime[Any, Any]

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__:
            warnings.warn(
                f"Setting `{name}` of a ToolCallRequest is deprecated: "
                "use request.override(...), which returns a changed copy.",
                DeprecationWarning,
                stacklevel=2,
            )
        super().__setattr__(name, value)

    def override(self, **overrides: Unpack[_Overrides]) -> ToolCallRequest:
        """Return a copy with some fields replaced."""
        return replace(self, **overrides)


Answer: TypeAlias = ToolMessage | Command[Any]
ToolCallWrapper: TypeAlias = Callable[
    [ToolCallRequest, Callable[[ToolCallRequest], Answer]], Answer
]
"""Gets a call and a function that executes it; returns the answer."""
AsyncToolCallWrapper: TypeAlias = Callable[
    [ToolCallRequest, Callable[[ToolCallRequest], Awaitable[Answer]]],
    Awaitable[Answer],
]


class ToolCallWithContext(TypedDict):
    """One call with the state it is made in, for `Send("tools", ...)`."""

    tool_call: ToolCall
    __type: Literal["tool_call_with_context"]
    state: Any


@dataclass(slots=True)
class Batch:
    """The calls that a tool node was given at once."""

    calls: list[ToolCall]
    state: Any
    bare: bool
    """Whether the input was a list of messages, so that the output is one."""
    task: Any = None
    """The task of the graph that runs the node, if one does."""

    def retried(self, error: Exception) -> bool:
        """Whether the node will be tried again if this error is raised."""
        if self.task is None:
            return False
        policy = matching(self.task.spec.retry, error)
        return policy is not None and self.task.attempt < policy.max_attempts


def batch_of(
    given: Any, messages_key: str, read_state: Callable[[], Any] | None
) -> Batch:
    """Find the calls in the input of a tool node.

    `read_state` reads the state of the graph, for calls that come without.

    Raises:
        ToolInputError: there is no message of a model in it (TP-220).
    """
    if isinstance(given, list):
        if given and all(is_call(item) for item in given):
            state = given if read_state is None else read_state()
            return Batch(list(given), state, bare=False)
        return Batch(calls_in(given, "the list"), given, bare=True)
    if isinstance(given, Mapping) and given.get("__type") == WITH_CONTEXT:
        return Batch([given["tool_call"]], given["state"], bare=False)
    try:
        messages = field_of(given, messages_key)
    except (KeyError, AttributeError, TypeError):
        messages = None
    where = f"`{messages_key}`"
    return Batch(calls_in(messages or [], where), given, bare=False)


def is_call(item: Any) -> bool:
    return isinstance(item, dict) and item.get("type") == "tool_call"


def calls_in(messages: Any, where: str) -> list[ToolCall]:
    """The calls of the last message that a model wrote."""
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            return list(message.tool_calls)
    raise ToolInputError(
        f"No AIMessage found in {where} that a tool node was given",
        hint="lead to the tool node only after a model: "
        'add_conditional_edges("model", tools_condition)',
    )
