"""A compiled graph -> the drawing of it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from operator import attrgetter
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

from towpath.constants import CONF, END, START
from towpath.kernel.commands import Program
from towpath.picture.reading import Join
from towpath.picture.sketch import Manner
from towpath.plan import Action, NodeSpec, Plan
from towpath.plan.code import codes
from towpath.pregel.config import NotAnOptionError
from towpath.pregel.diagram import Edge, Graph, Node, led
from towpath.pregel.states import Place, place_of

if TYPE_CHECKING:
    from towpath.picture.picture import Picture
    from towpath.report.facts import Story
    from towpath.report.page import Report

CHARACTERS: Final = 2_000_000
"""How much a report shows of all values together."""


class DrawVerbs:
    """The verbs that show what a graph is made of."""

    plan_of_graph: Plan
    name: str

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

    def draw(
        self, config: Mapping[str, Any] | None = None, *, xray: int | bool = False
    ) -> Picture:
        """A picture of the graph, made here: SVG, PNG, Mermaid or text.

        With the `config` of a thread, what ran there is drawn on it: which nodes,
        how often and how long, where it waits, and what failed; with that of a
        checkpoint, what led to it. `xray` opens subgraphs, as in `get_graph`.
        The layout is that of Sugiyama, Tagawa and Toda (1981), by our own code.

        Raises:
            NoCheckpointerError: a config, and no checkpointer or thread (TP-601).
        """
        if config is None:
            return self._picture(xray, None, None)
        place, program = telling(self, config, 0, None)
        return self._picture(xray, place.look(program), config)

    async def adraw(
        self, config: Mapping[str, Any] | None = None, *, xray: int | bool = False
    ) -> Picture:
        """Async twin of `draw`."""
        if config is None:
            return self._picture(xray, None, None)
        place, program = telling(self, config, 0, None)
        return self._picture(xray, await place.alook(program), config)

    def report(self, config: Mapping[str, Any], *, limit: int | None = 2000) -> Report:
        """All that happened on a thread, as one page of HTML without scripts.

        A picture of the run; each superstep with its nodes, how long it took,
        what changed, questions and errors; subgraphs where they ran; branches.
        Long values are cut, more so if there are many checkpoints: a page takes a
        few megabytes at most. `limit` is how many of the newest checkpoints are
        read of the graph and of each run of a subgraph.

        Raises:
            NoCheckpointerError: no checkpointer, or no thread named (TP-601).
        """
        place, program = telling(self, config, CHARACTERS, limit)
        return self._report(place.look(program), config, limit)

    async def areport(
        self, config: Mapping[str, Any], *, limit: int | None = 2000
    ) -> Report:
        """Async twin of `report`."""
        place, program = telling(self, config, CHARACTERS, limit)
        return self._report(await place.alook(program), config, limit)

    def _picture(
        self, xray: int | bool, story: Story | None, config: Mapping[str, Any] | None
    ) -> Picture:
        graph = self.get_graph(xray=xray)
        if story is None or config is None:
            return graph.draw(self.name)
        from towpath.report.facts import ran_in

        conf = config[CONF]
        thread = f"thread {conf['thread_id']}"
        ran = ran_in(story, conf.get("checkpoint_id"))
        return graph.draw(f"{self.name}, {thread}", ran=ran, run=thread)

    def _report(
        self, story: Story, config: Mapping[str, Any], limit: int | None
    ) -> Report:
        from towpath.report.page import Subject, report

        thread = str(config[CONF]["thread_id"])
        picture = self._picture(True, story, {CONF: {"thread_id": thread}})
        more = limit is not None and any(len(one) >= limit for one in story.values())
        return report(Subject(self.name, thread, story, picture.svg, more))

    def _repr_mimebundle_(
        self, include: Any = None, exclude: Any = None
    ) -> dict[str, str]:
        del include, exclude
        return {"image/svg+xml": self.draw().svg, "text/plain": repr(self)}


def telling(
    graph: Any, config: Mapping[str, Any], characters: int, limit: int | None
) -> tuple[Place, Program[Story]]:
    """The place of a thread, and the program that reads what happened there."""
    if isinstance(config, str | PathLike):
        how = "report(config)" if characters else "draw()"
        raise NotAnOptionError(
            f"this takes the config of a thread, not the file {str(config)!r}",
            hint=f"graph.{how}.save({str(config)!r}) writes it",
        )
    # Few programs look back, and the others need not load how.
    from towpath.pregel.story import read_story
    from towpath.report.moments import Budget

    place = place_of(graph, config)
    budget = Budget(characters) if characters else None
    return place, read_story(graph, config, budget, limit)


def drawn(plan: Plan, xray: int | bool, above: tuple[Plan, ...]) -> Graph:
    """The drawing of a plan; `above` are the plans it is drawn inside of."""
    graph = Graph()
    for spec in plan.nodes.values():
        graph.add_node(shown(spec), spec.name, metadata=metadata_of(plan, spec))
    if START not in graph.nodes:
        graph.add_node(None, START)
    graph.add_node(None, END)
    graph.joins = [Join(join.sources, join.target, join.policy) for join in plan.joins]
    graph.manners = dict(manners_of(plan))
    # As the peer was observed to list them; drawings stay the same when the
    # order of declarations changes.
    order = attrgetter("source", "target")
    graph.edges = sorted(dict.fromkeys(edges_of(plan)), key=order)
    finish(plan, graph)
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


def manners_of(plan: Plan) -> Iterator[tuple[tuple[str, str, str | None], Manner]]:
    """What leads along the conditional edges, where it is more than a choice."""
    for spec in plan.nodes.values():
        for branch in spec.branches:
            for answer, target in (branch.ends or {}).items():
                if target != END and sends(branch.path):
                    label = None if answer == target else str(answer)
                    yield (spec.name, target, label), "send"
        for target, label in spec.destinations.items():
            yield (spec.name, target, label), "command"
        if spec.error_handler is not None:
            yield (spec.name, spec.error_handler, "error"), "error"


def sends(path: Action) -> bool:
    """Whether a path function makes `Send`s, as far as its code tells."""
    function = path.target
    return inspect.isfunction(function) and any(
        "Send" in code.co_names for code in codes(function.__code__)
    )


def visible(spec: NodeSpec) -> bool:
    """Whether a path function may name this node."""
    return spec.name != START and spec.handles is None


def finish(plan: Plan, graph: Graph) -> None:
    """Lead to END where it says so, and from nodes that lead nowhere else."""
    targets = {edge.target for edge in graph.edges}
    sources = {edge.source for edge in graph.edges if not handles(plan, edge)}
    graph.edges.extend(
        Edge(name, END)
        for name, spec in sorted(plan.nodes.items())
        if spec.finishes or (name in targets and name not in sources)
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
    outer = Graph(edges=graph.edges, joins=graph.joins, manners=graph.manners)
    graph.edges, graph.joins, graph.manners = [], [], {}
    nodes = dict(graph.nodes)
    del nodes[name]
    graph.nodes = nodes
    first, last = graph.extend(inner, prefix=name)
    entry = end_of(first, inner, name, START)
    exit_ = end_of(last, inner, name, END)
    around = led(
        outer,
        lambda source: exit_ if source == name else source,
        lambda target: entry if target == name else target,
    )
    graph.edges = around.edges + graph.edges
    graph.joins = around.joins + graph.joins
    graph.manners = {**around.manners, **graph.manners}


def end_of(node: Node | None, inner: Graph, name: str, fallback: str) -> str:
    """Where edges to or from a subgraph's node are led to now."""
    if node is not None:
        return node.id
    # Where the entry or the exit was trimmed there was exactly one such node,
    # so it is known; else the entry or the exit is still there.
    assert fallback in inner.nodes
    return f"{name}:{fallback}"
