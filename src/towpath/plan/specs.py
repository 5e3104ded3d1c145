"""The tables of a compiled graph.

Everything here is frozen and made once per `compile()`. `Plan` answers the
questions a superstep asks: who listens to this channel, what does this node
read, which constant writes follow it, which channels must be told of a step
they were not written in.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from towpath.channels.base import BaseChannel
from towpath.managed.base import ManagedValue
from towpath.migration import Migration
from towpath.plan.actions import Action
from towpath.semantics import Semantics
from towpath.types import CachePolicy, RetryPolicy, TimeoutPolicy, TracePolicy


@dataclass(frozen=True, slots=True)
class Scratchpad:
    """What a managed value may look at: the step and where the run must stop."""

    step: int
    stop: int


@dataclass(frozen=True, slots=True)
class View:
    """What a node, a branch or the input sees of the state.

    `keys` are the channels read and `managed` the managed values, by name;
    `root` says that the state is one bare value; `make` builds the instance of
    a schema class from the values (None: they are passed as a dict). `whole`:
    it is simply a dict of all values.
    """

    keys: tuple[str, ...] = ()
    managed: tuple[str, ...] = ()
    root: bool = False
    make: Callable[[dict[str, Any]], Any] | None = None
    schema: Any = None
    whole: bool = False


NOTHING = View()


@dataclass(frozen=True, slots=True)
class BranchSpec:
    """A conditional edge: a path function and where its answers lead.

    `ends` maps an answer to a node name; None takes answers as node names.
    `leads` has the writes of the answers that need no second look. A `brief` path
    function waits for nothing, so that an event loop may call it.
    """

    name: str
    path: Action
    ends: Mapping[Hashable, str] | None
    view: View
    leads: Mapping[str, tuple[tuple[str, Any], ...]] = field(default_factory=dict)
    brief: bool = False


@dataclass(frozen=True, slots=True)
class JoinSpec:
    """A list-join: `channel` opens `target` when every source has arrived."""

    channel: str
    sources: tuple[str, ...]
    target: str
    policy: str = "all"


# Nobody changes one. Frozen, making it would be half of what a node costs a graph.
@dataclass(slots=True, eq=False)
class NodeSpec:
    """One node: what wakes it, what it reads, how it is called, what follows.

    `edges` are the writes that follow every run of the node, as (channel,
    value). `action` is None for the entry node, which only passes input on.
    """

    name: str
    action: Action | None
    triggers: tuple[str, ...]
    view: View
    edges: tuple[tuple[str, Any], ...] = ()
    branches: tuple[BranchSpec, ...] = ()
    retry: tuple[RetryPolicy, ...] = ()
    cache: CachePolicy[Any] | None = None
    timeout: TimeoutPolicy | None = None
    error_handler: str | None = None
    handles: str | None = None
    defer: bool = False
    hidden: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    trace: TracePolicy | None = None
    # Only told, for drawings: where commands may lead and what such an edge is
    # called, whether an edge leads to END, and which channels a raw node writes.
    destinations: Mapping[str, str | None] = field(default_factory=dict)
    finishes: bool = False
    outlets: tuple[str, ...] = ()
    identity: str = ""
    call: Any = None
    acall: Any = None
    # Whether a blocking run can call the node and its branches just like that, and
    # whether an async run can await them.
    simple: bool = False
    direct: bool = False
    # Whether an async run gives it an asyncio task of its own, which it may cancel.
    apart: bool = False
    # Whether it is known to call tasks, whose chunks come while it runs.
    calls: bool = False
    # How raw pregel nodes differ: their own read and write rules.
    read: Callable[[Mapping[str, Any]], Any] | None = None
    emit: Callable[[Any], Sequence[tuple[str, Any]]] | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """A compiled graph as plain tables.

    `signals` are the channels that only wake a node, that in `wakes`: written,
    they are on for one step, and no key of the state shows them. `plain` are the
    keys without a reducer, which hold the one value written; the value of a `bare` one
    is what is stored of it. A run keeps objects
    of the other channels, its `cells`; those of them that may hold something
    before anything is written are `early`. `openers` are the channels that nodes
    listen to and that are no signals. `copied` are the types of containers that are
    kept apart under `isolate_state`: none without it.
    """

    name: str
    nodes: Mapping[str, NodeSpec]
    channels: Mapping[str, BaseChannel[Any, Any, Any]]
    managed: Mapping[str, type[ManagedValue[Any]]]
    listeners: Mapping[str, tuple[str, ...]]
    keys: tuple[str, ...]
    key_set: frozenset[str]
    root: bool
    input_keys: frozenset[str]
    output_keys: tuple[str, ...] | str
    starts: Mapping[str, Callable[[], Any]]
    ticking: frozenset[str]
    consuming: frozenset[str]
    finishing: tuple[str, ...]
    joins: tuple[JoinSpec, ...]
    semantics: Semantics
    copied: frozenset[type] = frozenset()
    signals: frozenset[str] = frozenset()
    alone: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Each signal as what is on when it is the only one: shared by all runs."""
    wakes: Mapping[str, NodeSpec] = field(default_factory=dict)
    openers: frozenset[str] = frozenset()
    cells: Mapping[str, BaseChannel[Any, Any, Any]] = field(default_factory=dict)
    early: tuple[str, ...] = ()
    plain: frozenset[str] = frozenset()
    bare: frozenset[str] = frozenset()
    untracked: frozenset[str] = frozenset()
    unsure: frozenset[str] = frozenset()
    sums: frozenset[str] = frozenset()
    adding: frozenset[str] = frozenset()
    validate: Callable[[str, Any], Any] | None = None
    interrupt_before: frozenset[str] | str = frozenset()
    interrupt_after: frozenset[str] | str = frozenset()
    context_schema: Any = None
    input_schema: Any = None
    output_schema: Any = None
    debug: bool = False
    input_channel: str = "__start__"
    # The entry node, where it does nothing but pass the input on.
    entry: NodeSpec | None = None
    # Graphs that were seen to be called inside a node's body, by node: the one
    # thing that is learnt while running, so that their state can be shown.
    called: dict[str, Any] = field(default_factory=dict)
    # What users see of the nodes, once one has looked.
    faces: dict[str, Any] = field(default_factory=dict)
    # What the graph is called among its former and later forms, how threads of
    # the former ones are brought here, and its fingerprint once it was made.
    version: str | None = None
    migrations: Mapping[str | None, Migration] = field(default_factory=dict)
    described: list[str] = field(default_factory=list)
    # How raw graphs differ: the input goes into channels of their own, and what
    # streams and snapshots show may be less than all keys.
    inlets: tuple[str, ...] | str | None = None
    take: Callable[[Any], Sequence[tuple[str, Any]]] | None = None
    told: tuple[str, ...] | str | None = None

    @property
    def shown(self) -> tuple[str, ...] | str:
        """The keys that streams and snapshots show."""
        if self.told is not None:
            return self.told
        return self.keys[0] if self.root else self.keys
