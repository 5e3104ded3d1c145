"""`langgraph.pregel._algo`: what servers take from the peer's engine.

They work on channels and writes that are handed to them; Towpath's own engine
does not use them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, NamedTuple

from towpath.channels import BaseChannel
from towpath.compat.peer.internal_scratchpad import PregelScratchpad
from towpath.constants import NULL_TASK_ID, RESUME
from towpath.errors import EmptyChannelError
from towpath.pregel.nodes import PregelNode

__all__ = ("PregelTaskWrites", "_proc_input", "_scratchpad", "local_read")

Channels = Mapping[str, BaseChannel[Any, Any, Any]]


class PregelTaskWrites(NamedTuple):
    """What a task wrote."""

    path: tuple[Any, ...]
    name: str
    writes: Sequence[tuple[str, Any]]
    triggers: Sequence[str]


def local_read(
    scratchpad: PregelScratchpad,
    channels: Channels,
    managed: Mapping[str, Any],
    task: PregelTaskWrites,
    select: list[str] | str,
    fresh: bool = False,
) -> Any:
    """Read channels; `fresh` with the task's own writes folded in."""
    del scratchpad, managed
    names = [select] if isinstance(select, str) else select
    if fresh:
        channels = written(channels, task.writes, names)
    values = values_of(channels, names)
    return values.get(select) if isinstance(select, str) else values


def written(
    channels: Channels, writes: Sequence[tuple[str, Any]], names: Sequence[str]
) -> Channels:
    """Copies of the named channels with these writes in them."""
    found: dict[str, BaseChannel[Any, Any, Any]] = {}
    for name in names:
        if name in channels:
            found[name] = channels[name].copy()
            found[name].update([value for key, value in writes if key == name])
    return found


def values_of(channels: Channels, names: Sequence[str]) -> dict[str, Any]:
    """The values of those channels that have one."""
    values: dict[str, Any] = {}
    for name in names:
        try:
            values[name] = channels[name].get()
        except (KeyError, EmptyChannelError):
            continue
    return values


def _proc_input(
    proc: PregelNode,
    managed: Mapping[str, Any],
    channels: Channels,
    *,
    for_execution: bool,
    scratchpad: PregelScratchpad | None,
    input_cache: Any,
) -> Any:
    del managed, for_execution, scratchpad, input_cache
    single = isinstance(proc.channels, str)
    names = [proc.channels] if isinstance(proc.channels, str) else proc.channels
    values = values_of(channels, names)
    value: Any = values.get(names[0]) if single else values
    return value if proc.mapper is None else proc.mapper(value)


def _scratchpad(
    parent_scratchpad: PregelScratchpad | None,
    pending_writes: Sequence[tuple[str, str, Any]],
    task_id: str,
    task_checkpoint_ns: str,
    resume_map: Mapping[str, Any] | None,
    step: int,
    stop: int,
) -> PregelScratchpad:
    del task_checkpoint_ns, resume_map
    answers = [v for task, key, v in pending_writes if (task, key) == (task_id, RESUME)]
    bare = [v for task, _, v in pending_writes if task == NULL_TASK_ID]

    def bare_answer(consume: bool = False) -> Any:
        if bare:
            return bare[0]
        outer = parent_scratchpad
        return None if outer is None else outer.get_null_resume(consume)

    return PregelScratchpad(
        step=step,
        stop=stop,
        call_counter=counter(),
        interrupt_counter=counter(),
        get_null_resume=bare_answer,
        resume=list(answers[0]) if answers else [],
        subgraph_counter=counter(),
    )


def counter() -> Callable[[], int]:
    """Count from nought."""
    return partial(next, count())
