"""A plan as a graph to walk: who can lead to whom, and what is known of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from towpath.constants import START
from towpath.lint.source import Reading, reading_of, unreadable
from towpath.plan import Action, BranchSpec, NodeSpec, Plan


@dataclass(slots=True)
class Routes:
    """The ways of a plan, and what the source of its functions says."""

    plan: Plan
    nodes: dict[str, Reading] = field(default_factory=dict)
    branches: dict[tuple[str, str], Reading] = field(default_factory=dict)
    ways: dict[str, set[str]] = field(default_factory=dict)
    """Where each node can lead."""
    sources: dict[str, set[str]] = field(default_factory=dict)
    """Who leads to each node."""
    open: set[str] = field(default_factory=set)
    """The nodes that may lead anywhere."""
    sent: set[str] = field(default_factory=set)
    """The nodes that somebody may send to, all of them if `sends_anywhere`."""
    sends_anywhere: bool = False
    lost: dict[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    """Of ways that were asked for, what is reached over them only."""

    @property
    def visible(self) -> list[NodeSpec]:
        """The nodes that the user added."""
        return [
            s for s in self.plan.nodes.values() if s.name != START and not s.handles
        ]


def routes_of(plan: Plan) -> Routes:
    """Read a plan and its functions."""
    routes = Routes(plan)
    for spec in plan.nodes.values():
        reading = reading_of_action(spec.action)
        routes.nodes[spec.name] = reading
        for branch in spec.branches:
            routes.branches[spec.name, branch.name] = reading_of_action(branch.path)
        routes.ways[spec.name] = set(ways_of(routes, spec))
        if reading.open_routes or any(
            leads_anywhere(branch, routes.branches[spec.name, branch.name])
            for branch in spec.branches
        ):
            routes.open.add(spec.name)
    routes.sources = incoming(routes.ways)
    note_sends(routes)
    return routes


def reading_of_action(action: Action | None) -> Reading:
    """Read what runs in a node or a branch."""
    if action is None:
        return Reading(updates=[frozenset()], read=frozenset())
    if action.graph is not None:
        return reading_of_graph(getattr(action.graph, "plan_of_graph", None))
    return reading_of(action.target)


def reading_of_graph(plan: Plan | None) -> Reading:
    """Read a subgraph: it may command the graphs around it, the nearest first."""
    reading = unreadable()
    if plan is not None:
        inner = [reading_of_action(spec.action) for spec in plan.nodes.values()]
        reading.open_routes = reading.leaves = any(one.leaves for one in inner)
    return reading


def leads_anywhere(branch: BranchSpec, reading: Reading) -> bool:
    """Tell a branch of which nobody says where it leads."""
    if branch.ends is not None:
        return reading.open_routes and reading.several
    return reading.open_routes or reading.open_answers


def ways_of(routes: Routes, spec: NodeSpec) -> Iterator[str]:
    """Every node that one can lead to, as far as that is known."""
    plan = routes.plan
    yield from static_ways(plan, spec)
    yield from plan.nodes.keys() & routes.nodes[spec.name].gotos
    yield from plan.nodes.keys() & spec.destinations.keys()
    if spec.error_handler is not None:
        yield spec.error_handler
    for branch in spec.branches:
        reading = routes.branches[spec.name, branch.name]
        yield from plan.nodes.keys() & reading.gotos
        if branch.ends is not None:
            yield from plan.nodes.keys() & branch.ends.values()
        else:
            yield from plan.nodes.keys() & reading.answers


def static_ways(plan: Plan, spec: NodeSpec) -> Iterator[str]:
    """The nodes that edges and joins lead to."""
    for channel, _ in spec.edges:
        yield from plan.listeners.get(channel, ())


def reached(
    routes: Routes,
    start: Iterable[str] = (START,),
    *,
    without: tuple[str, str] | None = None,
) -> set[str]:
    """Every node that can be come to; `without` leaves out one way."""
    found, todo = set(start), list(start)
    while todo:
        name = todo.pop()
        for target in routes.ways[name]:
            if target not in found and (name, target) != without:
                found.add(target)
                todo.append(target)
    return found


def incoming(ways: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The nodes that lead to each node."""
    found: dict[str, set[str]] = {name: set() for name in ways}
    for source, targets in ways.items():
        for target in targets:
            found[target].add(source)
    return found


def runs_once(routes: Routes, name: str) -> bool:
    """Tell a node that certainly runs at most once in a run.

    There is one way to it, from a node of which that is true as well, and nobody
    sends to it.
    """
    seen = set()
    while name != START:
        sources = routes.sources[name]
        if name in seen or len(sources) != 1 or is_sent_to(routes, name):
            return False
        seen.add(name)
        [name] = sources
    return True


def is_sent_to(routes: Routes, name: str) -> bool:
    """Tell whether a `Send` may lead to a node, which may run it many times."""
    return routes.sends_anywhere or name in routes.sent


def note_sends(routes: Routes) -> None:
    """Keep which nodes somebody may send to."""
    readings = [*routes.nodes.values(), *routes.branches.values()]
    routes.sent = {name for one in readings for name in one.gotos | one.fans}
    routes.sends_anywhere = any(
        one.open_routes and one.several for one in routes.branches.values()
    )


def lost_without(routes: Routes, source: str, way: str) -> frozenset[str]:
    """The nodes that are not reached when one way of a node is left out."""
    known = routes.lost.get((source, way))
    if known is None:
        left = reached(routes, without=(source, way))
        known = frozenset(routes.ways.keys() - left)
        routes.lost[source, way] = known
    return known
