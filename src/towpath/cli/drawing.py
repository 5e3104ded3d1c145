"""The command that draws a graph. What a picture looks like is the graph's matter."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import click

from towpath.cli.options import debug_option, json_option, target_argument
from towpath.cli.output import emit, kept_apart
from towpath.cli.problem import Problem
from towpath.cli.target import compiled, load_graph

Form = Callable[[Any], str | bytes]


def by_method(name: str) -> Form:
    """Return the form that a drawing makes of itself."""

    def make(drawing: Any) -> str | bytes:
        method = getattr(drawing, name, None)
        if method is None:
            kind = name.removeprefix("draw_")
            raise Problem(
                f"this version of Towpath draws no {kind}",
                hint="--format mermaid is text that GitHub and Jupyter show",
            )
        made: str | bytes = method()
        return made

    return make


FORMS: Final[Mapping[str, Form]] = {
    "ascii": by_method("draw_ascii"),
    "mermaid": by_method("draw_mermaid"),
    "json": lambda drawing: json.dumps(drawing.to_json()),
    "svg": by_method("draw_svg"),
    "png": by_method("draw_png"),
}
SUFFIXES: Final = {
    ".txt": "ascii",
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
    ".md": "mermaid",
    ".json": "json",
    ".svg": "svg",
    ".png": "png",
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
@json_option
@debug_option
def draw(
    target: str,
    form: str | None,
    output: str | None,
    xray: bool,
    depth: int | None,
    as_json: bool,
) -> None:
    """Draw a graph as text, Mermaid or a picture."""
    if as_json:
        form = "json"
    if form is None:
        form = SUFFIXES.get(Path(output or "").suffix.lower(), "ascii")
    with kept_apart(as_json or output is None):
        graph = compiled(load_graph(target))
        drawing = graph.get_graph(xray=depth if depth is not None else xray)
        made = FORMS[form](drawing)
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
