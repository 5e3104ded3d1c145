"""What a checkpoint is, as values: the words savers and the engine share."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal, NamedTuple, NotRequired, TypedDict, TypeVar

from towpath.checkpoint.base.id import checkpoint_id
from towpath.checkpoint.serde.types import ChannelProtocol
from towpath.constants import ERROR, INTERRUPT, MISSING, RESUME, SCHEDULED
from towpath.types import RunnableConfig

V = TypeVar("V", int, float, str)
ChannelVersions = dict[str, str | int | float]
PendingWrite = tuple[str, str, Any]
"""Task id, channel, value."""

LATEST_VERSION: Final = 2

WRITES_IDX_MAP: Final[dict[str, int]] = {
    ERROR: -1,
    SCHEDULED: -2,
    INTERRUPT: -3,
    RESUME: -4,
}
"""Channels a task writes at most once: a new write replaces the old one.

Every other write keeps its place in the task's list, and what was recorded
first stays: a task that runs again cannot change what a finished one wrote.
"""

EXCLUDED_METADATA_KEYS: Final = {
    "thread_id",
    "checkpoint_id",
    "checkpoint_ns",
    "checkpoint_map",
    "langgraph_step",
    "langgraph_node",
    "langgraph_triggers",
    "langgraph_path",
    "langgraph_checkpoint_ns",
}


class CheckpointMetadata(TypedDict, total=False):
    """Facts about how a checkpoint came to be."""

    source: Literal["input", "loop", "update", "fork"]
    step: int
    parents: dict[str, str]
    run_id: str
    counters_since_delta_snapshot: dict[str, tuple[int, int]]


class Checkpoint(TypedDict):
    """The state of one namespace of a thread at the end of a step."""

    v: int
    id: str
    ts: str
    channel_values: dict[str, Any]
    channel_versions: ChannelVersions
    versions_seen: dict[str, ChannelVersions]
    updated_channels: list[str] | None


class CheckpointTuple(NamedTuple):
    """A stored checkpoint with what belongs to it."""

    config: RunnableConfig
    checkpoint: Checkpoint
    metadata: CheckpointMetadata
    parent_config: RunnableConfig | None = None
    pending_writes: list[PendingWrite] | None = None


class DeltaChannelHistory(TypedDict):
    """What a delta channel is rebuilt from: a value, and the writes since."""

    writes: list[PendingWrite]
    seed: NotRequired[Any]


class Address(NamedTuple):
    """Where a checkpoint lives. `ns` is None where every namespace is meant."""

    thread: str
    ns: str | None
    id: str | None

    @property
    def space(self) -> tuple[str, str]:
        """The thread and the namespace; the root's when none is named."""
        return self.thread, self.ns or ""

    def covers(self, ns: str, at: str) -> bool:
        """Tell whether a checkpoint of this thread is meant."""
        return self.ns in (None, ns) and self.id in (None, at)


class UnplacedError(ValueError, KeyError):
    """A config does not name the thread or checkpoint that something belongs to."""

    __str__ = Exception.__str__  # not the repr, which a KeyError shows


def locate(config: RunnableConfig) -> Address:
    """Read the address out of a config.

    A thread id may be a str, an int or a UUID, and is the same thread however
    it is spelled. Nothing else is accepted: an id that a request brought along
    as a list or an object must not reach a query.

    Raises:
        UnplacedError: there is no thread id.
        ValueError: there is no usable thread id or namespace.
    """
    configurable = config.get("configurable") or {}
    thread = configurable.get("thread_id")
    if type(thread) is not str:
        thread = _thread_text(thread)
    ns = configurable.get("checkpoint_ns")
    at = configurable.get("checkpoint_id")
    if not (ns is None or isinstance(ns, str)) or not (
        at is None or isinstance(at, str)
    ):
        raise ValueError("`checkpoint_ns` and `checkpoint_id` must be str")
    return Address(thread, ns, at or None)


def _thread_text(thread: object) -> str:
    if isinstance(thread, (str, int, uuid.UUID)) and not isinstance(thread, bool):
        return str(thread)
    if thread is None:
        raise UnplacedError("a saver needs `thread_id` in config['configurable']")
    kind = type(thread).__name__
    raise ValueError(f"`thread_id` must be a str, an int or a UUID, not {kind}")


def address_config(thread: str, ns: str, at: str) -> RunnableConfig:
    """Return the config that leads to a checkpoint."""
    return {
        "configurable": {
            "thread_id": thread,
            "checkpoint_ns": ns,
            "checkpoint_id": at,
        }
    }


def get_checkpoint_id(config: RunnableConfig) -> str | None:
    """Return the checkpoint id a config names, if any."""
    found: str | None = config["configurable"].get("checkpoint_id")
    return found


def now() -> str:
    """Return the time as checkpoints spell it."""
    return datetime.now(UTC).isoformat()


def empty_checkpoint() -> Checkpoint:
    """Return the checkpoint of a thread on which nothing happened yet."""
    return {
        "v": LATEST_VERSION,
        "id": checkpoint_id(),
        "ts": now(),
        "channel_values": {},
        "channel_versions": {},
        "versions_seen": {},
        "updated_channels": None,
    }


def copy_checkpoint(checkpoint: Checkpoint) -> Checkpoint:
    """Copy a checkpoint's own containers; the values in it are shared."""
    copy = checkpoint.copy()
    copy["channel_values"] = checkpoint["channel_values"].copy()
    copy["channel_versions"] = checkpoint["channel_versions"].copy()
    seen = checkpoint["versions_seen"]
    copy["versions_seen"] = {node: versions.copy() for node, versions in seen.items()}
    return copy


def create_checkpoint(
    checkpoint: Checkpoint,
    channels: Mapping[str, ChannelProtocol[Any, Any, Any]] | None,
    step: int,  # noqa: ARG001
    *,
    id: str | None = None,
) -> Checkpoint:
    """Return the successor of `checkpoint`, with the values `channels` hold now.

    Only channels that have a version are kept: the others were never written.
    Without `channels` the old values are carried over. `step` plays no part; it
    is in the signature because the peer's callers pass it.
    """
    values = checkpoint["channel_values"]
    versions = checkpoint["channel_versions"]
    if channels is not None:
        held = {k: channels[k].checkpoint() for k in channels if k in versions}
        values = {k: value for k, value in held.items() if value is not MISSING}
    return {
        "v": LATEST_VERSION,
        "id": id or checkpoint_id(),
        "ts": now(),
        "channel_values": values,
        "channel_versions": versions,
        "versions_seen": checkpoint["versions_seen"],
        "updated_channels": None,
    }


def get_checkpoint_metadata(
    config: RunnableConfig, metadata: CheckpointMetadata
) -> CheckpointMetadata:
    """Add the scalars of a config's metadata and configurable to `metadata`.

    Texts lose their zeros, which some databases cannot hold.

    What `metadata` says wins, then the config's metadata. Our savers add what the
    default semantics store of a config that they are handed; what a run stores of
    its caller's config is the engine's decision.
    """
    merged: dict[str, Any] = {
        key: value.replace("\0", "") if isinstance(value, str) else value
        for key, value in metadata.items()
    }
    bags = (config.get("metadata") or {}, config.get("configurable") or {})
    for bag in bags:
        for key, value in bag.items():
            if key in merged or key in EXCLUDED_METADATA_KEYS or key.startswith("__"):
                continue
            if isinstance(value, str):
                merged[key] = value.replace("\0", "")
            elif isinstance(value, (int, float)):
                merged[key] = value
    return merged  # type: ignore[return-value]  # TypedDicts cannot hold open keys


def get_serializable_checkpoint_metadata(
    config: RunnableConfig, metadata: CheckpointMetadata
) -> CheckpointMetadata:
    """As `get_checkpoint_metadata`, without the bulky `writes` of old versions."""
    merged = get_checkpoint_metadata(config, metadata)
    merged.pop("writes", None)  # type: ignore[typeddict-item]  # not a key of ours
    return merged


def writes_sort_key(
    task_path: str, task_id: str = "", idx: int = 0
) -> tuple[str, str, int]:
    """Return the key that puts pending writes in the order of their tasks."""
    return task_path, task_id, idx
