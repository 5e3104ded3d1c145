"""The command that writes what happened on a thread as one page of HTML."""

from __future__ import annotations

from pathlib import Path

import click

from towpath.cli.options import (
    db_option,
    debug_option,
    json_option,
    target_argument,
    thread_option,
)
from towpath.cli.output import emit, kept_apart
from towpath.cli.plain import to_json
from towpath.cli.problem import Problem
from towpath.cli.session import open_graph
from towpath.cli.storage import require_thread


@click.command()
@target_argument
@thread_option
@click.option(
    "--output",
    "-o",
    default="report.html",
    show_default=True,
    help="The file to write; - for standard output.",
)
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=2000,
    show_default=True,
    help="How many of the newest checkpoints are told.",
)
@db_option
@json_option
@debug_option
def report(
    target: str, thread: str, output: str, limit: int, db: str, as_json: bool
) -> None:
    """Write what happened on a thread as a page of HTML."""
    config = {"configurable": {"thread_id": thread}}
    with (
        kept_apart(as_json=as_json or output == "-"),
        open_graph(target, db, create=False) as (graph, saver),
    ):
        require_thread(saver, config)
        made = graph.report(config, limit=limit)
    if output == "-":
        emit(made.html.rstrip("\n"))
        return
    try:
        file = str(made.save(Path(output)))
    except OSError as error:
        raise Problem(f"--output: cannot write {output!r}: {error.strerror}") from error
    emit(to_json({"file": file}) if as_json else file)
