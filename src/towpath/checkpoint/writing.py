"""Programs that store checkpoints and pending writes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple

from towpath.checkpoint.base.lease import Lease
from towpath.checkpoint.base.model import ChannelVersions
from towpath.checkpoint.changes import CHANGES, NULL, SAME
from towpath.checkpoint.kept import Late, as_rows, pack_late, unpack_kept
from towpath.checkpoint.layout import (
    FRAME,
    NO_CELL,
    WHOLE_MAX,
    After,
    Basis,
    Cells,
    Frame,
    Known,
    Place,
    Places,
    basis_of,
    in_row,
    pack_header,
    unpack_header,
)
from towpath.checkpoint.leasing import EPOCH, HELD_EPOCH, check, check_new
from towpath.checkpoint.programs import (
    Program,
    Query,
    Row,
    load_frames,
    new_space,
    span,
    sweep,
)
from towpath.checkpoint.record import Cell, WriteCell, changed, inherit
from towpath.checkpoint.sealing import CELLS, HEADER, KEPT, PLAIN, Seal


@dataclass(slots=True)
class Draft:
    """A checkpoint about to be stored, encoded."""

    thread: str
    ns: str
    id: str
    parent: str | None
    header: Mapping[str, Any]
    versions: ChannelVersions
    seen: Mapping[str, ChannelVersions]
    new_versions: ChannelVersions
    channels: Collection[str] | None
    """Those whose values differ from the parent's, if all of that is known."""
    held: Collection[str]
    """The channels that have a value, encoded or not."""
    meta: Cell
    cells: dict[str, Cell]
    """The values encoded so far; of some, only what changed since the parent."""
    loose: dict[str, Cell]
    """Values of channels without a version."""
    late: Late = field(default_factory=list)
    writes: Sequence[WriteCell] = ()
    """Pending writes of the parent: those that are kept with it, and others."""
    own: Sequence[WriteCell] = ()
    """Those of the checkpoint itself, which it takes over."""
    lease: Lease | None = None
    seal: Seal = PLAIN
    known: Known = field(default_factory=Known)
    """Of the parent, or what the one that is stored before this will be."""
    after: After | None = None
    patched: bool = False
    """Whether whole values took the place of changes that the parent lacked."""

    def settle(self) -> None:
        """Remember it as it is stored."""
        if self.after is not None:
            self.known.follow(self.after)
        if self.patched:  # what it is remembered to be made of, it is not
            self.known.id = None


_NONE: Final = Cells({}, {})


class _Ground(NamedTuple):
    """What a new checkpoint builds on: its space, and its parent there."""

    space: int | None
    newest: int | None
    """The number of the space's newest cell, whoever refers to it."""
    again: bool = False
    """Whether the checkpoint itself is stored already."""
    versions: ChannelVersions | None = None
    """The parent's; None when there is none, or when it is as it is known."""
    own: Mapping[str, Place] = {}
    cells: Cells = _NONE
    basis: Basis | None = None
    meta_tag: str | None = None
    """The parent's; None when there is none."""
    kept: bytes | None = None

    @property
    def is_known(self) -> bool:
        """Whether the parent is stored as it is known, so that nothing is missing."""
        return self.meta_tag is not None and self.versions is None


def commit(draft: Draft) -> Program[set[str]]:
    """Store pending writes and the checkpoint they lead to.

    Nothing is stored when the result is not empty: it names the channels whose
    whole values the draft lacks. They are in no parent that is stored here.

    Raises:
        LeaseLostError: another run holds the thread by now.
    """
    place, seal = (draft.thread, draft.ns), draft.seal
    known = None if draft.channels is None else draft.known
    ground = yield from _ground(place, draft.parent, draft.id, draft.lease, seal, known)
    channels = _changed(draft, ground)
    if not ground.is_known and (missing := _missing(draft, ground, channels)):
        return missing
    space = ground.space
    if space is None:
        space = yield from new_space(draft.thread, draft.ns)
    layout = _Layout(space, ground, seal)
    own = {c: layout.place(c, draft.cells[c]) for c in channels if c in draft.cells}
    after = draft.after = _described(draft, ground, layout, channels, own)
    yield from layout.store()
    parts = (after.header, after.cells, *draft.meta)
    if seal is not PLAIN:
        parts = seal.close_checkpoint(draft.id, parts)
        draft.after = after._replace(header=parts[0], cells=parts[1])
    row = (draft.parent, *parts, space, draft.id)
    yield Query(_REPLACE if ground.again else _INSERT, row)
    if ground.again:  # it may have been the only one to use a cell
        yield from sweep(space, seal)
    yield from _commit_writes(draft, ground, space, own)
    if draft.own:
        yield from _store_writes(space, draft.id, draft.own, seal)
    return set()


def _changed(draft: Draft, ground: _Ground) -> Collection[str]:
    if ground.is_known:
        assert draft.channels is not None
        return draft.channels
    return changed(draft.versions, dict(draft.new_versions), ground.versions)


def _described(
    draft: Draft,
    ground: _Ground,
    layout: _Layout,
    channels: Collection[str],
    own: Places,
) -> After:
    """Return what the row of a checkpoint is to say, in the clear."""
    changes = {channel: own.get(channel) for channel in channels}
    loose = {c: layout.place(c, cell) for c, cell in draft.loose.items()}
    after = _differing(draft, ground, changes, loose)
    if after is not None:
        return after
    whole = inherit(ground.own, own, channels, draft.versions)
    header = pack_header(draft.header, draft.versions, draft.seen)
    cells = Cells(dict(whole), loose).pack()
    if len(header) + len(cells) <= WHOLE_MAX:
        return After(draft.id, header, cells, whole, changes, None)
    data = Frame(draft.versions, dict(draft.seen), dict(whole)).pack()
    count = layout.add((FRAME, data))
    basis = Basis(count, len(data), dict(draft.seen), {}, {}, 0)
    header = pack_header(draft.header, {}, {})
    cells = Cells({}, loose, count).pack()
    return After(draft.id, header, cells, whole, changes, basis)


def _differing(
    draft: Draft,
    ground: _Ground,
    changes: Mapping[str, Place | None],
    loose: Places,
) -> After | None:
    """Describe a checkpoint by what differs from its parent's frame.

    None if it has none, or if the whole is less.
    """
    basis, versions, seen = ground.basis, draft.versions, draft.seen
    if basis is None or not basis.seen.keys() <= seen.keys():
        return None
    if ground.versions is not None and not ground.versions.keys() <= versions.keys():
        return None
    versions = basis.versions | {c: versions[c] for c in changes}
    own = {**basis.own, **changes}
    before = basis.seen
    news = {
        node: saw
        for node, saw in seen.items()
        if before.get(node) is not saw and before.get(node) != saw
    }
    header = pack_header(draft.header, versions, news)
    since = basis.since + len(header)
    cells = Cells(own, loose, basis.at, since).pack()
    since += len(cells)
    if since > basis.size:
        return None
    basis = basis._replace(versions=versions, own=own, since=since)
    whole = None
    if ground.versions is not None:  # it was read, and is not what is known
        whole = inherit(ground.own, _held(changes), changes, draft.versions)
    return After(draft.id, header, cells, whole, changes, basis)


def _held(changes: Mapping[str, Place | None]) -> Places:
    return {c: place for c, place in changes.items() if place is not None}


def _commit_writes(
    draft: Draft, ground: _Ground, space: int, own: Places
) -> Program[None]:
    writes = [*draft.writes]
    if ground.meta_tag is None:  # there is nothing yet with which to keep them
        writes += as_rows(draft.late)
    elif draft.late:
        yield from _keep_writes(draft, ground, space, own)
    if writes:
        assert draft.parent is not None
        yield from _store_writes(space, draft.parent, writes, draft.seal)


def _keep_writes(
    draft: Draft, ground: _Ground, space: int, own: Places
) -> Program[None]:
    """Keep writes with the checkpoint that they were made on."""
    at, tag, seal = draft.parent, ground.meta_tag, draft.seal
    assert at is not None
    assert tag is not None
    before = ground.kept
    if before is not None:
        before = seal.open_part(KEPT, at, before, tag)
    data, count = pack_late(draft.late, own, before)
    yield Query(
        "UPDATE towpath_checkpoints SET writes = ?, written = ?"
        " WHERE space = ? AND id = ?",
        (seal.close_part(KEPT, at, data, tag), count, space, at),
    )


def amend(
    place: tuple[str, str],
    at: str,
    own: Mapping[str, Cell],
    lease: Lease | None,
    seal: Seal,
) -> Program[None]:
    """Replace values of a stored checkpoint; nothing happens if it is gone."""
    ground = yield from _ground(place, at, at, lease, seal)
    if ground.space is None or ground.meta_tag is None:
        return
    layout = _Layout(ground.space, ground, seal)
    changes = {c: layout.place(c, own[c]) for c in own}
    yield from layout.store()
    cells = ground.cells._replace(own={**ground.cells.own, **changes}).pack()
    yield Query(
        "UPDATE towpath_checkpoints SET cells = ? WHERE space = ? AND id = ?",
        (seal.close_part(CELLS, at, cells, ground.meta_tag), ground.space, at),
    )


def _missing(draft: Draft, ground: _Ground, channels: Collection[str]) -> set[str]:
    """Return what cannot be made of the draft and what it builds on."""
    cells = draft.cells
    missing: set[str] = set()
    for channel in channels:
        if channel not in cells:
            if channel in draft.held:
                missing.add(channel)
            continue
        tag = cells[channel][0]
        if (tag in CHANGES and type(ground.own.get(channel)) is not int) or (
            tag == SAME[0] and channel not in ground.own
        ):
            missing.add(channel)
    return missing


def _ground(
    place: tuple[str, str],
    parent: str | None,
    own: str,
    lease: Lease | None,
    seal: Seal,
    known: Known | None = None,
) -> Program[_Ground]:
    rows = yield from Query(
        # The count of a cell is 32 bits wide, see CELL_BITS.
        "SELECT s.id, c.header, c.cells, (SELECT max(k.id) FROM towpath_cells k"
        " WHERE k.id BETWEEN (s.id << 32) AND (s.id << 32) + 4294967295),"
        " EXISTS (SELECT 1 FROM towpath_checkpoints o"
        f" WHERE o.space = s.id AND o.id = ?), {EPOCH}, c.meta_tag, c.writes"
        " FROM towpath_spaces s"
        " LEFT JOIN towpath_checkpoints c ON c.space = s.id AND c.id = ?"
        " WHERE s.thread = ? AND s.ns = ?",
        (own, lease and lease.owner, parent, *place),
        lock=place[0],
    )
    if not rows:
        yield from check_new(lease)
        return _Ground(None, None)
    [(space, header, cells, newest, again, epoch, tag, kept)] = rows
    check(lease, epoch)
    if header is None or parent is None:
        return _Ground(space, newest, bool(again))
    if known is not None and known.is_still(parent, header, cells):
        same = (None, known.own, _NONE, known.basis)
        return _Ground(space, newest, bool(again), *same, tag, kept)
    header = seal.open_part(HEADER, parent, header, tag)
    found = Cells.unpack(seal.open_part(CELLS, parent, cells, tag))
    frames = yield from load_frames({(space, found.frame)}, {space: seal})
    frame = frames[space, found.frame]
    versions = unpack_header(header, parent, frame)["channel_versions"]
    basis = None if frame is None else basis_of(frame, header, found)
    places, _ = found.on(frame)
    read = (versions, places, found, basis)
    return _Ground(space, newest, bool(again), *read, tag, kept)


class _Layout:
    """Gives the cells of a new checkpoint their numbers."""

    def __init__(self, space: int, ground: _Ground, seal: Seal) -> None:
        self._seal = seal
        self._first, _ = span(space)
        self._bases = ground.own
        self._next = self._first if ground.newest is None else ground.newest + 1
        self._rows: list[Row] = []

    def place(self, channel: str, cell: Cell) -> Place:
        """Return where the value of a channel is going to be."""
        if cell == SAME:
            return self._bases[channel]
        if cell == NULL:
            return NO_CELL
        if in_row(cell):
            return [*cell]
        if cell[0] not in CHANGES:
            return self.add(cell)
        base = self._bases[channel]
        assert type(base) is int
        return self.add(cell, base)

    def add(self, cell: Cell, base: int | None = None) -> int:
        """Add a cell, which may build on another; return its count."""
        number, self._next = self._next, self._next + 1
        count = number - self._first
        back = None if base is None else count - base
        self._rows.append((number, back, *self._seal.close_cell(count, back, cell)))
        return count

    def store(self) -> Program[None]:
        """Store the cells."""
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
        f"SELECT s.id, {HELD_EPOCH}, c.writes, c.meta_tag FROM towpath_spaces s"
        " LEFT JOIN towpath_checkpoints c ON c.space = s.id AND c.id = ?"
        " WHERE s.thread = ? AND s.ns = ?",
        (lease and lease.owner, checkpoint, *place),
    )
    if rows:
        [(space, epoch, kept, tag)] = rows
        check(lease, epoch)
        if kept is not None:  # what was recorded first stays
            before = unpack_kept(seal.open_part(KEPT, checkpoint, kept, tag))
            places = {(one.task, one.idx) for one in before}
            writes = [w for w in writes if (w.task, w.idx) not in places]
    else:
        yield from check_new(lease)
        space = yield from new_space(*place)
    yield from _store_writes(space, checkpoint, writes, seal)
