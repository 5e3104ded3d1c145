"""What is noted on an exception that the code of a node raises.

The exception stays the user's own; a note says where it came from, and where the
engine knows more than the message tells, what that is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from towpath.call.scope import TaskContext
from towpath.constants import PULL, PUSH
from towpath.errors import names
from towpath.step.tasks import Task
from towpath.store.base import BaseStore

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
    for note in reasons(context, error):
        if note not in error.__notes__:
            error.add_note(note)


def reasons(context: TaskContext, error: BaseException) -> Iterator[str]:
    """What is behind an error, as far as the engine knows."""
    if isinstance(error, asyncio.InvalidStateError):
        yield UNFINISHED
    if lacks_context(context, error):
        yield no_context(context)
    if lacks_store(context, error):
        yield no_store(context)
    if lacking := lacking_keys(context, error):
        yield from no_value(context, lacking)


def lacking_keys(context: TaskContext, error: BaseException) -> Sequence[str]:
    """The keys whose lack of a value seems to be what is wrong."""
    plan, task, state = context.scope.plan, context.task, context.scope.req.state
    if state is None or plan.root or plan.inlets is not None:
        return ()
    given = task.input if task.path[0] == PUSH else state.values
    if isinstance(error, KeyError):
        key = error.args[0] if len(error.args) == 1 else None
        known = isinstance(key, str) and key in plan.keys
        lacks = known and isinstance(given, Mapping) and key not in given
        return (str(key),) if lacks else ()
    refused = task.input is None and task.spec.view.make is not None
    if refused and isinstance(error, TypeError | ValueError):
        return [key for key in task.spec.view.keys if key not in state.values]
    return ()


def no_value(context: TaskContext, keys: Sequence[str]) -> Iterator[str]:
    """Which keys a node was not given, and why."""
    plan, task, outer = context.scope.plan, context.task, context.scope.outer
    if task.path[0] == PUSH:
        yield (
            f"node '{task.name}' sees what was sent to it and nothing else of the "
            f"state, and that had no {names(keys)}"
        )
        return
    yield (
        f"{names(keys)} had no value when node '{task.name}' of graph '{plan.name}' "
        "ran: give one in the input, or let a node before it write one"
    )
    around = context.scope.req.around
    if outer is None or around is None or outer.plan.root or not takes_state(around):
        return
    if not any(key in outer.plan.key_set for key in keys):
        yield (
            f"graph '{plan.name}' is the node '{around.name}' of graph "
            f"'{outer.plan.name}' and gets of its state what both have a key for. It "
            f"takes {names(sorted(plan.input_keys))}; the other has "
            f"{names(outer.plan.keys)}. Call it in a function that translates, or give "
            "a key the same name in both"
        )


def takes_state(task: Task) -> bool:
    """Whether a task is a graph as a node, run on what the state has for it."""
    action = task.spec.action
    return action is not None and action.graph is not None and task.path[0] == PULL


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
        hasattr(schema, name) or any(name in said for said in annotated)
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


def lacks_store(context: TaskContext, error: BaseException) -> bool:
    """Whether a node seems to have asked a store that the graph does not have."""
    if not isinstance(error, AttributeError) or error.obj is not None:
        return False
    action = context.task.spec.action
    taken = action is not None and any(what == "store" for _, what in action.inject)
    if context.scope.store is not None or not (taken or context.has_runtime):
        return False
    return callable(getattr(BaseStore, str(error.name), None))


def no_store(context: TaskContext) -> str:
    """Who lacks a store, and how it is given."""
    return (
        f"node '{context.task.name}' has no store, because graph "
        f"'{context.scope.plan.name}' was compiled without one. Give it one: "
        "builder.compile(store=InMemoryStore())"
    )


__all__ = ["annotate"]
