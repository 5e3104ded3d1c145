"""Which tasks of a superstep have called which others, and what came of that.

Bookkeeping only: what is launched, recorded and told is decided in `settle`. A
parent that has come to its end is held until its children are settled, so that
none of them outlives the step, and every question that one of them asks is the
parent's as well.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from towpath.constants import INTERRUPT, RESUME
from towpath.errors import NodeCancelledError
from towpath.kernel.session import Session
from towpath.step.children import Child
from towpath.step.interrupts import is_done, own_writes
from towpath.step.isolate import isolate
from towpath.step.tasks import Task, Write
from towpath.types import Interrupt


class Calls:
    """What one task has called, in order, and how much of it is not settled."""

    __slots__ = ("children", "open")

    def __init__(self) -> None:
        self.children: list[Child] = []
        self.open = 0


class Nursery:
    """The children of a round's tasks."""

    __slots__ = ("calls", "held", "open")

    def __init__(self) -> None:
        self.open: dict[str, Child] = {}
        self.calls: dict[Task, Calls] = {}
        self.held: set[Task] = set()

    def take(self, child: Child) -> bool:
        """Take in a call; whether it has to be seen to: no attempt is at it yet."""
        calls = self.calls.setdefault(child.parent, Calls())
        calls.children.append(child)
        calls.open += 1
        running = self.open.setdefault(child.id, child)
        if running is not child:
            running.twins.append(child)
        return running is child

    def settle(self, child: Child) -> list[Task]:
        """Tell those who called it; return the held parents that are free now."""
        del self.open[child.id]
        freed = []
        for call in (child, *child.twins):
            if call is not child:
                child.share(call)
            calls = self.calls[call.parent]
            calls.open -= 1
            call.answer(call)
            if calls.open == 0 and call.parent in self.held:
                self.held.discard(call.parent)
                freed.append(call.parent)
        return freed

    def replace(self, old: Child, new: Child) -> None:
        """Put a new attempt in the place of an abandoned one."""
        self.open[new.id] = new
        children = self.calls[new.parent].children
        children[children.index(old)] = new

    def hold(self, task: Task) -> bool:
        """Hold a task back that has come to its end before its children have."""
        calls = self.calls.get(task)
        if calls is None or not calls.open:
            return False
        self.held.add(task)
        return True

    def unsettled(self, task: Task) -> list[Child]:
        """The children of a task that are not settled."""
        ids = {child.id for child in self.calls[task].children}
        return [child for id_, child in self.open.items() if id_ in ids]

    def strays(self, running: Collection[Task]) -> list[Child]:
        """The children that are not settled, and that nothing is going to settle."""
        open_ = self.open.values()
        return [c for c in open_ if c not in running and c not in self.held]

    def desert(self) -> None:
        """Answer every call that is open: nobody is there to see to it."""
        for child in list(self.open.values()):
            drop(child, "was given up, because the run ends")
            for call in (child, *child.twins):
                if call is not child:
                    child.share(call)
                call.answer(call)
        self.open.clear()

    def close(self, task: Task) -> None:
        """A task's attempt is over: what its children ask, it asks too."""
        calls = self.calls.pop(task, None)
        if calls is None or task.error is not None:
            return
        asked = [q for child in calls.children for q in child.interrupts]
        if asked:
            several = {q.id: q for q in (*task.interrupts, *asked)}
            task.interrupts = tuple(several.values())
            task.halted, task.writes = True, ()


def restore_child(session: Session, child: Child) -> bool:
    """Give a child what was recorded of it before; whether that settles it."""
    recorded = session.pending.get(child.id, ())
    asked: tuple[Interrupt[Any], ...] = ()
    for channel, value in recorded:
        if channel == RESUME:
            child.answers = tuple(value)
        elif channel == INTERRUPT:
            asked = tuple(value)
    if is_done(recorded):
        child.writes = copied(own_writes(recorded))
        child.done = True
    elif asked and waits(session, child, asked):
        child.interrupts = asked
        child.halted = True
    return child.settled


def waits(session: Session, task: Task, asked: Sequence[Interrupt[Any]]) -> bool:
    """Whether a task that asked this goes on waiting: nothing new is known to it."""
    req, answers = session.req, session.req.answers
    if any(question.id in answers for question in asked):
        return False
    if session.reruns or req.forks_inside(task.ns):
        return False
    return not session.state.carried or bool(answers)


def keep(session: Session, child: Child, writes: Sequence[Write]) -> None:
    """Remember what became of a child, for an attempt of its parent in this run."""
    session.pending[child.id] = copied(writes)


def copied(writes: Sequence[Write]) -> list[Write]:
    """Writes that stay as they are when a caller changes in place what it got."""
    return [(name, isolate(value)) for name, value in writes]


def drop(child: Child, why: str) -> None:
    """Fail a child that is not going to run."""
    child.error = NodeCancelledError(child.name, f"task `{child.name}` {why}")
    child.stopped = child.parent.bereft = True
