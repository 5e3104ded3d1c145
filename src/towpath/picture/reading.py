"""Nodes, edges and joins of a drawing -> the sketch of a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, Final, NamedTuple, Protocol

from towpath.constants import END, HANDLER, START
from towpath.picture.mermaid import Edged, Noded
from towpath.picture.sketch import Figure, Kind, Manner, Ran, Sketch, Stroke


class Join(NamedTuple):
    """Edges that are waited for together, before `target` runs."""

    sources: tuple[str, ...]
    target: str
    policy: str = "all"


class Drawn(Protocol):
    """What is asked of a graph."""

    @property
    def nodes(self) -> Mapping[str, Noded]: ...
    @property
    def edges(self) -> Sequence[Edged]: ...
    @property
    def joins(self) -> Sequence[Join]: ...
    @property
    def manners(self) -> Mapping[tuple[str, str, str | None], Manner]: ...


ENDS: Final[dict[str, tuple[str, Kind]]] = {
    START: ("start", "start"),
    END: ("end", "end"),
}


def sketch_of(
    graph: Drawn, title: str, ran: Mapping[str, Ran] | None = None, run: str = ""
) -> Sketch:
    """What a picture of the graph shows, with what a run did if that is given."""
    sketch = Sketch(title, run=run)
    for node in graph.nodes.values():
        sketch.figures.append(figure_of(node, (ran or {}).get(node.id)))
    joined = {}
    for join in graph.joins:
        sources = tuple(name for name in join.sources if name in graph.nodes)
        if sources and join.target in graph.nodes:
            joined.update({(source, join.target): join for source in sources})
    for edge in graph.edges:
        if edge.source not in graph.nodes or edge.target not in graph.nodes:
            continue  # of a graph put together by hand
        join_of_edge = joined.get((edge.source, edge.target))
        if join_of_edge is None or edge.conditional:
            sketch.strokes.append(stroke_of(edge, graph))
    for join in dict.fromkeys(joined.values()):
        add_join(sketch, join, graph)
    return sketch


def figure_of(node: Noded, ran: Ran | None) -> Figure:
    path = tuple(node.id.split(":")[:-1])
    if node.name in ENDS:
        return Figure(node.id, *ENDS[node.name], path)
    told = dict(node.metadata or {})
    notes = ["deferred"] if told.pop("defer", None) is True else []
    stops = str(told.pop("__interrupt", ""))
    notes.extend(f"stops {when}" for when in stops.split(",") if when)
    name = node.name.removeprefix(HANDLER)
    kind: Kind = "graph" if hasattr(node.data, "plan_of_graph") else "node"
    if name != node.name:
        kind = "handler"
        notes.append("error handler")
    about = ", ".join([name, *notes, *(f"{k}: {v}" for k, v in told.items())])
    return Figure(node.id, name, kind, path, tuple(notes), about, ran)


def stroke_of(edge: Edged, graph: Drawn) -> Stroke:
    usual: Manner = "branch" if edge.conditional else "edge"
    manner = graph.manners.get((edge.source, edge.target, edge.data), usual)
    label = "" if edge.data is None else str(edge.data)
    return Stroke(edge.source, edge.target, label, manner)


def add_join(sketch: Sketch, join: Join, graph: Drawn) -> None:
    """Let the edges of a join meet before its target."""
    sources = [name for name in join.sources if name in graph.nodes]
    key = f"join {'+'.join(sources)} {join.target}"
    names = ", ".join(graph.nodes[name].name for name in sources)
    told = {"all": "waits for all of", "taken": "waits for those taken of"}
    figure = Figure(
        key,
        join.policy,
        "join",
        shared([*sources, join.target]),
        told=f"{told.get(join.policy, join.policy)} {names}",
    )
    sketch.figures.append(figure)
    sketch.strokes.extend(Stroke(name, key, manner="join") for name in sources)
    sketch.strokes.append(Stroke(key, join.target))


def shared(ids: list[str]) -> tuple[str, ...]:
    """The subgraphs that all of these nodes are in."""
    paths = [id.split(":")[:-1] for id in ids]
    levels: Any = zip(*paths, strict=False)
    return tuple(names[0] for names in takewhile(lambda n: len(set(n)) == 1, levels))
