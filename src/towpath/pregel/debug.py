"""What `tasks`, `checkpoints` and `debug` streams show, made of tasks and writes.

For whoever runs tasks by other means than this package's drivers and wants them
told in the same form; the engine's own projections are in `towpath.step`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from towpath.channels.base import BaseChannel
from towpath.constants import (
    CONF,
    CONFIG_KEY_CHECKPOINT_NS,
    ERROR,
    ERROR_SOURCE_NODE,
    INTERRUPT,
    MISSING,
    NS_END,
    NS_SEP,
    RESUME,
    RETURN,
    TAG_HIDDEN,
)
from towpath.types import (
    CheckpointPayload,
    Interrupt,
    PregelExecutableTask,
    PregelTask,
    StateSnapshot,
    TaskPayload,
    TaskResultPayload,
)

__all__ = (
    "COLOR_MAPPING",
    "EXCLUDED_METADATA_KEYS",
    "CheckpointPayload",
    "PregelExecutableTask",
    "PregelTask",
    "StateSnapshot",
    "TaskPayload",
    "TaskResultPayload",
    "get_bolded_text",
    "get_colored_text",
    "is_multiple_channel_write",
    "map_debug_checkpoint",
    "map_debug_task_results",
    "map_debug_tasks",
    "map_task_result_writes",
    "rm_pregel_keys",
    "tasks_w_writes",
)

PendingWrite = tuple[str, str, Any]
"""The id of a task, a channel, and what the task wrote there."""
Keys = str | Sequence[str]

EXCLUDED_METADATA_KEYS: Final = frozenset(
    {
        "checkpoint_id",
        "checkpoint_map",
        "checkpoint_ns",
        "langgraph_checkpoint_ns",
        "langgraph_node",
        "langgraph_path",
        "langgraph_step",
        "langgraph_triggers",
        "thread_id",
    }
)
"""What a checkpoint's metadata does not repeat of a config."""

COLOR_MAPPING: Final = {
    "black": "0;30",
    "red": "0;31",
    "green": "0;32",
    "yellow": "0;33",
    "blue": "0;34",
    "magenta": "0;35",
    "cyan": "0;36",
    "white": "0;37",
    "gray": "1;30",
}
SEVERAL: Final = "$writes"
STEP_TAGS: Final = "seq:step"
"""How the tags begin that chains of runnables give to their parts."""
NOT_RESULTS: Final = frozenset({ERROR, ERROR_SOURCE_NODE, INTERRUPT, RESUME})
"""Writes that a task which has not finished may have."""


def map_debug_tasks(tasks: Iterable[PregelExecutableTask]) -> Iterator[TaskPayload]:
    """What the `tasks` mode tells of tasks that start; of hidden ones, nothing."""
    for task in tasks:
        tags = (task.config or {}).get("tags") or ()
        if TAG_HIDDEN in tags:
            continue
        payload: Any = {
            "id": task.id,
            "name": task.name,
            "input": task.input,
            "triggers": task.triggers,
        }
        given = (task.config or {}).get("metadata") or {}
        metadata = {k: v for k, v in given.items() if k not in EXCLUDED_METADATA_KEYS}
        if own := [tag for tag in tags if not tag.startswith(STEP_TAGS)]:
            metadata["tags"] = own
        if metadata:
            payload["metadata"] = metadata
        yield payload


def map_debug_task_results(
    task_tup: tuple[PregelExecutableTask, Sequence[tuple[str, Any]]],
    stream_keys: Keys,
) -> Iterator[TaskResultPayload]:
    """What the `tasks` mode tells of a task that has ended with these writes."""
    task, writes = task_tup
    keys = {RETURN, *((stream_keys,) if isinstance(stream_keys, str) else stream_keys)}
    yield {
        "id": task.id,
        "name": task.name,
        "error": next((value for key, value in writes if key == ERROR), None),
        "result": map_task_result_writes([w for w in writes if w[0] in keys]),
        "interrupts": [asdict(each) for each in questions_in(writes)],
    }


def map_debug_checkpoint(
    config: Mapping[str, Any],
    channels: Mapping[str, BaseChannel[Any, Any, Any]],
    stream_channels: Keys,
    metadata: Any,
    tasks: Iterable[PregelExecutableTask],
    pending_writes: list[PendingWrite],
    parent_config: Mapping[str, Any] | None,
    output_keys: Keys,
) -> Iterator[CheckpointPayload[Any]]:
    """What the `checkpoints` mode tells of a checkpoint and its tasks."""
    several = list(tasks)
    states = {task.id: inner(config, task) for task in several if task.subgraphs}
    shown: Any = {
        "config": rm_pregel_keys(config),
        "parent_config": rm_pregel_keys(parent_config),
        "values": values_of(channels, stream_channels),
        "metadata": metadata,
        "next": [task.name for task in several],
        "tasks": [
            task_shown(task)
            for task in tasks_w_writes(several, pending_writes, states, output_keys)
        ],
    }
    yield shown


def inner(config: Mapping[str, Any], task: PregelExecutableTask) -> dict[str, Any]:
    """The config that leads to the state of a graph inside a task."""
    conf = config[CONF]
    outer = conf.get(CONFIG_KEY_CHECKPOINT_NS)
    own = f"{task.name}{NS_END}{task.id}"
    ns = f"{outer}{NS_SEP}{own}" if outer else own
    return {CONF: {"thread_id": conf["thread_id"], CONFIG_KEY_CHECKPOINT_NS: ns}}


def task_shown(task: PregelTask) -> dict[str, Any]:
    """A task as the `checkpoints` mode tells it."""
    shown: dict[str, Any] = {"id": task.id, "name": task.name}
    if task.error:
        return {**shown, "error": task.error, "state": task.state}
    if task.result:
        shown["result"] = task.result
    shown["interrupts"] = tuple(asdict(each) for each in task.interrupts)
    return {**shown, "state": task.state}


def values_of(channels: Mapping[str, BaseChannel[Any, Any, Any]], keys: Keys) -> Any:
    """The value of one channel, or those of several that have one."""
    if isinstance(keys, str):
        channel = channels[keys]
        return channel.get() if channel.is_available() else None
    return {key: channels[key].get() for key in keys if channels[key].is_available()}


def tasks_w_writes(
    tasks: Iterable[PregelTask | PregelExecutableTask],
    pending_writes: Sequence[PendingWrite] | None,
    states: Mapping[str, Any] | None,
    output_keys: Keys,
    *,
    live: bool = False,
) -> tuple[PregelTask, ...]:
    """Tasks as snapshots show them, with what is recorded of each.

    `states` has the states of graphs inside tasks, by the task's id. A task that
    has finished asks nothing any more: `live` leaves out what it asked before.
    """
    return tuple(
        task_with(
            task,
            [
                (key, value)
                for id_, key, value in pending_writes or ()
                if id_ == task.id
            ],
            (states or {}).get(task.id),
            output_keys,
            live=live,
        )
        for task in tasks
    )


def task_with(
    task: PregelTask | PregelExecutableTask,
    writes: Sequence[tuple[str, Any]],
    state: Any,
    keys: Keys,
    *,
    live: bool,
) -> PregelTask:
    """One task with its writes."""
    finished = any(key not in NOT_RESULTS for key, _ in writes)
    return PregelTask(
        task.id,
        task.name,
        task.path,
        next((value for key, value in writes if key == ERROR), None),
        () if live and finished else questions_in(writes),
        state,
        result_of(writes, keys) if finished else None,
    )


def result_of(writes: Sequence[tuple[str, Any]], keys: Keys) -> Any:
    """What a finished task returned, or wrote to these channels."""
    returned = next((value for key, value in writes if key == RETURN), MISSING)
    if returned is not MISSING:
        return returned
    if isinstance(keys, str):
        return map_task_result_writes([w for w in writes if w[0] == keys]).get(keys)
    return map_task_result_writes([w for w in writes if w[0] in keys])


def questions_in(writes: Sequence[tuple[str, Any]]) -> tuple[Interrupt[Any], ...]:
    """What a task asks."""
    several = [value for key, value in writes if key == INTERRUPT]
    lists = [v if isinstance(v, Sequence) else (v,) for v in several]
    return tuple(question for each in lists for question in each)


def map_task_result_writes(writes: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """A task's writes by channel; several to one are marked as such."""
    found: dict[str, Any] = {}
    for channel, value in writes:
        if channel not in found:
            found[channel] = value
        elif is_multiple_channel_write(found[channel]):
            found[channel][SEVERAL].append(value)
        else:
            found[channel] = {SEVERAL: [found[channel], value]}
    return found


def is_multiple_channel_write(value: Any) -> bool:
    """Whether this stands for several writes to one channel."""
    return isinstance(value, dict) and isinstance(value.get(SEVERAL), list)


def rm_pregel_keys(config: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """What the caller put into a config's `configurable`."""
    if config is None:
        return None
    conf = config.get(CONF) or {}
    return {CONF: {k: v for k, v in conf.items() if not k.startswith("__pregel_")}}


def get_colored_text(text: str, color: str) -> str:
    """A text in a colour, for terminals."""
    return f"\033[1;3{COLOR_MAPPING[color]}m{text}\033[0m"


def get_bolded_text(text: str) -> str:
    """A text in bold, for terminals."""
    return f"\033[1m{text}\033[0m"
