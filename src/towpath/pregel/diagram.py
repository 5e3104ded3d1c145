"""A graph as nodes and edges, to look at or to draw.

The names are langchain's (`Node`, `Edge`, `first_node`, `draw_mermaid`, ...),
so that code which draws graphs finds what it expects; langchain itself is not
needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from towpath.constants import END, START
from towpath.errors import TowpathError
from towpath.pregel.mermaid import Look, mermaid


class DrawingError(TowpathError, NotImplementedError):
    """A graph cannot be drawn in this form without help from outside."""

    code = "TP-612"


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
    """Nodes by id, and edges between them."""

    nodes: dict[str, Node] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)

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
        self.edges.extend(
            edge.copy(source=renamed(edge.source), target=renamed(edge.target))
            for edge in graph.edges
        )
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

    def draw_mermaid_png(self, *args: Any, **options: Any) -> bytes:
        """Not done: it would take a browser, or somebody's server.

        Raises:
            DrawingError: always; it says what to do instead (TP-612).
        """
        del args, options
        raise DrawingError(
            "a picture of a Mermaid diagram takes a browser or a server, and "
            "Towpath sends nothing anywhere by itself",
            hint="give draw_mermaid() to mermaid.live or to `mmdc`; Jupyter and "
            "GitHub draw it as it is",
        )

    def draw_png(self, *args: Any, **options: Any) -> bytes:
        """The same as `draw_mermaid_png`.

        Raises:
            DrawingError: always (TP-612).
        """
        return self.draw_mermaid_png(*args, **options)

    def draw_ascii(self) -> str:
        """The graph as plain text: each node with the edges that leave it."""
        lines: list[str] = []
        for node in self.nodes.values():
            lines.append(node.id)
            for edge in self.edges:
                if edge.source == node.id:
                    arrow = "..>" if edge.conditional else "-->"
                    label = f"  ({edge.data})" if edge.data else ""
                    lines.append(f"  {arrow} {edge.target}{label}")
        return "\n".join(lines)

    def print_ascii(self) -> None:
        """Print `draw_ascii()`."""
        print(self.draw_ascii())  # noqa: T201 - asked for

    def _repr_markdown_(self) -> str:
        return f"```mermaid\n{self.draw_mermaid()}```"


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


__all__ = ["END", "START", "DrawingError", "Edge", "Graph", "Node"]
