"""Moments -> what ran in which node, how often and how long; lines and branches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest

from towpath.picture.sketch import Ran
from towpath.report.moments import Did, Moment

Story = Mapping[str, Sequence[Moment]]
"""The moments of a thread by namespace, oldest first; "" is the graph itself."""


def line_to(moments: Sequence[Moment], head: str | None) -> list[Moment]:
    """The moments that led to this one, or to the newest, oldest first."""
    by_id = {moment.id: moment for moment in moments}
    at = by_id.get(head or "") or (moments[-1] if moments else None)
    line: list[Moment] = []
    while at is not None:
        line.append(at)
        at = by_id.pop(at.parent or "", None)
    return line[::-1]


def mark_left(story: Story) -> None:
    """Note that tasks ran which left their graph by a command for one above it.

    Nothing is recorded of them: such a command ends the run of their graph with the
    step they are in. The step of the outermost graph around it went on.
    """
    over = {moment.id for moment in story.get("", ()) if moment.followed == "loop"}
    for ns, moments in story.items():
        for moment in moments:
            if ns and moment.above in over and moment.followed != "loop":
                for task in moment.tasks:
                    task.status = "done" if task.status == "next" else task.status


def node_id(ns: str, name: str) -> str:
    """The id that a node has in a drawing, from the namespace that it ran in."""
    parts = [part.split(":")[0] for part in ns.split("|")] if ns else []
    # A number stands for a further call of a graph in one task.
    return ":".join([*(part for part in parts if not part.isdigit()), name])


def ran_in(story: Story, head: str | None = None) -> dict[str, Ran]:
    """What ran on the way to a checkpoint, by the id of the node in a drawing."""
    line = line_to(story.get("", ()), head)
    known, now = {moment.id for moment in line}, standing(line)
    if head and line and line[-1].followed:
        # A thread that went on: at this moment its tasks were still to run.
        last = line[-1]
        known.discard(last.id)
        line[-1] = replace(last, tasks=[Did(t.name, "next") for t in last.tasks])
    found: dict[str, Ran] = {}
    for ns, moments in story.items():
        own = line if not ns else [m for m in moments if m.above in known]
        for moment, after in zip_longest(own, own[1:]):
            stands = after is None and (not ns or moment.above in now)
            count(moment, after, found, stands=stands)
    # Tasks that were given up did nothing, and nothing is expected of them.
    return {id: ran for id, ran in found.items() if ran.times or ran.status != "done"}


def standing(line: Sequence[Moment]) -> set[str]:
    """The checkpoints whose tasks are what a thread stands at.

    Besides the last one those that it was copied from: an edit or a fork takes
    over tasks, and leaves what their subgraphs stored where it is.
    """
    found: set[str] = set()
    tasks: set[str] | None = None
    for moment in reversed(line):
        names = {task.name for task in moment.tasks}
        if tasks is not None and not tasks & names:
            break
        found.add(moment.id)
        tasks = names
        if moment.source not in {"fork", "update"}:
            break
    return found


def count(
    moment: Moment, after: Moment | None, found: dict[str, Ran], *, stands: bool
) -> None:
    """Add one moment; only that where the thread stands says what a node does."""
    # A fork is a copy, and an edit can take tasks over: they count there.
    copied = after is not None and after.source in {"fork", "update"}
    moved = {task.name for task in after.tasks} if after and copied else set()
    tasks: dict[str, list[Did]] = {}
    for task in moment.tasks:
        if task.name in moved:
            continue
        tasks.setdefault(node_id(moment.ns, task.name), []).append(task)
    for id, several in tasks.items():
        ran = found.setdefault(id, Ran())
        done = sum(task.status == "done" for task in several)
        ran.times += done
        if done and moment.seconds is not None:
            ran.seconds = (ran.seconds or 0) + moment.seconds
        if stands:
            describe(ran, several)


def describe(ran: Ran, tasks: Iterable[Did]) -> None:
    """Say what the tasks of a node are at, the most urgent first."""
    for status in ("failed", "waiting", "next"):
        for task in tasks:
            if task.status == status:
                ran.status = task.status
                asked = "; ".join(text for _, text in task.questions)
                ran.note = task.error or asked
                return
