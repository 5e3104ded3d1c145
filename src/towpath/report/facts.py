"""Moments -> what ran in which node, how often and how long; lines and branches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

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


def node_id(ns: str, name: str) -> str:
    """The id that a node has in a drawing, from the namespace that it ran in."""
    parts = [part.split(":")[0] for part in ns.split("|")] if ns else []
    # A number stands for a further call of a graph in one task.
    return ":".join([*(part for part in parts if not part.isdigit()), name])


def ran_in(story: Story, head: str | None = None) -> dict[str, Ran]:
    """What ran on the way to a checkpoint, by the id of the node in a drawing."""
    line = line_to(story.get("", ()), head)
    known = {moment.id for moment in line}
    found: dict[str, Ran] = {}
    for ns, moments in story.items():
        own = line if not ns else [m for m in moments if m.above in known]
        for moment in own:
            count(moment, moment is own[-1], found)
    return found


def count(moment: Moment, newest: bool, found: dict[str, Ran]) -> None:
    """Add one moment; only the newest says what a node does now."""
    tasks: dict[str, list[Did]] = {}
    for task in moment.tasks:
        tasks.setdefault(node_id(moment.ns, task.name), []).append(task)
    for id, several in tasks.items():
        ran = found.setdefault(id, Ran())
        done = sum(task.status == "done" for task in several)
        ran.times += done
        if done and moment.seconds is not None:
            ran.seconds = (ran.seconds or 0) + moment.seconds
        if newest:
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
