"""The state of a run between two supersteps.

A `State` holds the live channels with their versions, what each node has
seen, and a mirror of the readable values, so that a node's input costs one
dict copy and not one call per channel. A plain key is its value and has no
channel; other channels are made when the run comes to them. A state is opened
from a stored checkpoint and turned back into one; `step.apply` is the only place
that changes it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Any, Final, cast

from towpath.channels.base import BaseChannel
from towpath.constants import INPUT, MISSING, TOLD
from towpath.errors import EmptyChannelError
from towpath.plan import Plan
from towpath.shared import Shared
from towpath.step.written import Written

Version = Any
Bump = Callable[[Version | None, None], Version]
NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
NO_KEYS: Final[frozenset[str]] = frozenset()
"""What a state has for a set that is empty: an empty one of its own takes 216 bytes,
and many runs may wait at once."""
# Typed as what it stands in for, which is made before anything is added.
NO_CHANGES: Final = cast("set[str]", NO_KEYS)

_SET_MAX: Final = 16
_sets: Final = Shared[frozenset[str]]()


def toggled(keys: frozenset[str], name: str) -> frozenset[str]:
    """A set without a key that it has, or with one that it has not."""
    changed = keys ^ {name}
    return changed if len(changed) > _SET_MAX else _sets.one(changed)


def next_int(current: int | None, _: None = None) -> int:
    """Versions of our own savers: 1, 2, 3."""
    return 1 if current is None else current + 1


class Cells(dict[str, BaseChannel[Any, Any, Any]]):
    """The channels of a run by name, each made when it is first needed.

    Those that are `stored` hold what is stored of them, the others are empty.
    """

    __slots__ = ("declared", "stored")

    def __init__(
        self,
        declared: Mapping[str, BaseChannel[Any, Any, Any]],
        stored: Mapping[str, Any] = NOTHING,
    ) -> None:
        self.declared = declared
        self.stored = stored

    def __missing__(self, name: str) -> BaseChannel[Any, Any, Any]:
        held = self.stored.get(name, MISSING)
        channel = self[name] = self.declared[name].from_checkpoint(held)
        return channel


class State:
    """Channels, versions and what was seen, between two supersteps.

    `step` is the number of the superstep that comes next; `updated` the
    channels that the last one changed (None: not known, look at all); `on` the
    signals that are on; `live` the other channels that must be told when a step
    does not write them; the keys whose values are built-in containers are
    `containers`; `stored` is the checkpoint form of every channel that has a
    version; `changed` the channels that changed since the last call of
    `to_checkpoint` (None: nobody is going to call it), and `written` what was
    written to channels since, if that was one step's writes; `told` what a nested
    graph's nodes wrote, where the graph around it asks for that.
    """

    __slots__ = (
        "bump",
        "carried",
        "changed",
        "channels",
        "containers",
        "id",
        "live",
        "on",
        "seen",
        "step",
        "stored",
        "told",
        "top",
        "updated",
        "values",
        "versions",
        "written",
    )

    def __init__(self, channels: Cells, step: int, bump: Bump) -> None:
        self.channels = channels
        self.step = step
        self.bump = bump
        self.versions: dict[str, Version] = {}
        self.seen: dict[str, dict[str, Version]] = {}
        self.top: Version | None = None
        self.updated: Collection[str] | None = None
        self.values: dict[str, Any] = {}
        self.containers = NO_KEYS
        self.on: AbstractSet[str] = NO_KEYS
        self.live = NO_KEYS
        self.stored: dict[str, Any] = {}
        self.changed: set[str] | None = NO_CHANGES
        self.id = ""
        self.carried: Mapping[str, str] = NOTHING
        self.written: Mapping[str, list[Any]] | None = None
        self.told: Written | None = None


def open_state(
    plan: Plan,
    checkpoint: Mapping[str, Any] | None = None,
    *,
    step: int = -1,
    bump: Bump = next_int,
) -> State:
    """Open the state that a checkpoint holds, or the empty one."""
    if checkpoint:
        state = open_to_look(plan, checkpoint, step)
        return own_state(plan, state, checkpoint, bump)
    state = State(Cells(plan.cells), step, bump)
    channels = state.channels
    if plan.semantics.bare_checkpoints:
        state.seen[INPUT] = {}
    for name in plan.early:
        channel = channels[name]
        if name in plan.key_set:
            channel.show()
            mirror(plan, state, name)
        if name in plan.ticking and channel.is_available():
            state.live = toggled(state.live, name)
    return state


def open_to_look(plan: Plan, checkpoint: Mapping[str, Any], step: int) -> State:
    """Open the state that a checkpoint holds, for those who change nothing in it."""
    stored = checkpoint["channel_values"]
    state = State(Cells(plan.cells, stored), step, next_int)
    state.id = checkpoint["id"]
    state.versions = checkpoint["channel_versions"]
    state.seen = checkpoint["versions_seen"]
    state.on = plan.signals.intersection(stored)
    values, bare = state.values, plan.bare
    for name in plan.keys:
        if name in bare and name in stored:
            values[name] = stored[name]
        elif name not in plan.plain:
            mirror(plan, state, name)
    held = plan.ticking.intersection((*stored, *plan.early))
    if held:
        channels = state.channels
        state.live |= {name for name in held if channels[name].is_available()}
    return state


def own_state(
    plan: Plan, state: State, checkpoint: Mapping[str, Any], bump: Bump
) -> State:
    """Have a state that was opened to look at be one that changes."""
    stored = checkpoint["channel_values"]
    state.bump = bump
    for name in plan.cells:
        if name in stored or name in plan.key_set:
            channel = state.channels[name]
            if name in plan.key_set:
                channel.show()
    state.versions = dict(state.versions)
    state.seen = {k: dict(v) for k, v in state.seen.items()}
    state.top = max(state.versions.values(), default=None)
    kept = plan.channels.keys() - state.on
    state.stored = {k: v for k, v in stored.items() if k in kept}
    if TOLD in stored:
        state.told = Written(stored[TOLD])
        state.stored[TOLD] = stored[TOLD]
    if copied := plan.copied:
        holders = [name for name, v in state.values.items() if type(v) in copied]
        state.containers = state.containers.union(holders)
    return state


def tell_from_here(state: State) -> None:
    """Note from now on what nodes write, for the graph around this one."""
    state.told = Written()
    state.versions[TOLD] = state.top
    if state.changed is not None:
        state.changed = {*state.changed, TOLD}


def mirror(plan: Plan, state: State, name: str) -> bool:
    """Bring the readable value of one channel up to date; whether it has one."""
    try:
        value = state.channels[name].get()
    except EmptyChannelError:
        value = MISSING
    return hold(plan, state, name, value)


def hold(plan: Plan, state: State, name: str, value: Any) -> bool:
    """Make this the readable value of a key, or let it have none; whether it has."""
    if value is MISSING:
        state.values.pop(name, None)
        if name in state.containers:
            state.containers = toggled(state.containers, name)
        return False
    state.values[name] = value
    # Few keys come to hold a container, or cease to, after their first value.
    if (type(value) in plan.copied) is not (name in state.containers):
        state.containers = toggled(state.containers, name)
    return True


def to_checkpoint(state: State, *, lent: bool = False) -> dict[str, Any]:
    """The state as the checkpoint dict that savers take, without id and time.

    `lent`: with the containers of the state itself, until it goes on.
    """
    stored, channels = state.stored, state.channels
    assert state.changed is not None
    for name in state.changed:
        if name in channels:
            value = channels[name].checkpoint()
        elif name in state.values:  # a plain key
            value = state.values[name]
        elif name == TOLD:
            value = MISSING if state.told is None else [*state.told.entries]
        else:  # a signal; those that are on are added below
            value = MISSING
        if value is MISSING:
            stored.pop(name, None)
        else:
            stored[name] = value
    state.changed = NO_CHANGES
    versions, seen = state.versions, state.seen
    if not lent:
        # A dict from which nothing was ever taken is copied as a whole, which is
        # six times as fast: so signals, which come and go, are put in afterwards.
        stored, versions, seen = stored.copy(), versions.copy(), seen.copy()
    for name in state.on:
        stored[name] = None
    return {
        "v": 4,
        "channel_values": stored,
        "channel_versions": versions,
        "versions_seen": seen,
        "updated_channels": None if state.updated is None else sorted(state.updated),
    }
