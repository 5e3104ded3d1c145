"""What is remembered of the newest checkpoint of each thread that is running.

From it follows what has changed in the next one. It is a hint, and only held
while a run goes on: the traces in it keep the values of the thread alive.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from towpath.checkpoint.base.model import ChannelVersions
from towpath.checkpoint.base.saver import Written
from towpath.checkpoint.changes import SAME, Differ, Link, Reader, Trace
from towpath.checkpoint.layout import Known
from towpath.checkpoint.record import Cell

_HEADS_MAX: Final = 4096
"""How many threads are remembered; what is forgotten is stored whole once."""

Space = tuple[str, str]


@dataclass(slots=True)
class Head:
    """The newest checkpoint of a space, and the traces of its values."""

    id: str | None = None
    versions: ChannelVersions | None = None
    traces: dict[str, Trace] = field(default_factory=dict)
    loose: bool = True
    """Whether there may be values of channels without a version."""
    known: Known = field(default_factory=Known)
    """What is known of how it is stored, once it is."""


class Heads:
    """The heads of the spaces that runs are writing to."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._heads: dict[Space, Head] = {}

    def keep(self, space: Space, head: Head) -> None:
        """Remember the head of a space."""
        with self._lock:
            self._heads.pop(space, None)
            self._heads[space] = head
            if len(self._heads) > _HEADS_MAX:
                del self._heads[next(iter(self._heads))]

    def take(self, space: Space, at: str | None) -> Head:
        """Take the head of a space away if it is this checkpoint, or a blank one.

        Whoever has it may change it; of two that write to a space at once, one
        gets it.
        """
        with self._lock:
            head = self._heads.get(space)
            if head is None or at is None or head.id != at:
                return Head()
            return self._heads.pop(space)

    def drop(self, space: Space) -> None:
        """Forget a space: what was to be its newest checkpoint is not stored."""
        with self._lock:
            self._heads.pop(space, None)


def encode_values(
    differ: Differ,
    head: Head,
    values: Mapping[str, Any],
    channels: Iterable[str],
    written: Written,
) -> dict[str, Cell]:
    """Encode what changed in `channels`, and bring the traces up to date."""
    cells: dict[str, Cell] = {}
    traces = head.traces
    for channel in channels:
        trace = None
        if channel in values:
            writes = None if written is None else written.get(channel, ())
            cells[channel], trace = differ.store(
                channel, values[channel], traces.get(channel), writes
            )
        if trace is None:
            traces.pop(channel, None)
        else:
            traces[channel] = trace
    return cells


def changed_in_place(
    differ: Differ, head: Head, values: Mapping[str, Any]
) -> dict[str, Cell]:
    """Encode the values that are no longer what was stored of them."""
    channels = [channel for channel in head.traces if channel in values]
    cells = encode_values(differ, head, values, channels, None)
    return {channel: cell for channel, cell in cells.items() if cell != SAME}


def read_traced(
    reader: Reader, links: Mapping[str, Link]
) -> tuple[dict[str, Any], dict[str, Trace]]:
    """Restore values, and the traces with which to tell what changes in them."""
    values: dict[str, Any] = {}
    traces: dict[str, Trace] = {}
    for channel, link in links.items():
        values[channel], trace = reader.traced(link)
        if trace is not None:
            traces[channel] = trace
    return values, traces
