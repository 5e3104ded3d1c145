"""(plan, state, tasks) -> the state after a superstep.

The one place where state changes. Writes fold in task order, never in the
order of arrival; all channels changed in one step get the same, next version;
channels that were not written are told of the step; when nothing can be
triggered any more, channels are told to finish.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any

from towpath.constants import MISSING, TOLD
from towpath.errors import ConcurrentUpdateError
from towpath.plan import Plan
from towpath.step.state import NO_KEYS, State, hold, mirror, toggled
from towpath.step.tasks import SENT, Task, in_fold_order


def apply(plan: Plan, state: State, tasks: Sequence[Task]) -> None:
    """Fold one superstep's writes into the state."""
    if len(tasks) > 1:
        tasks = in_fold_order(tasks)
    version = state.bump(state.top, None)
    grouped: dict[str, list[Any]] = {}
    changed = state.changed
    if changed is not None:  # somebody stores it
        state.written = None if changed else grouped
        changed = state.changed = changed or set()
    counts = consume(plan, state, tasks, version)
    signals = plan.signals
    on: AbstractSet[str] = NO_KEYS
    for task in tasks:
        for name, value in task.writes:
            if name in signals:
                on = joined(on, name) if on else plan.alone[name]
            elif name in grouped:
                grouped[name].append(value)
            else:
                grouped[name] = [value]
    updated = fold(plan, state, grouped, tasks, version)
    if on or state.on:
        switch(state, on, version, counts=counts)
        updated |= on
    if changed is not None:
        changed |= updated
    if counts and (state.live or plan.finishing):
        tell(plan, state, grouped, updated, version)
    if state.told is not None and state.told.note(plan, tasks):
        touched(plan, state, TOLD, version)
    state.top = version
    state.updated = tuple(updated)


def consume(plan: Plan, state: State, tasks: Sequence[Task], version: Any) -> bool:
    """Record what the tasks saw and take it from their triggers.

    False when no task was triggered by anything, as for an external update:
    such a step does not count for channels that live by the step.
    """
    counts = False
    versions, seen, consuming = state.versions, state.seen, plan.consuming
    for task in tasks:
        triggers = task.triggers
        if not triggers:
            continue
        counts = True
        if triggers is SENT:  # nothing but the send itself
            continue
        saw = {}
        for trigger in triggers:
            if trigger in versions:
                saw[trigger] = versions[trigger]
                if trigger in consuming and state.channels[trigger].consume():
                    touched(plan, state, trigger, version)
        if saw:
            name = task.name
            seen[name] = {**seen[name], **saw} if name in seen else saw
    return counts


def switch(state: State, on: AbstractSet[str], version: Any, *, counts: bool) -> None:
    """Turn on the signals that were written, and off those of the step before."""
    versions, changed = state.versions, state.changed
    for name in on:
        versions[name] = version
    if not counts:
        state.on = state.on | on
        return
    for name in state.on:
        if name not in on:
            versions[name] = version
            if changed is not None:
                changed.add(name)
    state.on = on


def joined(on: AbstractSet[str], name: str) -> AbstractSet[str]:
    """Several signals that are on: a set that grows, after the first one."""
    if type(on) is not set:
        return {*on, name}
    on.add(name)
    return on


def note(state: State, name: str) -> None:
    """Note that a channel changed, if somebody asks for that."""
    if state.changed is not None:
        state.changed.add(name)


def fold(
    plan: Plan,
    state: State,
    grouped: dict[str, list[Any]],
    tasks: Sequence[Task],
    version: Any,
) -> set[str]:
    """Give every written channel its writes; the ones that changed come back."""
    updated: set[str] = set()
    values = state.values
    cells, plain, copied = plan.cells, plan.plain, plan.copied
    size = len(values)
    for name, writes in grouped.items():
        # What nearly every write is for: a plain key, written once.
        value = writes[0]
        if name in plain and len(writes) == 1 and value is not MISSING:
            values[name] = value
            if (type(value) in copied) is not (name in state.containers):
                state.containers = toggled(state.containers, name)
        elif not (name in cells or name in plain) or not fold_into(
            plan, state, name, writes, tasks, version
        ):
            continue
        state.versions[name] = version
        updated.add(name)
    if len(values) != size:
        arrange(plan, state)
    return updated


def arrange(plan: Plan, state: State) -> None:
    """Put the values in the order of declaration, which nodes see and may print.

    Only a key that has a value for the first time can be out of place.
    """
    values = state.values
    order = [key for key in plan.keys if key in values]
    if order != list(values):
        state.values = {key: values[key] for key in order}


def fold_into(
    plan: Plan,
    state: State,
    name: str,
    writes: list[Any],
    tasks: Sequence[Task],
    version: Any,
) -> bool:
    """Give a channel its writes; whether it changed and now has a value."""
    # A plain key has no channel; one made of its value refuses several writes.
    plain = name in plan.plain
    channel = plan.channels[name].copy() if plain else state.channels[name]
    try:
        changed = channel.update(writes)
    except ConcurrentUpdateError as error:
        raise error.blame(writers_of(name, tasks)) from None
    except Exception as error:
        say_where(error, name, tasks)
        raise
    if not changed:
        return False
    if plain:
        shown = hold(plan, state, name, channel.checkpoint())
    elif name in plan.key_set:
        shown = mirror(plan, state, name)
    else:
        shown = channel.is_available()
    if not shown:
        state.versions[name] = version
        note(state, name)
    elif name in plan.ticking and name not in state.live:
        state.live = toggled(state.live, name)
    return shown


def writers_of(channel: str, tasks: Sequence[Task]) -> list[str]:
    return [t.name for t in tasks if any(name == channel for name, _ in t.writes)]


def say_where(error: Exception, channel: str, tasks: Sequence[Task]) -> None:
    """Say on a reducer's error which key it folded, and what had written it."""
    writers = ", ".join(f"`{name}`" for name in writers_of(channel, tasks))
    with suppress(Exception):  # users' exceptions may refuse notes
        error.add_note(f"While folding into `{channel}` what was written by {writers}")


def tell(
    plan: Plan,
    state: State,
    grouped: dict[str, list[Any]],
    updated: set[str],
    version: Any,
) -> None:
    """Tell channels of a step without them, and of one after which nothing comes."""
    if state.live:
        tick(plan, state, grouped, updated, version)
    if plan.finishing and updated.isdisjoint(plan.listeners):
        finish(plan, state, updated, version)


def tick(
    plan: Plan,
    state: State,
    grouped: dict[str, list[Any]],
    updated: set[str],
    version: Any,
) -> None:
    """Tell live channels of a step that did not write them."""
    for name in state.live.difference(grouped):
        channel = state.channels[name]
        changed = channel.update(())
        if changed:
            touched(plan, state, name, version)
        if not channel.is_available():
            state.live = toggled(state.live, name)
        elif changed:
            updated.add(name)


def finish(plan: Plan, state: State, updated: set[str], version: Any) -> None:
    """Tell the channels that wait for it that nothing more can happen."""
    for name in plan.finishing:
        channel = state.channels[name]
        if channel.finish():
            touched(plan, state, name, version)
            if channel.is_available():
                updated.add(name)


def touched(plan: Plan, state: State, name: str, version: Any) -> None:
    """A channel changed by being consumed, ticked or finished."""
    state.versions[name] = version
    note(state, name)
    if name in plan.key_set:
        mirror(plan, state, name)
