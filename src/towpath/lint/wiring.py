"""Rules about how nodes are wired: who is reached, which joins fire, what ends."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from towpath.constants import END
from towpath.errors import names, nearest
from towpath.lint.finding import Finding
from towpath.lint.routes import Routes, lost_without, reached, runs_once, static_ways
from towpath.lint.source import asks
from towpath.plan import BranchSpec, JoinSpec, NodeSpec


def unreachable(routes: Routes) -> Iterator[Finding]:
    """L101: no way leads from START to a node."""
    found = reached(routes)
    if found & routes.open:
        return  # somebody who is reached may lead anywhere
    for spec in routes.visible:
        if spec.name not in found:
            yield Finding(
                "L101",
                "warning",
                f"nothing leads to node `{spec.name}`",
                f'lead there, add_edge(..., "{spec.name}"), or remove it',
                node=spec.name,
            )


def stuck_joins(routes: Routes) -> Iterator[Finding]:
    """L102: a list-join waits for nodes that never run, or never both."""
    found = reached(routes)
    if found & routes.open:
        return
    for join in routes.plan.joins:
        if join.policy != "all":
            continue
        never = [source for source in join.sources if source not in found]
        if never:
            yield stuck(join, f"nothing leads to {names(never)}, which it waits for")
            continue
        pair = exclusive_pair(routes, join)
        if pair is not None:
            spec, branch, both = pair
            yield stuck(
                join,
                f"it waits for {names(both)}, and branch `{branch.name}` of "
                f"`{spec.name}` takes only one of the two",
            )


def stuck(join: JoinSpec, why: str) -> Finding:
    sources = list(join.sources)
    return Finding(
        "L102",
        "error",
        f"the join of {names(sources)} into `{join.target}` cannot fire: {why}",
        f'add_edge({sources}, "{join.target}", join="taken") waits only for the '
        "branches that were taken",
        node=join.target,
    )


def exclusive_pair(
    routes: Routes, join: JoinSpec
) -> tuple[NodeSpec, BranchSpec, tuple[str, str]] | None:
    """Find two sources of a join that one branch chooses between, once."""
    for spec in routes.plan.nodes.values():
        for branch in spec.branches:
            reading = routes.branches[spec.name, branch.name]
            # Several answers at once, or another turn, would take both.
            if reading.several or branch.ends is None or len(spec.branches) > 1:
                continue
            if not runs_once(routes, spec.name):
                continue
            ways = (
                set(branch.ends.values()) - {END} - set(static_ways(routes.plan, spec))
            )
            needs = {
                source: {
                    way
                    for way in ways
                    if source in lost_without(routes, spec.name, way)
                }
                for source in join.sources
            }
            for one, other in combinations(join.sources, 2):
                if needs[one] and needs[other] and not needs[one] & needs[other]:
                    return spec, branch, (one, other)
    return None


def endless_loops(routes: Routes) -> Iterator[Finding]:
    """L103: a circle of edges that no condition leaves, and nobody stops."""
    plan = routes.plan
    edges = {
        spec.name: {
            target
            for channel, _ in spec.edges
            if channel in plan.signals
            for target in plan.listeners.get(channel, ())
        }
        for spec in plan.nodes.values()
    }
    told: set[str] = set()
    for name in edges:
        circle = circle_of(edges, name)
        if not circle or told & circle or pauses(routes, circle):
            continue
        told |= circle
        path = ordered(edges, name, circle)
        yield Finding(
            "L103",
            "warning",
            f"the edges {' -> '.join(map(repr, path))} go round without end: an edge "
            "is followed every time, whatever else its node does",
            f"replace one of them by a conditional edge from one of {names(path[:-1])}",
            node=name,
        )


def circle_of(edges: dict[str, set[str]], name: str) -> set[str]:
    """The nodes that lie on a circle of edges through a node."""

    def after(start: str) -> set[str]:
        found: set[str] = set()
        todo = [start]
        while todo:
            for target in edges[todo.pop()] - found:
                found.add(target)
                todo.append(target)
        return found

    behind = after(name)
    if name not in behind:
        return set()
    return {one for one in behind if name in after(one)}


def ordered(edges: dict[str, set[str]], name: str, circle: set[str]) -> list[str]:
    """One way round a circle, from a node back to it."""
    paths = [[name]]
    seen: set[str] = set()
    while paths:
        path = paths.pop(0)
        for target in sorted(edges[path[-1]] & circle):
            if target == name:
                return [*path, target]
            if target not in seen:
                seen.add(target)
                paths.append([*path, target])
    raise AssertionError("a circle leads back")  # pragma: no cover - by its making


def pauses(routes: Routes, circle: set[str]) -> bool:
    """Tell whether somebody stops a run in a circle, now and then."""
    plan = routes.plan
    for stops in (plan.interrupt_before, plan.interrupt_after):
        if stops == "*" or circle & set(stops):
            return True
    actions = [plan.nodes[name].action for name in circle]
    return any(action is not None and asks(action.target) for action in actions)


def destinations(routes: Routes) -> Iterator[Finding]:
    """L401, L402: where commands lead that no edge shows."""
    plan = routes.plan
    for spec in routes.visible:
        gotos = routes.nodes[spec.name].gotos
        for name in sorted(gotos - plan.nodes.keys() - {END}):
            yield unknown(routes, f"node `{spec.name}`", spec.name, name)
        bare = sorted((gotos & plan.nodes.keys()) - spec.destinations.keys())
        if bare:
            listed = ", ".join(f'"{name}"' for name in bare)
            yield Finding(
                "L402",
                "note",
                f"node `{spec.name}` goes to {names(bare)}, which it does not declare, "
                "so drawings do not show it",
                f"annotate it: -> Command[Literal[{listed}]]",
                node=spec.name,
            )


def branches(routes: Routes) -> Iterator[Finding]:
    """L401, L403, L404: what path functions answer."""
    plan = routes.plan
    for spec in plan.nodes.values():
        for branch in spec.branches:
            reading = routes.branches[spec.name, branch.name]
            what = f"branch `{branch.name}` of `{spec.name}`"
            lost = set(reading.gotos)
            if branch.ends is None:
                lost |= {one for one in reading.answers if isinstance(one, str)}
                if reading.open_answers:
                    yield without_map(what, spec.name)
            else:
                yield from unmapped(branch, what, spec.name, reading.answers)
            for name in sorted(lost - plan.nodes.keys() - {END}):
                yield unknown(routes, what, spec.name, name)


def unknown(routes: Routes, what: str, node: str, name: str) -> Finding:
    known = [spec.name for spec in routes.visible]
    return Finding(
        "L401",
        "error",
        f"{what} goes to `{name}`, which is no node",
        (nearest(name, known) or f"add_node({name!r}, ...)").strip(),
        node=node,
    )


def without_map(what: str, node: str) -> Finding:
    return Finding(
        "L403",
        "note",
        f"{what} does not say where it leads, so it is drawn to every node and "
        "nothing can be checked",
        "give it a list of nodes, or annotate its function: -> Literal[...]",
        node=node,
    )


def unmapped(
    branch: BranchSpec, what: str, node: str, answers: set[object]
) -> Iterator[Finding]:
    assert branch.ends is not None
    for answer in sorted(answers - branch.ends.keys(), key=repr):
        yield Finding(
            "L404",
            "error",
            f"{what} can answer {answer!r}, which its map does not have",
            f"the map has {names(branch.ends)}; add {answer!r} to it",
            node=node,
        )
