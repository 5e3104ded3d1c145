"""Calls of tools as tasks of the run in which their node is called.

Such a task is recorded as soon as it has finished, and asks its own questions. So
a node that runs again (resumed, tried again, or after a crash) finds what its
calls came to, and each answer reaches the call that asked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from langchain_core.messages import ToolCall

from towpath.call.children import start
from towpath.call.scope import TaskContext
from towpath.context import current
from towpath.plan import NOTHING, Action, NodeSpec
from towpath.step.children import returned


def surrounding(node: Any, calls: int) -> TaskContext | None:
    """The task that is to have so many calls of this node as tasks, if any is.

    A lone call in a node of its own is that node's task already.
    """
    context = current.get()
    if not isinstance(context, TaskContext):
        return None
    action = context.task.spec.action
    own = action is not None and action.target is node
    return None if own and calls < 2 else context


def begun(
    context: TaskContext,
    tool_call: ToolCall,
    work: Callable[[Any], Any],
    awork: Callable[[Any], Awaitable[Any]],
) -> Any:
    """Begin the work of a call beside the task that runs here; return its future.

    Its mark is the id of the call, so that it is found again whatever calls stand
    around it by then.
    """
    name, call_id = tool_call["name"], f"call:{tool_call['id']}"
    # Hidden: to listeners it is a part of its node.
    spec = NodeSpec(
        name, Action(name, work, awork), (), NOTHING, hidden=True, emit=returned
    )
    # Ids that a model has used twice are two calls all the same.
    return start(context, spec, f"{call_id}:{context.number(call_id)}", ((), {}))
