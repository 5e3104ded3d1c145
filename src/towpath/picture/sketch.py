"""What a picture shows, before anything has a place: figures and strokes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

Kind = Literal["node", "graph", "handler", "start", "end", "join"]
Manner = Literal["edge", "branch", "command", "send", "error", "join"]
TIMES: Final = "\N{MULTIPLICATION SIGN}"
Status = Literal["done", "failed", "waiting", "next"]

WORDS: Final[dict[Status, str]] = {
    "done": "ran",
    "failed": "failed",
    "waiting": "waits for an answer",
    "next": "runs next",
}


@dataclass(slots=True)
class Ran:
    """What a run did in one node.

    `seconds` is how long the steps took in which it ran; a step lasts as long as
    its slowest node.
    """

    status: Status = "done"
    times: int = 0
    seconds: float | None = None
    note: str = ""

    def short(self) -> str:
        """The line in the node's box."""
        parts = []
        if self.status != "done":
            parts.append(WORDS[self.status].partition(" for ")[0])
        if self.times:
            parts.append(f"{TIMES}{self.times}")
        if self.seconds is not None:
            parts.append(lasted(self.seconds))
        return " · ".join(parts)

    def told(self) -> str:
        """A sentence about it."""
        many = "once" if self.times == 1 else f"{self.times} times"
        parts = [f"ran {many}" if self.times else ""]
        if self.seconds is not None:
            parts.append(f"its steps took {lasted(self.seconds)}")
        if self.status != "done":
            parts.append(WORDS[self.status])
        if self.note:
            parts.append(self.note)
        return ", ".join(part for part in parts if part)


def lasted(seconds: float) -> str:
    """A length of time in words of few letters."""
    if seconds < 0.001:
        return "<1 ms"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, left = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {left} s"


@dataclass(slots=True)
class Figure:
    """One thing with an outline. `path` names the subgraphs it is in."""

    id: str
    name: str
    kind: Kind = "node"
    path: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    told: str = ""
    ran: Ran | None = None


@dataclass(slots=True)
class Stroke:
    """One line between two figures."""

    source: str
    target: str
    label: str = ""
    manner: Manner = "edge"


@dataclass(slots=True)
class Sketch:
    """All of a picture; `run` says that a run is drawn on it."""

    title: str
    figures: list[Figure] = field(default_factory=list)
    strokes: list[Stroke] = field(default_factory=list)
    run: str = ""
