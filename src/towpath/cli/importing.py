"""The command that takes over threads of LangGraph."""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from dataclasses import asdict
from pathlib import Path

import click

from towpath.checkpoint.memory import InMemorySaver
from towpath.cli import show
from towpath.cli.options import debug_option, json_option
from towpath.cli.output import emit
from towpath.cli.plain import to_json
from towpath.cli.storage import is_server, open_saver
from towpath.importing import import_threads, open_source


@click.command("import")
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
