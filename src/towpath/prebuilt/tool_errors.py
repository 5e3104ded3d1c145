"""What becomes of an error in a tool: a message for the model, or a failure.

By default every error of a tool is answered with a message, so that no call in
the conversation stays without an answer. What the program did wrong (a field
or a store that is missing, a result that answers nothing) is raised.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, TypeAlias, Union, get_args, get_origin, get_type_hints

from langchain_core.tools import ToolException
from pydantic import ValidationError

from towpath.errors import GraphBubbleUp, NotAGraphPartError, is_invalid_resume
from towpath.prebuilt.errors import ToolInputError, ToolResultError

INVALID_TOOL_NAME_ERROR_TEMPLATE: Final = (
    "Error: {requested_tool} is not a valid tool, try one of [{available_tools}]."
)
TOOL_CALL_ERROR_TEMPLATE: Final = "Error: {error}\n Please fix your mistakes."
TOOL_EXECUTION_ERROR_TEMPLATE: Final = (
    "Error executing tool '{tool_name}' with kwargs {tool_kwargs} with error:\n"
    " {error}\n"
    " Please fix the error and try again."
)
TOOL_INVOCATION_ERROR_TEMPLATE: Final = (
    "Error invoking tool '{tool_name}' with kwargs {tool_kwargs} with error:\n"
    " {error}\n"
    " Please fix the error and try again."
)

Handling: TypeAlias = (
    bool | str | Callable[..., str] | type[Exception] | tuple[type[Exception], ...]
)
"""Which errors become messages, and what those say."""


class ToolInvocationError(ToolException):
    """A model called a tool with arguments that do not fit."""

    def __init__(
        self,
        tool_name: str,
        source: ValidationError,
        tool_kwargs: dict[str, Any],
        filtered_errors: list[Any] | None = None,
    ) -> None:
        shown: Any = source
        if filtered_errors is not None:
            shown = "\n".join(
                f"{'.'.join(map(str, fault.get('loc', ())))}: {fault.get('msg', '')}"
                for fault in filtered_errors
            )
        self.message = TOOL_INVOCATION_ERROR_TEMPLATE.format(
            tool_name=tool_name, tool_kwargs=tool_kwargs, error=shown
        )
        self.tool_name = tool_name
        self.tool_kwargs = tool_kwargs
        self.source = source
        self.filtered_errors = filtered_errors
        super().__init__(self.message)


def invocation_error(
    tool_name: str,
    source: ValidationError,
    args: Mapping[str, Any],
    filled: Collection[str],
) -> ToolInvocationError:
    """The error for arguments that do not fit; of those the node `filled`, nothing.

    Unless it is only those that do not fit.
    """
    faults = source.errors()
    own = [f for f in faults if not f["loc"] or f["loc"][0] not in filled]
    return ToolInvocationError(tool_name, source, dict(args), own or faults)


def _default_handle_tool_errors(error: Exception) -> str:
    """Tell the model what went wrong."""
    if isinstance(error, ToolInvocationError):
        return error.message
    return TOOL_CALL_ERROR_TEMPLATE.format(error=repr(error))


class ErrorPolicy:
    """Decides which errors of a node's tools become messages."""

    def __init__(self, handling: Handling, *, wrapped: bool) -> None:
        self.handling = handling
        self.kinds = kinds_of(handling)
        self.default = handling is _default_handle_tool_errors
        # A wrapper that lets an error through, and was not told otherwise, means
        # it: what it calls must raise, or it could not try again.
        self.wrapped = self.default and wrapped

    def takes(self, error: Exception) -> bool:
        """Whether this error becomes a message."""
        if isinstance(error, GraphBubbleUp) or is_invalid_resume(error):
            return False
        if isinstance(error, ToolInputError):
            return False
        if self.wrapped:
            return isinstance(error, ToolInvocationError)
        if self.default and isinstance(error, PROGRAM_FAULTS):
            return False
        return isinstance(error, self.kinds)

    def content(self, error: Exception) -> Any:
        """What the message says."""
        if isinstance(self.handling, str):
            return self.handling
        if callable(self.handling) and not is_error_class(self.handling):
            return self.handling(error)
        return TOOL_CALL_ERROR_TEMPLATE.format(error=repr(error))


# An async tool in a blocking run is the first of these.
PROGRAM_FAULTS: Final = (NotImplementedError, ToolResultError)


def is_error_class(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, BaseException)


def kinds_of(handling: Handling) -> tuple[type[Exception], ...]:
    """The classes of errors that become messages.

    Raises:
        ValueError: the parameter of a handler is annotated with anything else.
        NotAGraphPartError: it says nothing about errors (TP-101).
    """
    several = handling if isinstance(handling, tuple) else (handling,)
    if all(is_error_class(each) for each in several):
        return several  # type: ignore[return-value] # told by is_error_class
    if callable(handling) and not isinstance(handling, type):
        return taken_by(handling)
    if not isinstance(handling, bool | str):
        raise NotAGraphPartError(
            "handle_tool_errors is a bool, a text, a function, an exception class or "
            f"several of them, not {handling!r}"
        )
    return (Exception,) if handling else ()


def taken_by(handler: Callable[..., str]) -> tuple[type[Exception], ...]:
    """The errors that a handler takes, as its first parameter is annotated."""
    function = handler
    if not inspect.isroutine(handler):
        function = type(handler).__call__
    parameters = list(inspect.signature(handler).parameters)
    if not parameters:
        return (Exception,)
    annotation = get_type_hints(function).get(parameters[0], Exception)
    union = get_origin(annotation) in (Union, types.UnionType)
    kinds = get_args(annotation) if union else (annotation,)
    if not all(isinstance(k, type) and issubclass(k, Exception) for k in kinds):
        raise ValueError(
            "The parameter of an error handler is annotated with the errors it "
            f"takes: an Exception type, or a union of some. Got {annotation!r}."
        )
    return tuple(kinds)
