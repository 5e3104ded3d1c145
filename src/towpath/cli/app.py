"""The commands: what the words on the command line do.

Each command is a few lines over the rooms beside it; nothing here knows how a
graph runs or how a terminal is drawn on.
"""

from __future__ import annotations

import sys
import traceback
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NoReturn

import click

from towpath.checkpoint.memory import InMemorySaver
from towpath.cli import show, words
from towpath.cli.outcome import EXIT, Outcome, explain, has_begun, of_snapshot
from towpath.cli.output import emit, kept_apart
from towpath.cli.plain import to_json
from towpath.cli.problem import Problem, nearest
from towpath.cli.run import Request, ordered
from towpath.cli.session import Session, open_graph
from towpath.cli.storage import (
    is_server,
    open_saver,
    require_thread,
    threads,
    without_password,
)
from towpath.cli.tally import Tally
from towpath.cli.view import (
    JsonView,
    LineView,
    LiveView,
    View,
    resume_command,
)
from towpath.errors import TowpathError
from towpath.importing import import_threads, open_source
from towpath.types import Command
from towpath.version import __version__

MODES = ("values", "updates", "custom", "messages", "tasks", "checkpoints", "debug")
DEBUG = "towpath.cli.debug"
JSON_MODES = ("tasks", "updates", "custom")


def remember_debug(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    """Keep `--debug` for the whole command line, wherever it was written."""
    if value:
        ctx.find_root().meta[DEBUG] = True


def wants_traceback() -> bool:
    """Tell whether `--debug` was given."""
    return DEBUG in click.get_current_context().find_root().meta


class Program(click.Group):
    """The program: shows tracebacks only when asked to."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; with `--debug`, say where a problem comes from."""
        try:
            return super().invoke(ctx)
        except Problem as problem:
            if wants_traceback():
                traceback.print_exception(problem)
            raise
        except TowpathError as error:
            # A thread that cannot be read, a database that is locked.
            if wants_traceback():
                traceback.print_exception(error)
            raise click.ClickException("\n".join(explain(error))) from error


debug_option = click.option(
    "--debug",
    is_flag=True,
    expose_value=False,
    callback=remember_debug,
    help="Show tracebacks.",
)


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="towpath")
@debug_option
def program() -> None:
    """Run stateful graphs that survive a crash, and look into their threads.

    TARGET is `module:attribute` or `path.py:attribute`: a compiled graph, a
    StateGraph, or a function that returns one. Exit codes: 0 done, 3 waiting for
    an answer, 1 failed, 2 wrong command line or input.
    """


db_option = click.option(
    "--db",
    default="towpath.db",
    envvar="TOWPATH_DB",
    show_default=True,
    help="What keeps the threads: a SQLite file or a postgresql:// address.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON lines.")
thread_option = click.option("--thread", required=True, help="Id of the thread.")
config_option = click.option(
    "--config",
    "configs",
    multiple=True,
    metavar="JSON|NAME=VALUE",
    help="Configuration: a JSON object, an option of it such as recursion_limit, "
    "or a value for `configurable`.",
)
checkpoint_option = click.option("--checkpoint", help="Id of an older checkpoint.")


def run_options(command: Any) -> Any:
    """Add the options of the commands that run a graph."""
    options = (
        db_option,
        json_option,
        debug_option,
        config_option,
        click.option(
            "--stream",
            "streams",
            multiple=True,
            metavar="MODE",
            help=f"Print a stream: {', '.join(MODES)}. Repeat, or join with commas.",
        ),
        click.option("--context", help="Context of the run, as JSON or @file."),
        click.option("--durability", type=click.Choice(["sync", "async", "exit"])),
    )
    for option in reversed(options):
        command = option(command)
    return command


def upkeep_options(command: Any) -> Any:
    """Add the options of the commands that delete."""
    options = (
        click.option("--dry-run", is_flag=True, help="Only tell what would go."),
        click.option("--vacuum", is_flag=True, help="Give freed space back, too."),
        db_option,
        json_option,
        debug_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


@program.command()
@click.argument("target")
@click.option("--input", "text", required=True, metavar="JSON|@FILE|-", help="Input.")
@click.option("--thread", help="Id of the thread; a new one by default.")
@click.option("--abandon", is_flag=True, help="Give up what the thread was doing.")
@run_options
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


@program.command()
@click.argument("target")
@thread_option
@click.option(
    "--answer",
    "answers",
    multiple=True,
    metavar="JSON|ID=JSON",
    help="Answer to the open question, or to the one with this id.",
)
@run_options
def resume(target: str, thread: str, answers: Sequence[str], **given: Any) -> NoReturn:
    """Go on with a thread: after a crash, or with the answer to a question.

    Without --answer, a terminal asks for each answer; without a terminal, open
    questions are printed and the exit code is 3.
    """
    asks = is_person() and not given["as_json"]
    with open_session(target, thread, create=False, asks=asks, **given) as session:
        require_thread(session.saver, session.request.config)
        before = session.snapshot()
        if answers:
            step: Command[Any] = Command(
                resume=words.read_answers(answers, before.interrupts)
            )
            outcome = session.run(step)
            leave(converse(session, outcome) if asks else outcome)
        if before.tasks and not before.interrupts:
            outcome = session.run(None)
        else:
            outcome = session.show(of_snapshot(thread, before, before.values))
        leave(converse(session, outcome) if asks else outcome)


def is_person() -> bool:
    """Tell whether somebody is there to be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def converse(session: Session, outcome: Outcome) -> Outcome:
    """Ask the person at the terminal until the run waits for nobody."""
    while outcome.questions:
        many = len(outcome.questions) > 1
        answers = {}
        for question in outcome.questions:
            text = f"answer to {question.id}" if many else "answer"
            if known := words.known_answers(question.value):
                text = f"{text} ({known})"
            answers[question.id] = words.loose(click.prompt(text, err=True))
        outcome = session.run(Command(resume=answers))
    return outcome


@program.command(name="threads")
@db_option
@json_option
@debug_option
def list_threads(db: str, as_json: bool) -> None:
    """List the threads of a database."""
    with open_saver(db, create=False) as saver:
        found = threads(saver)
    if as_json:
        for one in found:
            emit(to_json(one))
    else:
        show.show_threads(found)


@program.command()
@click.option("--thread", "chosen", multiple=True, help="Only this thread. Repeat it.")
@click.option(
    "--keep",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="How many of the newest checkpoints stay.",
)
@click.option("--older-than", metavar="AGE", help="Younger ones stay, too: 12h, 30d.")
@click.option("--keep-forks", is_flag=True, help="Where a branch ends stays, too.")
@click.option("--keep-ancestors", is_flag=True, help="So does what a fork is based on.")
@upkeep_options
def prune(chosen: Sequence[str], older_than: str | None, **given: Any) -> None:
    """Delete old checkpoints; of each thread and subgraph the newest stay."""
    age = None if older_than is None else words.read_age("--older-than", older_than)
    kept = {name: given.pop(name) for name in ("keep", "keep_forks", "keep_ancestors")}

    def work(saver: Any, dry_run: bool) -> Any:
        for thread in chosen:
            require_thread(saver, place(thread, None))
        return saver.prune(chosen or None, older_than=age, dry_run=dry_run, **kept)

    tend(work, **given)


@program.command()
@click.option("--ttl", metavar="AGE", required=True, help="Time to live: 12h, 90d.")
@click.option("--waiting", is_flag=True, help="Also those that wait for an answer.")
@upkeep_options
def sweep(ttl: str, waiting: bool, **given: Any) -> None:
    """Delete the threads on which nothing happened for the time to live."""
    age = words.read_age("--ttl", ttl)

    def work(saver: Any, dry_run: bool) -> Any:
        return saver.sweep(ttl=age, waiting=waiting, dry_run=dry_run)

    tend(work, **given)


def tend(
    work: Callable[[Any, bool], Any],
    *,
    db: str,
    as_json: bool,
    dry_run: bool,
    vacuum: bool,
) -> None:
    """Delete something from a database, and tell how much it was."""
    with open_saver(db, create=False) as saver:
        told = asdict(work(saver, dry_run))
        if vacuum and not dry_run:
            told["bytes_given_back"] = saver.vacuum()
    if as_json:
        emit(to_json({**told, "dry_run": dry_run}))
    else:
        emit(show.deleted(told, "would delete" if dry_run else "deleted"))


@program.command()
@click.argument("target", required=False)
@thread_option
@checkpoint_option
@db_option
@json_option
@debug_option
def state(
    target: str | None, thread: str, checkpoint: str | None, db: str, as_json: bool
) -> None:
    """Show the state of a thread; with TARGET, also what runs next."""
    config = place(thread, checkpoint)
    questions: Sequence[Any] = ()
    if target is None:
        with open_saver(db, create=False) as saver:
            require_thread(saver, config)
            fields = show.stored_fields(saver.get_tuple(config))
    else:
        with kept_apart(as_json), open_graph(target, db, create=False) as opened:
            graph, saver = opened
            require_thread(saver, config)
            snapshot = graph.get_state(config)
            fields, questions = show.snapshot_fields(snapshot), snapshot.interrupts
    if as_json:
        emit(to_json(fields))
    else:
        show.show_state(fields, questions)


@program.command()
@click.argument("target", required=False)
@thread_option
@click.option("--limit", type=click.IntRange(1), help="At most so many.")
@db_option
@json_option
@debug_option
def history(
    target: str | None, thread: str, limit: int | None, db: str, as_json: bool
) -> None:
    """List the checkpoints of a thread, the newest first."""
    config = place(thread, None)
    if target is None:
        config["configurable"]["checkpoint_ns"] = ""
        with open_saver(db, create=False) as saver:
            require_thread(saver, config)
            found = [show.stored_fields(one) for one in saver.list(config, limit=limit)]
    else:
        with kept_apart(as_json), open_graph(target, db, create=False) as opened:
            graph, saver = opened
            require_thread(saver, config)
            snapshots = graph.get_state_history(config, limit=limit)
            found = [show.snapshot_fields(one) for one in snapshots]
    if as_json:
        for one in found:
            emit(to_json(one))
    else:
        show.show_history(found)


@program.command("import")
@click.option(
    "--from",
    "source",
    required=True,
    metavar="URL",
    help="Where LangGraph kept them: sqlite:///old.db or postgresql://...",
)
@click.option(
    "--to",
    "db",
    default="towpath.db",
    envvar="TOWPATH_DB",
    show_default=True,
    help="Where they go on: a SQLite file or a postgresql:// address.",
)
@click.option("--thread", "ids", multiple=True, help="Id of a thread; else all.")
@click.option("--dry-run", is_flag=True, help="Store nothing, only count.")
@json_option
@debug_option
def import_(
    source: str, db: str, ids: tuple[str, ...], dry_run: bool, as_json: bool
) -> None:
    """Take over threads of LangGraph, so that they go on here.

    Importing again is safe: it brings what is new.
    """
    with ExitStack() as stack:
        old = stack.enter_context(open_source(source))
        # A dry run makes no database: what is new is told of an empty one.
        there = not dry_run or is_server(db) or Path(db).is_file()
        opened = open_saver(db, create=not dry_run) if there else nullcontext(None)
        new = stack.enter_context(opened) or InMemorySaver()
        found = import_threads(old, new, ids or None, dry_run=dry_run)
    if as_json:
        for one in found:
            emit(to_json(asdict(one)))
    else:
        show.show_imported(found, dry_run=dry_run)


def place(thread: str, checkpoint: str | None) -> dict[str, Any]:
    """Return the config that names a thread, or one of its checkpoints."""
    settings = {"thread_id": thread}
    return {
        "configurable": settings | ({"checkpoint_id": checkpoint} if checkpoint else {})
    }


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
    config = words.read_config(given["configs"], thread)
    options: dict[str, Any] = {}
    if given["durability"] is not None:
        options["durability"] = given["durability"]
    if given["context"] is not None:
        options["context"] = words.read_json("--context", given["context"])

    again = resume_command(target, thread, without_password(given["db"]))
    if given["as_json"]:
        modes = modes or JSON_MODES

    results = sys.stdout

    def view(tally: Tally) -> View:
        if given["as_json"]:
            return JsonView(modes, results)
        kind = LiveView if sys.stderr.isatty() else LineView
        return kind(modes, tally, again, asks=asks)

    with (
        kept_apart(given["as_json"]),
        open_graph(target, given["db"], create=create) as (graph, saver),
    ):
        yield Session(Request(graph, config, modes, options), saver, view, again)


def leave(outcome: Outcome) -> NoReturn:
    """Exit with the code of the outcome, and the traceback if it is wanted."""
    if outcome.error is not None and wants_traceback():
        traceback.print_exception(outcome.error)
    sys.exit(EXIT[outcome.status])
