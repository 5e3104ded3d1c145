"""What both drivers do alike: stamps, deadlines, and the shape of saver calls."""

from __future__ import annotations

from asyncio import Task as AsyncTask
from collections.abc import Collection, Coroutine, Mapping, Sequence
from datetime import UTC, datetime
from inspect import CORO_CREATED, getcoroutinestate
from time import monotonic
from typing import Any, Final

from towpath.call.scope import RunScope
from towpath.checkpoint.base.id import checkpoint_id
from towpath.checkpoint.base.lease import is_here, pause_s
from towpath.errors import ThreadBusyError
from towpath.kernel.commands import (
    Alarm,
    Expired,
    Fetch,
    FetchAll,
    Finish,
    Fork,
    LateWrites,
    Persist,
    Record,
)
from towpath.kernel.request import Chunk, capable
from towpath.kernel.settle import seconds_of
from towpath.step.children import Child
from towpath.step.isolate import isolate
from towpath.step.tasks import Task

# Checkpoints that may wait behind a run before it is made to wait for them.
BACKLOG: Final = 4


class Signal:
    """A mark that a driver gives to itself."""


# A task with a time limit has begun: look at the deadlines again.
WOKEN: Final = Signal()
# Chunks came first: hand them out, then obey the same command again.
AGAIN: Final = Signal()


def now_text() -> str:
    return datetime.now(UTC).isoformat()


def stamp(command: Persist) -> tuple[str, str]:
    """Give a checkpoint its id and time; the reply to `Persist`."""
    checkpoint = command.checkpoint
    if "id" not in checkpoint:
        checkpoint["id"] = checkpoint_id()
        checkpoint["ts"] = now_text()
    return checkpoint["id"], checkpoint["ts"]


def dated(chunk: Chunk) -> Chunk:
    """Put the time on a `debug` chunk; the program has no clock."""
    if chunk[1] == "debug":
        chunk[2]["timestamp"] = now_text()
    return chunk


def is_inline(saver: Any) -> bool:
    """Whether a saver never blocks, so that no thread is needed to call it."""
    return capable(saver, "inline")


def runs_here(scope: RunScope, task: Task) -> bool:
    """Whether a lone task may run in place: nothing has to happen beside it."""
    if type(task) is not Task:
        return False  # its parent goes on beside it
    if scope.alone and task.timeout is None:
        return not (task.spec.calls and scope.heard)
    spec = task.spec
    return spec.action is None and not spec.branches


def cancel(tasks: Sequence[Task], running: dict[Task, AsyncTask[None]]) -> list[Task]:
    """Cancel the jobs of tasks; those whose code is never entered are returned."""
    unbegun = []
    for task in tasks:
        job = running.get(task)
        if job is None:
            continue
        code = job.get_coro()
        begun = not isinstance(code, Coroutine) or (
            getcoroutinestate(code) != CORO_CREATED
        )
        # One that a loop which ends has cancelled before it began is done already.
        if job.done() or not begun:
            del running[task]
            unbegun.append(task)
        task.stopped = True
        job.cancel()
    return unbegun


def given_up(tasks: Sequence[Task], running: Collection[Task]) -> list[Task]:
    """Give up on those of tasks that the threads of their callers are at."""
    left: list[Task] = [
        t for t in tasks if isinstance(t, Child) and t.inline and t not in running
    ]
    for task in left:
        task.abandoned = True
    return left


class Deferred:
    """A call of a saver, to be made in either colour."""

    __slots__ = ("args", "kwargs", "method", "saver")

    def __init__(
        self, saver: Any, method: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        self.saver = saver
        self.method = method
        self.args = args
        self.kwargs = kwargs

    def run(self) -> Any:
        return getattr(self.saver, self.method)(*self.args, **self.kwargs)

    async def arun(self) -> Any:
        call = getattr(self.saver, f"a{self.method}")
        return await call(*self.args, **self.kwargs)


def staged(command: Persist | Record) -> Any:
    """What stores the values of this moment, by `run()` or `arun()`, later too."""
    saver = command.saver
    if not capable(saver, "staged"):
        if command.how == "behind" and not is_inline(saver):
            command = captured(command)
        return Deferred(saver, *saver_call(command))
    if isinstance(command, Record):
        return saver.stage_writes(command.config, command.tasks, lease=command.lease)
    along = {"own": command.own} if command.own else {}
    return saver.stage_commit(
        command.config,
        command.checkpoint,
        command.metadata,
        command.versions,
        command.writes,
        written=command.written,
        lease=command.lease,
        **along,
    )


def conclusion(command: Finish) -> Any:
    """What is left to be stored at the end of a run, or None."""
    if not capable(command.saver, "deltas"):
        return None
    return command.saver.end_run(
        command.config, command.values, command.lease, release=command.release
    )


def fork_name(command: Fork) -> str:
    """A name of its own for a copy of a thread."""
    return f"{command.thread}/{checkpoint_id()}"


def pause_before_claim(
    command: Fetch, error: ThreadBusyError, attempt: int, *, blocks: bool
) -> float:
    """How many seconds to wait until a busy thread is claimed again.

    Raises:
        ThreadBusyError: the run is not to wait, or would do so for ever.
    """
    if not command.patient or is_here(error.owner, blocks=blocks):
        raise error
    return pause_s(attempt)


def captured(command: Persist | Record) -> Persist | Record:
    """Copy what is stored later, so that it is the value of this moment."""
    if isinstance(command, Record):
        command.tasks = isolated(command.tasks)
        return command
    values = command.checkpoint["channel_values"]
    for name in command.versions:
        if name in values:
            values[name] = isolate(values[name])
    command.writes = isolated(command.writes)
    return command


def isolated(tasks: LateWrites) -> LateWrites:
    """Copy what tasks wrote."""
    return [
        (task, path, [(channel, isolate(value)) for channel, value in writes])
        for task, path, writes in tasks
    ]


def saver_call(command: Persist | Record | Fetch | FetchAll) -> tuple[str, Any, Any]:
    """A storage command as (method, arguments, keywords) of its saver."""
    args: tuple[Any, ...]
    if isinstance(command, Persist):
        args = (
            command.config,
            command.checkpoint,
            command.metadata,
            command.versions,
        )
        if command.writes:
            return "commit", (*args, command.writes), {}
        return "put", args, {}
    if isinstance(command, Record):
        [(task, path, writes)] = command.tasks
        return "put_writes", (command.config, writes, task, path), {}
    if isinstance(command, Fetch):
        if command.goes_on and capable(command.saver, "deltas"):
            return "begin_run", (command.config, command.lease), {}
        return "get_tuple", (command.config,), {}
    options = {"filter": command.filter, "before": command.before}
    return "list", (command.config,), {**options, "limit": command.limit}


class Deadlines:
    """When a waiting driver must wake up by itself, and why."""

    __slots__ = ("step_s", "step_started")

    def __init__(self, step_s: float | None) -> None:
        self.step_s = step_s
        self.step_started = 0.0

    def begin_step(self) -> None:
        if self.step_s is not None:
            self.step_started = monotonic()

    def due(
        self, tasks: Collection[Task], until: float | None
    ) -> tuple[float | None, Expired | Alarm | None]:
        """Seconds to the next deadline and None, or the event that is due now."""
        timed = self.step_s is not None or any(task.timeout for task in tasks)
        if until is None and not timed:
            return None, None
        now = monotonic()
        nearest = until
        if until is not None and until <= now:
            return None, Alarm()
        if self.step_s is not None and tasks:
            moment = self.step_started + self.step_s
            if moment <= now:
                return None, Expired(None, "step", now - self.step_started)
            nearest = moment if nearest is None else min(nearest, moment)
        for task in tasks:
            for kind, moment in limits(task):
                if moment <= now:
                    task.failed_at = now
                    return None, Expired(task, kind, now - task.started)
                nearest = moment if nearest is None else min(nearest, moment)
        return (None if nearest is None else nearest - now), None


def limits(task: Task) -> list[tuple[Any, float]]:
    """The moments at which a running task's time limits pass."""
    policy = task.timeout
    if policy is None or not task.started:
        return []
    found: list[tuple[Any, float]] = []
    run_s, idle_s = seconds_of(policy.run_timeout), seconds_of(policy.idle_timeout)
    if run_s is not None:
        found.append(("run", task.started + run_s))
    if idle_s is not None:
        found.append(("idle", max(task.started, task.beat) + idle_s))
    return found
