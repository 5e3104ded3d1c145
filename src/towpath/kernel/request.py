"""What a caller asks of one run, as one value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, Literal

from towpath.constants import CONF, NS_SEP
from towpath.step.project import Keys
from towpath.step.state import Bump, State, next_int
from towpath.step.tasks import Task

# The mode in which a run tells that it stopped at a question, or goes on.
LIFECYCLE: Final = "lifecycle"
Chunk = tuple[tuple[str, ...], str, Any]
Emit = Callable[[Chunk], None]
NONE: Final[Mapping[str, Any]] = MappingProxyType({})


def capable(saver: Any, what: str) -> bool:
    """Whether a saver declares a capability; others' savers declare none."""
    return bool(getattr(getattr(saver, "capabilities", None), what, False))


def silence(_: Chunk) -> None:
    """The listener of a run that nobody listens to."""


NOTHING_EARLY: Final[Iterator[Any]] = iter(())


class Request:
    """Everything a run needs to know, decided before it starts.

    `ns` is the namespace of a nested run and `parents` the checkpoints it
    hangs under, by namespace; `planned` those on which the tasks around it were
    first planned, which differ when an edit has carried them over. `resuming`
    says that the task around a nested run is being run again, so that it goes on
    where it stopped; `answers` are answers to questions by id, and `early` has one
    that came before its question, for whoever asks first. A run from a
    checkpoint that its thread has passed is `rewound`: `fork_base` is that
    checkpoint, `fork_id` the first of the new branch; `forks` name checkpoints
    that subgraphs go on from, by namespace. `lease` is the right to write to the
    thread, which the outermost run `claims` and gives back; `on_busy` says what it
    does when another has it. `origin` stands in for a checkpoint id where there is
    no saver. Unless they are set, `ns` and `origin` are those of the task `around`,
    made when something asks for them: they take a hash, and most nested runs
    without a saver need neither. `state` and
    `stop` are set by the run for those who run under it; `spent` counts the
    supersteps that nested runs took. `labels` are metadata and tags of the run, as
    listeners of tasks see them. Where each task is `watched`, the entry node's is
    one of them. A graph that is a node `reports` what its nodes wrote.
    """

    # Class attributes are the defaults: a run sets few of these, and most of
    # them only when it has a saver or is nested.
    saver: Any = None
    thread_id: str | None = None
    pinned: str | None = None
    durability: Literal["sync", "async", "exit"] = "async"
    before: frozenset[str] | str = frozenset()
    after: frozenset[str] | str = frozenset()
    limit: int = 1000
    modes: frozenset[str] = frozenset()
    resuming: bool = False
    nested: bool = False
    rewound: bool = False
    fork_base: str = ""
    fork_id: str = ""
    forks: Mapping[str, str] = NONE
    answers: Mapping[str, Any] = NONE
    early: Iterator[Any] = NOTHING_EARLY
    parents: Mapping[str, str] = NONE
    planned: Mapping[str, str] = NONE
    lease: Any = None
    claims: bool = False
    on_busy: Literal["wait", "reject", "fork"] = "wait"
    metadata: Mapping[str, Any] = NONE
    labels: Mapping[str, Any] = NONE
    control: Any = None
    cache: Any = None
    bump: Bump = staticmethod(next_int)
    emit: Emit = staticmethod(silence)
    step_timeout: float | None = None
    state: State | None = None
    stop: int = 0
    spent: int = 0
    watched: bool = False
    reports: bool = False
    around: Task | None = None
    root: Request | None = None
    base: str = ""
    used: frozenset[str] = frozenset()

    def __init__(self, input: Any, keys: Keys, **given: Any) -> None:
        self.input = input
        self.keys = keys
        if given:  # only then: it takes a dict of its own
            assert FIELDS.issuperset(given), given.keys() - FIELDS
            self.__dict__.update(given)

    @cached_property
    def ns(self) -> str:
        return "" if self.around is None else self.around.ns

    @cached_property
    def origin(self) -> str:
        return "" if self.around is None else self.around.id

    @property
    def path(self) -> tuple[str, ...]:
        """The namespace in parts, as chunks tell it; empty for a root run."""
        return tuple(self.ns.split(NS_SEP)) if self.ns else ()

    def place(self, checkpoint_id: str | None) -> dict[str, Any]:
        """The config that names a checkpoint of this run to a saver."""
        conf: dict[str, Any] = {
            "thread_id": self.thread_id,
            "checkpoint_ns": self.ns,
        }
        if checkpoint_id:
            conf["checkpoint_id"] = checkpoint_id
        return {CONF: conf}

    def shown(self, checkpoint_id: str) -> dict[str, Any]:
        """The same as listeners see it: nested runs tell of their ancestors."""
        config = self.place(checkpoint_id)
        if self.ns:
            config[CONF]["checkpoint_map"] = {**self.parents, self.ns: checkpoint_id}
        return config

    def forks_inside(self, ns: str) -> bool:
        """Whether a subgraph in this namespace is to go on from a named checkpoint."""
        return any(key == ns or key.startswith(f"{ns}|") for key in self.forks)


FIELDS: Final = frozenset(dir(Request))
"""What a caller of `Request` may give."""
