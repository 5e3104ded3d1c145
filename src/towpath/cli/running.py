"""The commands that run a graph: from an input, an answer or an older checkpoint."""

from __future__ import annotations

import json
import sys
import traceback
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NoReturn

import click

from towpath.cli import ask, words
from towpath.cli.board import nodes_of
from towpath.cli.options import (
    complete_thread,
    run_options,
    target_argument,
    thread_option,
    wants_traceback,
)
from towpath.cli.outcome import EXIT, Outcome, has_begun, of_snapshot
from towpath.cli.output import kept_apart
from towpath.cli.places import find_checkpoint
from towpath.cli.problem import Problem, nearest
from towpath.cli.project import current_project
from towpath.cli.run import Request, ordered
from towpath.cli.session import Session, open_graph
from towpath.cli.storage import (
    refused_questions,
    require_thread,
    without_password,
)
from towpath.cli.tally import Tally
from towpath.cli.view import (
    JsonView,
    LineView,
    LiveView,
    View,
    question_text,
    resume_command,
)
from towpath.errors import is_invalid_resume
from towpath.types import Command

MODES = ("values", "updates", "custom", "messages", "tasks", "checkpoints", "debug")
JSON_MODES = ("tasks", "updates", "custom")


@click.command()
@target_argument
@click.option("--input", "text", required=True, metavar="JSON|@FILE|-", help="Input.")
@click.option(
    "--thread",
    help="Id of the thread; a new one by default.",
    shell_complete=complete_thread,
)
@click.option("--abandon", is_flag=True, help="Give up what the thread was doing.")
@run_options(MODES)
def run(
    target: str, text: str, thread: str | None, abandon: bool, **given: Any
) -> NoReturn:
    """Run a graph from an input.

    Questions are not asked here: the exit code is 3, and `resume` asks them.
    """
    value = words.read_json("--input", text)
    with open_session(target, thread or uuid.uuid4().hex, **given) as session:
        before = session.snapshot()
        # A step that could not be folded has tasks, though none runs next.
        if before.tasks and has_begun(before) and not abandon:
            doing = "waits for an answer" if before.interrupts else "is not finished"
            raise Problem(
                f"thread {session.request.thread!r} {doing}",
                hint="`towpath resume` goes on with it; --abandon starts anew",
            )
        outcome = session.run(value)
        if outcome.status == "failed" and session.snapshot() == before:
            # Refused before anything of it was stored: the thread is as it was.
            outcome = replace(outcome, status="refused")
        if outcome.status == "refused" and before.created_at is None:
            # A typo leaves no thread behind.
            session.saver.delete_thread(session.request.thread)
        leave(outcome)


@click.command()
@target_argument
@thread_option
@click.option(
    "--answer",
    "answers",
    multiple=True,
    metavar="JSON|ID=JSON",
    help="Answer to the open question, or to the one with this id.",
)
@run_options(MODES)
def resume(target: str, thread: str, answers: Sequence[str], **given: Any) -> NoReturn:
    """Go on with a thread: after a crash, or with an answer.

    Without --answer, a terminal asks for each answer, in the form that the question
    says it must have; without a terminal, open questions are printed and the exit
    code is 3.
    """
    asks = is_person() and not given["as_json"]
    with open_session(target, thread, create=False, asks=asks, **given) as session:
        require_thread(session.saver, session.request.config)
        before = session.snapshot()
        if answers:
            saved = session.saver.get_tuple(session.request.config)
            questions = before.interrupts or refused_questions(saved)
            told = words.read_answers(answers, questions)
            require_fitting(told, questions)
            outcome = session.run(Command(resume=told))
            leave(converse(session, outcome) if asks else outcome)
        if before.tasks and not before.interrupts:
            outcome = session.run(None)
        else:
            outcome = session.show(of_snapshot(thread, before, before.values))
        leave(converse(session, outcome) if asks else outcome)


@click.command(context_settings={"ignore_unknown_options": True})
@target_argument
@thread_option
@click.option(
    "--at",
    "checkpoint",
    required=True,
    metavar="CHECKPOINT",
    help="Where to start: an id, a part of one, or the number of a step.",
)
@run_options(MODES)
def replay(target: str, thread: str, checkpoint: str, **given: Any) -> NoReturn:
    """Run again from an older checkpoint, on a branch.

    What ran after it stays in the history. The end of the branch is the thread's
    newest state, with which `resume` goes on.
    """
    with open_session(target, thread, create=False, **given) as session:
        found = find_checkpoint(session.saver, thread, checkpoint)
        at = session.from_checkpoint(found)
        before = session.graph.get_state(at.request.start)
        if not before.tasks:
            raise Problem(
                f"nothing runs after checkpoint {found!r}: it is an end of the thread",
                hint=f"`towpath history --thread {thread}` shows what runs next",
            )
        leave(at.run(None))


def require_fitting(answers: Mapping[str, Any], questions: Sequence[Any]) -> None:
    """Refuse an answer that its question rules out, before the node is given it.

    Raises:
        Problem: says what the question wants.
    """
    for question in questions:
        if question.id not in answers:
            continue
        if wanted := ask.misfit(question, answers[question.id]):
            value = json.dumps(answers[question.id], ensure_ascii=False)
            raise Problem(
                f"--answer: {value} is not what the question wants: {wanted}",
                hint="nothing ran; the question is still open",
            )


def is_person() -> bool:
    """Tell whether somebody is there to be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def converse(session: Session, outcome: Outcome) -> Outcome:
    """Ask the person at the terminal until the run waits for nobody."""
    while questions := asked(session, outcome):
        many = len(questions) > 1
        answers = {
            question.id: ask.answer_to(question, many=many) for question in questions
        }
        outcome = session.run(Command(resume=answers))
    return outcome


def asked(session: Session, outcome: Outcome) -> Sequence[Any]:
    """Return what is asked at the end of a run, also by who refused an answer."""
    if outcome.error is None or not is_invalid_resume(outcome.error):
        return outcome.questions
    again = refused_questions(session.saver.get_tuple(session.request.config))
    for question in again:
        click.echo(f"that answer was refused; once more:\n{question_text(question)}")
    return again


@contextmanager
def open_session(
    target: str, thread: str, *, create: bool = True, asks: bool = False, **given: Any
) -> Iterator[Session]:
    """Prepare to run a graph as the options say."""
    modes = ordered(given["streams"])
    if wrong := [mode for mode in modes if mode not in MODES]:
        raise Problem(
            f"--stream: there is no mode {wrong[0]!r}", hint=nearest(wrong[0], MODES)
        )
    config = words.read_config(given["configs"], thread, current_project().config)
    options: dict[str, Any] = {}
    if given["durability"] is not None:
        options["durability"] = given["durability"]
    if given["context"] is not None:
        options["context"] = words.read_json("--context", given["context"])

    again = resume_command(target, thread, without_password(given["db"]))
    if given["as_json"]:
        modes = modes or JSON_MODES

    results = sys.stdout

    def view(graph: Any, tally: Tally) -> View:
        if given["as_json"]:
            return JsonView(modes, results)
        if sys.stderr.isatty():
            return LiveView(modes, tally, again, asks=asks, nodes=nodes_of(graph))
        return LineView(modes, tally, again, asks=asks)

    with (
        kept_apart(given["as_json"]),
        open_graph(target, given["db"], config, create=create) as (graph, saver),
    ):
        yield Session(Request(graph, config, modes, options), saver, view, again)


def leave(outcome: Outcome) -> NoReturn:
    """Exit with the code of the outcome, and the traceback if it is wanted."""
    if outcome.error is not None and wants_traceback():
        traceback.print_exception(outcome.error)
    sys.exit(EXIT[outcome.status])
