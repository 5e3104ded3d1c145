"""What is noted on an exception that the code of a node raises.

The exception stays the user's own; a note says where it came from, and where the
engine knows more than the message tells, what that is.
"""

from __future__ import annotations

import asyncio
from typing import Final

from towpath.call.scope import TaskContext

UNFINISHED: Final = (
    "In async code a task's future is awaited; result() only takes what is there: "
    "`await future`, not `future.result()`"
)
"""What is said where the future of a task was asked too early."""


def annotate(context: TaskContext, error: BaseException) -> None:
    """Say on an error which task it came from, and what is behind it."""
    task = context.task
    if not task.noted(error):
        error.add_note(
            f"During task with name '{task.name}' and id '{task.id}' "
            f"(step {task.origin.step})"
        )
    if isinstance(error, asyncio.InvalidStateError):
        error.add_note(UNFINISHED)
    if lacks_context(context, error):
        note = no_context(context)
        if note not in error.__notes__:
            error.add_note(note)


def lacks_context(context: TaskContext, error: BaseException) -> bool:
    """Whether a node seems to have looked into a context that nobody gave."""
    scope = context.scope
    schema = scope.plan.context_schema
    if schema is None or scope.context is not None or not context.has_runtime:
        return False
    if isinstance(error, AttributeError):
        return error.obj is None and declares(schema, error.name)
    return isinstance(error, TypeError) and "'NoneType' object" in str(error)


def declares(schema: type, name: str | None) -> bool:
    """Whether objects of this class have such an attribute, as far as it says."""
    annotated = (getattr(c, "__annotations__", ()) for c in schema.__mro__)
    return name is not None and (
        hasattr(schema, name) or any(name in names for names in annotated)
    )


def no_context(context: TaskContext) -> str:
    """Who lacks which context, and how it is given."""
    plan = context.scope.plan
    schema = getattr(plan.context_schema, "__name__", plan.context_schema)
    return (
        f"`runtime.context` is None in node '{context.task.name}': graph "
        f"'{plan.name}' declares context_schema={schema}, but this run was given "
        "no context. Pass it: graph.invoke(input, context=...)"
    )


__all__ = ["annotate"]
