"""Writes that come with the checkpoint they lead to.

Those of the last task of a step do. They are kept in the row of the checkpoint that
they were made on, and refer to the values that the new one has of them: what a task
wrote is, as a rule, what is then stored, or the end of a list that is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from operator import is_
from typing import Any, Final, NamedTuple

from towpath.checkpoint.base.model import WRITES_IDX_MAP
from towpath.checkpoint.base.saver import TaskWrites
from towpath.checkpoint.layout import Place, counts, pack
from towpath.checkpoint.record import Cell, WriteCell, dump
from towpath.checkpoint.serde.base import SerializerProtocol
from towpath.checkpoint.serde.codec import Codec

_codec: Final = Codec()


class Late(NamedTuple):
    """A write that comes with the checkpoint it leads to."""

    task: str
    path: str
    idx: int
    channel: str
    cell: Cell | None
    """The value; None where it is what the new checkpoint has, or the end of that."""
    start: int | None = None
    """Where it begins in the list that the new checkpoint has."""


class Kept(NamedTuple):
    """The same, as it is kept with the checkpoint that it was made on."""

    task: str
    path: str
    idx: int
    channel: str
    place: Place
    start: int | None = None


def dump_late(
    serde: SerializerProtocol,
    writes: Iterable[TaskWrites],
    values: Mapping[str, Any],
    stored: Collection[str],
) -> tuple[list[Late], list[WriteCell]]:
    """Encode writes, but for what is stored in the new checkpoint.

    Of the channels in `stored`, it has these values. What replaces another write of
    its task is returned by itself: it is not kept in the row.
    """
    late: list[Late] = []
    others: list[WriteCell] = []
    for task, path, written in writes:
        for idx, (channel, value) in enumerate(written):
            at = WRITES_IDX_MAP.get(channel, idx)
            if at < 0:
                cell = dump(serde, value, channel)
                others.append(WriteCell(task, at, channel, path, cell))
                continue
            own = channel in stored and channel in values
            if own and values[channel] is value:
                late.append(Late(task, path, idx, channel, None))
            elif own and (start := _start(values[channel], value)) is not None:
                late.append(Late(task, path, idx, channel, None, start))
            else:
                cell = dump(serde, value, channel)
                late.append(Late(task, path, idx, channel, cell))
    return late, others


def _start(whole: object, part: object) -> int | None:
    """Return where a list begins that is the end of another."""
    if type(whole) is not list or type(part) is not list or len(part) > len(whole):
        return None
    start = len(whole) - len(part)
    return start if all(map(is_, whole[start:], part)) else None


def pack_kept(several: Iterable[Kept]) -> bytes:
    """Encode writes; the names of a task are said once."""
    tasks: dict[tuple[str, str], list[Any]] = {}
    for task, path, *rest in several:
        written = rest if rest[-1] is not None else rest[:-1]
        tasks.setdefault((task, path), []).append(written)
    return pack([[*task, writes] for task, writes in tasks.items()])


def unpack_kept(data: bytes) -> list[Kept]:
    """Decode writes."""
    return [
        Kept(task, path, *write)
        for task, path, writes in _codec.decode(data)
        for write in writes
    ]


def reached(kept: Iterable[Kept]) -> Collection[int]:
    """Return the cells that writes refer to."""
    return set(counts(write.place for write in kept))
