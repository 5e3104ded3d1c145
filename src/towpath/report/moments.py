"""Checkpoints as moments: what was planned there, what came of it, what changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from towpath.parts import PregelTask, StateSnapshot
from towpath.picture.sketch import Status
from towpath.report.changes import Change, changes
from towpath.report.values import cut, line, shown

NOTE: Final = 600
LEAST: Final = 1500
MOST: Final = 20_000


@dataclass(slots=True)
class Did:
    """A task of a moment. `ns` is the namespace of the subgraph that it ran."""

    name: str
    status: Status
    error: str = ""
    questions: list[tuple[str, str]] = field(default_factory=list)
    """The id and the text of each."""
    result: str = ""
    ns: str = ""


@dataclass(slots=True)
class Moment:
    """One checkpoint, the values in it as text."""

    id: str
    parent: str | None
    ns: str
    step: int | None
    source: str
    at: datetime | None
    above: str | None
    """The checkpoint of the outermost graph during which it was made."""
    tasks: list[Did]
    state: str = ""
    changed: list[Change] = field(default_factory=list)
    followed: str = ""
    """The source of a checkpoint made after it, "loop" before others."""
    seconds: float | None = None
    """How long its tasks took, if they ran without a pause."""


class Budget:
    """How many characters values may still take.

    Each moment gets a hundredth of what is left, so that those told first, the
    newest, are told best, and the whole is bounded.
    """

    def __init__(self, most: int) -> None:
        self.left = most

    def share(self) -> int:
        return max(LEAST, min(MOST, self.left // 100))

    def shown(self, value: Any) -> str:
        text = shown(value, self.share() // 2)
        self.left -= len(text)
        return text

    def changes(self, before: Any, after: Any) -> list[Change]:
        found = changes(before, after, self.share() // 2)
        self.left -= sum(map(Change.size, found))
        return found


class Teller:
    """Takes the snapshots of one namespace, newest first, and tells moments.

    Values are compared with those of the parent, which comes later; until then
    they wait. Without a budget they are left out.
    """

    def __init__(self, ns: str, budget: Budget | None) -> None:
        self.ns, self.budget = ns, budget
        self.moments: list[Moment] = []
        self.by_id: dict[str, Moment] = {}
        self.waiting: dict[str, list[tuple[Moment, Any]]] = {}

    def take(self, snapshot: StateSnapshot) -> None:
        moment = moment_of(snapshot, self.ns)
        children = self.waiting.pop(moment.id, [])
        for child, values in children:
            join(moment, child)
            if self.budget:
                child.changed = self.budget.changes(snapshot.values, values)
        settle(moment, snapshot.tasks)
        if self.budget:
            moment.state = self.budget.shown(snapshot.values)
        self.moments.append(moment)
        self.by_id[moment.id] = moment
        kept = snapshot.values if self.budget else None
        if moment.parent is None:
            self.begin(moment, kept)
        else:
            self.waiting.setdefault(moment.parent, []).append((moment, kept))

    def begin(self, moment: Moment, values: Any) -> None:
        """A moment without a parent: all of its state is new."""
        if self.budget:
            moment.changed = self.budget.changes(None, values)

    def told(self) -> list[Moment]:
        """The moments, oldest first. The parents of some may not be stored any more."""
        for several in self.waiting.values():
            for moment, values in several:
                self.begin(moment, values)
        return self.moments[::-1]


def moment_of(snapshot: StateSnapshot, ns: str) -> Moment:
    metadata = snapshot.metadata or {}
    above = snapshot.parent_config
    created = snapshot.created_at
    return Moment(
        id=identity(snapshot.config),
        parent=identity(above) if above else None,
        ns=ns,
        step=metadata.get("step"),
        source=str(metadata.get("source", "")),
        at=datetime.fromisoformat(created) if created else None,
        above=(metadata.get("parents") or {}).get(""),
        tasks=[],
    )


def identity(config: Any) -> str:
    return str(config["configurable"].get("checkpoint_id", ""))


def join(parent: Moment, child: Moment) -> None:
    """Note on a moment that another came after it."""
    if parent.followed != "loop":
        parent.followed = child.source
    if child.source == "loop" and parent.at and child.at:
        parent.seconds = (child.at - parent.at).total_seconds()


def settle(moment: Moment, tasks: Sequence[PregelTask]) -> None:
    """Tell of the tasks; how long it took to wait or to fail is not known."""
    moment.tasks = [did(task, ran=moment.followed == "loop") for task in tasks]
    if any(task.interrupts or task.error for task in tasks):
        moment.seconds = None


def did(task: PregelTask, *, ran: bool) -> Did:
    status: Status = "done" if ran or task.result is not None else "next"
    if status == "next" and task.interrupts:
        status = "waiting"
    elif status == "next" and task.error is not None:
        status = "failed"
    ns = ""
    if isinstance(task.state, dict):
        ns = str(task.state.get("configurable", {}).get("checkpoint_ns", ""))
    return Did(
        task.name,
        status,
        cut(str(task.error), NOTE) if task.error is not None else "",
        [(one.id, line(one.value, NOTE)) for one in task.interrupts],
        "" if task.result is None else line(task.result, NOTE),
        ns,
    )
