"""The command that tells what is wrong with an installation or a database."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any, NoReturn

import click

from towpath.cli.checkup import Finding, all_findings
from towpath.cli.options import (
    db_option,
    debug_option,
    json_option,
    maybe_target_argument,
    with_options,
)
from towpath.cli.output import emit, kept_apart
from towpath.cli.plain import to_json
from towpath.cli.problem import Problem
from towpath.cli.target import compiled, load_graph

MARKS = {"ok": "ok", "note": "--", "warning": "!!", "failed": "XX"}


@click.command()
@maybe_target_argument
@with_options(db_option, json_option, debug_option)
def doctor(target: str | None, db: str, as_json: bool) -> NoReturn:
    """Check the installation, the project and the database.

    With a TARGET, also the graph. The exit code is 1 if something is broken, else 0.
    Nothing is changed.
    """
    with kept_apart(as_json):
        found = [*all_findings(db), *(graph(target) if target else ())]
    for one in found:
        emit(to_json(asdict(one)) if as_json else line(one))
    if not as_json:
        emit(summary(found))
    sys.exit(any(one.health == "failed" for one in found))


def graph(target: str) -> Iterator[Finding]:
    """Look whether a graph loads, and what lint says to it."""
    try:
        built: Any = compiled(load_graph(target))
    except Problem as problem:
        yield Finding("graph", "failed", problem.message, problem.hint)
        return
    if not hasattr(built, "lint"):
        told = f"{target} loads; it runs elsewhere, as a {type(built).__name__}"
        yield Finding("graph", "note", told)
        return
    nodes = len([name for name in built.nodes if not name.startswith("__")])
    faults = [one for one in built.lint() if one.severity != "note"]
    if faults:
        told = f"{target} loads; lint finds {len(faults)} things"
        yield Finding("graph", "warning", told, f"`towpath lint {target}`")
    else:
        yield Finding("graph", "ok", f"{target} loads, {nodes} nodes")


def line(one: Finding) -> str:
    """Write a finding, with its hint on a line of its own."""
    text = f"{MARKS[one.health]}  {one.subject}: {one.told}"
    is_well = one.health in ("ok", "note")
    return text if is_well or not one.hint else f"{text}\n      hint: {one.hint}"


def summary(found: Iterable[Finding]) -> str:
    """Say how it is altogether."""
    healths = [one.health for one in found]
    broken, odd = healths.count("failed"), healths.count("warning")
    if broken:
        return f"{broken} broken, {odd} to look at"
    return f"nothing is broken, {odd} to look at" if odd else "all is well"
