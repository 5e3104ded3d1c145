"""How a run, a task or an attempt ended, and how a span shows it.

Only what failed is an error. A task that waits for an answer, a run that was
drained, closed or cancelled, and a command on its way to a parent are not.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any, Final

from opentelemetry.trace import Span, Status, StatusCode

from towpath.errors import GraphDrained, GraphInterrupt, ParentCommand, TowpathError
from towpath.integrations.otel.names import ERROR_CODE, ERROR_TYPE, OUTCOME
from towpath.kernel.commands import Closed
from towpath.step.tasks import Task

KINDS: Final[dict[str, tuple[type[BaseException], ...]]] = {
    "interrupt": (GraphInterrupt,),
    "drained": (GraphDrained,),
    "parent_command": (ParentCommand,),
    "closed": (Closed, GeneratorExit),
    "cancelled": (asyncio.CancelledError, CancelledError, KeyboardInterrupt),
}


@dataclass(slots=True)
class End:
    """An outcome in a word, with the error where it is `failed`."""

    outcome: str
    error: BaseException | None = None

    @property
    def facts(self) -> dict[str, str]:
        """The attributes that spans and metrics show."""
        facts = {OUTCOME: self.outcome}
        if self.error is not None:
            facts[ERROR_TYPE] = type_of(self.error)
        return facts


DONE: Final = End("done")
CANCELLED: Final = End("cancelled")


def ending(error: BaseException, stopped: BaseException | None = None) -> End:
    """How something ended that raised; `stopped` is what its caller stopped it with."""
    for outcome, kinds in KINDS.items():
        if isinstance(error, kinds):
            return End(outcome)
    return CANCELLED if error is stopped else End("failed", error)


def task_end(task: Task) -> End:
    """How an attempt of a task ended."""
    if task.halted:
        return End("interrupt")
    return DONE if task.error is None else ending(task.error)


def type_of(error: BaseException) -> str:
    """The name of an error's class, as `error.type` wants it."""
    kind = type(error)
    if kind.__module__ == "builtins":
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"


def show(span: Span, end: End, *, details: bool) -> None:
    """Put an outcome on a span; `details`: with the text of the error.

    That something was simply done is said of runs only: it costs a third of a span.
    """
    if end is DONE:
        return
    span.set_attributes(end.facts)
    if end.error is None:
        return
    if isinstance(end.error, TowpathError):
        span.set_attribute(ERROR_CODE, end.error.code)
    said = text(end.error) if details else None
    span.set_status(Status(StatusCode.ERROR, said))


def text(value: Any) -> str:
    """A value or an error as a span may show it, cut where it is long."""
    try:
        shown = str(value) if isinstance(value, str | BaseException) else repr(value)
    except Exception:  # users' objects may refuse
        shown = f"{type(value).__name__}(...)"
    return shown if len(shown) <= TEXT_MAX else f"{shown[:TEXT_MAX]}..."


TEXT_MAX: Final = 8192
