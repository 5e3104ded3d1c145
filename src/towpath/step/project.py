"""State and tasks -> the chunks that listeners of a stream mode are told.

Pure projections, one function per mode. The kernel calls them only for modes
that somebody listens to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from towpath.constants import INTERRUPT, NO_WRITES, RETURN
from towpath.step.children import Child
from towpath.step.tasks import Task, Write
from towpath.types import Interrupt

Keys = Sequence[str] | str


def output(values: Mapping[str, Any], keys: Keys) -> Any:
    """The values of these keys; a lone key (root state) gives its bare value."""
    if isinstance(keys, str):
        return values.get(keys)
    return {key: values[key] for key in keys if key in values}


def touches(writes: Iterable[Write], keys: Keys) -> bool:
    """Whether any of the writes can change what `output` shows."""
    if isinstance(keys, str):
        return any(channel == keys for channel, _ in writes)
    return any(channel in keys for channel, _ in writes)


def update_chunk(task: Task, keys: Keys) -> dict[str, Any]:
    """`{node: update}` for one finished task.

    Several writes to one key make the update a list of updates, one per round
    of writes.
    """
    chunk: dict[str, Any] = {task.name: update_of(task.writes, seen(task, keys))}
    if task.cached:
        chunk["__metadata__"] = {"cached": True}
    return chunk


def update_of(writes: Sequence[Write], keys: Keys) -> Any:
    if isinstance(keys, str):
        values = [value for channel, value in writes if channel == keys]
        return values[0] if len(values) == 1 else values or None
    rounds: list[dict[str, Any]] = []
    counts: dict[str, int] = {}
    for channel, value in writes:
        if channel not in keys:
            continue
        index = counts.get(channel, 0)
        counts[channel] = index + 1
        if index == len(rounds):
            rounds.append({})
        rounds[index][channel] = value
    if not rounds:
        return None
    return rounds[0] if len(rounds) == 1 else rounds


def interrupt_chunk(interrupts: Sequence[Interrupt[Any]]) -> dict[str, Any]:
    return {INTERRUPT: tuple(interrupts)}


def task_chunk(task: Task, labels: Mapping[str, Any]) -> dict[str, Any]:
    """A task that is about to run; `labels` are those of its whole run."""
    chunk: dict[str, Any] = {
        "id": task.id,
        "name": task.name,
        "input": task.input,
        "triggers": task.triggers,
    }
    if labels or task.spec.metadata:
        chunk["metadata"] = {**labels, **task.spec.metadata}
    return chunk


def result_chunk(task: Task, keys: Keys) -> dict[str, Any]:
    """A task that ran: its error, its questions, or what it wrote."""
    return {
        "id": task.id,
        "name": task.name,
        "error": task.error,
        "result": {} if task.error else result_of(task.writes, seen(task, keys)),
        "interrupts": [interrupt_dict(i) for i in task.interrupts],
    }


def seen(task: Task, keys: Keys) -> Keys:
    """The keys that show what a task wrote; of a child it is what it returned."""
    return RETURN if isinstance(task, Child) else keys


def result_of(writes: Sequence[Write], keys: Keys) -> dict[str, Any]:
    """What a task wrote, by key; several writes to one key are kept apart."""
    if isinstance(keys, str):
        keys = (keys,)
    found: dict[str, Any] = {}
    again: dict[str, list[Any]] = {}
    for channel, value in writes:
        if channel not in keys:
            continue
        if channel in found:
            again.setdefault(channel, [found[channel]]).append(value)
        else:
            found[channel] = value
    for channel, several in again.items():
        found[channel] = {"$writes": several}
    return found


def interrupt_dict(interrupt: Interrupt[Any]) -> dict[str, Any]:
    told = {
        "value": interrupt.value,
        "id": interrupt.id,
        "response_schema": interrupt.response_schema,
    }
    return told if interrupt.key is None else {**told, "key": interrupt.key}


def checkpoint_chunk(
    values: Any,
    place: Mapping[str, Any],
    tasks: Sequence[Task],
    keys: Keys,
) -> dict[str, Any]:
    """A checkpoint as listeners of `checkpoints` see it.

    `place` gives its `config`, `parent_config` and `metadata`.
    """
    return {
        **place,
        "values": values,
        "next": [task.name for task in tasks],
        "tasks": [checkpoint_task(task, place["config"], keys) for task in tasks],
    }


def checkpoint_task(
    task: Task, config: Mapping[str, Any], keys: Keys
) -> dict[str, Any]:
    chunk: dict[str, Any] = {"id": task.id, "name": task.name}
    if task.failed_before is not None and not task.done:
        chunk["error"] = task.failed_before
    else:
        if task.done:
            chunk["result"] = result_of(task.writes, keys)
        chunk["interrupts"] = tuple(interrupt_dict(i) for i in task.parked)
    chunk["state"] = child_config(task, config)
    return chunk


def child_config(task: Task, config: Mapping[str, Any]) -> dict[str, Any] | None:
    """The config that leads to the state of a task's subgraph, if it is one."""
    action = task.spec.action
    if action is None or action.graph is None or action.graph.checkpointer is False:
        return None
    thread = config["configurable"].get("thread_id")
    return {"configurable": {"thread_id": thread, "checkpoint_ns": task.ns}}


def kept_writes(writes: Sequence[Write]) -> Sequence[Write]:
    """What is recorded of a finished task; one that wrote nothing says so."""
    return writes or ((NO_WRITES, None),)
