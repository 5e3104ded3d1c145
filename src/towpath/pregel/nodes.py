"""Nodes of raw graphs: which channels wake them, what they read and write.

>>> from towpath.channels import EphemeralValue, LastValue
>>> from towpath.pregel import NodeBuilder, Pregel
>>> double = NodeBuilder().subscribe_only("a").do(lambda x: 2 * x).write_to("b")
>>> channels = {"a": EphemeralValue(int), "b": LastValue(int)}
>>> Pregel(
...     nodes={"double": double},
...     channels=channels,
...     input_channels="a",
...     output_channels="b",
... ).invoke(21)
42
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple, Self

from towpath.call.attempt import wrong_colour
from towpath.constants import MISSING, TASKS
from towpath.context import ambient
from towpath.errors import InvalidGraphError, InvalidUpdateError
from towpath.given import cache_policy_of, retry_policies, trace_policy_of
from towpath.plan import Action, action_of
from towpath.types import CachePolicy, RetryPolicy, TimeoutPolicy, TracePolicy


class ChannelWriteEntry(NamedTuple):
    """One write after a node: what goes to which channel.

    Without a `value` it is the node's result, passed through `mapper` if there
    is one. `skip_none` leaves None unwritten.
    """

    channel: str
    value: Any = MISSING
    skip_none: bool = False
    mapper: Callable[[Any], Any] | None = None

    def write(self, result: Any) -> tuple[tuple[str, Any], ...]:
        """The write after this result: one, or none."""
        value = result if self.value is MISSING else self.value
        if self.mapper is not None:
            value = self.mapper(value)
        if value is None and self.skip_none:
            return ()
        return ((self.channel, value),)


@dataclass(kw_only=True)
class PregelNode:
    """One node of a raw graph.

    `channels` are read: one by itself, several as a dict. `triggers` wake it.
    """

    channels: str | list[str]
    triggers: Sequence[str]
    mapper: Callable[[Any], Any] | None = None
    writers: list[ChannelWriteEntry] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    trace_policy: TracePolicy | None = None
    bound: Any = None
    retry_policy: Sequence[RetryPolicy] = ()
    cache_policy: CachePolicy[Any] | None = None
    timeout: TimeoutPolicy | None = None

    def __post_init__(self) -> None:
        """Refuse policies that are none.

        Raises:
            InvalidPolicyError: says which (TP-605).
        """
        self.retry_policy = retry_policies(self.retry_policy) or ()
        self.cache_policy = cache_policy_of(self.cache_policy)
        self.trace_policy = trace_policy_of(self.trace_policy)
        self.timeout = TimeoutPolicy.coerce(self.timeout)

    def writes(self, result: Any) -> list[tuple[str, Any]]:
        """All writes after this result."""
        return [write for entry in self.writers for write in entry.write(result)]


class NodeBuilder:
    """Puts a node together, step by step."""

    def __init__(self) -> None:
        self._channels: str | list[str] = []
        self._triggers: list[str] = []
        self._tags: list[str] = []
        self._metadata: dict[str, Any] = {}
        self._writes: list[ChannelWriteEntry] = []
        self._steps: list[Any] = []
        self._retry: list[RetryPolicy] = []
        self._cache: CachePolicy[Any] | None = None
        self._timeout: TimeoutPolicy | None = None

    def subscribe_only(self, channel: str) -> Self:
        """Wake the node by one channel, and give it the bare value.

        Raises:
            InvalidGraphError: other channels are read already (TP-101).
        """
        if self._channels:
            raise InvalidGraphError(
                "Cannot subscribe to single channels when other channels are "
                "already subscribed to"
            )
        self._channels = channel
        self._triggers.append(channel)
        return self

    def subscribe_to(self, *channels: str, read: bool = True) -> Self:
        """Wake the node by these channels, and give it a dict of their values.

        `read=False` only wakes it.

        Raises:
            InvalidGraphError: the node takes a bare value (TP-101).
        """
        self._triggers.extend(channels)
        return self._read(channels if read else (), "subscribe to")

    def read_from(self, *channels: str) -> Self:
        """Give the node these channels too; they do not wake it.

        Raises:
            InvalidGraphError: the node takes a bare value (TP-101).
        """
        return self._read(channels, "read")

    def _read(self, channels: Sequence[str], what: str) -> Self:
        if isinstance(self._channels, str):
            raise InvalidGraphError(
                f"Cannot {what} channels when subscribed to a single channel",
                hint="subscribe_to(...) instead of subscribe_only(...)",
            )
        self._channels.extend(c for c in channels if c not in self._channels)
        return self

    def do(self, node: Any) -> Self:
        """Call this; several are called one after the other.

        Raises:
            InvalidGraphError: it cannot be called (TP-101).
        """
        action_of(node, "step")
        self._steps.append(node)
        return self

    def write_to(self, *channels: str | ChannelWriteEntry, **values: Any) -> Self:
        """Write the result to these channels.

        By keyword: a fixed value, or a function of the result.
        """
        for channel in channels:
            named = isinstance(channel, str)
            self._writes.append(ChannelWriteEntry(channel) if named else channel)  # type: ignore[arg-type] # told apart by `named`
        for name, value in values.items():
            entry = (
                ChannelWriteEntry(name, mapper=value)
                if callable(value)
                else ChannelWriteEntry(name, value)
            )
            self._writes.append(entry)
        return self

    def meta(self, *tags: str, **metadata: Any) -> Self:
        """Add tags and metadata, for traces."""
        self._tags.extend(tags)
        self._metadata.update(metadata)
        return self

    def add_retry_policies(self, *policies: RetryPolicy) -> Self:
        """Try again after errors; the first policy that fits counts."""
        self._retry.extend(retry_policies(policies) or ())
        return self

    def add_cache_policy(self, policy: CachePolicy[Any]) -> Self:
        """Reuse results for inputs that were seen before."""
        self._cache = cache_policy_of(policy)
        return self

    def set_timeout(self, timeout: float | timedelta | TimeoutPolicy | None) -> Self:
        """Limit the time of an attempt."""
        self._timeout = TimeoutPolicy.coerce(timeout)
        return self

    def build(self) -> PregelNode:
        """The node.

        Raises:
            InvalidUpdateError: it writes to a reserved channel (TP-201).
        """
        if any(entry.channel == TASKS for entry in self._writes):
            raise InvalidUpdateError("Cannot write to the reserved channel TASKS")
        return PregelNode(
            channels=self._channels,
            triggers=list(self._triggers),
            writers=list(self._writes),
            tags=list(self._tags),
            metadata=dict(self._metadata),
            bound=self._bound(),
            retry_policy=list(self._retry),
            cache_policy=self._cache,
            timeout=self._timeout,
        )

    def _bound(self) -> Any:
        if len(self._steps) < 2:
            return self._steps[0] if self._steps else None
        return Steps([action_of(step, "step") for step in self._steps])


class Steps:
    """Functions that are called one after the other."""

    def __init__(self, actions: Sequence[Action]) -> None:
        self.actions = actions

    def invoke(self, given: Any) -> Any:
        """Call them, each with what the one before returned."""
        for action in self.actions:
            if action.call is None:
                raise wrong_colour(action.name)
            given = action.call(given, **injected(action))
        return given

    async def ainvoke(self, given: Any) -> Any:
        """The same in an async run; blocking ones are called in place."""
        for action in self.actions:
            if action.acall is not None:
                given = await action.acall(given, **injected(action))
            else:
                assert action.call is not None
                given = action.call(given, **injected(action))
        return given


def injected(action: Action) -> dict[str, Any]:
    """What a step is given besides the result of the one before."""
    if not action.inject:
        return {}
    task: Any = ambient("a step of a node")
    return {name: task.injected(what) for name, what in action.inject}


def nothing_done(given: Any) -> Any:
    """A node without a function passes on what it reads."""
    return given
