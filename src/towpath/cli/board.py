"""Where each node of a graph stands while it runs, for whoever draws it.

The graph's own nodes are there from the beginning, those of subgraphs from when they
first run. The model's words of the moment are kept as well. Nothing is drawn here.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from towpath.cli.tally import Namespace, path

Stand = Literal["idle", "running", "done", "asks", "failed"]
TEXT_MAX: Final = 2000
"""How much of what a model says is kept."""


@dataclass(slots=True)
class Place:
    """A node: how it stands, how often it ran, and how long this time."""

    name: str
    stand: Stand = "idle"
    runs: int = 0
    total: int = 0
    ended: int = 0
    asking: int = 0
    failed: int = 0
    since: float = 0.0
    spent_s: float = 0.0

    def start(self, now: float) -> None:
        """Note that a task of the node starts, the first of a step or another."""
        if self.stand != "running":
            self.total = self.ended = self.asking = self.failed = 0
            self.since, self.stand = now, "running"
        self.total += 1

    def finish(self, task: Mapping[str, Any], now: float) -> None:
        """Note that a task of the node ended."""
        self.runs += 1
        self.ended += 1
        self.asking += bool(task.get("interrupts"))
        self.failed += bool(task.get("error"))
        self.spent_s = now - self.since
        if self.ended >= self.total:
            self.stand = "failed" if self.failed else "asks" if self.asking else "done"

    def seconds(self, now: float) -> float:
        """How long the node runs, or ran."""
        return now - self.since if self.stand == "running" else self.spent_s


class Board:
    """All nodes, and the last words of the model that speaks."""

    def __init__(self, nodes: Iterable[str] = ()) -> None:
        self.places = {name: Place(name) for name in nodes}
        self.speaker = ""
        self.words = ""

    def task(self, ns: Namespace, task: Mapping[str, Any]) -> None:
        """Note that a task starts or ends."""
        name = path(ns, task["name"])
        place = self.places.setdefault(name, Place(name))
        if "triggers" in task:
            place.start(time.monotonic())
        else:
            place.finish(task, time.monotonic())
            if name == self.speaker:
                self.speaker = self.words = ""

    def message(self, ns: Namespace, chunk: Any) -> None:
        """Add what a model says to its words so far."""
        message, told = chunk
        speaker = path(ns, str(told.get("langgraph_node", "")))
        if speaker != self.speaker:
            self.speaker, self.words = speaker, ""
        self.words = (self.words + text_of(message))[-TEXT_MAX:]


def text_of(message: Any) -> str:
    """The text of a message, or of a piece of one."""
    content = getattr(message, "content", "")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    return "".join(
        part if isinstance(part, str) else str(part.get("text", ""))
        for part in parts
        if isinstance(part, str | dict)
    )


def nodes_of(graph: Any) -> list[str]:
    """The nodes of a graph that the user added, in that order."""
    return [name for name in graph.nodes if not name.startswith("__")]
