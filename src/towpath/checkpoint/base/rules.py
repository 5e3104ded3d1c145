"""Which checkpoints of a thread are to go, decided without their values.

A rule looks at an `Outline`: which checkpoints there are, what hangs on what, and
where a question is open. It does no I/O, so every saver follows the same rules.
Whatever the rule, nothing that is needed to go on is taken away from a thread that
stays: of each namespace the newest checkpoint stays, and with a checkpoint of a
subgraph that which waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from towpath.checkpoint.base.id import first_id_at, tells_time
from towpath.constants import CARRIED, INTERRUPT, NS_END, NS_SEP, RESUME

Place = tuple[str, str]
"""The namespace and the id of a checkpoint within its thread."""


@dataclass(frozen=True, slots=True)
class Affected:
    """How much a call removed or copied; with `dry_run`, how much it would have.

    `threads` are those of which something was, `cells` the stored values (one
    serves every checkpoint whose channel has it; those of a few bytes are kept with
    the checkpoint instead), `bytes` the size of all that as it is stored, without
    what the database needs beside it. `running` are the threads that `sweep` left
    alone because a run has them.
    """

    threads: int = 0
    checkpoints: int = 0
    writes: int = 0
    cells: int = 0
    bytes: int = 0
    running: int = 0

    def __add__(self, other: Affected) -> Affected:
        return Affected(*map(sum, zip(astuple(self), astuple(other), strict=True)))


class TaskMarks(NamedTuple):
    """What the writes say that a task recorded at a checkpoint."""

    asked: bool
    answered: bool
    ended: bool


def marked(writes: Iterable[tuple[str, str, int]]) -> list[TaskMarks]:
    """Sum up recorded writes, each a task, a channel and a place in its list."""
    marks: dict[str, list[tuple[bool, bool, bool]]] = {}
    for task, channel, idx in writes:
        mark = (channel == INTERRUPT, channel == RESUME, idx >= 0)
        marks.setdefault(task, []).append(mark)
    return [TaskMarks(*map(any, zip(*of, strict=True))) for of in marks.values()]


def asks(tasks: Collection[TaskMarks]) -> bool:
    """Tell whether a question is open at a checkpoint with these tasks.

    An edit that stands for a task ends the step, but on a branch of its own: where
    nothing was answered, it can still be.
    """
    answered = any(task.answered for task in tasks)
    return any(task.asked and not (task.ended and answered) for task in tasks)


@dataclass(slots=True)
class Outline:
    """What a thread is made of, without its values."""

    parents: dict[Place, str | None]
    """Each checkpoint, and which of its namespace it was put on."""
    asked: Collection[Place]
    """The checkpoints at which a question is open."""
    metadata: Callable[[Place], Mapping[str, Any]]
    running: bool = False
    """Whether a run has the thread."""

    def namespaces(self) -> dict[str, dict[str, str | None]]:
        """Return the parents by id, for each namespace."""
        found: dict[str, dict[str, str | None]] = {}
        for (ns, at), parent in self.parents.items():
            found.setdefault(ns, {})[at] = parent
        return found


class Rule:
    """Says what is to go."""

    __slots__ = ()

    def doomed(self, outline: Outline) -> set[Place]:
        """Return the checkpoints of a thread that are to go."""
        raise NotImplementedError

    def spares(self, outline: Outline) -> bool:  # noqa: ARG002 - of most rules
        """Tell whether a thread stays only because a run has it."""
        return False


class Everything(Rule):
    """The whole thread goes."""

    __slots__ = ()

    def doomed(self, outline: Outline) -> set[Place]:
        """Return all of them."""
        return {*outline.parents}


@dataclass(frozen=True, slots=True)
class OfRuns(Rule):
    """The checkpoints of some runs go, also where they are the newest."""

    runs: frozenset[str]

    def doomed(self, outline: Outline) -> set[Place]:
        """Return those whose metadata names one of the runs."""
        return {
            place
            for place in outline.parents
            if outline.metadata(place).get("run_id") in self.runs
        }


@dataclass(frozen=True, slots=True)
class Expired(Rule):
    """The whole thread goes if nothing happened on it since a moment.

    One that waits for an answer stays, unless `waiting`, and one that a run has.
    """

    since: datetime
    waiting: bool = False

    def concerns(self, newest: str | None) -> bool:
        """Tell whether a thread with this newest checkpoint is old enough."""
        return newest is not None and _is_older(newest, first_id_at(self.since))

    def doomed(self, outline: Outline) -> set[Place]:
        """Return all of them or none."""
        goes = self._is_due(outline) and not outline.running
        return {*outline.parents} if goes else set()

    def spares(self, outline: Outline) -> bool:
        """Tell whether it would go if no run had it."""
        return outline.running and self._is_due(outline)

    def _is_due(self, outline: Outline) -> bool:
        at = max((at for _, at in outline.parents), default=None)
        root = max((at for ns, at in outline.parents if not ns), default="")
        waits = ("", root) in outline.asked
        return self.concerns(at) and (self.waiting or not waits)


@dataclass(frozen=True, slots=True)
class Keep(Rule):
    """The newest of each namespace stay, and what else is named here.

    Of a subgraph whose call is over nothing stays: its state lived for that call,
    and no kept checkpoint leads to it. See `prune` for what the options mean.
    """

    newest: int = 1
    since: datetime | None = None
    forks: bool = False
    ancestors: bool = False

    def __post_init__(self) -> None:
        if self.newest < 1:
            raise ValueError(
                f"`keep` is at least 1, not {self.newest}: a thread goes on from its "
                'newest checkpoint. To delete threads: strategy="delete"'
            )

    def doomed(self, outline: Outline) -> set[Place]:
        """Return those that no option keeps, and that nothing waits for."""
        kept: set[Place] = set()
        known = outline.namespaces()
        for ns in sorted(known, key=_depth):
            over = _is_over(outline, known, kept, ns)
            chosen = self._young(known[ns]) if over else self._kept(known[ns])
            kept.update((ns, at) for at in chosen)
        doomed = outline.parents.keys() - kept
        return doomed - _awaited(outline, kept, doomed)

    def _kept(self, parents: Mapping[str, str | None]) -> set[str]:
        ordered = sorted(parents, reverse=True)
        kept = {*ordered[: self.newest]} | self._young(parents)
        if self.forks:
            kept |= parents.keys() - {*parents.values()}
        if self.ancestors:
            line = {*_lineage(parents, ordered[0])}
            for at in kept - line:
                kept.update(_lineage(parents, at))
        return kept

    def _young(self, parents: Iterable[str]) -> set[str]:
        if self.since is None:
            return set()
        first = first_id_at(self.since)
        return {at for at in parents if not _is_older(at, first)}


def _depth(ns: str) -> int:
    return ns.count(NS_SEP) + 1 if ns else 0


def _is_over(
    outline: Outline,
    known: Mapping[str, Collection[str]],
    kept: Collection[Place],
    ns: str,
) -> bool:
    """Tell whether a namespace is of a call that nothing kept above it leads to.

    That is the checkpoint at which the call was planned, or one that carries its
    task since an edit; and as long as a question is open there, it may go on. What
    is newer than all that is stored above is about to be led to.
    """
    above, _, last = ns.rpartition(NS_SEP)
    if not ns or above not in known:
        return False
    left = [at for at in known[above] if (above, at) in kept]
    if not left:
        return True  # the call around it is over
    _, calls, task = last.partition(NS_END)
    if not calls:
        return False  # it keeps its state across calls
    stored = outline.metadata((ns, max(known[ns]))).get("parents") or {}
    home = stored.get(above)
    if home is None or home in left or (above, home) in outline.asked:
        return False
    if home > max(known[above]):
        return False
    carried = (outline.metadata((above, at)).get(CARRIED) or {} for at in left)
    return all(task not in map(_id_in, ids.values()) for ids in carried)


def _id_in(name: object) -> str:
    return str(name).rpartition(NS_END)[2]


def _lineage(parents: Mapping[str, str | None], at: str | None) -> Iterator[str]:
    """Yield a checkpoint and its ancestors."""
    seen: set[str] = set()  # ids are the caller's to choose, so they may form a ring
    while at is not None and at in parents and at not in seen:
        seen.add(at)
        yield at
        at = parents[at]


def _awaited(
    outline: Outline, kept: Iterable[Place], doomed: Collection[Place]
) -> set[Place]:
    """Return those at which a question is open that a kept subgraph has asked."""
    open_ = {*doomed}.intersection(outline.asked)
    if not open_:
        return set()
    above: set[Place] = set()
    for ns, at in kept:
        if ns:
            above.update((outline.metadata((ns, at)).get("parents") or {}).items())
    return open_ & above


def _is_older(at: str, first: str) -> bool:
    return at < first and tells_time(at)


def stale_writes(
    outline: Outline, doomed: Collection[Place], written: Iterable[Place]
) -> set[Place]:
    """Return the places whose pending writes go with the doomed checkpoints.

    Writes may come before their checkpoint. So those of one that is not stored go
    only if it is older than the newest, which it would have come before.
    """
    newest = {ns: max(parents) for ns, parents in outline.namespaces().items()}
    return {
        (ns, at)
        for ns, at in written
        if (ns, at) in doomed
        or ((ns, at) not in outline.parents and at < newest.get(ns, ""))
    }


_PLAIN: Final = Keep()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruning:
    """The options of `prune`, as they were given."""

    strategy: str = "keep_latest"
    keep: int = 1
    older_than: timedelta | datetime | None = None
    keep_forks: bool = False
    keep_ancestors: bool = False
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    def rule(self) -> Rule:
        """Return what the options mean.

        Raises:
            ValueError: there is no such strategy, or an option makes no sense.
        """
        since = None if self.older_than is None else moment(self.older_than, self.now)
        kept = Keep(self.keep, since, self.keep_forks, self.keep_ancestors)
        if self.strategy == "keep_latest":
            return kept
        if self.strategy != "delete":
            raise ValueError(
                f'`strategy` is "keep_latest" or "delete", not {self.strategy!r}'
            )
        if kept != _PLAIN:
            raise ValueError('strategy="delete" leaves nothing to keep: no options')
        return Everything()


def moment(age: timedelta | datetime, now: datetime) -> datetime:
    """Return the moment that lies an age before now, or that is named itself.

    Raises:
        ValueError: it has no time zone, or the age is negative.
    """
    if isinstance(age, timedelta):
        if age < timedelta(0):
            raise ValueError(f"an age is not negative: {age}")
        return now - age
    if age.tzinfo is None:
        raise ValueError(f"{age} has no time zone: use datetime.now(UTC)")
    return age
