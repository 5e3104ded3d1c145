"""The program: its commands, each of them in the module of its kind."""

from __future__ import annotations

import click

from towpath.cli import (
    completion,
    doctor,
    drawing,
    editing,
    importing,
    linting,
    looking,
    pages,
    report,
    running,
    starter,
    upkeep,
)
from towpath.cli.options import Program, debug_option, enter_project
from towpath.version import __version__

__all__ = ["program"]

COMMANDS = (
    running.run,
    running.resume,
    running.replay,
    looking.threads_command,
    looking.state,
    looking.history,
    looking.diff,
    editing.fork,
    drawing.draw,
    report.report,
    linting.lint,
    importing.import_,
    upkeep.prune,
    upkeep.sweep,
    doctor.doctor,
    pages.explain,
    starter.init,
    completion.completion,
)


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="towpath")
@debug_option
@click.pass_context
def program(ctx: click.Context) -> None:
    """Run stateful graphs that survive a crash, and look into their threads.

    TARGET is `module:attribute` or `path.py:attribute`: a compiled graph, a
    StateGraph, or a function that returns one; or the name that a project's
    towpath.toml or langgraph.json gives to one. Exit codes: 0 done, 3 waiting for an
    answer, 1 failed, 2 wrong command line or input.
    """
    enter_project(ctx)


for command in COMMANDS:
    program.add_command(command)
