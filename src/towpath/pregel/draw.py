"""A compiled graph -> the drawing of it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from towpath.constants import END, START
from towpath.plan import NodeSpec, Plan
from towpath.pregel.diagram import Edge, Graph, Node


class DrawVerbs:
    """The verbs that show what a graph is made of."""

    plan_of_graph: Plan

    def get_graph(
        self, config: Mapping[str, Any] | None = None, *, xray: int | bool = False
    ) -> Graph:
        """The graph as nodes and edges, to look at or to draw.

        `xray` opens subgraphs: all of them, or those down to so many levels.
        A conditional edge that does not say where it leads is drawn to every
        node.
        """
        del config
        return drawn(self.plan_of_graph, xray, ())

    async def aget_graph(
        self, config: Mapping[str, Any] | None = None, *, xray: int | bool = False
    ) -> Graph:
        """Async twin of `get_graph`."""
        return self.get_graph(config, xray=xray)


def drawn(plan: Plan, xray: int | bool, above: tuple[Plan, ...]) -> Graph:
    """The drawing of a plan; `above` are the plans it is drawn inside of."""
    graph = Graph()
    for spec in plan.nodes.values():
        graph.add_node(shown(spec), spec.name, metadata=metadata_of(plan, spec))
    if START not in graph.nodes:
        graph.add_node(None, START)
    graph.add_node(None, END)
    graph.edges = list(dict.fromkeys(edges_of(plan)))
    finish(plan, graph)
    # As the peer was observed to list them; drawings stay the same when the
    # order of declarations changes.
    graph.edges.sort(key=lambda edge: (edge.source, edge.target))
    if not xray:
        return graph
    deeper = xray if xray is True else xray - 1
    for spec in plan.nodes.values():
        inner = subgraph_of(plan, spec)
        # A graph may call itself, and is then drawn once.
        if inner is not None and inner is not plan and inner not in above:
            open_up(graph, spec.name, drawn(inner, deeper, (*above, plan)))
    return graph


def shown(spec: NodeSpec) -> Any:
    """What runs in a node: the user's function or graph."""
    if spec.action is None:
        return spec
    return spec.action.graph or spec.action.target or spec.action.call


def metadata_of(plan: Plan, spec: NodeSpec) -> dict[str, Any] | None:
    """What is told of a node besides its name."""
    told = dict(spec.metadata)
    tools = getattr(spec.action and spec.action.target, "tools_by_name", None)
    if tools:
        told["__tools"] = list(tools)
    if spec.defer:
        told["defer"] = True
    before, after = (
        names == "*" or spec.name in names
        for names in (plan.interrupt_before, plan.interrupt_after)
    )
    if (before or after) and not spec.hidden:
        stops = (("before", before), ("after", after))
        told["__interrupt"] = ",".join(when for when, stop in stops if stop)
    return told or None


def edges_of(plan: Plan) -> Iterator[Edge]:
    """The edges that a plan knows of: static, then conditional, node by node."""
    yield from raw_edges(plan)
    for spec in plan.nodes.values():
        channels = [channel for channel, _ in spec.edges] + list(spec.outlets)
        for channel in channels:
            for target in plan.listeners.get(channel, ()):
                yield Edge(spec.name, target)
        if spec.finishes:
            yield Edge(spec.name, END)
        yield from conditional_edges(plan, spec)


def raw_edges(plan: Plan) -> Iterator[Edge]:
    """Edges of a raw graph from its input, and to its output."""
    if plan.inlets is None:
        return
    inlets, outlets = (
        {names} if isinstance(names, str) else set(names)
        for names in (plan.inlets, plan.output_keys)
    )
    for spec in plan.nodes.values():
        if not inlets.isdisjoint(spec.triggers):
            yield Edge(START, spec.name)
        if not outlets.isdisjoint(spec.outlets):
            yield Edge(spec.name, END)


def conditional_edges(plan: Plan, spec: NodeSpec) -> Iterator[Edge]:
    for branch in spec.branches:
        if branch.ends is None:
            names = [n for n, other in plan.nodes.items() if visible(other)]
            yield from (Edge(spec.name, n, None, True) for n in (*names, END))
        else:
            for answer, target in branch.ends.items():
                label = None if answer == target else str(answer)
                yield Edge(spec.name, target, label, True)
    for target, label in spec.destinations.items():
        if target in plan.nodes or target == END:
            yield Edge(spec.name, target, label, True)
    if spec.error_handler is not None:
        yield Edge(spec.name, spec.error_handler, "error", True)


def visible(spec: NodeSpec) -> bool:
    """Whether a path function may name this node."""
    return spec.name != START and spec.handles is None


def finish(plan: Plan, graph: Graph) -> None:
    """Lead to END from the nodes that are reached and that nothing leaves."""
    targets = {edge.target for edge in graph.edges}
    sources = {edge.source for edge in graph.edges if not handles(plan, edge)}
    graph.edges.extend(
        Edge(name, END)
        for name in plan.nodes
        if name in targets and name not in sources
    )


def handles(plan: Plan, edge: Edge) -> bool:
    """Whether an edge leads to the error handler of its source."""
    spec = plan.nodes.get(edge.source)
    return spec is not None and spec.error_handler == edge.target


def subgraph_of(plan: Plan, spec: NodeSpec) -> Plan | None:
    """The graph that a node is, or that its function calls."""
    if spec.action is None:
        return None
    graph = spec.action.graph or plan.called.get(spec.name)
    if graph is None and inspect.isfunction(spec.action.target):
        graph = called_by(spec.action.target)
    found: Plan | None = getattr(graph, "plan_of_graph", None)
    return found


def called_by(function: Any) -> Any:
    """The one compiled graph among the names that a function uses, if any."""
    try:
        names = inspect.getclosurevars(function)
    except (TypeError, ValueError):
        return None
    values = (*names.nonlocals.values(), *names.globals.values())
    graphs = [value for value in values if hasattr(value, "plan_of_graph")]
    return graphs[0] if len(graphs) == 1 else None


def open_up(graph: Graph, name: str, inner: Graph) -> None:
    """Put a subgraph's nodes in the place of its node."""
    inner.trim_first_node()
    inner.trim_last_node()
    edges, graph.edges = graph.edges, []
    nodes = dict(graph.nodes)
    del nodes[name]
    graph.nodes = nodes
    first, last = graph.extend(inner, prefix=name)
    entry = end_of(first, inner, name, START)
    exit_ = end_of(last, inner, name, END)
    graph.edges = [
        edge.copy(
            source=exit_ if edge.source == name else None,
            target=entry if edge.target == name else None,
        )
        for edge in edges
    ] + graph.edges


def end_of(node: Node | None, inner: Graph, name: str, fallback: str) -> str:
    """Where edges to or from a subgraph's node are led to now."""
    if node is not None:
        return node.id
    # Where the entry or the exit was trimmed there was exactly one such node,
    # so it is known; else the entry or the exit is still there.
    assert fallback in inner.nodes
    return f"{name}:{fallback}"
