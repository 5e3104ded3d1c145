"""The closed set of commands that programs yield, and the events they receive.

Adding a command means touching every driver: that friction is the design.
Storage commands carry the saver as an opaque handle, so that one program can
read a graph and its subgraphs from different savers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from towpath.step.children import Child
from towpath.step.tasks import Task, Write

R = TypeVar("R")
Config = Mapping[str, Any]
LateWrites = Sequence[tuple[str, str, Sequence[Write]]]


class Launch:
    """Start these tasks. Reply: those that have finished already, maybe none."""

    __slots__ = ("tasks",)

    def __init__(self, tasks: Sequence[Task]) -> None:
        self.tasks = tasks


class Wait:
    """Wait for events, at most until a moment of the driver's clock.

    Reply: one or more of: a finished `Task`, `Called`, `Expired`, `Alarm`,
    `Cancelled`.
    """

    __slots__ = ("tasks", "until")

    def __init__(self, tasks: Collection[Task], until: float | None = None) -> None:
        self.tasks = tasks
        self.until = until


class Stop:
    """Ask running tasks to stop. Reply: those that had not even started.

    In a `hurry`, as after a cancellation, an event loop does not wait for what
    threads are doing, and those tasks are part of the reply, too.
    """

    __slots__ = ("hurry", "tasks")

    def __init__(self, tasks: Sequence[Task], *, hurry: bool = False) -> None:
        self.tasks = tasks
        self.hurry = hurry


@dataclass(slots=True)
class Persist:
    """Store a checkpoint, with late writes of the step that led to it.

    Reply: `(id, ts)`, which the driver stamps on the checkpoint at once, also
    when it stores it later. `how`: `wait` until it is stored, store it behind
    the run (`behind`), or only stamp it (`hold`). `written` is what was written
    to each channel since the parent, None where that does not tell all that may
    have changed. `own` is what is recorded of the tasks of the next step, where the
    saver can store that along.
    """

    saver: Any
    config: Config
    checkpoint: dict[str, Any]
    metadata: dict[str, Any]
    versions: Mapping[str, Any]
    writes: LateWrites
    how: Literal["wait", "behind", "hold"]
    written: Mapping[str, Sequence[Any] | None] | None = None
    lease: Any = None
    own: LateWrites = ()


@dataclass(slots=True)
class Record:
    """Store the writes of tasks under the checkpoint they were planned on.

    Of several at once only where the saver can stage them, which makes them one
    transaction.
    """

    saver: Any
    config: Config
    tasks: LateWrites
    how: Literal["wait", "behind"]
    lease: Any = None


class Flush:
    """Wait until everything that was left behind the run is stored."""

    __slots__ = ()


@dataclass(slots=True)
class Fetch:
    """Read one checkpoint. Reply: its `CheckpointTuple`, or None.

    `goes_on` says that what follows from it is going to be stored. With a
    `lease`, the thread is claimed first; while another run has it, the driver
    waits, unless `patient` is False.
    """

    saver: Any
    config: Config
    goes_on: bool = False
    lease: Any = None
    patient: bool = True


@dataclass(slots=True)
class Finish:
    """Nothing more follows from the checkpoint that `config` names.

    `values` are those of its channels, to be compared with what was stored, if
    the run has come to its end. `release` tells to give the lease back.
    """

    saver: Any
    config: Config
    values: Mapping[str, Any] | None
    lease: Any = None
    release: bool = False


@dataclass(slots=True)
class Fork:
    """Copy a thread as it is stored, to one of its own. Reply: its id."""

    saver: Any
    thread: str


@dataclass(slots=True)
class FetchAll:
    """Read checkpoints, newest first. Reply: a list of `CheckpointTuple`.

    Or of what `made` makes of each, so that no more than one is held at a time.
    """

    saver: Any
    config: Config
    filter: Mapping[str, Any] | None = None
    before: Config | None = None
    limit: int | None = None
    made: Callable[[Any], Any] | None = None


@dataclass(slots=True)
class Recall:
    """Look results up in the cache. Reply: `{key: writes}` of those found."""

    cache: Any
    keys: Sequence[Any]


@dataclass(slots=True)
class Remember:
    """Keep a finished task's writes in the cache."""

    cache: Any
    key: Any
    writes: Sequence[Write]
    ttl: int | None


class Expired:
    """A task's time limit, or the step's (`task` None), has passed."""

    __slots__ = ("elapsed", "kind", "task")

    def __init__(
        self, task: Task | None, kind: Literal["run", "idle", "step"], elapsed: float
    ) -> None:
        self.task = task
        self.kind = kind
        self.elapsed = elapsed


class Alarm:
    """The moment given to `Wait` has come."""

    __slots__ = ()


class Called:
    """A running task calls another one."""

    __slots__ = ("child",)

    def __init__(self, child: Child) -> None:
        self.child = child


class Closed(BaseException):
    """The caller closed the stream; ends a run without being anybody's failure."""


class Cancelled:
    """The caller wants no more of this run; `error` is raised when it has ended.

    As the reply to `Launch`, `dropped` are the tasks that were not started.
    """

    __slots__ = ("dropped", "error")

    def __init__(self, error: BaseException, dropped: Sequence[Task] = ()) -> None:
        self.error = error
        self.dropped = dropped


Effect = (
    Launch
    | Wait
    | Stop
    | Persist
    | Record
    | Flush
    | Fetch
    | Finish
    | Fork
    | FetchAll
    | Recall
    | Remember
)
Event = Task | Called | Expired | Alarm | Cancelled
Program = Generator[Effect, Any, R]


def overheard(
    program: Program[R],
    before: Callable[[Any], None],
    after: Callable[[Any, Any], None],
) -> Program[R]:
    """The same program; one is told each command, the other what came of it."""
    try:
        command = next(program)
        while True:
            before(command)
            try:
                reply = yield command
            except BaseException as error:
                command = program.throw(error)
            else:
                after(command, reply)
                command = program.send(reply)
    except StopIteration as stop:
        value: R = stop.value
        return value
