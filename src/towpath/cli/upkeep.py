"""The commands that delete: what goes is told, and with --dry-run only that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import click
from click.core import ParameterSource

from towpath.cli import show, words
from towpath.cli.options import complete_thread, upkeep_options
from towpath.cli.output import emit
from towpath.cli.places import place
from towpath.cli.plain import to_json
from towpath.cli.problem import Problem
from towpath.cli.storage import open_saver, require_thread


@click.command()
@click.option(
    "--thread",
    "chosen",
    multiple=True,
    help="Only this thread. Repeat it.",
    shell_complete=complete_thread,
)
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
    source = click.get_current_context().get_parameter_source("keep")
    if not chosen and older_than is None and source is ParameterSource.DEFAULT:
        raise Problem(
            "prune would leave one checkpoint of every thread",
            hint="say so: --keep 1; or name a --thread, or an age: --older-than 30d",
        )
    age = None if older_than is None else words.read_age("--older-than", older_than)
    kept = {name: given.pop(name) for name in ("keep", "keep_forks", "keep_ancestors")}

    def work(saver: Any, dry_run: bool) -> Any:
        for thread in chosen:
            require_thread(saver, place(thread, None))
        return saver.prune(chosen or None, older_than=age, dry_run=dry_run, **kept)

    tend(work, **given)


@click.command()
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
