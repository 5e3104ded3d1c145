"""Tasks that a running task calls: children, whose results go back to the caller.

A child runs beside its parent in the same superstep. Its writes fold into
nothing; what it returns is recorded under an id that follows from the parent's,
its name and a mark that tells it from the parent's other calls. So a parent that
runs again, in a later attempt or another process, finds what its children
returned. A call whose name or mark has changed finds nothing and runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from towpath.constants import PUSH, RETURN
from towpath.plan import NodeSpec
from towpath.step.tasks import SENT, Origin, Path, Task, task_id


class Inside(Origin):
    """Where the children of a task come from: their ids hang under its own."""

    __slots__ = ("around",)

    def __init__(self, around: Task) -> None:
        origin = around.origin
        super().__init__(origin.id, origin.place, origin.step)
        self.around = around

    @property
    def ns(self) -> str:
        """The namespace of what is inside the task."""
        return self.around.ns

    @property
    def since(self) -> str:
        """The checkpoint on which the task was first planned."""
        return self.around.origin.since

    def task_id(self, name: str, path: Path) -> str:
        # Without the step: an edit carries the parent and its id to another one.
        return task_id(self.around.id, "", 0, name, path[2:])


class Child(Task):
    """A task that another one calls.

    `mark` tells it from the parent's other calls: how many came before, or a
    name. The kernel says by `answer` that it is settled, and, of one that runs
    `inline` in the thread that called it, that it may begin. `twins` are calls of
    a later attempt of the parent, which wait for the same result.
    """

    answer: Callable[[Child], None]
    inline = False
    caller: Any = None
    """The context it was called from."""

    def __init__(self, spec: NodeSpec, parent: Task, mark: Any) -> None:
        super().__init__(spec, (PUSH, parent.path, mark, True), SENT, Inside(parent))
        self.parent = parent
        self.twins: list[Child] = []

    @property
    def settled(self) -> bool:
        """Whether it has finished, failed for good or waits for an answer."""
        return self.done or self.halted or self.error is not None

    @property
    def value(self) -> Any:
        """What it returned, once it is done."""
        return next(value for channel, value in self.writes if channel == RETURN)

    def renewed(self) -> Child:
        fresh = Child(self.spec, self.parent, self.path[2])
        self.hand_on(fresh)
        fresh.answer, fresh.caller, fresh.ctx = self.answer, self.caller, self.ctx
        fresh.inline, fresh.twins = self.inline, self.twins
        return fresh

    def share(self, twin: Child) -> None:
        """Let a twin have come to the same end."""
        twin.done, twin.writes = self.done, self.writes
        twin.halted, twin.interrupts = self.halted, self.interrupts
        twin.error, twin.stopped = self.error, self.stopped


def returned(value: Any) -> tuple[tuple[str, Any]]:
    """The one write of a child: what it returned."""
    return ((RETURN, value),)
