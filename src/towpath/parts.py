"""What a graph tells: snapshots of its state, and the parts of its streams.

`towpath.types` offers them. They are plain values; the engine makes them.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import (
    Any,
    Generic,
    Literal,
    NamedTuple,
    NotRequired,
    TypeAlias,
    TypedDict,
    TypeVar,
)

from towpath.constants import INTERRUPT
from towpath.context import RunnableConfig
from towpath.interrupts import Interrupt
from towpath.typing import StateT
from towpath.warnings import LangGraphDeprecatedSinceV11

__all__ = (
    "CheckpointPayload",
    "CheckpointStreamPart",
    "CheckpointTask",
    "CustomStreamPart",
    "DebugPayload",
    "DebugStreamPart",
    "GraphOutput",
    "MessagesStreamPart",
    "PregelTask",
    "StateSnapshot",
    "StreamPart",
    "TaskPayload",
    "TaskResultPayload",
    "TasksStreamPart",
    "UpdatesStreamPart",
    "ValuesStreamPart",
)

OutT = TypeVar("OutT", bound=Any)


class PregelTask(NamedTuple):
    """A task of the next step, in a `StateSnapshot`."""

    id: str
    name: str
    path: tuple[str | int | tuple[Any, ...], ...]
    error: Exception | None = None
    interrupts: tuple[Interrupt[Any], ...] = ()
    state: RunnableConfig | StateSnapshot | None = None
    result: Any | None = None


class StateSnapshot(NamedTuple):
    """The state of a thread at one checkpoint."""

    values: dict[str, Any] | Any
    """The values of the output channels."""
    next: tuple[str, ...]
    """The nodes that run next; empty when the run is over."""
    config: RunnableConfig
    """The config that leads to this checkpoint."""
    metadata: Mapping[str, Any] | None
    """Source, step, parents, and what the caller added."""
    created_at: str | None
    """When, as ISO 8601."""
    parent_config: RunnableConfig | None
    """The config that leads to the checkpoint before."""
    tasks: tuple[PregelTask, ...]
    """The tasks of the next step, with errors and questions if tried."""
    interrupts: tuple[Interrupt[Any], ...]
    """The open questions."""


@dataclass(frozen=True)
class GraphOutput(Generic[OutT]):
    """What `invoke(version="v2")` returns: the output, and open questions."""

    value: OutT
    interrupts: tuple[Interrupt[Any], ...] = ()

    def __getitem__(self, key: str) -> Any:
        """Return one key of the output: deprecated, use `value`."""
        _warn_mapping("result[key]")
        if key == INTERRUPT:
            return self.interrupts
        if isinstance(self.value, dict):
            return self.value[key]
        try:
            return getattr(self.value, key)
        except AttributeError:
            raise KeyError(key) from None

    def __contains__(self, key: object) -> bool:
        """Tell whether the output has a key: deprecated, use `value`."""
        _warn_mapping("key in result")
        if key == INTERRUPT:
            return bool(self.interrupts)
        if isinstance(self.value, dict):
            return key in self.value
        return isinstance(key, str) and hasattr(self.value, key)


def _warn_mapping(how: str) -> None:
    warnings.warn(
        f"Accessing GraphOutput via `{how}` is deprecated. Use `result.value` to "
        "access the output value directly, or `result.interrupts` for interrupts.",
        LangGraphDeprecatedSinceV11,
        stacklevel=3,
    )


# -- stream parts -------------------------------------------------------------


class TaskPayload(TypedDict):
    """A task that starts."""

    id: str
    name: str
    input: Any
    triggers: list[str]
    metadata: NotRequired[dict[str, Any]]


class TaskResultPayload(TypedDict):
    """A task that ended."""

    id: str
    name: str
    error: str | None
    interrupts: list[dict[str, Any]]
    result: dict[str, Any]


class CheckpointTask(TypedDict):
    """A task of a streamed checkpoint."""

    id: str
    name: str
    error: NotRequired[str]
    result: NotRequired[Any]
    interrupts: NotRequired[list[dict[str, Any]]]
    state: StateSnapshot | RunnableConfig | None


class CheckpointPayload(TypedDict, Generic[StateT]):
    """A streamed checkpoint."""

    config: RunnableConfig | None
    metadata: Mapping[str, Any]
    values: StateT
    next: list[str]
    parent_config: RunnableConfig | None
    tasks: list[CheckpointTask]


class DebugCheckpoint(TypedDict, Generic[StateT]):
    """A checkpoint in the `debug` stream."""

    step: int
    timestamp: str
    type: Literal["checkpoint"]
    payload: CheckpointPayload[StateT]


class DebugTask(TypedDict):
    """The start of a task in the `debug` stream."""

    step: int
    timestamp: str
    type: Literal["task"]
    payload: TaskPayload


class DebugTaskResult(TypedDict):
    """The end of a task in the `debug` stream."""

    step: int
    timestamp: str
    type: Literal["task_result"]
    payload: TaskResultPayload


DebugPayload: TypeAlias = DebugCheckpoint[StateT] | DebugTask | DebugTaskResult


class ValuesStreamPart(TypedDict, Generic[OutT]):
    """The whole state, after a step."""

    type: Literal["values"]
    ns: tuple[str, ...]
    data: OutT
    interrupts: tuple[Interrupt[Any], ...]


class UpdatesStreamPart(TypedDict):
    """What the tasks of a step wrote, by node."""

    type: Literal["updates"]
    ns: tuple[str, ...]
    data: dict[str, Any]


class MessagesStreamPart(TypedDict):
    """A token, with the metadata of the call it comes from."""

    type: Literal["messages"]
    ns: tuple[str, ...]
    data: tuple[Any, dict[str, Any]]


class CustomStreamPart(TypedDict):
    """What a node sent through its stream writer."""

    type: Literal["custom"]
    ns: tuple[str, ...]
    data: Any


class CheckpointStreamPart(TypedDict, Generic[StateT]):
    """A checkpoint."""

    type: Literal["checkpoints"]
    ns: tuple[str, ...]
    data: CheckpointPayload[StateT]


class TasksStreamPart(TypedDict):
    """The start or the end of a task."""

    type: Literal["tasks"]
    ns: tuple[str, ...]
    data: TaskPayload | TaskResultPayload


class DebugStreamPart(TypedDict, Generic[StateT]):
    """A checkpoint, or the start or the end of a task, with step and time."""

    type: Literal["debug"]
    ns: tuple[str, ...]
    data: DebugPayload[StateT]


StreamPart: TypeAlias = (
    CheckpointStreamPart[StateT]
    | DebugStreamPart[StateT]
    | ValuesStreamPart[OutT]
    | UpdatesStreamPart
    | MessagesStreamPart
    | CustomStreamPart
    | TasksStreamPart
)
"""A chunk of `stream(version="v2")`; its `type` names the mode."""
