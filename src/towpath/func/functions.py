"""What tasks and entrypoints have in common: functions, looked at once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from towpath.errors import InvalidGraphError, InvalidPolicyError, NotAGraphPartError
from towpath.given import retry_policies
from towpath.plan.actions import is_kind
from towpath.types import RetryPolicy, TimeoutPolicy
from towpath.warnings import (
    LangGraphDeprecatedSinceV05,
    LangGraphDeprecatedSinceV10,
    warn_user,
)


class GeneratorFunctionError(InvalidGraphError, NotImplementedError):
    """A task or an entrypoint is a generator function."""


def refuse_generators(function: Any, what: str) -> None:
    """Refuse what would yield: it has no one result that could be recorded.

    Raises:
        GeneratorFunctionError: the function is a generator (TP-101).
        NotAGraphPartError: it cannot be called (TP-101).
    """
    if not callable(function):
        raise NotAGraphPartError(f"a {what} is a function, not {function!r}")
    yields = inspect.isgeneratorfunction, inspect.isasyncgenfunction
    if any(is_kind(function, test) for test in yields):
        raise GeneratorFunctionError(
            f"{what} `{name_of(function)}` is a generator: generators are not "
            "supported in the functional API",
            hint="return the values in a list; send what is to be seen while it "
            "runs with get_stream_writer()",
        )


def name_of(function: Any) -> str:
    """What a callable is called."""
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, "__name__", None) or type(function).__name__


def limit_of(
    timeout: float | timedelta | TimeoutPolicy | None, function: Any, what: str
) -> TimeoutPolicy | None:
    """How long an attempt may take.

    Raises:
        InvalidPolicyError: the function cannot be stopped: it is not async (TP-605).
    """
    policy = TimeoutPolicy.coerce(timeout)
    if policy is not None and not is_kind(function, inspect.iscoroutinefunction):
        raise InvalidPolicyError(
            f"{what} `{name_of(function)}` is not async, and a thread cannot be "
            "stopped, so it can have no timeout",
            hint="make it `async def`, or limit what it calls",
        )
    return policy


def retries(
    policy: RetryPolicy | Sequence[RetryPolicy] | None,
) -> tuple[RetryPolicy, ...]:
    """Retry policies, however they were given.

    Raises:
        InvalidPolicyError: it is none (TP-605).
    """
    return retry_policies(policy) or ()


FORMER: Mapping[str, tuple[str, type[Warning]]] = {
    "retry": ("retry_policy", LangGraphDeprecatedSinceV05),
    "config_schema": ("context_schema", LangGraphDeprecatedSinceV10),
}


def renamed(where: str, given: Mapping[str, Any], *known: str) -> dict[str, Any]:
    """Take parameters under their former names.

    Raises:
        TypeError: a parameter that never was.
    """
    found: dict[str, Any] = {}
    for old, value in given.items():
        if old not in known:
            raise TypeError(f"{where}() got an unexpected keyword argument {old!r}")
        new, kind = FORMER[old]
        text = f"`{old}` is deprecated and will be removed. Please use `{new}` instead."
        warn_user(text, kind)
        found[new] = value
    return found


Function = Callable[..., Any]
