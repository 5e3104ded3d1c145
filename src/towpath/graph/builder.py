"""Builder -> plan: channels, triggers and writes, worked out once.

A node `x` is woken by the channel `branch:to:x`; a list-join of `a` and `b`
into `x` by the barrier `join:a+b:x`. Edges become the constant writes that
follow a run of their source. The names are the peer's, because they stand in
stored checkpoints.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from towpath.channels import (
    EphemeralValue,
    LastValueAfterFinish,
    NamedBarrierValue,
    NamedBarrierValueAfterFinish,
    Topic,
)
from towpath.channels.base import COPIED, BaseChannel
from towpath.constants import END, HANDLER, ROOT, START, TAG_HIDDEN, TASKS
from towpath.graph.joins import TakenBarrier
from towpath.plan import BranchSpec, JoinSpec, NodeSpec, Plan, View, tables
from towpath.plan.apart import set_apart
from towpath.plan.brief import is_brief
from towpath.plan.identity import identity_of, routing_of
from towpath.schema import class_channels, merge_channels, shape_of, validator_of
from towpath.semantics import Semantics
from towpath.types import Send

if TYPE_CHECKING:
    from towpath.graph.blueprint import Blueprint

NOWHERE: Mapping[str, str | None] = {}  # one for the many nodes that say nothing
Channels = dict[str, BaseChannel[Any, Any, Any]]
Writes = tuple[tuple[str, Any], ...]


def to_channel(name: str) -> str:
    return f"branch:to:{name}"


def join_channel(sources: tuple[str, ...], target: str) -> str:
    return f"join:{'+'.join(sources)}:{target}"


def labelled(ends: Sequence[str] | Mapping[str, str]) -> Mapping[str, str | None]:
    """Where a node says it goes, and what these edges are called."""
    if not ends:
        return NOWHERE
    return dict(ends) if isinstance(ends, Mapping) else dict.fromkeys(ends)


class PlanMaker:
    """Makes the plan of one blueprint; used once."""

    def __init__(self, blueprint: Blueprint, semantics: Semantics) -> None:
        self.blueprint = blueprint
        self.semantics = semantics
        self.state_channels: Channels = {}
        self.managed: dict[str, Any] = {}
        self.starts: dict[str, Any] = {}
        self.collect()
        self.keys = tuple(self.state_channels)
        self.root = self.keys == (ROOT,)
        self.views: dict[Any, View] = {}
        self.channels: Channels = {}
        self.joins: list[JoinSpec] = []
        self.finishing: set[str] = set()
        # What going somewhere writes.
        self.ways: dict[str, Writes] = {
            name: ((to_channel(name), None),) for name in blueprint.nodes
        }
        self.ways[END] = ()

    def collect(self) -> None:
        """The channels of every schema the graph knows, conflicts refused."""
        for schema in self.blueprint.all_schemas():
            fields = class_channels(schema, self.semantics.defaults_start_reducers)
            self.state_channels = merge_channels(self.state_channels, fields.channels)
            self.managed.update(fields.managed)
            self.starts.update(fields.starts)

    def view(self, schema: Any) -> View:
        """What a reader with this schema sees; shared between its readers."""
        key = id(schema)
        if key not in self.views:
            shape = shape_of(schema)
            own = tuple(k for k in shape.keys if k in self.state_channels)
            managed = tuple(k for k in shape.keys if k in self.managed)
            # The very tuple: readers of everything are recognised by identity.
            keys = self.keys if len(own) == len(self.keys) else own
            whole = keys is self.keys and not (managed or shape.root or shape.make)
            self.views[key] = View(
                keys, managed, shape.root, shape.make, schema, whole=whole
            )
        return self.views[key]

    def make(self, name: str, options: Mapping[str, Any]) -> Plan:
        blueprint = self.blueprint
        edges = self.edges()
        nodes = {START: self.entry(edges[START])}
        for node in blueprint.nodes:
            self.add(nodes, node, edges[node])
        channels: Channels = {**self.state_channels, **self.channels}
        channels[START] = EphemeralValue(blueprint.input_schema)
        channels[TASKS] = Topic(Send, accumulate=False)
        for key, channel in channels.items():
            channel.key = key
        return Plan(
            name=name,
            nodes=nodes,
            channels=channels,
            managed=self.managed,
            keys=self.keys,
            key_set=frozenset(self.keys),
            root=self.root,
            input_keys=frozenset(self.view(blueprint.input_schema).keys),
            output_keys=self.output_keys(),
            starts=self.starts,
            joins=tuple(self.joins),
            semantics=self.semantics,
            copied=COPIED if self.semantics.isolate_state else frozenset(),
            validate=validator_of(blueprint.state_schema)
            if self.semantics.validate_updates
            else None,
            context_schema=blueprint.context_schema,
            input_schema=blueprint.input_schema,
            output_schema=blueprint.output_schema,
            version=blueprint.version,
            migrations=blueprint.migrations,
            **tables(channels, nodes, self.keys),
            **options,
        )

    def output_keys(self) -> tuple[str, ...] | str:
        shape = shape_of(self.blueprint.output_schema)
        if shape.root:
            return ROOT
        return tuple(k for k in shape.keys if k in self.state_channels)

    def edges(self) -> dict[str, list[tuple[str, Any]]]:
        """The constant writes after each node, and the channels they go to."""
        writes: dict[str, list[tuple[str, Any]]] = {START: []}
        for name, node in self.blueprint.nodes.items():
            writes[name] = []
            [(channel, _)] = self.ways[name]
            self.channels[channel] = (
                LastValueAfterFinish(Any) if node.defer else EphemeralValue(Any, False)
            )
        for source, target in sorted(self.blueprint.edges):
            if target == END:
                self.finishing.add(source)
            else:
                writes[source].extend(self.ways[target])
        for sources, target in sorted(self.blueprint.waiting_edges):
            if target == END:
                self.finishing.update(sources)
                continue
            policy = self.blueprint.join_policies.get((sources, target), "all")
            if policy == "any":
                for source in sources:
                    writes[source].extend(self.ways[target])
                continue
            channel = join_channel(sources, target)
            self.channels[channel] = self.barrier(sources, target, policy)
            self.joins.append(JoinSpec(channel, sources, target, policy))
            for source in sources:
                writes[source].append((channel, source))
        return writes

    def barrier(
        self, sources: tuple[str, ...], target: str, policy: str
    ) -> BaseChannel[Any, Any, Any]:
        if policy == "taken":
            return TakenBarrier(str, frozenset(sources))
        if self.blueprint.nodes[target].defer:
            return NamedBarrierValueAfterFinish(str, set(sources))
        return NamedBarrierValue(str, set(sources))

    def entry(self, edges: list[tuple[str, Any]]) -> NodeSpec:
        """The node that passes input on."""
        branches = self.branches(START)
        spec = NodeSpec(
            START,
            None,
            (START,),
            self.view(self.blueprint.input_schema),
            edges=tuple(edges),
            branches=branches,
            simple=all(branch.path.blocking for branch in branches),
            hidden=True,
            tags=(TAG_HIDDEN,),
            finishes=START in self.finishing,
        )
        set_apart(spec)
        return spec

    def branches(self, name: str) -> tuple[BranchSpec, ...]:
        several = self.blueprint.branches.get(name)
        if not several:
            return ()
        return tuple(
            BranchSpec(
                branch.name,
                branch.path,
                branch.ends,
                self.view(branch.input_schema or self.input_schema(name)),
                self.leads(branch.ends),
                is_brief(branch.path),
            )
            for branch in several.values()
        )

    def leads(self, ends: Mapping[Hashable, str] | None) -> Mapping[str, Writes]:
        """What a branch's answers write, of those that name a node or END."""
        if ends is None:
            return self.ways
        return {
            answer: self.ways[target]
            for answer, target in ends.items()
            if type(answer) is str and target in self.ways
        }

    def input_schema(self, name: str) -> Any:
        node = self.blueprint.nodes.get(name)
        own = None if node is None else node.input_schema
        return own or self.blueprint.state_schema

    def add(
        self, nodes: dict[str, NodeSpec], name: str, edges: list[tuple[str, Any]]
    ) -> None:
        """Add the spec of a node, and that of its error handler where it has one."""
        node = self.blueprint.nodes[name]
        defaults = self.blueprint.defaults
        handler = node.error_handler or defaults.error_handler
        view = self.view(self.input_schema(name))
        retry = (
            defaults.retry_policy if node.retry_policy is None else node.retry_policy
        )
        cache = node.cache_policy or defaults.cache_policy
        triggers = [channel for channel, _ in self.ways[name]]
        if self.joins:
            triggers.extend(join.channel for join in self.joins if join.target == name)
        branches = self.branches(name)
        nodes[name] = spec = NodeSpec(
            name,
            node.action,
            tuple(triggers),
            view,
            edges=tuple(edges),
            branches=branches,
            call=node.action.call,
            acall=node.action.acall,
            direct=node.action.awaited
            and (not branches or all(b.brief or b.path.awaited for b in branches)),
            simple=node.action.blocking
            and (not branches or all(b.path.blocking for b in branches)),
            retry=retry or (),
            cache=cache,
            timeout=node.timeout or defaults.timeout,
            error_handler=f"{HANDLER}{name}" if handler else None,
            defer=node.defer,
            metadata=node.metadata,
            trace=node.trace_policy,
            destinations=labelled(node.ends),
            finishes=name in self.finishing,
            identity=(
                identity_of(node.runnable, routing_of(edges, branches)) if cache else ""
            ),
        )
        if not spec.simple:
            set_apart(spec)
        if handler is not None:
            key = f"{HANDLER}{name}"
            nodes[key] = NodeSpec(key, handler, (), view, handles=name)
            set_apart(nodes[key])
