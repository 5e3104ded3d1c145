"""How a run ended: what scripts read from the exit code, and people from the end.

0 is done, 3 is waiting for a person (an open question or a breakpoint), 1 is
failed; 2 is left to a wrong command line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Status = Literal["done", "waiting", "failed"]
EXIT: dict[Status, int] = {"done": 0, "waiting": 3, "failed": 1}
INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a run, for now."""

    status: Status
    thread: str
    values: Any = None
    questions: tuple[Any, ...] = ()
    next: tuple[str, ...] = ()
    error: BaseException | None = None


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


def explain(error: BaseException) -> list[str]:
    """Say what failed, with the notes that the engine left about node and step."""
    text = str(error).strip()
    name = type(error).__name__
    notes = [note for note in getattr(error, "__notes__", ()) if note not in text]
    return [f"{name}: {text}" if text else name, *notes]
