"""What savers have in common: a checkpoint as a header and cells.

A cell is one encoded value. It is made when its channel changes; the checkpoints
after that refer to it until the channel changes again. A header is the rest of
a checkpoint: versions, what nodes have seen, the time. Everything handed to a
saver is encoded before the call returns or waits, so nothing the caller does
afterwards can reach what is stored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from towpath.checkpoint.base.model import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    UnplacedError,
    locate,
)
from towpath.checkpoint.base.saver import TaskWrites
from towpath.checkpoint.serde.base import SerializerProtocol
from towpath.errors import SerializationError
from towpath.types import RunnableConfig

T = TypeVar("T")

Cell = tuple[str, bytes]
"""The tag and the bytes of one value."""


class WriteCell(NamedTuple):
    """One pending write, encoded."""

    task: str
    idx: int
    channel: str
    path: str
    cell: Cell

    @property
    def replaces(self) -> bool:
        """Whether a write in this place replaces the one recorded before."""
        return self.idx < 0


def dump(serde: SerializerProtocol, value: object, channel: str) -> Cell:
    """Encode the value of a channel, naming the channel where that fails."""
    try:
        return serde.dumps_typed(value)
    except SerializationError as error:
        told = _of(f"channel `{channel}`", error)
        told.channel = channel
        raise told from error
    except RecursionError as error:
        told = SerializationError(
            f"channel `{channel}`: the value is nested too deeply, or holds itself",
            hint="store it flat, or by reference",
        )
        told.channel = channel
        raise told from error


def dump_metadata(serde: SerializerProtocol, metadata: CheckpointMetadata) -> Cell:
    """Encode metadata, saying that it is where that fails."""
    try:
        return serde.dumps_typed(metadata)
    except SerializationError as error:
        raise _of("the metadata", error) from error


def _of(what: str, error: SerializationError) -> SerializationError:
    return SerializationError(f"{what}, {error.message}", hint=error.hint)


def dump_writes(
    serde: SerializerProtocol,
    writes: Sequence[tuple[str, Any]],
    task_id: str,
    task_path: str,
) -> list[WriteCell]:
    """Encode what a task wrote, each write with its place."""
    return [
        WriteCell(
            task_id,
            WRITES_IDX_MAP.get(channel, place),
            channel,
            task_path,
            dump(serde, value, channel),
        )
        for place, (channel, value) in enumerate(writes)
    ]


def dump_step(
    serde: SerializerProtocol, writes: Iterable[TaskWrites]
) -> list[WriteCell]:
    """Encode what several tasks of one step wrote."""
    return [
        cell
        for task_id, task_path, written in writes
        for cell in dump_writes(serde, written, task_id, task_path)
    ]


def header_of(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return a checkpoint without its values."""
    header: dict[str, Any] = dict(checkpoint)
    del header["channel_values"]
    return header


def follows(
    versions: ChannelVersions, new_versions: ChannelVersions, parent: ChannelVersions
) -> bool:
    """Tell whether new versions are all in which a checkpoint differs from its parent.

    Comparing the dicts as a whole costs next to nothing while they are small.
    """
    return {**parent, **new_versions} == versions


def changed(
    versions: ChannelVersions,
    new_versions: ChannelVersions,
    parent_versions: ChannelVersions | None,
) -> Collection[str]:
    """Return the channels whose values the parent does not have.

    `new_versions` says which, relative to what its author takes for the parent.
    A saver may not have that parent (durability "exit" skips checkpoints), or
    have it with other versions. So the versions decide in the end.
    """
    if parent_versions is None:
        return versions.keys()
    if follows(versions, new_versions, parent_versions):
        return tuple(new_versions)
    differ = {
        channel
        for channel, version in versions.items()
        if channel not in parent_versions or parent_versions[channel] != version
    }
    return differ | (new_versions.keys() & versions.keys())


def loose(checkpoint: Checkpoint) -> Collection[str]:
    """Return the channels that have a value but no version; stored each time."""
    values = checkpoint["channel_values"]
    versions = checkpoint["channel_versions"]
    if values.keys() <= versions.keys():
        return ()
    return values.keys() - versions.keys()


def dump_channels(
    serde: SerializerProtocol, checkpoint: Checkpoint, channels: Iterable[str]
) -> dict[str, Cell]:
    """Encode those of `channels` that hold a value."""
    values = checkpoint["channel_values"]
    return {
        channel: dump(serde, values[channel], channel)
        for channel in channels
        if channel in values
    }


def inherit(
    parent: Mapping[str, T],
    own: dict[str, T],
    channels: Iterable[str],
    versions: Mapping[str, Any],
) -> dict[str, T]:
    """Return the cells of a checkpoint: its parent's, but for what changed.

    A channel among `channels` without a cell in `own` became empty; one without
    a version is gone.
    """
    cells = dict(parent)
    for channel in channels:
        if channel not in own:
            cells.pop(channel, None)
    cells.update(own)
    if not cells.keys() <= versions.keys():
        return {channel: cells[channel] for channel in cells if channel in versions}
    return cells


def located(config: RunnableConfig) -> tuple[str, str, str]:
    """Return thread, namespace and id of the checkpoint that writes belong to.

    Raises:
        ValueError: the config names no checkpoint.
    """
    address = locate(config)
    if address.id is None:
        raise UnplacedError("writes belong to a checkpoint: `config` must name it")
    return *address.space, address.id
