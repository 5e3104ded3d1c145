"""The command that draws a graph. What a picture looks like is the graph's matter."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import click

from towpath.cli.options import (
    complete_thread,
    db_option,
    debug_option,
    json_option,
    target_argument,
    with_options,
)
from towpath.cli.output import emit, kept_apart
from towpath.cli.places import place
from towpath.cli.problem import Problem
from towpath.cli.session import open_graph
from towpath.cli.storage import require_thread
from towpath.cli.target import compiled, load_graph
from towpath.picture.picture import Picture

FORMS: Final[Mapping[str, Callable[[Picture], str | bytes]]] = {
    "ascii": lambda picture: picture.ascii,
    "text": lambda picture: picture.text,
    "mermaid": lambda picture: picture.mermaid,
    "svg": lambda picture: picture.svg,
    "png": lambda picture: picture.png(),
    "html": lambda picture: f"<!doctype html><meta charset=utf-8>{picture.svg}",
}
SUFFIXES: Final = {
    ".txt": "text",
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
    ".md": "mermaid",
    ".svg": "svg",
    ".png": "png",
    ".html": "html",
}


@click.command()
@target_argument
@click.option(
    "--format",
    "form",
    type=click.Choice(list(FORMS)),
    help="By default what the name of --output says, or ascii.",
)
@click.option("--output", "-o", type=click.Path(dir_okay=False), help="A file for it.")
@click.option("--xray", is_flag=True, help="Open subgraphs.")
@click.option("--depth", type=click.IntRange(1), help="Open them down to this level.")
@click.option(
    "--thread",
    help="Draw what ran on this thread.",
    shell_complete=complete_thread,
)
@with_options(db_option, json_option, debug_option)
def draw(target: str, as_json: bool, thread: str | None, db: str, **given: Any) -> None:
    """Draw a graph as text, Mermaid or a picture.

    With --thread, the picture says what ran, how often and how long, and what waits.
    With --json, the graph is printed as nodes and edges.
    """
    depth: int | bool = given["xray"] if given["depth"] is None else given["depth"]
    output, form = given["output"], given["form"]
    if form is None:
        form = SUFFIXES.get(Path(output or "").suffix.lower(), "ascii")
    with kept_apart(as_json or output is None):
        graph, picture = drawn(target, thread, db, depth)
        if as_json:
            made: str | bytes = json.dumps(graph.get_graph(xray=depth).to_json())
        else:
            made = FORMS[form](picture)
    give(made, output, form)


def drawn(
    target: str, thread: str | None, db: str, depth: int | bool
) -> tuple[Any, Picture]:
    """Return a graph and its picture, with what ran on a thread if one is named."""
    if thread is None:
        graph = compiled(load_graph(target))
        return graph, graph.draw(xray=depth)
    config = place(thread, None)
    with open_graph(target, db, config, create=False) as (graph, saver):
        require_thread(saver, config)
        return graph, graph.draw(config, xray=depth)


def give(made: str | bytes, output: str | None, form: str) -> None:
    """Print a picture, or write it into a file."""
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
