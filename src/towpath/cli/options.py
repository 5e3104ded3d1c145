"""The program itself, and the options that its commands share."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from towpath.cli.outcome import explain
from towpath.cli.problem import Problem
from towpath.cli.project import Project, current_project, find_project
from towpath.errors import TowpathError

DEBUG = "towpath.cli.debug"
FREE = frozenset({"completion", "doctor", "explain", "init"})
"""Commands that a project file with a mistake in it does not keep from running."""

C = TypeVar("C")


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


def enter_project(ctx: click.Context) -> None:
    """Let the project's file say what the command line leaves out."""
    try:
        project = find_project()
        project.enter()
    except Problem:
        if ctx.invoked_subcommand not in FREE:
            raise
        project = Project()
    ctx.obj = project
    assert isinstance(ctx.command, click.Group)
    # Shared by all commands; each takes those of its own parameters.
    known = project.defaults()
    ctx.default_map = {
        name: {p.name: known[p.name] for p in command.params if p.name in known}
        for name, command in ctx.command.commands.items()
    }


def require_target(_: click.Context, __: click.Parameter, value: str | None) -> str:
    """Refuse a command line without TARGET where the project names none either."""
    if value is not None:
        return value
    if graphs := current_project().graphs:
        names = ", ".join(map(repr, graphs))
        raise Problem(f"TARGET is missing: the project has {names}")
    raise Problem(
        "TARGET is missing: which graph?",
        hint="name it as path.py:attribute, or write target = "
        '"path.py:attribute" into towpath.toml',
    )


def complete_target(
    _: click.Context, __: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer the graphs that the project names, then files."""
    found = [
        CompletionItem(name, help=target)
        for name, target in graphs_of_project().items()
        if name.startswith(incomplete)
    ]
    return [*found, CompletionItem(incomplete, type="file")]


def graphs_of_project() -> dict[str, str]:
    """Return the graphs that the project names; none if its file is wrong."""
    try:
        return dict(find_project().graphs)
    except Problem:
        return {}


def complete_thread(
    ctx: click.Context, _: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer the threads of the database."""
    from towpath.cli.storage import (  # only here: it is slow
        SEARCHED,
        open_saver,
        threads,
    )

    try:
        db = ctx.params.get("db") or find_project().db or "towpath.db"
        with open_saver(db, create=False) as saver:
            return [
                CompletionItem(one.id, help=one.status)
                for one in islice(threads(saver), SEARCHED)
                if one.id.startswith(incomplete)
            ]
    except (Problem, TowpathError, OSError):
        return []  # nothing to offer is no reason to disturb the shell


target_argument = click.argument(
    "target",
    required=False,
    callback=require_target,
    shell_complete=complete_target,
)
maybe_target_argument = click.argument(
    "target", required=False, shell_complete=complete_target
)
debug_option = click.option(
    "--debug",
    is_flag=True,
    expose_value=False,
    callback=remember_debug,
    help="Show tracebacks.",
)
db_option = click.option(
    "--db",
    default="towpath.db",
    envvar="TOWPATH_DB",
    show_default=True,
    help="What keeps the threads: a SQLite file or a postgresql:// address.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON lines.")
thread_option = click.option(
    "--thread", required=True, help="Id of the thread.", shell_complete=complete_thread
)
config_option = click.option(
    "--config",
    "configs",
    multiple=True,
    metavar="JSON|NAME=VALUE",
    help="Configuration: a JSON object, an option of it such as recursion_limit, "
    "or a value for `configurable`.",
)
checkpoint_option = click.option("--checkpoint", help="Id of an older checkpoint.")

Option = Callable[[Any], Any]


def with_options(*options: Option) -> Callable[[C], C]:
    """Make a decorator that adds options, shown in this order."""

    def add(command: C) -> C:
        for option in reversed(options):
            command = option(command)
        return command

    return add


upkeep_options = with_options(
    click.option("--dry-run", is_flag=True, help="Only tell what would go."),
    click.option("--vacuum", is_flag=True, help="Give freed space back, too."),
    db_option,
    json_option,
    debug_option,
)


def run_options(modes: Sequence[str]) -> Callable[[C], C]:
    """Return the options of the commands that run a graph."""
    return with_options(
        db_option,
        json_option,
        debug_option,
        config_option,
        click.option(
            "--stream",
            "streams",
            multiple=True,
            metavar="MODE",
            help=f"Print a stream: {', '.join(modes)}. Repeat, or join with commas.",
        ),
        click.option("--context", help="Context of the run, as JSON or @file."),
        click.option("--durability", type=click.Choice(["sync", "async", "exit"])),
    )
