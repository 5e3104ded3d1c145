"""Stored threads against changed code.

Each step of a thread is done again by the graph as it is now: from the
checkpoint that the step began with, with the answers it was given, in a saver
of its own. What comes out is compared with the checkpoint that was stored.
Nothing is written to the thread. (Temporal's replay tests do so with the
history of a workflow.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from towpath.checkpoint.base.model import CheckpointTuple
from towpath.checkpoint.memory import InMemorySaver
from towpath.constants import CONF, NS_END, RESUME, START
from towpath.testing.colour import invoke
from towpath.testing.snapshots import normal_form
from towpath.types import Command, StateSnapshot

__all__ = ("ReplayReport", "Replayed", "replay")

MISSING = "<missing>"


@dataclass(frozen=True, slots=True)
class Replayed:
    """One step of a thread, done again."""

    step: int
    checkpoint_id: str
    """The checkpoint that the step led to."""
    nodes: tuple[str, ...]
    """What ran in it."""
    differences: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    """What is otherwise, by key, as it was stored and as it is now; `next` tells
    which nodes follow, and `__interrupt__` what is asked now."""
    error: BaseException | None = None
    """What the step raises now."""

    @property
    def same(self) -> bool:
        """Whether the step does what it did."""
        return self.error is None and not self.differences

    def __str__(self) -> str:
        what = f"step {self.step} ({', '.join(self.nodes)})"
        if self.error is not None:
            return f"{what}: raises {self.error!r}"
        told = "; ".join(
            f"{key}: stored {stored!r}, now {now!r}"
            for key, (stored, now) in self.differences.items()
        )
        return f"{what}: {told or 'the same'}"


@dataclass(slots=True)
class ReplayReport:
    """The steps of a thread, oldest first, done again."""

    steps: list[Replayed] = field(default_factory=list)

    @property
    def changed(self) -> list[Replayed]:
        """The steps that do not do what they did."""
        return [step for step in self.steps if not step.same]

    def check(self) -> ReplayReport:
        """Raise an `AssertionError` that tells all, if a step has changed."""
        if changed := self.changed:
            lines = "\n".join(map(str, changed))
            total = len(self.steps)
            raise AssertionError(f"{len(changed)} of {total} steps changed:\n{lines}")
        return self


def replay(
    graph: Any, saver: Any, thread_id: str, *, context: Any = None
) -> ReplayReport:
    """Do each stored step of a thread again with a compiled graph, and compare.

    `saver` keeps the thread, and is only read; it has blocking methods. The nodes
    really run: what they do to the outside they do again, so give the graph
    scripted models and a store of its own. Each step begins with the state as it
    was stored, so that one change does not show in all that follows. States are
    compared without ids and times. What somebody edited is not compared, and a
    subgraph that is a node begins with its first step.
    """
    reader = graph.copy({"checkpointer": saver})
    thread = {CONF: {"thread_id": thread_id}}
    stored = {id_of(saved.config): saved for saved in saver.list(thread)}
    snapshots = list(reader.get_state_history(thread))
    by_id = {id_of(snapshot.config): snapshot for snapshot in snapshots}
    report = ReplayReport()
    for after in reversed(snapshots):
        above = id_of(after.parent_config) if after.parent_config else ""
        if (after.metadata or {}).get("source") == "loop" and above in by_id:
            twin = graph.copy(
                {"checkpointer": copied(saver, stored, above), "cache": None}
            )
            answers = answers_inside(stored, above)
            step = Again(twin, by_id[above], after, answers, context)
            report.steps.append(step.done())
    return report


def copied(saver: Any, stored: Mapping[str, CheckpointTuple], at: str) -> InMemorySaver:
    """A thread as it was at a checkpoint, with answers and without results."""
    copy = InMemorySaver(serde=saver.serde)
    newest: dict[str, CheckpointTuple] = {"": stored[at]}
    for id_ in sorted(stored):
        saved = stored[id_]
        ns = saved.config[CONF]["checkpoint_ns"]
        # What a subgraph keeps from call to call; others begin anew.
        if ns and NS_END not in ns and id_ <= at:
            newest[ns] = saved
    for saved in newest.values():
        put(copy, saved)
    return copy


def put(saver: InMemorySaver, saved: CheckpointTuple) -> None:
    """Store a checkpoint by itself, and the answers that were given there."""
    conf = saved.config[CONF]
    place = {key: conf[key] for key in ("thread_id", "checkpoint_ns")}
    checkpoint = saved.checkpoint
    versions = dict(checkpoint["channel_versions"])
    config = saver.put({CONF: place}, checkpoint, saved.metadata, versions)
    for task, channel, value in saved.pending_writes or ():
        if channel == RESUME:
            saver.put_writes(config, [(channel, value)], task)


def answers_inside(stored: Mapping[str, CheckpointTuple], at: str) -> list[Any]:
    """What the subgraphs of a step were answered, in order."""
    found: list[Any] = []
    for _, saved in sorted(stored.items()):
        if (saved.metadata.get("parents") or {}).get("") == at:
            for _, channel, value in saved.pending_writes or ():
                if channel == RESUME:
                    found.extend(value if isinstance(value, list) else [value])
    return found


@dataclass(slots=True)
class Again:
    """One step that is to be done again by a graph whose saver ends before it."""

    graph: Any
    before: StateSnapshot
    after: StateSnapshot
    answers: list[Any]
    context: Any

    def done(self) -> Replayed:
        """Do it, and say what came of it otherwise."""
        step = (self.after.metadata or {}).get("step", 0)
        place = (step, id_of(self.after.config), tuple(self.before.next))
        try:
            now = self.run()
        except Exception as error:
            return Replayed(*place, error=error)
        return Replayed(*place, dict(differences(self.after, now)))

    def run(self) -> StateSnapshot:
        """Do it, and return the state it leads to."""
        thread = {CONF: {"thread_id": self.before.config[CONF]["thread_id"]}}
        # The step that takes the input in has no nodes at which a run could stop.
        begins = tuple(self.before.next) == (START,)
        stops = {
            "interrupt_before": "*" if begins else [],
            "interrupt_after": [] if begins else "*",
        }
        given: Any = None
        while True:
            options = {"context": self.context, "durability": "sync", **stops}
            invoke(self.graph, given, thread, **options)
            now: StateSnapshot = self.graph.get_state(thread)
            if not now.interrupts or len(self.answers) < len(now.interrupts):
                return now
            # A subgraph asks under other ids than it did.
            given = Command(
                resume={asked.id: self.answers.pop(0) for asked in now.interrupts}
            )


def differences(
    stored: StateSnapshot, now: StateSnapshot
) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """What two snapshots disagree on, by key."""
    if now.interrupts and not stored.interrupts:
        yield "__interrupt__", (None, [asked.value for asked in now.interrupts])
        return
    was, is_ = keyed(stored.values), keyed(now.values)
    for key in sorted({*was, *is_}, key=str):
        pair = was.get(key, MISSING), is_.get(key, MISSING)
        if normal_form(pair[0]) != normal_form(pair[1]):
            yield key, pair
    if sorted(stored.next) != sorted(now.next):
        yield "next", (stored.next, now.next)


def keyed(values: Any) -> Mapping[str, Any]:
    """A state by its keys; one without keys is the value itself."""
    if isinstance(values, Mapping):
        return values
    if hasattr(values, "__dict__"):
        return dict(vars(values))
    return {"__root__": values}


def id_of(config: Mapping[str, Any]) -> str:
    id_: str = config[CONF]["checkpoint_id"]
    return id_
