"""Graphs and scripts as plain data.

A `Graph` says what a random test graph does without naming a library, so that
one description can be built with several (`towpath.testing.build`), printed
when a test fails, and shrunk by Hypothesis. A `Script` is what a user does to
it: run, answer, edit, rewind. Everything is frozen and has a readable `repr`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

StateKind = Literal["typeddict", "dataclass", "pydantic", "channels"]
Durability = Literal["sync", "async", "exit"]
Injected = Literal["", "config", "runtime", "writer", "store"]


@dataclass(frozen=True, slots=True)
class Write:
    """Return `value` for `key`."""

    key: str
    value: object


@dataclass(frozen=True, slots=True)
class Emit:
    """Send `value` through the stream writer."""

    value: object


@dataclass(frozen=True, slots=True)
class Ask:
    """Interrupt with `question` and log the answer."""

    question: str


@dataclass(frozen=True, slots=True)
class Fail:
    """Raise in the first `times` calls of the node."""

    times: int
    error: Literal["ValueError", "RuntimeError"] = "ValueError"


@dataclass(frozen=True, slots=True)
class Replace:
    """Return `value` for `key`, past its reducer."""

    key: str
    value: object


Act: TypeAlias = Write | Replace | Emit | Ask | Fail


@dataclass(frozen=True, slots=True)
class Fan:
    """Send `count` numbered items to `target`."""

    target: str
    count: int


@dataclass(frozen=True, slots=True)
class Jump:
    """Go to `target` of this graph, or of the parent, with a `Command`."""

    target: str
    parent: bool = False


Hop: TypeAlias = Fan | Jump


@dataclass(frozen=True, slots=True)
class Node:
    """One node: a function made of acts, or a child graph."""

    name: str
    acts: tuple[Act, ...] = ()
    hops: tuple[Hop, ...] = ()
    child: Graph | None = None
    calls_child: bool = False
    """The child is invoked by the node's body instead of being the node."""
    injected: Injected = ""
    defer: bool = False
    attempts: int = 1
    handled: bool = False
    """Errors go to an error handler, which logs them."""
    private: bool = False
    """Reads the private key `secret` in addition to the state."""
    hints: bool = False
    """Parameters carry annotations, the state's class among them."""
    returns: Literal["dict", "parts", "nothing"] = "dict"
    """One update, a list of commands with one key each, or `None`."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A static edge; several sources make it a join."""

    sources: tuple[str, ...]
    target: str


@dataclass(frozen=True, slots=True)
class Branch:
    """A conditional edge, see `towpath.testing.build.route`."""

    source: str
    kind: Literal["loop", "pick", "all", "scatter"]
    targets: tuple[str, ...]
    limit: int = 1
    paths: Literal["none", "dict", "list", "literal"] = "none"


@dataclass(frozen=True, slots=True)
class Graph:
    """A whole graph. `entry` and `finish` edges are ordinary edges."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    branches: tuple[Branch, ...] = ()
    state: StateKind = "typeddict"
    narrow_input: bool = False
    narrow_output: bool = False
    persist: bool | None = None
    """The `checkpointer` argument of a child: inherit, own, or none."""
    pause_before: tuple[str, ...] = ()
    pause_after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """Start with an input."""

    values: tuple[tuple[str, object], ...]


@dataclass(frozen=True, slots=True)
class Proceed:
    """Answer everything that is open, or continue after a static pause."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Update the state, as a node or not, at a checkpoint of the history."""

    values: tuple[tuple[str, object], ...]
    as_node: str | None = None
    back: int = 0
    proceed: bool = True


@dataclass(frozen=True, slots=True)
class Rewind:
    """Continue from the checkpoint that lies `back` steps behind."""

    back: int


@dataclass(frozen=True, slots=True)
class Steer:
    """Send a command into the thread: an update and where to go."""

    values: tuple[tuple[str, object], ...]
    goto: str


@dataclass(frozen=True, slots=True)
class Inside:
    """Update the state of a child that is paused, and continue."""

    values: tuple[tuple[str, object], ...]


Step: TypeAlias = Run | Proceed | Edit | Rewind | Steer | Inside


@dataclass(frozen=True, slots=True)
class Script:
    """What a user does to a graph, in order."""

    steps: tuple[Step, ...]
    recursion_limit: int = 12
    stored: bool = True
    """Whether the graph has a checkpointer."""
    durability: Durability | None = None


def walk(graph: Graph) -> tuple[Node, ...]:
    """Return every node of `graph` and of the graphs inside it."""
    found: list[Node] = []
    for node in graph.nodes:
        found.append(node)
        if node.child is not None:
            found.extend(walk(node.child))
    return tuple(found)


def has(graph: Graph, kind: type[Act]) -> bool:
    """Tell whether a node of the graph, or below, does an act of a kind."""
    return any(isinstance(act, kind) for node in walk(graph) for act in node.acts)
