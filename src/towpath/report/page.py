"""The report of a thread: one page of HTML that needs nothing else.

All that comes from outside is escaped, and the page forbids itself scripts and
requests, so that no value can do anything even in a browser that is mistaken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import zip_longest
from os import PathLike
from pathlib import Path
from typing import Final

from towpath.constants import START
from towpath.picture.measure import fit
from towpath.picture.sketch import TIMES, lasted
from towpath.report.changes import Change
from towpath.report.facts import Story, line_to, standing
from towpath.report.moments import Did, Moment
from towpath.report.style import STYLE

POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
SIGNS: Final = {"+": "plus", "-": "minus"}
STATES: Final = {"failed": " failed", "waiting": " asks", "next": " next"}
NESTING: Final = 8
TASKS: Final = 50
KEYS: Final = 4


class Report:
    """A report as HTML: `str(report)`, or a file. A notebook shows it in a frame."""

    def __init__(self, html: str) -> None:
        self.html = html

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the page to a file; return its path."""
        file = Path(path)
        file.write_text(self.html, "utf-8")
        return file

    def __str__(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return f"<Report of {len(self.html):,} characters>"

    def _repr_html_(self) -> str:
        return (
            f'<iframe sandbox srcdoc="{escape(self.html)}" '
            'style="width:100%;height:640px;border:0"></iframe>'
        )


@dataclass(slots=True)
class Subject:
    """What a report is about. `more` says that older checkpoints were left out."""

    graph: str
    thread: str
    story: Story
    picture: str
    more: bool = False


def report(subject: Subject) -> Report:
    """Write the page."""
    title = f"{subject.graph}, thread {subject.thread}"
    head = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{text(title)}</title><style>{STYLE}</style></head><body><main>"
    )
    body = "\n".join(Page(subject).parts())
    return Report(f"{head}\n{body}\n</main></body></html>\n")


def text(value: str) -> str:
    """Text for HTML; its lines and spaces stay."""
    return "\n".join(escape(fit(line)) for line in value.split("\n"))


class Page:
    """The work on one report."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.story = subject.story
        self.root = list(subject.story.get("", ()))
        self.line = line_to(self.root, None)
        self.slowest = max((m.seconds or 0 for m in self.every()), default=0)
        self.told: set[str] = {""}

    def every(self) -> Iterator[Moment]:
        for moments in self.story.values():
            yield from moments

    def parts(self) -> Iterator[str]:
        yield f"<h1>{text(self.subject.graph)}</h1>"
        yield f'<p class="soft">thread <b>{text(self.subject.thread)}</b></p>'
        if not self.root:
            yield "<p>Nothing is stored of this thread.</p>"
            return
        yield self.facts()
        yield from self.notes()
        yield f'<div class="picture">{self.subject.picture}</div>'
        yield "<h2>Timeline</h2>"
        if self.subject.more:
            yield '<p class="soft">Older checkpoints are left out.</p>'
        yield from self.timeline(self.line, 0)
        yield from self.branches()
        yield from self.strays()

    def facts(self) -> str:
        """What there is to count."""
        start, end = self.root[0].at, self.root[-1].at
        steps = sum(
            any(t.status == "done" and t.name != START for t in moment.tasks)
            for moment in self.line
        )
        counted = {
            "steps": f"{steps:,}",
            "checkpoints": f"{sum(1 for _ in self.every()):,}",
            "from (UTC)": start.strftime("%Y-%m-%d %H:%M:%S") if start else "",
            "first to last": text(lasted((end - start).total_seconds()))
            if start and end
            else "",
            "other branches": str(len(self.heads()) - 1),
            "subgraph runs": str(len(self.story) - 1),
        }
        shown = {
            name: value for name, value in counted.items() if value not in {"", "0"}
        }
        cells = (f"<div><b>{v}</b><small>{k}</small></div>" for k, v in shown.items())
        return f'<div class="facts">{"".join(cells)}</div>'

    def notes(self) -> Iterator[str]:
        """Where the thread waits, and what failed."""
        for moment in self.ends():
            where = f' <a href="#{anchor(moment)}">step {moment.step}</a>'
            for task in moment.tasks:
                if task.status == "waiting" and not task.ns:
                    asked = "<br>".join(text(asked) for _, asked in task.questions)
                    yield note(
                        "waiting", f"<b>{text(task.name)}</b> asks{where}: {asked}"
                    )
                if task.status == "failed":
                    yield note(
                        "failed",
                        f"<b>{text(task.name)}</b> failed{where}: {text(task.error)}",
                    )

    def ends(self) -> list[Moment]:
        """Where the graph and its subgraphs are now."""
        now = standing(self.line)
        inner = [
            moments[-1]
            for ns, moments in self.story.items()
            if ns and moments and moments[-1].above in now
        ]
        return [*self.line[-1:], *inner]

    def heads(self) -> list[Moment]:
        """The moments that nothing follows, the newest first."""
        parents = {moment.parent for moment in self.root}
        return [m for m in reversed(self.root) if m.id not in parents]

    def branches(self) -> Iterator[str]:
        """Lines that the newest checkpoint does not come from."""
        known = {moment.id for moment in self.line}
        for head in self.heads()[1:]:
            own = [m for m in line_to(self.root, head.id) if m.id not in known]
            known.update(moment.id for moment in own)
            if own:
                off = f"left at step {(own[0].step or 0) - 1}"
                yield f"<h2>Another branch</h2><p class=soft>{off}</p>"
                yield from self.timeline(own, 0)

    def strays(self) -> Iterator[str]:
        """Subgraphs whose place in the timeline is not stored any more."""
        left = [ns for ns in self.story if ns not in self.told]
        if left:
            yield "<h2>Subgraphs of steps that are gone</h2>"
        for ns in left:
            if ns not in self.told:
                yield f"<h3>{text(ns)}</h3>"
                yield from self.inner(ns, 0)

    def timeline(self, moments: Sequence[Moment], depth: int) -> Iterator[str]:
        """Each moment with what it led to, which the one after it has."""
        before: Moment | None = None
        for moment, after in zip_longest(moments, moments[1:]):
            led = after.changed if after and after.parent == moment.id else []
            yield from self.step(moment, led, depth)
            if before is None or before.id != moment.parent:
                given = "what was there to begin with"
                yield from changed_parts(given, moment.changed)
            yield from changed_parts("what changed", led)
            yield more("the state at its beginning" if after else "state", moment.state)
            where = f"checkpoint {moment.id}"
            where += f" in {moment.ns}" if moment.ns else ""
            yield f"<small>{text(where)}</small></div></details>"
            before = moment

    def inner(self, ns: str, depth: int) -> Iterator[str]:
        """The moments of a subgraph."""
        self.told.add(ns)
        yield '<div class="inner">'
        yield from self.timeline(self.story.get(ns, ()), depth)
        yield "</div>"

    def step(self, moment: Moment, led: Sequence[Change], depth: int) -> Iterator[str]:
        """The beginning of a superstep: what is seen at once, and its tasks."""
        who = "".join([*chips(moment), changed_keys(led)])
        yield f'<details class="step" id="{anchor(moment)}"><summary>'
        yield f'<span class="no">{moment.step}</span>'
        yield f'<span class="who">{who}</span>{self.time(moment)}</summary><div>'
        # What a lone task wrote is what changed.
        wrote = len(moment.tasks) > 1 or not led
        for task in moment.tasks[:TASKS]:
            yield from task_parts(task, wrote=wrote)
        if len(moment.tasks) > TASKS:
            yield f'<p class="soft">and {len(moment.tasks) - TASKS} more tasks</p>'
        for task in moment.tasks:
            if task.ns and task.ns not in self.told and depth < NESTING:
                yield f"<h3>in the subgraph {text(task.name)}</h3>"
                yield from self.inner(task.ns, depth + 1)

    def time(self, moment: Moment) -> str:
        """When a step began, and how long it took, also as a bar."""
        if moment.at is None:
            return ""
        shown = moment.at.strftime("%H:%M:%S.%f")[:-3]
        if moment.seconds is None:
            return f'<span class="time">{shown}</span>'
        part = moment.seconds / self.slowest if self.slowest else 0
        bar = f'<span class="bar" style="width:{max(2, round(100 * part))}%"></span>'
        return (
            f'<span class="time">{shown} · {text(lasted(moment.seconds))}{bar}</span>'
        )


def anchor(moment: Moment) -> str:
    return "c-" + "".join(c if c.isalnum() else "-" for c in f"{moment.ns}{moment.id}")


def note(kind: str, html: str) -> str:
    return f'<div class="note {kind}">{html}</div>'


def chips(moment: Moment) -> Iterator[str]:
    """What ran at a moment; tasks of one node that stand alike are one chip."""
    if moment.source != "loop":
        yield f'<span class="chip plain">{text(moment.source)}</span>'
    if not moment.tasks:
        yield '<span class="soft">the end</span>'
    alike = Counter((t.name, t.status) for t in moment.tasks if t.name != START)
    for (name, status), count in alike.items():
        many = f" {TIMES}{count}" if count > 1 else ""
        shown = f"{name}{many}{STATES.get(status, '')}"
        yield f'<span class="chip {status}">{text(shown)}</span>'


def changed_keys(changes: Sequence[Change]) -> str:
    """The names of the keys that a step changed, the first few of them."""
    if not changes:
        return ""
    names = ", ".join(change.key for change in changes[:KEYS])
    dots = ", …" if len(changes) > KEYS else ""
    return f'<span class="soft">{text(names + dots)}</span>'


def task_parts(task: Did, *, wrote: bool) -> Iterator[str]:
    """What came of a task, where there is something to say."""
    for _, asked in task.questions:
        yield note("waiting", f"<b>{text(task.name)}</b> asked: {text(asked)}")
    if task.error:
        yield note("failed", f"<b>{text(task.name)}</b>: {text(task.error)}")
    if wrote and task.result and task.name != START:
        yield f"<p><b>{text(task.name)}</b> wrote <code>{text(task.result)}</code></p>"


def changed_parts(what: str, changes: Sequence[Change]) -> Iterator[str]:
    if changes:
        yield f"<h3>{what}</h3>"
    yield from map(change_part, changes)


def change_part(change: Change) -> str:
    """A key with the lines of what is new and what is gone."""
    lines = []
    for line in change.lines:
        sign = SIGNS.get(line[:1])
        shown = text(line)
        lines.append(f'<span class="{sign}">{shown}</span>' if sign else shown)
    head = (
        f'<p><span class="key">{text(change.key)}</span> <small>{change.kind}</small>'
    )
    return (
        f"{head}</p><pre>{chr(10).join(lines)}</pre>{more('all of it', change.after)}"
    )


def more(what: str, value: str) -> str:
    """Text that is shown on demand."""
    if not value:
        return ""
    return (
        f'<details class="more"><summary>{what}</summary>'
        f"<pre>{text(value)}</pre></details>"
    )
