"""What a saver in memory holds of each checkpoint, and what it weighs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from towpath.checkpoint.base.model import (
    ChannelVersions,
    CheckpointTuple,
    address_config,
)
from towpath.checkpoint.base.rules import Affected
from towpath.checkpoint.base.saver import Exact
from towpath.checkpoint.changes import CHANGES, SAME, Link
from towpath.checkpoint.layout import in_row
from towpath.checkpoint.overlay import Overlay
from towpath.checkpoint.record import Cell, WriteCell, inherit
from towpath.checkpoint.restoring import Item, Pending, Restored, in_order
from towpath.checkpoint.staged import Encoded
from towpath.constants import MISSING


class Record(NamedTuple):
    """One stored checkpoint."""

    header: Cell
    versions: Overlay[str | int | float]
    cells: Overlay[Link]
    loose: dict[str, Link]
    metadata: Cell
    parent: str | None

    @property
    def links(self) -> dict[str, Link]:
        """The stored values of all channels."""
        cells = self.cells.flat()
        return {**cells, **self.loose} if self.loose else cells

    def item(self, writes: Sequence[WriteCell]) -> Item:
        """Return what is to be decoded of it."""
        pending = [
            Pending(w.task, w.path, w.idx, w.channel, Link(*w.cell)) for w in writes
        ]
        return Item((self.header, self.metadata), self.links, in_order(pending))


def checkpoint_tuple(
    key: tuple[str, str, str], record: Record, restored: Restored
) -> CheckpointTuple:
    (checkpoint, metadata), values, writes = restored
    checkpoint["channel_versions"] = dict(record.versions.flat())
    checkpoint["channel_values"] = values
    thread, ns, _ = key
    parent = address_config(thread, ns, record.parent) if record.parent else None
    return CheckpointTuple(address_config(*key), checkpoint, metadata, parent, writes)


def sum_of(
    records: Sequence[Record],
    writes: Sequence[WriteCell],
    others: Sequence[Record] = (),
) -> Affected:
    """Count what these hold, but for the cells that others need."""
    cells = _cells_of(records)
    for number in _cells_of(others):
        cells.pop(number, None)
    sizes = [len(record.header[1]) + len(record.metadata[1]) for record in records]
    return Affected(
        threads=1 if records or writes else 0,
        checkpoints=len(records),
        writes=len(writes),
        cells=len(cells),
        bytes=sum(sizes)
        + sum(len(write.cell[1]) for write in writes)
        + sum(cells.values()),
    )


def _cells_of(records: Iterable[Record]) -> dict[int, int]:
    """Return the sizes of stored values, of those they build on, too, by identity.

    But for those of a few bytes: other savers keep them with each checkpoint.
    """
    sizes: dict[int, int] = {}
    for record in records:
        for link in record.links.values():
            at: Link | None = link
            while at is not None and id(at) not in sizes:
                if not in_row((at.tag, at.data)):
                    sizes[id(at)] = len(at.data)
                at = at.base
    return sizes


def placed(
    encoded: Encoded, new_versions: ChannelVersions, parent: Record | None
) -> tuple[Overlay[str | int | float], Overlay[Link]]:
    """Return the versions and the stored values of a checkpoint."""
    if parent is None:
        return Overlay(encoded.versions), Overlay(linked(encoded.cells, {}))
    links = linked(encoded.cells, parent.cells)
    if encoded.exact and type(new_versions) is Exact:
        changes = {c: links.get(c, MISSING) for c in encoded.channels}
        return parent.versions.on(new_versions), parent.cells.on(changes)
    versions = encoded.versions
    cells = inherit(parent.cells.flat(), links, encoded.channels, versions)
    return Overlay(versions), Overlay(cells)


def linked(cells: dict[str, Cell], parent: Mapping[str, Link]) -> dict[str, Link]:
    """Tie encoded values to those of the parent that they build on."""
    return {
        channel: parent[channel]
        if cell == SAME
        else Link(*cell, parent[channel] if cell[0] in CHANGES else None)
        for channel, cell in cells.items()
    }
