"""Programs that read checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from towpath.checkpoint.base.model import Address, Checkpoint
from towpath.checkpoint.changes import NULL, Link
from towpath.checkpoint.kept import Kept, reached, unpack_kept
from towpath.checkpoint.layout import (
    NO_CELL,
    Cells,
    Place,
    Places,
    counts,
    unpack_header,
)
from towpath.checkpoint.programs import (
    CELL_BITS,
    NEED,
    Program,
    Query,
    Row,
    as_json,
    load_frames,
    span,
)
from towpath.checkpoint.record import Cell, WriteCell
from towpath.checkpoint.restoring import Pending
from towpath.checkpoint.sealing import CELLS, HEADER, KEPT, Seal, SealOf, plain

_NOTHING = Link(*NULL)


@dataclass(slots=True)
class Stored:
    """A checkpoint as it is stored."""

    space: int
    thread: str
    ns: str
    id: str
    parent: str | None
    header: bytes
    row: Cells
    meta: Cell
    kept: Sequence[Kept] = ()
    checkpoint: Checkpoint | None = None
    cells: dict[str, Link] = field(default_factory=dict)
    writes: list[Pending] = field(default_factory=list)


_BETWEEN = "BETWEEN ? AND ?"
_NEWEST = "= (SELECT max(k.id) FROM towpath_checkpoints k WHERE k.space = w.space)"
"""Which checkpoints of a namespace pending writes are of: those from the first to the
last that are asked for, or the newest, or none."""
_NOWHERE = ""
_COLUMNS = (
    "s.id, s.thread, s.ns, c.id, c.parent, c.header, c.cells, c.meta_tag, c.meta,"
    " c.writes"
)
_FROM = "FROM towpath_spaces s JOIN towpath_checkpoints c ON c.space = s.id"
_SELECT = f"SELECT {_COLUMNS} {_FROM}"
_Pendings = dict[tuple[int, str], list[Pending]]
"""Pending writes by space and checkpoint."""


def latest(address: Address, seal_of: SealOf = plain) -> Program[Stored | None]:
    """Fetch the checkpoint of an address, or the newest of its space."""
    # Without a sort, which a database that has no statistics yet might do over all
    # checkpoints of the thread.
    newest = "(SELECT max(k.id) FROM towpath_checkpoints k WHERE k.space = s.id)"
    wanted, args = (newest, []) if address.id is None else ("?", [address.id])
    rows = yield Query(
        f"SELECT {_COLUMNS}, EXISTS (SELECT 1 FROM towpath_writes w"
        f" WHERE w.space = c.space AND w.checkpoint = c.id) {_FROM}"
        f" WHERE c.id = {wanted} AND s.thread = ? AND s.ns = ?",
        [*args, *address.space],
    )
    if not rows:
        return None
    [[*row, has_pending]] = rows
    stored = _stored(row, seal_of)
    yield from _fill((stored,), seal_of, at=_BETWEEN if has_pending else _NOWHERE)
    return stored


def newest(
    after: tuple[str, str] | None,
    most: int,
    seal_of: SealOf,
    shown: Callable[[str], bool],
) -> Program[list[Stored]]:
    """Fetch the newest checkpoint of each thread, the last changed thread first.

    Only the values of the channels that are `shown` are read. `after` is the id and
    the thread of the last one of the page before.
    """
    args: tuple[str, ...] = () if after is None else after
    older = "" if after is None else " AND (c.id, s.thread) < (?, ?)"
    rows = yield from Query(
        f"{_SELECT} WHERE s.ns = '' AND c.id = (SELECT max(k.id)"
        f" FROM towpath_checkpoints k WHERE k.space = s.id){older}"
        " ORDER BY c.id DESC, s.thread DESC LIMIT ?",
        (*args, most),
    )
    found = [_stored(row, seal_of) for row in rows]
    yield from _fill(found, seal_of, shown, _NEWEST)
    return found


@dataclass(frozen=True, slots=True)
class Scope:
    """Which checkpoints a listing is about."""

    address: Address | None
    until: str | None
    keep: Callable[[Cell], bool] | None
    """Decides by the metadata."""
    seal_of: SealOf = plain


Mark = tuple[str, int]
"""Where a page ended: id and space of its last checkpoint."""
Page = tuple[list[Stored], Mark | None]
"""Some checkpoints, and where they end; None after the last page."""


def page(scope: Scope, after: Mark | None, size: int) -> Program[Page]:
    """Fetch the next checkpoints of a listing, newest first.

    With a filter, a page may be empty though it is not the last.
    """
    where, args = _conditions(scope, after)
    order = " ORDER BY c.id DESC, c.space DESC LIMIT ?"
    rows = yield from Query(f"{_SELECT}{where}{order}", [*args, size])
    found = [_stored(row, scope.seal_of) for row in rows]
    mark = (found[-1].id, found[-1].space) if len(found) == size else None
    if scope.keep is not None:
        found = [stored for stored in found if scope.keep(stored.meta)]
    yield from _fill(found, scope.seal_of)
    return found, mark


def _conditions(scope: Scope, after: Mark | None) -> tuple[str, list[Any]]:
    wanted: list[tuple[str, Sequence[Any]]] = []
    at = scope.address
    if at is not None:
        wanted.append(("s.thread = ?", (at.thread,)))
        if at.ns is not None:
            wanted.append(("s.ns = ?", (at.ns,)))
        if at.id is not None:
            wanted.append(("c.id = ?", (at.id,)))
    if scope.until is not None:
        wanted.append(("c.id < ?", (scope.until,)))
    if after is not None:
        wanted.append(("(c.id, c.space) < (?, ?)", after))
    if not wanted:
        return "", []
    where = " AND ".join(condition for condition, _ in wanted)
    return f" WHERE {where}", [arg for _, args in wanted for arg in args]


def _stored(row: Sequence[Any], seal_of: SealOf) -> Stored:
    space, thread, ns, at, parent, header, cells, tag, meta, writes = row
    seal = seal_of(thread, ns)
    header = seal.open_part(HEADER, at, header, tag)
    places = Cells.unpack(seal.open_part(CELLS, at, cells, tag))
    opened = seal.open_metadata(at, (tag, meta))
    found = Stored(space, thread, ns, at, parent, header, places, opened)
    if writes is not None:
        found.kept = unpack_kept(seal.open_part(KEPT, at, writes, tag))
    return found


def _fill(
    found: Sequence[Stored],
    seal_of: SealOf,
    shown: Callable[[str], bool] | None = None,
    at: str = _BETWEEN,
) -> Program[None]:
    """Fetch the values of channels, and the pending writes of checkpoints."""
    if not found:
        return
    seals = {one.space: seal_of(one.thread, one.ns) for one in found}
    frames = yield from load_frames({(s.space, s.row.frame) for s in found}, seals)
    values: list[Places] = []
    wanted: set[int] = set()
    for stored in found:
        frame = frames[stored.space, stored.row.frame]
        stored.checkpoint = unpack_header(stored.header, stored.id, frame)
        own, loose = stored.row.on(frame)
        places = own | loose if loose else own
        if shown is not None:
            places = {c: places[c] for c in places if shown(c)}
        values.append(places)
        first, _ = span(stored.space)
        wanted.update(first | count for count in counts(values[-1].values()))
        wanted.update(first | count for count in reached(stored.kept))
    rows: Sequence[Row] = ()
    if wanted:
        rows = yield from Query(
            f"{NEED} SELECT c.id, c.base, c.tag, c.data"
            " FROM need n JOIN towpath_cells c ON c.id = n.id",
            (as_json(wanted),),
        )
    links = _links(rows, seals)
    pending: _Pendings = {}
    if at != _NOWHERE:
        pending = yield from _pending(found, seals, at)
    for stored, places in zip(found, values, strict=True):
        first, _ = span(stored.space)
        stored.cells = {c: _link(places[c], first, links) for c in places}
        recorded = pending.get((stored.space, stored.id), [])
        stored.writes = recorded + _not_in(recorded, stored.kept, first, links)


def _link(place: Place, first: int, links: Mapping[int, Link]) -> Link:
    """Return the value that is in a place."""
    if not isinstance(place, int):
        return Link(*place)
    return _NOTHING if place == NO_CELL else links[first | place]


def _not_in(
    recorded: Sequence[Pending],
    kept: Sequence[Kept],
    first: int,
    links: Mapping[int, Link],
) -> list[Pending]:
    """Return the writes that are kept, but for those recorded before."""
    places = {(write.task, write.idx) for write in recorded}
    return [
        Pending(task, path, idx, channel, _link(place, first, links), start)
        for task, path, idx, channel, place, start in kept
        if (task, idx) not in places
    ]


def _links(rows: Sequence[Row], seals: Mapping[int, Seal]) -> dict[int, Link]:
    """Tie cells to those they build on, which always have smaller numbers."""
    links: dict[int, Link] = {}
    for number, distance, tag, data in sorted(rows):
        base = None if distance is None else links[number - distance]
        space, count = divmod(number, 1 << CELL_BITS)
        cell = seals[space].open_cell(count, distance, (tag, data))
        links[number] = Link(*cell, base)
    return links


def _pending(
    found: Sequence[Stored], seals: Mapping[int, Seal], at: str
) -> Program[_Pendings]:
    """Fetch the other pending writes, by space and checkpoint."""
    ids = [stored.id for stored in found]
    of_spaces: str = "= ?"
    spaces: Any = found[0].space
    if len(seals) > 1:
        of_spaces, spaces = "IN (SELECT value FROM json_each(?))", as_json(seals)
    rows = yield from Query(
        "SELECT w.space, w.checkpoint, w.task, w.idx, w.channel, w.path, w.tag, w.data"
        f" FROM towpath_writes w WHERE w.space {of_spaces} AND w.checkpoint {at}",
        (spaces, min(ids), max(ids)) if at == _BETWEEN else (spaces,),
    )
    pending: _Pendings = {}
    for space, checkpoint, task, idx, channel, path, *cell in rows:
        write = WriteCell(task, idx, channel, path, (cell[0], cell[1]))
        link = Link(*seals[space].open_write(checkpoint, write).cell)
        one = Pending(task, path, idx, channel, link)
        pending.setdefault((space, checkpoint), []).append(one)
    return pending
