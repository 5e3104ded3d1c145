"""Whether a thread can go on in a graph that is not the one it was made by.

What a changed graph can take up passes: new nodes and keys, other functions and
edges, nodes that nothing waits for. What it would lose is found here, before
anything runs or is written: work that waits for what is gone, and values under
keys that now mean something else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from towpath.constants import ROOT, TASKS
from towpath.errors import (
    ChangedKeyError,
    TowpathError,
    VanishedNodeError,
    names,
    nearest,
)
from towpath.plan import Plan
from towpath.plan.fingerprint import Description, key_text, takes
from towpath.step.interrupts import SPECIAL
from towpath.step.writes import JOIN, TO
from towpath.warnings import TowpathWarning, warn_user

MAKE_MIGRATION = "bring its threads up with StateGraph(..., version=, migrations=)"


def is_key(channel: str) -> bool:
    """Whether a channel is a key of the state, and none of the engine's own."""
    return channel == ROOT or not channel.startswith((TO, JOIN, "__"))


def refuse(plan: Plan, error: TowpathError) -> None:
    """Raise the error, or say under LANGGRAPH that the run goes on without."""
    if plan.semantics.changed_graphs == "error":
        raise error
    warn_user(error.message, TowpathWarning)


def check_keys(
    plan: Plan,
    values: Mapping[str, Any],
    old: Description,
    fresh: Collection[str] = (),
) -> None:
    """Refuse values that their keys cannot take up as they are declared now.

    Only a key that is declared in another way is looked at, and what a migration
    has made, the `fresh` ones: annotations that were never true hurt nobody.

    Raises:
        ChangedKeyError: names the key, and what it was and is (TP-307).
    """
    for key in plan.keys:
        now, was = key_text(plan.channels[key]), old.keys.get(key)
        if key not in values or (key not in fresh and was in (None, now)):
            continue
        given = None if key in fresh else was
        if not takes(plan.channels[key], given, values[key]):
            refuse(plan, changed(plan, key, now, given, old, values[key]))
    hint_renamed(plan, values, old)


def changed(
    plan: Plan, key: str, now: str, was: str | None, old: Description, value: Any
) -> ChangedKeyError:
    """The error for a key that cannot take up its value."""
    if was is None:
        said = f"a migration made {type(value).__name__} of key `{key}`, which"
    else:
        said = f"key `{key}` was `{was}` when the thread was made{by_version(old)}, and"
    return ChangedKeyError(
        f"{said} is `{now}` in graph `{plan.name}`", hint=MAKE_MIGRATION
    )


def hint_renamed(plan: Plan, values: Mapping[str, Any], old: Description) -> None:
    """Say it when a key seems to have been renamed: that cannot be known."""
    gone = [k for k in old.keys if k in values and k not in plan.key_set]
    added = [k for k in plan.keys if k not in old.keys]
    for key in gone:
        alike = [k for k in added if key_text(plan.channels[k]) == old.keys[key]]
        if alike and values[key]:
            warn_user(
                f"the thread holds a value under `{key}`, which graph `{plan.name}` "
                f"no longer declares; {names(alike)} is new and declared alike. If "
                f"it was renamed: Migration(..., keys={{{key!r}: {alike[0]!r}}})",
                TowpathWarning,
            )


def check_work(plan: Plan, saved: Any, old: Description | None) -> None:
    """Refuse to go on where work waits for what the graph no longer has.

    Without it, the run would find nothing to do and end as a success.

    Raises:
        VanishedNodeError: names the node (TP-305).
        ChangedKeyError: a finished task wrote a key that is gone (TP-307).
    """
    by = by_version(old)
    for name in waiting_nodes(saved):
        if name not in plan.nodes:
            raise VanishedNodeError(
                f"the thread was stopped before node `{name}`{by}, which graph "
                f"`{plan.name}` does not have{in_version(plan)}",
                hint=nearest(name, plan.nodes) or "run it with the graph it began in",
            )
    for channel in waiting_joins(saved):
        if channel not in plan.channels:
            sources, _, target = channel.removeprefix(JOIN).rpartition(":")
            error: TowpathError = VanishedNodeError(
                f"the thread{by} waits in the join of {names(sources.split('+'))} into "
                f"`{target}`, which graph `{plan.name}` does not have",
                hint="let threads that wait in it end before you change it",
            )
            refuse(plan, error)
    for _, channel, _ in saved.pending_writes or ():
        if channel in SPECIAL or not is_key(channel) or channel in plan.channels:
            continue
        error = ChangedKeyError(
            f"a task that has finished wrote key `{channel}`{by}, which graph "
            f"`{plan.name}` does not declare",
            hint=MAKE_MIGRATION,
        )
        refuse(plan, error)


def waiting_nodes(saved: Any) -> Iterator[str]:
    """The nodes that the stored state or a finished task goes to."""
    values = saved.checkpoint["channel_values"]
    written = [(channel, value) for _, channel, value in saved.pending_writes or ()]
    for channel in (*values, *(channel for channel, _ in written)):
        if channel.startswith(TO):
            yield channel.removeprefix(TO)
    sends = list(values.get(TASKS) or ())
    sends.extend(value for channel, value in written if channel == TASKS)
    yield from (send.node for send in sends)


def waiting_joins(saved: Any) -> Iterator[str]:
    """The joins at which a source has arrived."""
    for channel, value in saved.checkpoint["channel_values"].items():
        seen = value[0] if isinstance(value, tuple) and value else value
        if channel.startswith(JOIN) and seen:
            yield channel
    for _, channel, _ in saved.pending_writes or ():
        if channel.startswith(JOIN):
            yield channel


def by_version(old: Description | None) -> str:
    known = old is not None and old.version is not None
    return f" by version {old.version} of the graph" if known and old else ""


def in_version(plan: Plan) -> str:
    return "" if plan.version is None else f" in version {plan.version}"
