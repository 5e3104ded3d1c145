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
from towpath.checkpoint.changes import NULL
from towpath.checkpoint.layout import NO_CELL, Place, counts, pack
from towpath.checkpoint.record import WriteCell, dump
from towpath.checkpoint.serde.base import SerializerProtocol
from towpath.checkpoint.serde.codec import Codec

_codec: Final = Codec()


Entry = list[Any]
"""One write: its index, its channel, where its value is, and if that is the end of a
list, where it begins there. None for where it is stands for the new checkpoint's."""
Late = list[tuple[str, str, list[Entry]]]
"""The writes of tasks, each with its path."""


class Kept(NamedTuple):
    """A write as it is kept with the checkpoint that it was made on."""

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
) -> tuple[Late, list[WriteCell]]:
    """Encode writes, but for what is stored in the new checkpoint.

    Of the channels in `stored`, it has these values. What replaces another write of
    its task is returned by itself: it is not kept in the row.
    """
    late: Late = []
    others: list[WriteCell] = []
    for task, path, written in writes:
        entries: list[Entry] = []
        for idx, (channel, value) in enumerate(written):
            if channel in stored:
                whole = values[channel]
                if whole is value:
                    entries.append([idx, channel, None])
                    continue
                if (start := start_of(whole, value)) is not None:
                    entries.append([idx, channel, None, start])
                    continue
            cell = dump(serde, value, channel)
            if channel in WRITES_IDX_MAP:
                at = WRITES_IDX_MAP[channel]
                others.append(WriteCell(task, at, channel, path, cell))
            else:
                entries.append([idx, channel, NO_CELL if cell == NULL else cell])
        late.append((task, path, entries))
    return late, others


def start_of(whole: object, part: object) -> int | None:
    """Return where a list begins that is the end of another."""
    if type(whole) is not list or type(part) is not list or len(part) > len(whole):
        return None
    start = len(whole) - len(part)
    return start if all(map(is_, whole[start:], part)) else None


def pack_late(
    late: Late, own: Mapping[str, Place], before: bytes | None
) -> tuple[bytes, int]:
    """Encode writes, and tell how many there are.

    `own` is where the values of the new checkpoint are; `before` what is kept
    already: what was recorded first stays.
    """
    filled = [
        (
            task,
            path,
            [
                entry if entry[2] is not None else _filled(entry, own[entry[1]])
                for entry in entries
            ],
        )
        for task, path, entries in late
    ]
    if before is not None:
        there = {(one.task, one.idx) for one in unpack_kept(before)}
        filled = _codec.decode(before) + [
            (task, path, [entry for entry in entries if (task, entry[0]) not in there])
            for task, path, entries in filled
        ]
    return pack(filled), sum(len(entries) for _, _, entries in filled)


def _filled(entry: Entry, place: Place) -> Entry:
    idx, channel, _, *start = entry
    return [idx, channel, place, *start]


def as_rows(late: Late) -> list[WriteCell]:
    """Return writes as rows of their own, but for what only a new checkpoint has."""
    return [
        WriteCell(task, idx, channel, path, NULL if place == NO_CELL else place)
        for task, path, entries in late
        for idx, channel, place, *_ in entries
        if place is not None
    ]


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
