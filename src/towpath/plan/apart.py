"""Functions that mean the asyncio task they run in.

A lone async node is awaited in the asyncio task that drives the run, which may be
that of the caller: a task of its own costs more than the rest of a step. Who asks for
`asyncio.current_task()` means a task that is the node's, and may cancel it. Such a node
gets one.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from types import FunctionType
from typing import Any, Final

from towpath.plan.code import codes, enclosed
from towpath.plan.specs import NodeSpec

ASKS: Final = "current_task"
DEPTH_MAX: Final = 4


def set_apart(spec: NodeSpec) -> None:
    """Note of a node that it, or one of its branches, means its asyncio task.

    Async functions are looked at, and those of their module that they name.
    """
    for action in (spec.action, *(branch.path for branch in spec.branches)):
        if action is None or action.acall is None:
            continue
        if asks(function_of(action.target), DEPTH_MAX):
            spec.apart, spec.direct = True, False


def function_of(target: Any) -> Any:
    """The function behind a method, a partial or an object that is called."""
    while isinstance(target, functools.partial):
        target = target.func
    target = getattr(target, "__func__", target)
    if isinstance(target, FunctionType):
        return target
    return getattr(type(target), "__call__", None)  # noqa: B004 - the method itself


def asks(function: Any, depth: int) -> bool:
    """Whether a function names what tells the running task."""
    if not isinstance(function, FunctionType):
        return False
    names = {name for code in codes(function.__code__) for name in code.co_names}
    if ASKS in names:
        return True
    return depth > 0 and any(
        asks(inner, depth - 1)
        for inner in (*named(function, names), *enclosed(function))
        if inner is not function
    )


def named(function: FunctionType, names: set[str]) -> Iterator[FunctionType]:
    """The functions of the same module that a function names."""
    for name in names & function.__globals__.keys():
        value = function.__globals__[name]
        if isinstance(value, FunctionType) and value.__module__ == function.__module__:
            yield value
