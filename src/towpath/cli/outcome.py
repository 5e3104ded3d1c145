"""How a run ended: what scripts read from the exit code, and people from the end.

0 is done, 3 is waiting for a person (an open question or a breakpoint), 1 is
failed; 2 is a wrong command line, or an input that was refused before a node ran.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from towpath.constants import START
from towpath.errors import CODES

Status = Literal["done", "waiting", "failed", "refused"]
EXIT: dict[Status, int] = {"done": 0, "waiting": 3, "failed": 1, "refused": 2}
INTERRUPTED = 130

WHERE = re.compile(r"During task with name '(.*)' and id '.*' \(step (-?\d+)\)")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a run, for now."""

    status: Status
    thread: str
    values: Any = None
    questions: tuple[Any, ...] = ()
    next: tuple[str, ...] = ()
    error: BaseException | None = None
    asked_at: str | None = None
    """The checkpoint to run from to be asked anew: what failed has used an answer."""


def of_snapshot(thread: str, snapshot: Any, values: Any) -> Outcome:
    """Tell from the state of the thread whether the run is done or waits."""
    waiting = bool(snapshot.next or snapshot.interrupts)
    return Outcome(
        "waiting" if waiting else "done",
        thread,
        values=values,
        questions=tuple(snapshot.interrupts),
        next=tuple(snapshot.next),
    )


def of_failure(thread: str, snapshot: Any, error: BaseException) -> Outcome:
    """Tell a run that failed from an input that was refused."""
    refused = snapshot is not None and not has_begun(snapshot)
    return Outcome("refused" if refused else "failed", thread, error=error)


def has_begun(snapshot: Any) -> bool:
    """Tell whether a node of the thread ran since its last input, or could have."""
    is_stored = snapshot.created_at is not None
    return is_stored and [task.name for task in snapshot.tasks] != [START]


def explain(error: BaseException) -> list[str]:
    """Say what failed, with the notes that the engine left about node and step."""
    text = str(error).strip()
    name = type(error).__name__
    notes = (note for note in getattr(error, "__notes__", ()) if note not in text)
    told = filter(None, map(plainly, notes))
    code = getattr(error, "code", None)
    more = [f"  more: towpath explain {code}"] if code in CODES else []
    return [f"{name}: {text}" if text else name, *told, *more]


def plainly(note: str) -> str:
    """Leave the ids of tasks out of a note, and the node that nobody declared."""
    if (where := WHERE.fullmatch(note)) is None:
        return note
    return "" if where[1] == START else f"in node `{where[1]}`, step {where[2]}"
