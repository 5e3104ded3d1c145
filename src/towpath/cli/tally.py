"""Count the tasks of the running superstep from the chunks of the `tasks` stream.

A superstep announces all its tasks before one of them ends, so a task that starts
while none is running opens the next. Nothing is shown here; the views do that.
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

    def __str__(self) -> str:
        """Write `node x30`."""
        return f"{self.name} x{self.total}" if self.total > 1 else self.name


@dataclass(slots=True)
class Tally:
    """The tasks of the step that is running, by node."""

    step: int
    rows: dict[str, Row] = field(default_factory=dict)
    running: set[str] = field(default_factory=set)

    def start(self, ns: Namespace, task: Mapping[str, Any]) -> bool:
        """Count a task that starts; tell whether it opens a step of the graph."""
        opens = not ns and not self.running
        if opens:
            self.step += 1
            self.rows = {}
        if not ns:
            self.running.add(task["id"])
        self.row(ns, task).total += 1
        return opens

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


def path(ns: Namespace, name: str) -> str:
    """Write `parent/child/node`, leaving out the ids of tasks."""
    return "/".join([*(part.partition(":")[0] for part in ns), name])
