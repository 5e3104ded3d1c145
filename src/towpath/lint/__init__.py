"""Mistakes in a graph that can be seen without running it.

`lint` reads a plan and the source of its functions. It reports what it can show and
keeps silent where a function may do something it cannot see: a finding that is wrong
costs more than one that is missing. Nothing of the graph is called.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final

from towpath.lint import keys, wiring
from towpath.lint.finding import RULES, Finding, Rule, Severity
from towpath.lint.routes import Routes, routes_of
from towpath.plan import Plan

__all__ = ("RULES", "Finding", "Rule", "Severity", "lint")

CHECKS: Final[tuple[Callable[[Routes], Iterator[Finding]], ...]] = (
    wiring.unreachable,
    wiring.stuck_joins,
    wiring.endless_loops,
    wiring.destinations,
    wiring.branches,
    keys.parallel_writers,
    keys.fan_out_writers,
    keys.undeclared_keys,
    keys.lost_assignments,
    keys.dead_keys,
    keys.strange_subgraphs,
)
ORDER: Final = ("error", "warning", "note")


def lint(plan: Plan, ignore: Collection[str] = ()) -> list[Finding]:
    """List what looks wrong in a plan, the worst first.

    A graph made of channels and nodes by hand says too little of itself: nothing is
    found in it.
    """
    if plan.inlets is not None:
        return []
    routes = routes_of(plan)
    found = [one for check in CHECKS for one in check(routes)]
    return sorted(
        (one for one in found if one.code not in ignore),
        key=lambda one: (
            ORDER.index(one.severity),
            one.code,
            one.node or "",
            one.key or "",
        ),
    )
