"""A graph as nodes and edges, to look at or to draw.

The names are langchain's (`Node`, `Edge`, `first_node`, `draw_mermaid`, ...),
so that code which draws graphs finds what it expects; langchain itself is not
needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from towpath.constants import END, START
from towpath.picture.mermaid import Look, mermaid
from towpath.picture.png import DrawingError
from towpath.picture.reading import Join, sketch_of
from towpath.picture.sketch import Manner, Ran

if TYPE_CHECKING:
    from towpath.picture.picture import Picture


class Node(NamedTuple):
    """A node of a drawing; `data` is what runs there."""

    id: str
    name: str
    data: Any = None
    metadata: dict[str, Any] | None = None

    def copy(self, *, id: str | None = None, name: str | None = None) -> Node:
        return self._replace(id=id or self.id, name=name or self.name)


class Edge(NamedTuple):
    """An edge of a drawing; `data` is its label."""

    source: str
    target: str
    data: str | None = None
    conditional: bool = False

    def copy(self, *, source: str | None = None, target: str | None = None) -> Edge:
        return self._replace(source=source or self.source, target=target or self.target)


@dataclass
class Graph:
    """Nodes by id, and edges between them.

    `joins` says which edges are waited for together, `manners` what leads along
    an edge (source, target, label) that is more than a choice: a command, a
    send, an error.
    """

    nodes: dict[str, Node] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    joins: list[Join] = field(default_factory=list)
    manners: dict[tuple[str, str, str | None], Manner] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.nodes)

    def add_node(
        self,
        data: Any,
        id: str | None = None,
        *,
        metadata: dict[str, Any] | None = None,
    ) -> Node:
        """Add a node for something that runs.

        Raises:
            ValueError: there is a node with this id.
        """
        key = id or getattr(data, "name", None) or type(data).__name__
        if key in self.nodes:
            raise ValueError(f"Node with id {key} already exists")
        node = self.nodes[key] = Node(key, key.rpartition(":")[2], data, metadata)
        return node

    def remove_node(self, node: Node) -> None:
        """Remove a node and its edges."""
        del self.nodes[node.id]
        self.edges = [e for e in self.edges if node.id not in (e.source, e.target)]

    def add_edge(
        self,
        source: Node,
        target: Node,
        data: str | None = None,
        conditional: bool = False,
    ) -> Edge:
        """Add an edge between two nodes of the graph.

        Raises:
            ValueError: one of them is not in it.
        """
        for what, node in (("Source", source), ("Target", target)):
            if node.id not in self.nodes:
                raise ValueError(f"{what} node {node.id} not in graph")
        edge = Edge(source.id, target.id, data, conditional)
        self.edges.append(edge)
        return edge

    def extend(
        self, graph: Graph, *, prefix: str = ""
    ) -> tuple[Node | None, Node | None]:
        """Take in another graph, ids prefixed; return its first and last node."""

        def renamed(id: str) -> str:
            return f"{prefix}:{id}" if prefix else id

        for node in graph.nodes.values():
            self.nodes[renamed(node.id)] = node.copy(id=renamed(node.id))
        taken = led(graph, renamed, renamed)
        self.edges.extend(taken.edges)
        self.joins.extend(taken.joins)
        self.manners.update(taken.manners)
        ends = (graph.first_node(), graph.last_node())
        first, last = (node and node.copy(id=renamed(node.id)) for node in ends)
        return first, last

    def first_node(self) -> Node | None:
        """The only node that no edge leads to."""
        return only(self.nodes.values(), {edge.target for edge in self.edges})

    def last_node(self) -> Node | None:
        """The only node that no edge leaves."""
        return only(self.nodes.values(), {edge.source for edge in self.edges})

    def trim_first_node(self) -> None:
        """Remove the first node where another one can be the first."""
        first = self.first_node()
        if first is not None:
            left = [node for node in self.nodes.values() if node.id != first.id]
            led_to = {e.target for e in self.edges if e.source != first.id}
            if only(left, led_to) is not None:
                self.remove_node(first)

    def trim_last_node(self) -> None:
        """Remove the last node where another one can be the last."""
        last = self.last_node()
        if last is not None:
            left = [node for node in self.nodes.values() if node.id != last.id]
            left_from = {e.source for e in self.edges if e.target != last.id}
            if only(left, left_from) is not None:
                self.remove_node(last)

    # -- forms ----------------------------------------------------------------

    def to_json(self, *, with_schemas: bool = False) -> dict[str, list[dict[str, Any]]]:
        """The graph as plain data."""
        del with_schemas  # a node's schema is a class, and no plain data
        return {
            "nodes": [node_json(node) for node in self.nodes.values()],
            "edges": [edge_json(edge) for edge in self.edges],
        }

    def draw_mermaid(
        self,
        *,
        with_styles: bool = True,
        curve_style: Any = "linear",
        node_colors: Any = None,
        wrap_label_n_words: int = 9,
        frontmatter_config: dict[str, Any] | None = None,
    ) -> str:
        """The graph as Mermaid text.

        Static edges are solid, conditional ones dotted with their label;
        subgraphs are boxes around their nodes.
        """
        look = Look.of(
            with_styles=with_styles,
            curve=curve_style,
            colors=node_colors,
            words=wrap_label_n_words,
            settings=frontmatter_config,
        )
        ends = (self.first_node(), self.last_node())
        first, last = (node.id if node else None for node in ends)
        return mermaid(self.nodes.values(), self.edges, look, (first, last))

    def draw(
        self,
        title: str = "graph",
        *,
        ran: Mapping[str, Ran] | None = None,
        run: str = "",
    ) -> Picture:
        """The graph as a picture, with what a run did in its nodes by their id."""
        # Drawing is rare, and programs that never draw need not load how.
        from towpath.picture.picture import Picture

        return Picture(sketch_of(self, title, ran, run), self.draw_mermaid)

    def draw_mermaid_png(
        self, *, output_file_path: str | None = None, **options: Any
    ) -> bytes:
        """The graph as PNG, drawn here: no browser, and nobody's server.

        It is our own picture, not Mermaid's, so options of Mermaid's are taken
        and change nothing.

        Raises:
            DrawingError: what draws PNG is not installed (TP-612).
        """
        del options
        return self.draw_png(output_file_path)

    def draw_png(
        self,
        output_file_path: str | None = None,
        fontname: str | None = None,
        labels: Any = None,
    ) -> bytes:
        """The graph as PNG, also written to a file if one is named.

        `fontname` and `labels` are the peer's, and change nothing.

        Raises:
            DrawingError: what draws PNG is not installed (TP-612).
        """
        del fontname, labels
        made = self.draw().png()
        if output_file_path is not None:
            Path(output_file_path).write_bytes(made)
        return made

    def draw_svg(self) -> str:
        """The graph as SVG, without any reference to elsewhere."""
        return self.draw().svg

    def draw_ascii(self) -> str:
        """The graph as a drawing of plain characters."""
        return self.draw().ascii

    def print_ascii(self) -> None:
        """Print `draw_ascii()`."""
        print(self.draw_ascii())  # noqa: T201 - asked for

    def _repr_mimebundle_(
        self, include: Any = None, exclude: Any = None
    ) -> dict[str, str]:
        return self.draw()._repr_mimebundle_(include, exclude)

    def _repr_markdown_(self) -> str:
        return f"```mermaid\n{self.draw_mermaid()}```"


def led(
    graph: Graph, source: Callable[[str], str], target: Callable[[str], str]
) -> Graph:
    """The edges, joins and manners of a graph, between nodes of other names."""
    return Graph(
        edges=[
            edge.copy(source=source(edge.source), target=target(edge.target))
            for edge in graph.edges
        ],
        joins=[
            Join(tuple(map(source, join.sources)), target(join.target), join.policy)
            for join in graph.joins
        ],
        manners={
            (source(start), target(end), label): manner
            for (start, end, label), manner in graph.manners.items()
        },
    )


def only(nodes: Iterable[Node], taken: set[str]) -> Node | None:
    """The one node that is not taken, if there is exactly one."""
    free = [node for node in nodes if node.id not in taken]
    return free[0] if len(free) == 1 else None


FUNCTION: Final = "langgraph._internal._runnable.RunnableCallable"


def kind_of(data: Any) -> str:
    """The kind of what runs in a node, under the name that others know it by."""
    if not hasattr(data, "invoke"):
        return FUNCTION
    kind = type(data)
    root, dot, rest = f"{kind.__module__}.{kind.__qualname__}".partition(".")
    return f"{'langgraph' if root == 'towpath' else root}{dot}{rest}"


def node_json(node: Node) -> dict[str, Any]:
    made: dict[str, Any] = {"id": node.id}
    if node.name != END:
        home = kind_of(node.data).split(".")
        made |= {"type": "runnable", "data": {"id": home, "name": node.id}}
    if node.metadata:
        made["metadata"] = node.metadata
    return made


def edge_json(edge: Edge) -> dict[str, Any]:
    made: dict[str, Any] = {"source": edge.source, "target": edge.target}
    if edge.data is not None:
        made["data"] = edge.data
    if edge.conditional:
        made["conditional"] = True
    return made


__all__ = ["END", "START", "DrawingError", "Edge", "Graph", "Join", "Node"]
