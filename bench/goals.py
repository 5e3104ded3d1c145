"""What is to be reached, row by row, and the rows in which another library wins.

A goal compares with one contestant: `Goal("langgraph", 50)` is reached where it
takes at least 50 times as long as ours, `Goal("raw", 1 / 1.3)` where ours takes at
most 1.3 times as long as plain Python; `most_s` is a bound in seconds per unit.
"""

from __future__ import annotations

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
BYTES = {
    ("stored", "chat-1000-sqlite"): Bytes(times_raw=3),
    ("held", "crowd-memory"): Bytes(most=8192),
}
STREAM_MOST = 1.5
"""A run that is streamed takes at most so many times one that is not."""

_PARTS = (
    "A read here puts a checkpoint together from its parts and names the tasks that "
    "come next; for a small state that is more than finding it."
)
_CHANGES = (
    "Here a step stores what it changed, and a read puts the changes together; "
    "langgraph stores all messages with every step, so it decodes one value. That is "
    "the price of what a long chat takes on disk and of what its turns take."
)
_STATE_MACHINE = (
    "burr checks names and keeps lists of actions and transitions. Here compiling also "
    "reads the state's types, makes channels, and tables that steps only look up."
)
_REFERENCES = (
    "burr keeps references to the states in memory, not copies: what a later node "
    "changes in place changes the stored past. Here each step is encoded."
)
_WHOLE_STATE = (
    "burr stores the whole state in one row a step, without tasks, writes or leases. "
    "That is little while the state is small, and grows with it: see the longer chats."
)
_SMALL = "pydantic-graph has no storage, no streams and no drivers to import."
REASONS: dict[tuple[str, str], str] = {
    ("snapshot-1-*", "langgraph"): _PARTS,
    ("snapshot-1000-*", "langgraph"): _CHANGES,
    ("compile-*", "burr"): _STATE_MACHINE,
    ("chat-*-memory", "burr"): _REFERENCES,
    ("chat-*-sqlite", "burr"): _WHOLE_STATE,
    ("import", "pydantic-graph"): _SMALL,
}
"""Why another library wins: by pattern of the row, and the winner."""


def goals(workload: str) -> tuple[Goal, ...]:
    """Return what is to be reached in a row."""
    return next((GOALS[one] for one in GOALS if fnmatchcase(workload, one)), ())


def reason(workload: str, winner: str) -> str:
    """Return why a contestant wins a row, as far as that is known."""
    for (pattern, name), why in REASONS.items():
        if name == winner and fnmatchcase(workload, pattern):
            return why
    return "Not explained yet; it may be noise: see the spread in the JSON."


def bound(which: str, workload: str, raw: int) -> float | None:
    """Return how many bytes, `stored` or `held`, there may be at most."""
    most = BYTES.get((which, workload))
    return None if most is None else most.most or most.times_raw * raw
