"""The command that prints what is wrong with a graph before it runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, NoReturn

import click

from towpath.cli.options import debug_option, json_option, target_argument, with_options
from towpath.cli.output import emit, kept_apart
from towpath.cli.plain import to_json
from towpath.cli.problem import Problem, nearest
from towpath.cli.target import load_graph
from towpath.lint import RULES


@click.command()
@target_argument
@click.option(
    "--ignore", "ignored", multiple=True, metavar="CODE", help="Leave a rule out."
)
@click.option("--strict", is_flag=True, help="Notes make it fail, too.")
@with_options(json_option, debug_option)
def lint(target: str, ignored: Sequence[str], strict: bool, as_json: bool) -> NoReturn:
    """Look for mistakes in a graph without running it.

    The exit code is 1 if there are errors or warnings, else 0. `towpath explain CODE`
    tells more about a finding.
    """
    codes = [word.upper() for many in ignored for word in many.split(",")]
    for code in codes:
        if code not in RULES:
            raise Problem(
                f"--ignore: there is no rule {code!r}", hint=nearest(code, RULES)
            )
    with kept_apart(as_json):
        graph = load_graph(target)
        if not hasattr(graph, "lint"):
            raise Problem(
                f"{target!r} is {type(graph).__name__}: what runs elsewhere is not "
                "looked into from here"
            )
        found = graph.lint(ignore=codes)
    for one in found:
        emit(to_json(asdict(one)) if as_json else str(one))
    if not as_json:
        click.echo(summary(found), err=True)
    sys.exit(any(strict or one.severity != "note" for one in found))


def summary(found: Sequence[Any]) -> str:
    """Count what was found."""
    if not found:
        return "nothing found"
    kinds = ("error", "warning", "note")
    severities = [one.severity for one in found]
    counts = ((severities.count(kind), kind) for kind in kinds)
    return ", ".join(f"{n} {kind}{'s' * (n > 1)}" for n, kind in counts if n)
