"""Programs that store checkpoints and pending writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

from towpath.checkpoint.base.lease import Lease
from towpath.checkpoint.base.model import ChannelVersions
from towpath.checkpoint.changes import CHANGES, NULL, SAME
from towpath.checkpoint.leasing import EPOCH, HELD_EPOCH, check, check_new
from towpath.checkpoint.programs import (
    NO_CELL,
    Program,
    Query,
    Row,
    new_space,
    pack_counts,
    span,
    sweep,
    unpack_counts,
)
from towpath.checkpoint.record import Cell, WriteCell, changed, inherit
from towpath.checkpoint.sealing import CELLS, HEADER, PLAIN, Seal
from towpath.checkpoint.serde.codec import Codec

_codec: Final = Codec()


@dataclass(slots=True)
class Draft:
    """A checkpoint about to be stored, encoded."""

    thread: str
    ns: str
    id: str
    parent: str | None
    header: bytes
    versions: ChannelVersions
    new_versions: ChannelVersions
    held: frozenset[str]
    """The channels that have a value, encoded or not."""
    meta: Cell
    cells: dict[str, Cell]
    """The values encoded so far; of some, only what changed since the parent."""
    loose: dict[str, Cell]
    """Values of channels without a version."""
    writes: list[WriteCell] = field(default_factory=list)
    """Pending writes of the parent."""
    own: list[WriteCell] = field(default_factory=list)
    """Those of the checkpoint itself, which it takes over."""
    lease: Lease | None = None
    seal: Seal = PLAIN


class _Ground(NamedTuple):
    """What a new checkpoint builds on: its space, and its parent there."""

    space: int | None
    newest: int | None
    """The number of the space's newest cell, whoever refers to it."""
    again: bool = False
    """Whether the checkpoint itself is stored already."""
    versions: ChannelVersions | None = None
    """The parent's; None when there is none."""
    counts: Mapping[str, int] = {}
    loose: Mapping[str, int] = {}
    meta_tag: str = ""


def commit(draft: Draft) -> Program[set[str]]:
    """Store pending writes and the checkpoint they lead to.

    Nothing is stored when the result is not empty: it names the channels whose
    whole values the draft lacks. They are in no parent that is stored here.

    Raises:
        LeaseLostError: another run holds the thread by now.
    """
    place, seal = (draft.thread, draft.ns), draft.seal
    ground = yield from _ground(place, draft.parent, draft.id, draft.lease, seal)
    channels = changed(draft.versions, draft.new_versions, ground.versions)
    missing = {c for c in draft.held.intersection(channels) if _lacks(draft, ground, c)}
    if missing:
        return missing
    space = ground.space
    if space is None:
        space = yield from new_space(draft.thread, draft.ns)
    layout = _Layout(space, ground, seal)
    own = {c: layout.place(c, draft.cells[c]) for c in channels if c in draft.cells}
    counts = inherit(ground.counts, own, channels, draft.versions)
    loose = {c: layout.place(c, cell) for c, cell in draft.loose.items()}
    yield from layout.store()
    columns = (draft.header, pack_counts(counts, loose), *draft.meta)
    row = (draft.parent, *seal.close_checkpoint(draft.id, columns), space, draft.id)
    yield Query(_REPLACE if ground.again else _INSERT, row)
    if ground.again:  # it may have been the only one to use a cell
        yield from sweep(space, seal)
    if draft.writes:
        assert draft.parent is not None
        yield from _store_writes(space, draft.parent, draft.writes, seal)
    if draft.own:
        yield from _store_writes(space, draft.id, draft.own, seal)
    return set()


def amend(
    place: tuple[str, str],
    at: str,
    own: Mapping[str, Cell],
    lease: Lease | None,
    seal: Seal,
) -> Program[None]:
    """Replace values of a stored checkpoint; nothing happens if it is gone."""
    ground = yield from _ground(place, at, at, lease, seal)
    if ground.space is None or ground.versions is None:
        return
    layout = _Layout(ground.space, ground, seal)
    counts = {**ground.counts, **{c: layout.place(c, own[c]) for c in own}}
    yield from layout.store()
    cells = pack_counts(counts, dict(ground.loose))
    yield Query(
        "UPDATE towpath_checkpoints SET cells = ? WHERE space = ? AND id = ?",
        (seal.close_part(CELLS, at, cells, ground.meta_tag), ground.space, at),
    )


def _lacks(draft: Draft, ground: _Ground, channel: str) -> bool:
    """Tell whether a value cannot be made of the draft and what it builds on."""
    cell = draft.cells.get(channel)
    if cell is None:
        return True
    return _builds_on(cell) and channel not in ground.counts


def _builds_on(cell: Cell) -> bool:
    return cell == SAME or cell[0] in CHANGES


def _ground(
    place: tuple[str, str],
    parent: str | None,
    own: str,
    lease: Lease | None,
    seal: Seal,
) -> Program[_Ground]:
    rows = yield from Query(
        # The count of a cell is 32 bits wide, see CELL_BITS.
        "SELECT s.id, c.header, c.cells, (SELECT max(k.id) FROM towpath_cells k"
        " WHERE k.id BETWEEN (s.id << 32) AND (s.id << 32) + 4294967295),"
        " EXISTS (SELECT 1 FROM towpath_checkpoints o"
        f" WHERE o.space = s.id AND o.id = ?), {EPOCH}, c.meta_tag"
        " FROM towpath_spaces s"
        " LEFT JOIN towpath_checkpoints c ON c.space = s.id AND c.id = ?"
        " WHERE s.thread = ? AND s.ns = ?",
        (own, lease and lease.owner, parent, *place),
        lock=place[0],
    )
    if not rows:
        yield from check_new(lease)
        return _Ground(None, None)
    [(space, header, cells, newest, again, epoch, tag)] = rows
    check(lease, epoch)
    if header is None or parent is None:
        return _Ground(space, newest, bool(again))
    opened = seal.open_part(HEADER, parent, header, tag)
    versions = _codec.decode(opened)["channel_versions"]
    counts = unpack_counts(seal.open_part(CELLS, parent, cells, tag))
    return _Ground(space, newest, bool(again), versions, *counts, tag)


class _Layout:
    """Gives the cells of a new checkpoint their numbers."""

    def __init__(self, space: int, ground: _Ground, seal: Seal) -> None:
        self._seal = seal
        self._first, _ = span(space)
        self._bases = ground.counts
        self._next = self._first if ground.newest is None else ground.newest + 1
        self._rows: list[Row] = []

    def place(self, channel: str, cell: Cell) -> int:
        """Return the count, within the space, of the cell that holds a value."""
        if cell == SAME:
            return self._bases[channel]
        if cell == NULL:
            return NO_CELL
        number, self._next = self._next, self._next + 1
        count = number - self._first
        base = count - self._bases[channel] if cell[0] in CHANGES else None
        self._rows.append((number, base, *self._seal.close_cell(count, base, cell)))
        return count

    def store(self) -> Program[None]:
        if self._rows:
            yield Query(
                "INSERT INTO towpath_cells (id, base, tag, data) VALUES (?, ?, ?, ?)",
                self._rows,
                many=True,
            )


_INSERT = (
    "INSERT INTO towpath_checkpoints"
    " (parent, header, cells, meta_tag, meta, space, id) VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_REPLACE = (
    "UPDATE towpath_checkpoints SET parent = ?, header = ?, cells = ?,"
    " meta_tag = ?, meta = ? WHERE space = ? AND id = ?"
)


_INSERT_WRITE = (
    "INSERT INTO towpath_writes"
    " (space, checkpoint, task, idx, channel, path, tag, data)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (space, checkpoint, task, idx) DO "
)
_KEEP_WRITE = _INSERT_WRITE + "NOTHING"
_REPLACE_WRITE = _INSERT_WRITE + (
    "UPDATE SET channel = excluded.channel, path = excluded.path,"
    " tag = excluded.tag, data = excluded.data"
)


def _store_writes(
    space: int, checkpoint: str, writes: Sequence[WriteCell], seal: Seal
) -> Program[None]:
    close = partial(seal.close_write, checkpoint)
    for replaces, sql in ((False, _KEEP_WRITE), (True, _REPLACE_WRITE)):
        rows = [
            (space, checkpoint, w.task, w.idx, w.channel, w.path, *w.cell)
            for w in map(close, writes)
            if w.replaces is replaces
        ]
        if rows:
            yield Query(sql, rows, many=True)


def put_writes(
    place: tuple[str, str],
    checkpoint: str,
    writes: Sequence[WriteCell],
    lease: Lease | None,
    seal: Seal,
) -> Program[None]:
    """Record what a task wrote on top of a checkpoint.

    Raises:
        LeaseLostError: another run holds the thread by now.
    """
    rows = yield from Query(
        f"SELECT s.id, {HELD_EPOCH} FROM towpath_spaces s"
        " WHERE s.thread = ? AND s.ns = ?",
        (lease and lease.owner, *place),
    )
    if rows:
        [(space, epoch)] = rows
        check(lease, epoch)
    else:
        yield from check_new(lease)
        space = yield from new_space(*place)
    yield from _store_writes(space, checkpoint, writes, seal)
