"""The command that changes a thread's state by hand, on a branch."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import click

from towpath.cli import words
from towpath.cli.options import (
    config_option,
    db_option,
    debug_option,
    json_option,
    target_argument,
    thread_option,
    with_options,
)
from towpath.cli.output import emit, kept_apart
from towpath.cli.places import find_checkpoint
from towpath.cli.plain import to_json
from towpath.cli.problem import Problem, nearest
from towpath.cli.project import current_project
from towpath.cli.session import open_graph
from towpath.cli.show import counted
from towpath.cli.storage import require_thread, without_password
from towpath.cli.view import resume_command
from towpath.errors import AmbiguousUpdateError
from towpath.types import Overwrite

AS_NODE = "--as-node says after which node to go on"
COPY = "__copy__"
"""What `update_state` takes for the node of a fork that changes nothing."""


@click.command(context_settings={"ignore_unknown_options": True})
@target_argument
@thread_option
@click.option(
    "--at",
    "checkpoint",
    metavar="CHECKPOINT",
    help="Where to fork: an id, a part of one, or the number of a step. By default "
    "the newest.",
)
@click.option(
    "--set",
    "edits",
    multiple=True,
    metavar="KEY=JSON",
    help="Give a key this value, whatever it holds. Repeat it for other keys.",
)
@click.option(
    "--add",
    "additions",
    multiple=True,
    metavar="KEY=JSON",
    help="Write this to a key as a node would, through its reducer.",
)
@click.option("--as-node", metavar="NODE", help="Go on as if this node had written it.")
@with_options(config_option, db_option, json_option, debug_option)
def fork(
    target: str,
    thread: str,
    edits: Sequence[str],
    additions: Sequence[str],
    **given: Any,
) -> None:
    """Make a new checkpoint from an older one, changed.

    The thread's newest state is then the fork, with which `resume` goes on; what
    came after the older checkpoint stays in the history.
    """
    config = words.read_config(given["configs"], thread, current_project().config)
    db, as_json, as_node = given["db"], given["as_json"], given["as_node"]
    with (
        kept_apart(as_json),
        open_graph(target, db, config, create=False) as (graph, saver),
    ):
        require_thread(saver, config)
        if given["checkpoint"] is not None:
            found = find_checkpoint(saver, thread, given["checkpoint"])
            config["configurable"]["checkpoint_id"] = found
        require_node(graph, as_node)
        values = edited(graph, edits, additions)
        before = list(graph.get_state(config).next)
        if values is None and as_node is None:
            as_node = COPY
        try:
            made = graph.update_state(config, values, as_node=as_node)
        except AmbiguousUpdateError as error:
            raise Problem(f"[{error.code}] {error.message}", hint=AS_NODE) from error
        following = list(graph.get_state(made).next)
    settings = made["configurable"]
    checkpoint = settings["checkpoint_id"]
    if as_json:
        told = {"thread": settings["thread_id"], "checkpoint": checkpoint}
        emit(to_json({**told, "next": following}))
        return
    emit(checkpoint)
    runs = counted(following)
    again = resume_command(target, thread, without_password(db))
    click.echo(f"next runs {runs}: {again}" if runs else "nothing runs next", err=True)
    if as_node is None and sorted(following) != sorted(before):
        click.echo(f"  before, {counted(before) or 'nothing'} was next", err=True)
        click.echo(f"  hint: {AS_NODE}", err=True)


def edited(
    graph: Any, edits: Sequence[str], additions: Sequence[str]
) -> dict[str, Any] | None:
    """Read the keys that change; None if there are none."""
    values: dict[str, Any] = {}
    for option, texts in (("--set", edits), ("--add", additions)):
        for text in texts:
            key, equals, value = text.partition("=")
            if not equals:
                raise Problem(
                    f"{option} {text!r} is not KEY=JSON",
                    hint=f"for example {option} {shlex.quote(f'{text}=1')}",
                )
            require_key(graph, option, key)
            if key in values:
                raise Problem(f"{option}: key {key!r} is given twice")
            read = words.read_json(f"{option} {key}", value)
            values[key] = Overwrite(read) if folds(graph, option, key) else read
    return values or None


def folds(graph: Any, option: str, key: str) -> bool:
    """Tell whether a value has to be kept from the reducer of its key."""
    channels: Mapping[str, Any] = graph.channels
    return option == "--set" and hasattr(channels[key], "operator")


def require_key(graph: Any, option: str, key: str) -> None:
    """Refuse a key that the graph's state does not have."""
    keys = graph.stream_channels_list
    if key not in keys:
        raise Problem(f"{option}: the state has no {key!r}", hint=nearest(key, keys))


def require_node(graph: Any, name: str | None) -> None:
    """Refuse a node that the graph does not have."""
    if name is not None and name not in graph.nodes:
        known = [node for node in graph.nodes if not node.startswith("__")]
        hint = nearest(name, known)
        raise Problem(f"--as-node: there is no node {name!r}", hint=hint)
