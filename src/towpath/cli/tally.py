"""Count the tasks of the running superstep from the chunks of the `tasks` stream.

A superstep announces all its tasks before one of them ends, so a task that starts
while none is running opens the next. A step that is resumed announces also the tasks
that had ended before; those end no second time. Nothing is shown here; the views do
that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Namespace = tuple[str, ...]


@dataclass(slots=True)
class Row:
    """The tasks of one node in one step."""

    name: str
    total: int = 0
    done: int = 0
    failed: int = 0
    waiting: int = 0

    @property
    def ended(self) -> int:
        """Return how many tasks run no more."""
        return self.done + self.failed + self.waiting

    def __str__(self) -> str:
        """Write `node x30`, and how it ended where that was not well."""
        many = f" x{self.total}" if self.total > 1 else ""
        how = " failed" if self.failed else " asks" if self.waiting else ""
        return f"{self.name}{many}{how}"


@dataclass(slots=True)
class Tally:
    """The tasks of the step that is running, by node."""

    step: int
    resumed: Mapping[str, bool] = field(default_factory=dict)
    """The tasks of the step that is resumed, and whether each had ended."""
    rows: dict[str, Row] = field(default_factory=dict)
    running: set[str] = field(default_factory=set)

    def start(self, ns: Namespace, task: Mapping[str, Any]) -> bool:
        """Count a task that starts; tell whether it opens a step of the graph."""
        opens = self.opens(ns, task)
        if opens:
            self.step += 1
            self.rows = {}
        row = self.row(ns, task)
        row.total += 1
        if self.resumed.get(task["id"]):
            row.done += 1
        elif not ns:
            self.running.add(task["id"])
        return opens

    def opens(self, ns: Namespace, task: Mapping[str, Any]) -> bool:
        """Tell whether a task that starts is the first of a step."""
        is_same = bool(self.rows) and task["id"] in self.resumed
        return not (ns or self.running or is_same)

    def finish(self, ns: Namespace, task: Mapping[str, Any]) -> Row:
        """Count a task that ended, whatever way."""
        self.running.discard(task["id"])
        row = self.row(ns, task)
        if task.get("error"):
            row.failed += 1
        elif task.get("interrupts"):
            row.waiting += 1
        else:
            row.done += 1
        return row

    def row(self, ns: Namespace, task: Mapping[str, Any]) -> Row:
        """Return the row of a task's node, named with the subgraphs around it."""
        name = path(ns, task["name"])
        return self.rows.setdefault(name, Row(name))


def tally_of(snapshot: Any) -> Tally:
    """Count on from where a thread stands."""
    ended = {task.id: task.result is not None for task in snapshot.tasks}
    return Tally((snapshot.metadata or {}).get("step", 0), ended)


def path(ns: Namespace, name: str) -> str:
    """Write `parent/child/node`, leaving out the ids of tasks."""
    return "/".join([*(part.partition(":")[0] for part in ns), name])
