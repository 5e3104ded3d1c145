"""One superstep as pure functions: prepare, apply, and what a listener is told.

State is a value and a step is `(plan, state) -> tasks`, then `(plan, state,
tasks) -> state`. Nothing here reads a clock, starts a thread, touches storage
or calls a node.
"""

from towpath.step.apply import apply
from towpath.step.prepare import due, prepare, read
from towpath.step.state import State, open_state, to_checkpoint
from towpath.step.tasks import Task, task_id

__all__ = [
    "State",
    "Task",
    "apply",
    "due",
    "open_state",
    "prepare",
    "read",
    "task_id",
    "to_checkpoint",
]
