"""Hypothesis strategies for graphs and scripts.

Graphs are drawn so that most of them run to an end: the first node is reached,
every other node has a way in, and `Fan`s go only forward so that their number
stays bounded. Loops are free, the recursion limit ends them, but only in the
outermost graph, where they do not multiply. What the presets treat differently
is never drawn: keys that no schema declares, targets that do not exist, prompts
without a checkpointer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from hypothesis import strategies as st

from towpath.testing.describe import (
    Act,
    Ask,
    Branch,
    Durability,
    Edge,
    Edit,
    Emit,
    Fail,
    Fan,
    Graph,
    Hop,
    Inside,
    Jump,
    Node,
    Proceed,
    Replace,
    Rewind,
    Run,
    Script,
    StateKind,
    Steer,
    Step,
    Write,
    has,
    walk,
)

T = TypeVar("T")
START, END = "__start__", "__end__"
NUMBERS = st.integers(-3, 9)
REPLACEMENTS = (("log", ["new"]), ("total", 0), ("tags", {"z": 1}))
ACTIONS = (*["proceed"] * 4, "run", "edit", "back", "steer", "inside")
RETURNS = ("dict", "dict", "dict", "parts", "nothing")


@dataclass(frozen=True, slots=True)
class Limits:
    """How large and how rich drawn graphs may become."""

    nodes: int = 6
    depth: int = 2
    prompts: bool = True
    failures: bool = True
    kinds: tuple[StateKind, ...] = (
        "typeddict",
        "typeddict",
        "channels",
        "dataclass",
        "pydantic",
    )


@dataclass(frozen=True, slots=True)
class Place:
    """Where a graph is drawn: the later nodes above it, and how deep it lies."""

    parents: tuple[str, ...] = ()
    depth: int = 0
    prefix: str = ""
    prompts: bool = True


def graphs(limits: Limits | None = None) -> st.SearchStrategy[Graph]:
    """Draw whole graphs."""
    limits = limits or Limits()
    return _graph(limits, Place(prompts=limits.prompts))


@st.composite
def _graph(draw: st.DrawFn, limits: Limits, place: Place) -> Graph:
    count = draw(st.integers(1, limits.nodes if place.depth == 0 else 3))
    names = tuple(f"{place.prefix}{letter}" for letter in "abcdef"[:count])
    private = _chance(draw, 8)
    kind = draw(st.sampled_from(limits.kinds))
    nodes = [
        _node(draw, limits, place, names, index, private=private, kind=kind)
        for index in range(count)
    ]
    if any(_leaves(node) for node in nodes):
        # Tasks beside one that leaves are cut off: a race, so there are none.
        nodes = [_alone(node, index == count - 1) for index, node in enumerate(nodes)]
        branches: tuple[Branch, ...] = ()
        edges = _chain(names)
    else:
        branches = _branches(draw, place, names)
        edges = _edges(draw, place, names, branches)
    if any(branch.kind == "scatter" for branch in branches) or _fans(nodes):
        # Tasks sent to one child would share the state that it keeps: a race.
        nodes = [_forgetful(node) for node in nodes]
    return Graph(
        nodes=tuple(nodes),
        edges=edges,
        branches=branches,
        state=kind,
        narrow_input=place.depth == 0 and _chance(draw, 8),
        narrow_output=_chance(draw, 8),
        persist=_persist(draw, place),
        pause_before=_pauses(draw, place, names),
        pause_after=_pauses(draw, place, names),
    )


def _node(
    draw: st.DrawFn,
    limits: Limits,
    place: Place,
    names: tuple[str, ...],
    index: int,
    *,
    private: bool,
    kind: StateKind,
) -> Node:
    child = _child(draw, limits, place, names, index)
    acts = tuple(
        _act(draw, limits, place, private=private, kind=kind)
        for _ in range(_few(draw, 2))
    )
    if any(isinstance(act, Ask) for act in acts):
        # Whether an answered question of a task that failed is open: we say no.
        acts = tuple(act for act in acts if not isinstance(act, Fail))
    # How far a child came when one of its nodes failed is a race: it ends the run.
    risky = child is not None and has(child, Fail)
    return Node(
        name=names[index],
        acts=acts,
        hops=_hops(draw, place, names, index),
        child=child,
        calls_child=child is not None and _chance(draw, 3),
        injected=draw(
            st.sampled_from(("", "", "", "config", "runtime", "writer", "store"))
        ),
        defer=_chance(draw, 10),
        attempts=2 if not risky and _chance(draw, 6) else 1,
        handled=limits.failures and not risky and _chance(draw, 12),
        private=private and child is None and draw(st.booleans()),
        hints=draw(st.booleans()),
        returns=draw(st.sampled_from(RETURNS)),
    )


def _leaves(node: Node) -> bool:
    return any(isinstance(hop, Jump) and hop.parent for hop in node.hops)


def _alone(node: Node, last: bool) -> Node:
    return node if last and _leaves(node) else replace(node, hops=())


def _chain(names: tuple[str, ...]) -> tuple[Edge, ...]:
    return tuple(
        Edge((source,), target)
        for source, target in zip((START, *names), names, strict=False)
    )


def _fans(nodes: list[Node]) -> bool:
    return any(isinstance(hop, Fan) for node in nodes for hop in node.hops)


def _forgetful(node: Node) -> Node:
    """Return the node with children that keep nothing between their calls."""
    if node.child is None:
        return node
    inside = tuple(map(_forgetful, node.child.nodes))
    persist = None if node.child.persist else node.child.persist
    return replace(node, child=replace(node.child, nodes=inside, persist=persist))


def _child(
    draw: st.DrawFn, limits: Limits, place: Place, names: tuple[str, ...], index: int
) -> Graph | None:
    if place.depth >= limits.depth or not _chance(draw, 5):
        return None
    inside = Place(
        parents=names[index + 1 :],
        depth=place.depth + 1,
        prefix=f"{names[index]}_",
        prompts=place.prompts,
    )
    return draw(_graph(limits, inside))


def _act(
    draw: st.DrawFn, limits: Limits, place: Place, *, private: bool, kind: StateKind
) -> Act:
    kinds = ["write", "write", "write", "emit"]
    kinds += ["ask"] if place.prompts else []
    kinds += ["fail"] if limits.failures and _chance(draw, 4) else []
    match draw(st.sampled_from(kinds)):
        case "emit":
            return Emit(draw(NUMBERS))
        case "ask":
            return Ask(draw(st.sampled_from(("sure?", "why?", "how many?"))))
        case "fail":
            error = draw(st.sampled_from(("ValueError", "RuntimeError")))
            return Fail(draw(st.integers(1, 3)), error)  # type: ignore[arg-type]
        case _:
            if _chance(draw, 12):
                return Replace(*draw(st.sampled_from(REPLACEMENTS)))
            return Write(*draw(_values(private, kind)))


def _values(private: bool, kind: StateKind) -> st.SearchStrategy[tuple[str, object]]:
    choices: list[st.SearchStrategy[tuple[str, object]]] = [
        st.tuples(st.just("total"), NUMBERS),
        st.tuples(st.just("best"), NUMBERS),
        st.tuples(
            st.just("tags"),
            st.dictionaries(st.sampled_from("xyz"), NUMBERS, max_size=2),
        ),
        st.tuples(st.just("note"), st.sampled_from(("", "n", "m"))),
        st.tuples(st.just("item"), NUMBERS),
    ]
    if private:
        choices.append(st.tuples(st.just("secret"), st.sampled_from(("s", "t"))))
    if kind == "channels":
        choices.append(st.tuples(st.sampled_from(("once", "hidden")), st.just("w")))
        choices.append(st.tuples(st.just("delta"), st.just(["w"])))
    return st.one_of(choices)


def _hops(
    draw: st.DrawFn, place: Place, names: tuple[str, ...], index: int
) -> tuple[Hop, ...]:
    if not _chance(draw, 5):
        return ()
    if place.parents and _chance(draw, 2):
        return (Jump(draw(st.sampled_from(place.parents)), parent=True),)
    later = names[index + 1 :]
    if draw(st.booleans()) and later:
        return (Fan(draw(st.sampled_from(later)), draw(st.integers(1, 3))),)
    onward = names if place.depth == 0 and not later else later
    return (Jump(draw(st.sampled_from((*onward, END)))),)


def _branches(
    draw: st.DrawFn, place: Place, names: tuple[str, ...]
) -> tuple[Branch, ...]:
    found: dict[str, Branch] = {}
    for _ in range(_few(draw, 2)):
        source = draw(st.sampled_from((START, *names)))
        kind = draw(st.sampled_from(("loop", "pick", "all", "scatter")))
        if kind == "scatter":
            after = names[names.index(source) + 1 :] if source != START else names
            if not after:
                continue
            targets: tuple[str, ...] = (draw(st.sampled_from(after)),)
            found[source] = Branch(source, "scatter", targets, draw(st.integers(0, 3)))
            continue
        forward = place.depth > 0 or (kind != "loop" and not _chance(draw, 4))
        first = names.index(source) + 1 if forward and source != START else 0
        options = st.sampled_from((*names[first:], END))
        targets = tuple(draw(st.lists(options, min_size=1, max_size=3, unique=True)))
        found[source] = Branch(
            source,
            kind,  # type: ignore[arg-type]
            targets,
            draw(st.integers(2, 8)),
            draw(st.sampled_from(("none", "dict", "list", "literal"))),
        )
    return tuple(found.values())


def _edges(
    draw: st.DrawFn,
    place: Place,
    names: tuple[str, ...],
    branches: tuple[Branch, ...],
) -> tuple[Edge, ...]:
    edges = {Edge((START,), names[0])}
    routed = {target for branch in branches for target in branch.targets}
    for index, name in enumerate(names[1:], 1):
        if name not in routed or draw(st.booleans()):
            sources = (START, *names[:index])
            edges.add(Edge((draw(st.sampled_from(sources)),), name))
    for _ in range(_few(draw, 2)):
        index = draw(st.integers(0, len(names) - 1))
        back = place.depth == 0 and _chance(draw, 6)
        targets = names if back else names[index + 1 :]
        edges.add(Edge((names[index],), draw(st.sampled_from((*targets, END)))))
    if len(names) > 2 and _chance(draw, 2):
        target = draw(st.sampled_from(names[2:]))
        back = place.depth == 0 and _chance(draw, 4)
        others = names if back else names[: names.index(target)]
        joined = draw(
            st.lists(st.sampled_from(others), min_size=2, max_size=3, unique=True)
        )
        edges.add(Edge(tuple(joined), target))
    return tuple(sorted(edges, key=repr))


def _persist(draw: st.DrawFn, place: Place) -> bool | None:
    """Draw how a child keeps its state; never `False` where it may prompt."""
    if place.depth == 0:
        return None
    choices: tuple[bool | None, ...] = (None, None, place.prompts)
    return draw(st.sampled_from(choices))


def _pauses(draw: st.DrawFn, place: Place, names: tuple[str, ...]) -> tuple[str, ...]:
    if not place.prompts or not _chance(draw, 10):
        return ()
    return (draw(st.sampled_from(names)),)


@st.composite
def scripts(draw: st.DrawFn, graph: Graph) -> Script:
    """Draw what a user does to `graph`."""
    stored = has(graph, Ask)
    stored = stored or _pausing(graph) or draw(st.booleans())
    first: Step = Run(_input(draw, graph))
    count = _few(draw, 4) if stored else _few(draw, 1)
    steps = [first, *(_step(draw, graph, stored) for _ in range(count))]
    return Script(
        steps=tuple(steps),
        recursion_limit=draw(st.integers(4, 10)),
        stored=stored,
        durability=draw(st.sampled_from(_durabilities(graph))),
    )


def _durabilities(graph: Graph) -> tuple[Durability | None, ...]:
    """Choose from what is safe with the peer for a graph.

    It stores a join's channel in the background while the next step changes it,
    so that its history shows tasks that never were.
    """
    joins = any(len(edge.sources) > 1 for one in _levels(graph) for edge in one.edges)
    return ("sync", "exit") if joins else (None, None, "sync", "async", "exit")


def _pausing(graph: Graph) -> bool:
    return any(one.pause_before or one.pause_after for one in _levels(graph))


def _levels(graph: Graph) -> list[Graph]:
    children = [node.child for node in walk(graph) if node.child is not None]
    return [graph, *children]


def _step(draw: st.DrawFn, graph: Graph, stored: bool) -> Step:
    if not stored:
        return Run(_input(draw, graph))
    names = [node.name for node in graph.nodes]
    match draw(st.sampled_from(ACTIONS)):
        case "inside":
            return Inside((("log", ["inside"]),))
        case "steer":
            return Steer((("log", ["steered"]),), draw(st.sampled_from(names)))
        case "run":
            return Run(_input(draw, graph))
        case "edit":
            return Edit(
                values=(("log", ["edit"]), ("note", "edited")),
                as_node=draw(st.sampled_from((None, *names))),
                back=_few(draw, 3),
                proceed=draw(st.booleans()),
            )
        case "back":
            return Rewind(draw(st.integers(1, 4)))
        case _:
            return Proceed()


def _input(draw: st.DrawFn, graph: Graph) -> tuple[tuple[str, object], ...]:
    values: list[tuple[str, object]] = [("log", ["in"])]
    if not graph.narrow_input and draw(st.booleans()):
        values.append(("total", draw(NUMBERS)))
    if draw(st.booleans()):
        values.append(("note", "given"))
    return tuple(values)


def _few(draw: st.DrawFn, most: int) -> int:
    return draw(st.integers(0, most))


def _chance(draw: st.DrawFn, of: int) -> bool:
    """Draw true once in `of` times; shrinks to false."""
    return draw(st.integers(1, of)) == of
