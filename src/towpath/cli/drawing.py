"""The command that draws a graph. What a picture looks like is the graph's matter."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import click

from towpath.cli.options import (
    checkpoint_option,
    db_option,
    debug_option,
    json_option,
    target_argument,
    with_options,
)
from towpath.cli.output import emit, kept_apart
from towpath.cli.places import find_checkpoint, place
from towpath.cli.problem import Problem
from towpath.cli.session import open_graph
from towpath.cli.storage import require_thread
from towpath.cli.target import compiled, load_graph
from towpath.picture.picture import Picture

FORMS: Final[Mapping[str, Callable[[Picture], str | bytes]]] = {
    "text": lambda picture: picture.text,
    "ascii": lambda picture: picture.ascii,
    "mermaid": lambda picture: picture.mermaid,
    "svg": lambda picture: picture.svg,
    "png": lambda picture: picture.png(),
    "html": lambda picture: picture.html,
}
SUFFIXES: Final = {
    ".txt": "text",
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
    ".md": "mermaid",
    ".json": "json",
    ".svg": "svg",
    ".png": "png",
    ".html": "html",
}


@click.command()
@target_argument
@click.option(
    "--format",
    "form",
    type=click.Choice([*FORMS, "json"]),
    help="By default what the name of --output says, or text.",
)
@click.option("--output", "-o", type=click.Path(dir_okay=False), help="A file for it.")
@click.option("--xray", is_flag=True, help="Open subgraphs.")
@click.option("--depth", type=click.IntRange(1), help="Open them down to this level.")
@click.option("--thread", help="Draw what ran on this thread, too.")
@with_options(checkpoint_option, db_option, json_option, debug_option)
def draw(
    target: str, form: str | None, output: str | None, as_json: bool, **given: Any
) -> None:
    """Draw a graph, or a run of it, as text, Mermaid or a picture."""
    if as_json:
        form = "json"
    form = form or form_of(output)
    with kept_apart(as_json or output is None):
        made = drawn(target, form, **given)
    if output is not None:
        write(Path(output), made)
    elif isinstance(made, str):
        emit(made.rstrip("\n"))
    elif sys.stdout.isatty():
        raise Problem(
            f"{form} is no text for a terminal", hint="name a file: -o graph.png"
        )
    else:
        click.echo(made, nl=False)


def form_of(output: str | None) -> str:
    """Return the form that a file's name says; lines, where it says nothing."""
    suffix = Path(output or "").suffix.lower()
    if suffix and suffix not in SUFFIXES:
        raise Problem(
            f"--output: {output!r} names no form of a picture",
            hint=f"use one of {', '.join(SUFFIXES)}, or say --format",
        )
    return SUFFIXES.get(suffix) or usual()


def usual() -> str:
    """Return the form for standard output: lines, if it can show them."""
    try:
        "─┆▼".encode(sys.stdout.encoding or "ascii")
    except (UnicodeError, LookupError):
        return "ascii"
    return "text"


def drawn(
    target: str,
    form: str,
    *,
    xray: bool,
    depth: int | None,
    thread: str | None,
    checkpoint: str | None,
    db: str,
) -> str | bytes:
    """Return the graph in a form, with what ran on the thread if one is named."""
    deep = depth if depth is not None else xray
    if thread is None:
        if checkpoint is not None:
            raise Problem("--checkpoint is one of a thread", hint="add --thread")
        graph = compiled(load_graph(target))
        if form == "json":
            return json.dumps(graph.get_graph(xray=deep).to_json())
        return FORMS[form](graph.draw(xray=deep))
    if form == "json":
        raise Problem("JSON has the graph, and not what ran", hint="leave out --thread")
    with open_graph(target, db, create=False) as (graph, saver):
        require_thread(saver, place(thread, None))
        at = checkpoint and find_checkpoint(saver, thread, checkpoint)
        return FORMS[form](graph.draw(place(thread, at), xray=deep))


def write(file: Path, made: str | bytes) -> None:
    """Write a picture into a file; Markdown gets its fence."""
    if isinstance(made, str) and file.suffix.lower() == ".md":
        made = f"```mermaid\n{made}```\n"
    try:
        file.write_bytes(made.encode() if isinstance(made, str) else made)
    except OSError as error:
        raise Problem(
            f"--output: cannot write {str(file)!r}: {error.strerror}"
        ) from error
