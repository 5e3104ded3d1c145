"""The commands that look into threads and change nothing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

import click

from towpath.cli import show
from towpath.cli.difference import differences
from towpath.cli.options import (
    checkpoint_option,
    db_option,
    debug_option,
    json_option,
    maybe_target_argument,
    thread_option,
    with_options,
)
from towpath.cli.output import emit, kept_apart
from towpath.cli.places import find_checkpoint, place
from towpath.cli.plain import to_json
from towpath.cli.session import open_graph
from towpath.cli.storage import open_saver, require_thread, threads
from towpath.cli.target import TargetError

SHOWN: Final = 100
common_options = with_options(db_option, json_option, debug_option)


@click.command(name="threads")
@click.option(
    "--status",
    type=click.Choice(["done", "waiting", "failed", "unfinished", "input refused"]),
    help="Only threads that stand so.",
)
@click.option(
    "--limit",
    type=click.IntRange(1),
    help=f"At most so many: {SHOWN}, or with --json all, if it is not given.",
)
@common_options
def threads_command(
    status: str | None, limit: int | None, db: str, as_json: bool
) -> None:
    """List threads: how each stands, its age and size, what it waits for.

    The last changed one comes first.
    """
    with open_saver(db, create=False) as saver:
        found = (one for one in threads(saver) if status in (None, one.status))
        if as_json:
            for one in islice(found, limit):
                emit(to_json(one))
            return
        show.show_threads([*islice(found, limit or SHOWN)])
        if next(found, None) is not None:
            click.echo("there are more of them: see --limit", err=True)


@click.command()
@maybe_target_argument
@thread_option
@checkpoint_option
@common_options
def state(
    target: str | None, thread: str, checkpoint: str | None, db: str, as_json: bool
) -> None:
    """Show the state of a thread; with TARGET, also what runs next."""

    def stored(saver: Any) -> tuple[dict[str, Any], Sequence[Any]]:
        config = placed(saver, thread, checkpoint)
        return show.stored_fields(saver.get_tuple(config)), ()

    def seen(graph: Any, saver: Any) -> tuple[dict[str, Any], Sequence[Any]]:
        snapshot = graph.get_state(placed(saver, thread, checkpoint))
        return show.snapshot_fields(snapshot), snapshot.interrupts

    fields, questions = look(target, db, as_json, stored=stored, seen=seen)
    if as_json:
        emit(to_json(fields))
    else:
        show.show_state(fields, questions)


@click.command()
@maybe_target_argument
@thread_option
@click.option("--limit", type=click.IntRange(1), help="At most so many.")
@common_options
def history(
    target: str | None, thread: str, limit: int | None, db: str, as_json: bool
) -> None:
    """List the checkpoints of a thread, the newest first."""
    config = place(thread, None)

    def stored(saver: Any) -> list[dict[str, Any]]:
        require_thread(saver, config)
        whole = {"configurable": {**config["configurable"], "checkpoint_ns": ""}}
        return [show.stored_fields(one) for one in saver.list(whole, limit=limit)]

    def seen(graph: Any, saver: Any) -> list[dict[str, Any]]:
        require_thread(saver, config)
        snapshots = graph.get_state_history(config, limit=limit)
        return [show.snapshot_fields(one) for one in snapshots]

    found = look(target, db, as_json, stored=stored, seen=seen)
    if as_json:
        for one in found:
            emit(to_json(one))
    else:
        show.show_history(found)


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("before", metavar="A")
@click.argument("after", metavar="B", required=False)
@thread_option
@common_options
def diff(before: str, after: str | None, thread: str, db: str, as_json: bool) -> None:
    """Show what changed between two checkpoints, key by key.

    B is by default the newest one. A checkpoint is named by its id, a part of it that
    no other has, or the number of its step. Of lists, the new part is shown.
    """
    with open_saver(db, create=False) as saver:
        ends = []
        for word in (before, after):
            config = placed(saver, thread, word)
            require_thread(saver, config)
            ends.append(show.stored_fields(saver.get_tuple(config)))
    changes = differences(ends[0]["values"], ends[1]["values"])
    if as_json:
        names = ("checkpoint", "step", "created_at")
        first, second = ({name: end[name] for name in names} for end in ends)
        found = [change.fields() for change in changes]
        emit(to_json({"thread": thread, "a": first, "b": second, "changes": found}))
    else:
        show.show_differences(ends, changes)


def placed(saver: Any, thread: str, word: str | None) -> dict[str, Any]:
    """Return the config of a checkpoint of a thread, by default the newest."""
    if word is None:
        config = place(thread, None)
        require_thread(saver, config)
        return config
    return place(thread, find_checkpoint(saver, thread, word))


def look(target: str | None, db: str, as_json: bool, *, stored: Any, seen: Any) -> Any:
    """Look with the graph, or where none is named at what is stored.

    The project's graph may be one that cannot be loaded here: that is told, and
    what is stored is shown without it.
    """
    if target is not None:
        try:
            with (
                kept_apart(as_json),
                open_graph(target, db, create=False) as (graph, saver),
            ):
                return seen(graph, saver)
        except TargetError as error:
            context = click.get_current_context()
            source = context.get_parameter_source("target")
            if source is click.core.ParameterSource.COMMANDLINE:
                raise
            click.echo(f"shown without its graph: {error.message}", err=True)
    with open_saver(db, create=False) as saver:
        return stored(saver)
