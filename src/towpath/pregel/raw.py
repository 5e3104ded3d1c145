"""Raw graphs: nodes and channels, named one by one -> a plan.

There is no entry node: the input is written to channels of the graph's own,
and whoever listens to them starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from towpath.channels.base import COPIED, BaseChannel
from towpath.channels.topic import Topic
from towpath.constants import MISSING, TASKS
from towpath.errors import (
    EmptyInputError,
    InvalidGraphError,
    UndeclaredKeyError,
    nearest,
)
from towpath.given import cache_policy_of, retry_policies
from towpath.managed.base import ManagedValue
from towpath.plan import NodeSpec, Plan, View, action_of, tables
from towpath.plan.apart import set_apart
from towpath.plan.identity import identity_of
from towpath.pregel.nodes import NodeBuilder, PregelNode, nothing_done
from towpath.semantics import Semantics
from towpath.types import All, CachePolicy, RetryPolicy, Send
from towpath.warnings import warn_user

Names = str | Sequence[str]


@dataclass(slots=True)
class RawGraph:
    """What a raw graph was declared with."""

    nodes: Mapping[str, PregelNode | NodeBuilder]
    channels: Mapping[str, Any]
    input_channels: Names
    output_channels: Names
    stream_channels: Names | None = None
    interrupt_before: All | Sequence[str] = ()
    interrupt_after: All | Sequence[str] = ()
    retry_policy: RetryPolicy | Sequence[RetryPolicy] = ()
    cache_policy: CachePolicy[Any] | None = None
    context_schema: Any = None
    debug: bool = False
    name: str = "LangGraph"

    def plan(self, semantics: Semantics, *, check: bool = True) -> Plan:
        """Make the plan.

        Raises:
            InvalidGraphError: a name that is no channel or node (TP-101).
        """
        built = {
            name: node.build() if isinstance(node, NodeBuilder) else node
            for name, node in self.nodes.items()
        }
        channels, managed = apart(self.channels)
        if check:
            self.check(built, {*channels, *managed})
        keys = tuple(name for name in channels if name != TASKS)
        channels[TASKS] = Topic(Send, accumulate=False)
        for key, channel in channels.items():
            channel.key = key
        nodes = {
            name: self.spec(name, node, managed, semantics)
            for name, node in built.items()
        }
        return Plan(
            name=self.name,
            nodes=nodes,
            channels=channels,
            managed=managed,
            keys=keys,
            key_set=frozenset(keys),
            root=False,
            input_keys=frozenset(several(self.input_channels)),
            output_keys=frozen(self.output_channels),
            starts={},
            joins=(),
            semantics=semantics,
            copied=COPIED if semantics.isolate_state else frozenset(),
            interrupt_before=stops(self.interrupt_before),
            interrupt_after=stops(self.interrupt_after),
            context_schema=self.context_schema,
            input_schema=type_of(channels, self.input_channels),
            output_schema=type_of(channels, self.output_channels),
            debug=self.debug,
            inlets=frozen(self.input_channels),
            take=Inlet(frozen(self.input_channels), semantics),
            told=None if self.stream_channels is None else frozen(self.stream_channels),
            **tables(channels, nodes, keys),
        )

    def spec(
        self,
        name: str,
        node: PregelNode,
        managed: Mapping[str, Any],
        semantics: Semantics,
    ) -> NodeSpec:
        """The node as the engine knows it."""
        action = action_of(node.bound or nothing_done, name)
        retry = node.retry_policy or self.retry_policy
        bare = isinstance(node.channels, str)
        read = several(node.channels)
        outlets = tuple(entry.channel for entry in node.writers)
        known = frozenset(self.channels)
        cache = node.cache_policy or self.cache_policy
        emit = Outlet(node, name, known, strict=semantics.undeclared_keys == "error")
        spec = NodeSpec(
            name,
            action,
            tuple(node.triggers),
            View(
                tuple(key for key in read if key not in managed),
                tuple(key for key in read if key in managed),
            ),
            call=action.call,
            simple=action.blocking,
            retry=retry_policies(retry) or (),
            cache=cache_policy_of(cache),
            timeout=node.timeout,
            metadata=dict(node.metadata),
            tags=tuple(node.tags),
            trace=node.trace_policy,
            outlets=outlets,
            identity=identity_of(node.bound, _outlets(node)) if cache else "",
            read=One(read[0], node.mapper, semantics.isolate_state) if bare else None,
            emit=emit,
        )
        set_apart(spec)
        return spec

    def check(self, nodes: Mapping[str, PregelNode], known: set[str]) -> None:
        """Refuse names that stand for nothing."""
        for name, node in nodes.items():
            for channel in (*several(node.channels), *node.triggers):
                refuse_unknown(f"Node {name} reads channel", channel, known)
        triggers = {t for node in nodes.values() for t in node.triggers}
        inputs = several(self.input_channels)
        for channel in inputs:
            refuse_unknown("Input channel", channel, known)
        if inputs and triggers.isdisjoint(inputs):
            raise InvalidGraphError(
                f"Input channel {', '.join(inputs)} is not subscribed to by any node",
                hint="NodeBuilder().subscribe_to(...)",
            )
        for channel in several(self.output_channels):
            refuse_unknown("Output channel", channel, known)
        for channel in several(self.stream_channels or ()):
            refuse_unknown("Stream channel", channel, known)
        for stop in (self.interrupt_before, self.interrupt_after):
            for name in () if stop == "*" else stop:
                if name not in nodes:
                    raise InvalidGraphError(
                        f"a breakpoint names node `{name}`, which does not exist",
                        hint=nearest(name, nodes),
                    )


@dataclass(frozen=True, slots=True)
class One:
    """Reads one channel by itself."""

    channel: str
    mapper: Any
    isolated: bool

    def __call__(self, values: Mapping[str, Any]) -> Any:
        value: Any = values.get(self.channel)
        if self.isolated and type(value) in COPIED:
            value = value.copy()
        return value if self.mapper is None else self.mapper(value)


def _outlets(node: PregelNode) -> Iterator[Any]:
    """Yield what says where the result of a node goes."""
    for entry in node.writers:
        yield entry.channel, entry.skip_none, entry.value is MISSING
        yield None if entry.value is MISSING else entry.value
        yield entry.mapper


@dataclass(frozen=True, slots=True)
class Outlet:
    """Turns a node's result into writes to channels that exist."""

    node: PregelNode
    name: str
    known: frozenset[str]
    strict: bool

    def __call__(self, result: Any) -> list[tuple[str, Any]]:
        writes = self.node.writes(result)
        unknown = [channel for channel, _ in writes if channel not in self.known]
        if not unknown:
            return writes
        message = f"node `{self.name}` writes channel `{unknown[0]}`, which is none"
        if self.strict:
            hint = nearest(unknown[0], self.known)
            raise UndeclaredKeyError(message, hint=hint)
        dropped(message)
        return [write for write in writes if write[0] in self.known]


@dataclass(frozen=True, slots=True)
class Inlet:
    """Turns input into writes to the input channels."""

    channels: tuple[str, ...] | str
    semantics: Semantics

    def __call__(self, given: Any) -> list[tuple[str, Any]]:
        """Take the input: one channel's value, or a dict of several.

        Raises:
            UndeclaredKeyError: a key that is no input channel (TP-202).
            EmptyInputError: nothing is left of it (TP-205).
        """
        if isinstance(self.channels, str):
            return [(self.channels, given)]
        if not isinstance(given, Mapping):
            raise EmptyInputError(
                f"the input is no dict of {', '.join(self.channels)}, but {given!r}"
            )
        for key in given:
            if key not in self.channels:
                message = f"the input has `{key}`, which is no input channel"
                if self.semantics.undeclared_keys == "error":
                    hint = nearest(key, self.channels)
                    raise UndeclaredKeyError(message, hint=hint)
                dropped(message)
        writes = [(key, given[key]) for key in self.channels if key in given]
        if not writes:
            raise EmptyInputError(f"Received no input for {list(self.channels)}")
        return writes


def apart(
    declared: Mapping[str, Any],
) -> tuple[dict[str, BaseChannel[Any, Any, Any]], dict[str, Any]]:
    """Channels, and the managed values among them."""
    channels, managed = {}, {}
    for name, one in declared.items():
        if isinstance(one, BaseChannel):
            channels[name] = one
        elif isinstance(one, type) and issubclass(one, ManagedValue):
            managed[name] = one
        else:
            raise InvalidGraphError(f"`{name}` is {one!r}, which is no channel")
    return channels, managed


def type_of(channels: Mapping[str, BaseChannel[Any, Any, Any]], names: Names) -> Any:
    """The type of one channel's values; several have no type of their own."""
    return channels[names].UpdateType if isinstance(names, str) else None


def dropped(message: str) -> None:
    warn_user(f"{message}; it was dropped", RuntimeWarning)


def refuse_unknown(what: str, channel: str, known: Iterable[str]) -> None:
    if channel not in known:
        raise InvalidGraphError(
            f"{what} '{channel}' not in known channels: {sorted(known)}",
            hint=nearest(channel, known),
        )


def several(names: Names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def frozen(names: Names) -> tuple[str, ...] | str:
    return names if isinstance(names, str) else tuple(names)


def stops(names: All | Sequence[str]) -> frozenset[str] | str:
    return "*" if names == "*" else frozenset(names)
