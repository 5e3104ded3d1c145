"""What is to be reached, row by row, and the rows in which another library wins.

A goal compares with one contestant: `Goal("langgraph", 50)` is reached where it
takes at least 50 times as long as ours, `Goal("raw", 1 / 1.3)` where ours takes at
most 1.3 times as long as plain Python; `most_s` is a bound in seconds per unit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Goal:
    """A ratio to a contestant, or a bound."""

    versus: str = ""
    times: float = 0.0
    most_s: float = 0.0


@dataclass(frozen=True)
class Bytes:
    """At most so many bytes; or so many times those of plain Python."""

    most: float = 0.0
    times_raw: float = 0.0


GOALS: dict[str, tuple[Goal, ...]] = {
    "chain-1000*": (Goal("langgraph", 50), Goal("burr", 8)),
    "loop*": (Goal("langgraph", 50), Goal("burr", 8)),
    "fan-1000*": (Goal("langgraph", 20), Goal("raw", 1 / 2)),
    "wide-1000": (Goal("langgraph", 100),),
    "chat-1000-none": (Goal("langgraph", 30),),
    "chat-1000-memory": (Goal("langgraph", 150),),
    "chat-1000-sqlite": (Goal("langgraph", 25), Goal("raw", 1 / 1.3)),
    "ask-sqlite": (Goal("raw", 1 / 1.3),),
    "crowd-memory": (Goal(most_s=1 / 40_000),),
    "crowd-sqlite": (Goal("raw", 5),),
    "history-1000-*": (Goal(most_s=0.030),),
    "snapshot-1-*": (Goal("langgraph", 1),),
    "snapshot-1000-*": (Goal("raw", 1 / 1.3),),
    "nested-*": (Goal("langgraph", 50),),
    "tokens": (Goal("raw", 1 / 1.25),),
    "compile-1000": (Goal(most_s=4e-6),),
    "import": (Goal(most_s=0.060),),
}
STORED = {"chat-1000-sqlite": Bytes(times_raw=3)}
HELD = {"crowd-memory": Bytes(most=8192)}
STREAM_MOST = 1.5
"""A run that is streamed takes at most so many times one that is not."""

REASONS: dict[tuple[str, str], str] = {}
"""Why another library wins: by pattern of the row, and the winner."""


def goals(workload: str) -> tuple[Goal, ...]:
    """Return what is to be reached in a row."""
    return next((GOALS[one] for one in GOALS if fnmatchcase(workload, one)), ())


def reasons(workload: str, winner: str) -> Iterator[str]:
    """Yield why a contestant wins a row, where that is known."""
    for (pattern, name), reason in REASONS.items():
        if name == winner and fnmatchcase(workload, pattern):
            yield reason
