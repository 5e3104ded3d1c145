"""Tasks: one planned call of one node in one superstep.

A task's id is derived from the checkpoint it was planned on, its namespace,
step, node and path, so that a run resumed in another process plans the same
ids and finds the writes that were recorded under them. Ids are made only when
something asks: a run without a saver rarely does.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Final, Protocol

from towpath.constants import MISSING, NS_END, NS_SEP, PULL, PUSH
from towpath.errors import NodeError
from towpath.plan import NodeSpec
from towpath.types import Interrupt

Write = tuple[str, Any]
Path = tuple[Any, ...]

# The entry of carried ids that is no path.
SINCE: Final = ""
# Stands between a path and the number of a question whose id is kept.
ASKED: Final = "?"
SENT: Final = (PUSH,)
"""The triggers of a task that comes from a `Send`."""
PUSHED: Final = 1
PULLED: Final = 0


class Task:
    """One planned call of a node, and what came of it.

    `writes` is what it wrote once it is `done`; `halted` says that it waits
    for answers to its `interrupts`; `error` that an attempt failed. Until it
    ran, none of them says anything.
    """

    # Class attributes are the defaults: most tasks never set most of these,
    # and a task is made in every superstep.
    id_: str | None = None
    input: Any = None
    writes: Sequence[Write] = ()
    output: Any = MISSING
    """A result given in advance, by an update from outside."""
    error: BaseException | None = None
    failure: NodeError | None = None
    """What an error handler is told."""
    interrupts: tuple[Interrupt[Any], ...] = ()
    parked: tuple[Interrupt[Any], ...] = ()
    """The questions it was parked on before this run."""
    answers: Sequence[Any] = ()
    """Answers it has used, in the order asked."""
    failed_before: str | None = None
    """The error that an earlier run recorded of it, as text."""
    asked = 0
    attempt = 0
    clocked = -1
    started = 0.0
    first_at = 0.0
    beat = 0.0
    failed_at = 0.0
    jitter = 0.0
    done = False
    recorded = False
    """Whether what it wrote is stored already, with what others wrote."""
    halted = False
    handled = False
    cached = False
    abandoned = False
    stopped = False
    """Whether it was cancelled, or never begun, because nobody wants it any more."""
    bereft = False
    """Whether something it called was given up, because the run ends."""
    calls = 0
    """How many graphs its node's body has called."""
    cache_key: Any = None
    place: tuple[int, Any] | None = None
    """Where its writes fold, if not where its own path says."""
    ctx: Any = None
    """The contextvars it runs with, if not those of the run."""
    line: int | None = None
    """The thread that its code runs in, where it is not the driver's."""
    lent = False
    """Whether it has called others, and does not count for the run's width."""

    def __init__(
        self, spec: NodeSpec, path: Path, triggers: tuple[str, ...], origin: Origin
    ) -> None:
        self.spec = spec
        self.name = spec.name
        self.path = path
        self.triggers = triggers
        self.origin = origin
        self.timeout = spec.timeout

    @property
    def id(self) -> str:
        """The deterministic id, as text in the form of a UUID."""
        if self.id_ is None:
            self.id_ = self.origin.task_id(self.name, self.path)
        return self.id_

    @property
    def ns(self) -> str:
        """The namespace of what this task runs inside itself."""
        origin = self.origin
        if origin.carried:
            own = named_id(origin, self.name, self.path)
        else:
            own = f"{self.name}{NS_END}{self.id}"
        return f"{origin.ns}{NS_SEP}{own}" if origin.ns else own

    def renewed(self) -> Task:
        """The same task for another attempt, when this one was abandoned.

        An abandoned attempt cannot be stopped when it blocks a thread, so
        nothing that it still holds may be shared with the next attempt.
        """
        fresh = Task(self.spec, self.path, self.triggers, self.origin)
        self.hand_on(fresh)
        return fresh

    def hand_on(self, fresh: Task) -> None:
        """Tell another attempt's task what this one has come to know."""
        fresh.id_ = self.id_
        fresh.input = self.input
        fresh.timeout = self.timeout
        fresh.attempt = self.attempt
        fresh.failed_at = self.failed_at
        fresh.first_at = self.first_at
        fresh.jitter = self.jitter
        fresh.failure = self.failure
        fresh.answers = tuple(self.answers)
        fresh.cache_key = self.cache_key

    def start_clock(self, now: float) -> None:
        """Note when an attempt began; an attempt that has begun keeps its time."""
        if self.clocked != self.attempt:
            self.clocked = self.attempt
            self.started = self.beat = now
            self.first_at = self.first_at or now

    def noted(self, error: BaseException) -> bool:
        """Whether the error already says that it came from this task."""
        notes = getattr(error, "__notes__", ())
        return any(self.id in note for note in notes)

    def order(self) -> tuple[int, Any]:
        """Where this task's writes fold: pulled nodes by name, then sends in order.

        The peer was observed to fold in this order, whatever the order in
        which the tasks of a step are listed and started.
        """
        if self.place is not None:
            return self.place
        if self.path[0] == PUSH:
            return (PUSHED, self.path[1])
        return (PULLED, self.name)


class Place(Protocol):
    """Where a run stands; what is made of it is made when something asks."""

    @property
    def ns(self) -> str:
        """The namespace of a nested run."""

    @property
    def origin(self) -> str:
        """What stands in for the id of a checkpoint in a run without a saver."""


class Origin:
    """Where tasks of one step come from: checkpoint, namespace, step.

    `carried` has, by path, the ids of tasks that were planned on a checkpoint
    before, each with the name that its node had then; and that checkpoint.
    """

    __slots__ = ("carried", "id", "place", "step")

    def __init__(self, id: str, place: Place, step: int, carried: Any = None) -> None:
        self.id = id
        self.place = place
        self.step = step
        self.carried = carried

    @property
    def checkpoint_id(self) -> str:
        """The checkpoint that the step was planned on, or what stands in for it."""
        return self.id or self.place.origin

    @property
    def ns(self) -> str:
        """The namespace of the run."""
        return self.place.ns

    def task_id(self, name: str, path: Path) -> str:
        if self.carried and (kept := self.carried.get(path_key(path))):
            return str(kept).rpartition(NS_END)[2]
        return task_id(self.checkpoint_id, self.ns, self.step, name, path)

    @property
    def since(self) -> str:
        """The checkpoint on which the tasks of the step were first planned."""
        return str((self.carried or {}).get(SINCE, self.checkpoint_id))


def named_id(origin: Origin, name: str, path: Path) -> str:
    """A task's id behind the name of its node, as the task was first planned."""
    kept = str((origin.carried or {}).get(path_key(path), ""))
    return kept if NS_END in kept else f"{name}{NS_END}{origin.task_id(name, path)}"


def kept_ids(tasks: Sequence[Task]) -> dict[str, str]:
    """What carries the tasks of a step over to another checkpoint."""
    kept = {
        path_key(task.path): named_id(task.origin, task.name, task.path)
        for task in tasks
    }
    if not tasks:
        return {}
    origin = tasks[0].origin
    asked = {k: str(v) for k, v in (origin.carried or {}).items() if ASKED in k}
    return {SINCE: origin.since, **asked, **kept}


def path_key(path: Path) -> str:
    """A path as one string, for use as a key: `__pregel_pull/name`."""
    return "/".join(map(str, path))


def task_id(checkpoint_id: str, ns: str, step: int, name: str, path: Path) -> str:
    """A stable id for the task at `path` of the step after a checkpoint."""
    at, key = str(step), path_key(path)
    # The lengths keep parts apart, whatever they hold.
    text = (
        f"{len(checkpoint_id)}:{checkpoint_id}{len(ns)}:{ns}{len(at)}:{at}"
        f"{len(name)}:{name}{len(key)}:{key}"
    )
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:]}"


def question_id(ns: str, index: int) -> str:
    """The id of a task's question: its namespace and how many came before."""
    text = f"{ns}#{index}" if index else ns
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def keyed_id(ns: str, key: str) -> str:
    """The id of a question that has a name of its own within the task."""
    text = f"{ns}#={key}"  # no number, so no question without a key has it
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def question_of(task: Task, index: int) -> str:
    """The id of a task's question: its own, or the one it was first asked under.

    A question that another engine asked keeps its id with those of the tasks.
    """
    if carried := task.origin.carried:
        kept = carried.get(f"{path_key(task.path)}{ASKED}{index}")
        if kept:
            return str(kept)
    return question_id(task.ns, index)


def lasting_ns(ns: str) -> str:
    """The namespace of a subgraph that keeps its state across calls: no task ids."""
    return NS_SEP.join(part.split(NS_END)[0] for part in ns.split(NS_SEP))


def pull_path(name: str) -> Path:
    return (PULL, name)


def in_fold_order(tasks: Sequence[Task]) -> Sequence[Task]:
    """Tasks in the order in which their writes fold."""
    if len(tasks) < 2:
        return tasks
    for task in tasks:
        if task.path[0] != PUSH or task.place is not None:
            return sorted(tasks, key=Task.order)
    return tasks  # sends alone are planned in the order sent
