"""Programs that wait for their turn to write, and are run together."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, Generic, TypeVar

from towpath.checkpoint.programs import Program

R = TypeVar("R")

_TOGETHER_MAX: Final = 256
"""How many programs share a transaction: no one waits for more than that."""

Notify = Callable[[Callable[[], None]], object]
"""Has a call made where the results are awaited, as an event loop's
`call_soon_threadsafe` does."""


class Job(Generic[R]):
    """A program, and what came of it."""

    __slots__ = ("_error", "done", "durable", "notify", "program", "result", "told")

    def __init__(
        self,
        program: Program[R],
        *,
        durable: bool,
        notify: Notify | None = None,
        told: Callable[[Job[R]], None] | None = None,
    ) -> None:
        self.program = program
        self.durable = durable
        self.notify = notify
        self.told = told
        self.done = False
        self.result: Any = None
        self._error: BaseException | None = None

    def fail(self, error: BaseException) -> None:
        """Note why nothing of it is stored; what is noted first stays."""
        self._error = self._error or error

    def outcome(self) -> R:
        """Return the result, or raise why there is none."""
        if self._error is not None:
            raise self._error
        result: R = self.result
        return result


def fail(jobs: Sequence[Job[Any]], error: BaseException) -> None:
    """Note why nothing of several jobs is stored."""
    for job in jobs:
        job.fail(error)


def finish(jobs: Sequence[Job[Any]]) -> None:
    """Tell those who wait for jobs, with one call for each event loop."""
    by_loop: dict[Notify, list[Job[Any]]] = {}
    for job in jobs:
        job.done = True
        if job.notify is not None:
            by_loop.setdefault(job.notify, []).append(job)
    for notify, several in by_loop.items():
        with suppress(RuntimeError):  # the loop has ended; nobody waits any more
            notify(partial(_tell, several))


def _tell(jobs: Sequence[Job[Any]]) -> None:
    for job in jobs:
        if job.told is not None:
            job.told(job)


class Queue:
    """The jobs that wait, in order, and whether somebody is on the way to do them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: deque[Job[Any]] = deque()
        self._drained = False

    def add(self, job: Job[Any], *, drained: bool = False) -> bool:
        """Line a job up. With `drained`, tell whether nobody drains yet."""
        with self._lock:
            self._jobs.append(job)
            if not drained or self._drained:
                return False
            self._drained = True
            return True

    def is_empty(self) -> bool:
        """Tell whether nobody waits."""
        return not self._jobs

    def goes_on(self) -> bool:
        """Tell whoever drains whether there is more."""
        with self._lock:
            self._drained = bool(self._jobs)
            return self._drained

    def take(self) -> list[Job[Any]]:
        """Take the jobs that wait, at most as many as may go together."""
        with self._lock:
            jobs = self._jobs
            count = min(len(jobs), _TOGETHER_MAX)
            return [jobs.popleft() for _ in range(count)]
