"""Show a run while it goes: plain lines, a live table, or one JSON object per line.

Results and the chunks of streams that were asked for go to standard output;
progress goes to standard error, so that a pipe gets the first without the second.
With `--json`, standard output carries everything, and standard error only what the
nodes of the graph print.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Protocol, Self

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from towpath.cli.ask import answer_hint
from towpath.cli.board import Board
from towpath.cli.outcome import Outcome, explain
from towpath.cli.output import emit
from towpath.cli.plain import cut, outline, to_json, to_plain
from towpath.cli.tally import Namespace, Row, Tally, path
from towpath.errors import is_invalid_resume


class View(Protocol):
    """What a run tells as it goes."""

    def __enter__(self) -> Self:
        """Begin to show."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the terminal as it was."""

    def chunk(self, ns: Namespace, mode: str, chunk: Any) -> None:
        """Show a chunk of a stream."""

    def end(self, outcome: Outcome) -> None:
        """Show how the run ended."""

    @property
    def wants(self) -> tuple[str, ...]:
        """The streams to show besides those that were asked for."""


class JsonView:
    """One JSON object per line, for programs."""

    wants = ()

    def __init__(self, modes: Sequence[str], results: IO[str]) -> None:
        self.modes = modes
        self.results = results

    def __enter__(self) -> Self:
        """Begin; there is nothing to set up."""
        return self

    def __exit__(self, *_: object) -> None:
        """Leave; there is nothing to put back."""

    def chunk(self, ns: Namespace, mode: str, chunk: Any) -> None:
        """Print the chunk if its mode was asked for."""
        if mode in self.modes:
            emit(to_json({"type": mode, "ns": ns, "data": chunk}), self.results)

    def end(self, outcome: Outcome) -> None:
        """Print the outcome as the last line."""
        last: dict[str, Any] = {
            "type": "end",
            "status": outcome.status,
            "thread": outcome.thread,
            "values": outcome.values,
            "next": outcome.next,
            "interrupts": [question_fields(one) for one in outcome.questions],
        }
        if (error := outcome.error) is not None:
            last["error"] = error_fields(error)
        emit(to_json(last), self.results)


class LineView:
    """Plain lines, for logs and pipes."""

    @property
    def wants(self) -> tuple[str, ...]:
        """The streams to show besides: none."""
        return ()

    def __init__(
        self, modes: Sequence[str], tally: Tally, resume: str, *, asks: bool = False
    ) -> None:
        self.modes = modes
        self.tally = tally
        self.resume = resume
        self.asks = asks
        self.started = time.monotonic()

    def __enter__(self) -> Self:
        """Start the watch."""
        self.started = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        """Leave; there is nothing to put back."""

    def chunk(self, ns: Namespace, mode: str, chunk: Any) -> None:
        """Count tasks, and print what was asked for."""
        if mode == "tasks":
            self.task(ns, chunk)
        if mode in self.modes:
            self.result(f"[{path(ns, mode)}] {to_json(chunk)}")
        elif mode == "custom":
            self.progress(f"  {to_json(chunk)}")

    def task(self, ns: Namespace, task: Mapping[str, Any]) -> None:
        """Note that a task starts or ends."""
        if "triggers" in task:
            self.tally.start(ns, task)
        else:
            self.finished(self.tally.finish(ns, task), task)

    def finished(self, row: Row, task: Mapping[str, Any]) -> None:
        """Print one line about a task that ended."""
        counts = f" {row.done}/{row.total}" if row.total > 1 else ""
        how = "asks" if task.get("interrupts") else "done"
        if task.get("error"):
            how = "failed"  # the end of the run tells why
        self.progress(f"step {self.tally.step}: {row.name}{counts} {how}")

    def end(self, outcome: Outcome) -> None:
        """Print the values, the questions or the error, and what to do next."""
        spent = f"{time.monotonic() - self.started:.1f} s"
        if outcome.error is not None:
            for line in explain(outcome.error):
                self.progress(line)
            self.progress(self.failure_text(outcome, spent))
        elif outcome.status == "waiting":
            self.result("\n".join(map(question_text, outcome.questions)))
            if not (self.asks and outcome.questions):
                self.progress(self.waiting_text(outcome))
        else:
            self.result(self.values_text(outcome.values))
            self.progress(f"done in {spent} (thread {outcome.thread})")

    def values_text(self, values: Any) -> str:
        """Write the values: whole for a pipe, and no longer than a screen."""
        text = to_json(values, indent=2)
        size = shutil.get_terminal_size()
        if not sys.stdout.isatty() or text.count("\n") < max(size.lines, 24):
            return text
        words = shlex.split(self.resume)
        words[words.index("resume")] = "state"
        return f"{outline(values, size.columns)}\nall of it: {shlex.join(words)}"

    def failure_text(self, outcome: Outcome, spent: str) -> str:
        """Say how far it came and how it goes on."""
        assert outcome.error is not None
        if outcome.status == "refused":
            return "no node ran: the input was refused; `towpath run` takes another one"
        if is_invalid_resume(outcome.error):
            how = f"; give another with: {self.resume} --answer JSON"
            return f"the answer was refused{'' if self.asks else how}"
        if outcome.asked_at is None:
            return f"failed after {spent}; go on with: {self.resume}"
        words = shlex.split(self.resume)
        words[words.index("resume")] = "replay"
        return (
            f"failed after {spent}, with an answer that stays given; try again with "
            f"it: {self.resume}\nor be asked anew: {shlex.join(words)} "
            f"--at {outcome.asked_at}"
        )

    def waiting_text(self, outcome: Outcome) -> str:
        """Say what the run waits for and how it goes on."""
        ids = [question.id for question in outcome.questions]
        if not ids:
            return (
                f"stopped before {', '.join(outcome.next)}; go on with: {self.resume}"
            )
        answers = [f"--answer {one}=JSON" for one in ids]
        how = "--answer JSON" if len(ids) == 1 else " ".join(answers)
        return f"waiting for an answer; give it with: {self.resume} {how}"

    def progress(self, line: str) -> None:
        """Print for people."""
        click.echo(line, err=True)

    def result(self, text: str) -> None:
        """Print for programs and people."""
        if text:
            emit(text)


class LiveView(LineView):
    """All nodes of the graph and how they stand, below the lines of finished steps."""

    def __init__(
        self,
        modes: Sequence[str],
        tally: Tally,
        resume: str,
        *,
        asks: bool = False,
        nodes: Iterable[str] = (),
    ) -> None:
        super().__init__(modes, tally, resume, asks=asks)
        self.console = Console(stderr=True)
        self.spinner = Spinner("dots")
        self.board = Board(nodes)
        self.step_started = self.started
        self.live = Live(
            get_renderable=self.render,
            console=self.console,
            refresh_per_second=12,
            transient=True,
        )

    @property
    def wants(self) -> tuple[str, ...]:
        """The streams to show besides: what models say, where there can be any."""
        return ("messages",) if find_spec("langchain_core") else ()

    def __enter__(self) -> Self:
        """Take over the last lines of the terminal."""
        self.started = self.step_started = time.monotonic()
        self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Give the terminal back."""
        self.close_step()
        self.live.stop()

    def chunk(self, ns: Namespace, mode: str, chunk: Any) -> None:
        """Show what a model says, and all that plain lines would."""
        if mode == "messages":
            self.board.message(ns, chunk)
        super().chunk(ns, mode, chunk)

    def task(self, ns: Namespace, task: Mapping[str, Any]) -> None:
        """Keep the line of a step when the next one opens."""
        self.board.task(ns, task)
        if "triggers" in task:
            if self.tally.opens(ns, task):
                self.close_step()
            self.tally.start(ns, task)
        else:
            self.finished(self.tally.finish(ns, task), task)

    def finished(self, row: Row, task: Mapping[str, Any]) -> None:
        """Leave it to the table, unless the task failed."""
        if task.get("error"):
            self.progress(f"step {self.tally.step}: {row.name} failed")

    def close_step(self) -> None:
        """Turn the table of the step into a line."""
        if self.tally.rows:
            names = ", ".join(map(str, self.tally.rows.values()))
            spent = time.monotonic() - self.step_started
            self.progress(f"step {self.tally.step}: {names} ({spent:.1f} s)")
            self.tally.rows = {}
        self.step_started = time.monotonic()

    def render(self) -> RenderableType:
        """Draw the graph as it stands."""
        spent = time.monotonic() - self.started
        self.spinner.update(text=f"step {self.tally.step}  {spent:.1f} s")
        room = max(self.console.height - 6, 4)
        width = self.console.width
        return Group(self.spinner, drawn(self.board, room), *spoken(self.board, width))

    def progress(self, line: str) -> None:
        """Print above the table."""
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def result(self, text: str) -> None:
        """Print beside the table, which has to step aside in a shared terminal."""
        if not text:
            return
        if self.live.is_started and self.live.console.is_terminal:
            self.live.stop()
            emit(text)
            self.live.start(refresh=True)
        else:
            emit(text)


MARKS = {"idle": "  ", "running": "> ", "done": "+ ", "asks": "? ", "failed": "x "}
STYLES = {"idle": "dim", "running": "bold", "asks": "yellow", "failed": "red"}


def drawn(board: Board, room: int) -> RenderableType:
    """Draw the nodes, those that run in any case."""
    table = Table.grid(padding=(0, 2))
    places = list(board.places.values())
    busy = [place for place in places if place.stand != "idle"]
    if len(places) > room:
        kept = {id(place) for place in (*busy[-room:], *places)[:room]}
        places = [place for place in places if id(place) in kept]
    now = time.monotonic()
    for place in places:
        style = STYLES.get(place.stand, "")
        bar: RenderableType = ""
        if place.total > 1:
            bar = ProgressBar(total=place.total, completed=place.ended, width=24)
        counts = f"{place.ended}/{place.total}" if place.total > 1 else ""
        again = f"x{place.runs}" if place.runs > 1 and place.total <= 1 else ""
        spent = "" if place.stand == "idle" else f"{place.seconds(now):.1f} s"
        name = Text(f"{MARKS[place.stand]}{place.name}", style)
        table.add_row(name, bar, counts or again, spent)
    if len(places) < len(board.places):
        table.add_row(f"  and {len(board.places) - len(places)} more")
    return table


def spoken(board: Board, width: int) -> Iterator[RenderableType]:
    """Draw the last lines of what a model says."""
    lines = [line for line in board.words.splitlines() if line.strip()][-3:]
    if lines:
        yield Text(f"{board.speaker}:", "dim")
        yield from (Text(f"  {line[-(width - 3) :]}") for line in lines)


def question_fields(question: Any) -> dict[str, Any]:
    """Return an open question as JSON, with the form of an answer if it has one."""
    fields = {"id": question.id, "value": to_plain(question.value)}
    schema = getattr(question, "response_schema", None)
    return fields if schema is None else {**fields, "response_schema": to_plain(schema)}


def question_text(question: Any) -> str:
    """Write an open question for a person, and what may be answered to it."""
    hint = answer_hint(question)
    return "\n".join([value_text(question), *([f"  answer: {hint}"] if hint else ())])


def value_text(question: Any) -> str:
    """Write what is asked, its options one to a line.

    In a terminal no option takes more: what scrolls away cannot be chosen from.
    """
    value = to_plain(question.value)
    if isinstance(value, str):
        return f"? {value}  [{question.id}]"
    if not isinstance(value, dict) or not isinstance(value.get("question"), str):
        return f"? {to_json(value, indent=2)}  [{question.id}]"
    lines = [f"? {value.pop('question')}  [{question.id}]"]
    for name, item in value.items():
        if isinstance(item, list):
            lines += map(option_line, item)
        else:
            lines.append(
                f"  {name}: {item if isinstance(item, str) else to_json(item)}"
            )
    return "\n".join(lines)


def option_line(option: object) -> str:
    """Write an option of a question."""
    line = f"    {option if isinstance(option, str) else to_json(option)}"
    if not sys.stdout.isatty():
        return line
    return cut(line, width=shutil.get_terminal_size().columns)


def error_fields(error: BaseException) -> dict[str, Any]:
    """Return an error as JSON, with its code when it is one of ours."""
    fields: dict[str, Any] = {
        "type": type(error).__name__,
        "message": str(error),
        "notes": list(getattr(error, "__notes__", ())),
    }
    if isinstance(code := getattr(error, "code", None), str):
        fields["code"] = code
    return fields


def resume_command(target: str, thread: str, db: str) -> str:
    """Write the command that goes on with a thread."""
    words = ["resume", target, "--thread", thread, "--db", db]
    return shlex.join([*program_words(), *words])


def program_words() -> list[str]:
    """Return the words that start this program where it was started from."""
    if shutil.which("towpath"):
        return ["towpath"]
    if Path(sys.argv[0]).stem == "towpath":
        return [sys.argv[0]]
    return [os.path.relpath(sys.executable), "-m", "towpath.cli"]
