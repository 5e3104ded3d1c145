"""Programs that read checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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
from towpath.checkpoint.sealing import CELLS, HEADER, KEPT, Seal, SealOf, plain

_NOTHING = Link(*NULL)


class Pending(NamedTuple):
    """A pending write as it is stored."""

    task: str
    path: str
    idx: int
    channel: str
    link: Link
    start: int | None = None
    """Where in the list of the link the value begins."""


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


_SELECT = (
    "SELECT s.id, s.thread, s.ns, c.id, c.parent, c.header, c.cells, c.meta_tag,"
    " c.meta, c.writes FROM towpath_spaces s"
    " JOIN towpath_checkpoints c ON c.space = s.id"
)


def latest(address: Address, seal_of: SealOf = plain) -> Program[Stored | None]:
    """Fetch the checkpoint of an address, or the newest of its space."""
    # Without a sort, which a database that has no statistics yet might do over all
    # checkpoints of the thread.
    newest = "(SELECT max(k.id) FROM towpath_checkpoints k WHERE k.space = s.id)"
    wanted, args = (newest, []) if address.id is None else ("?", [address.id])
    where = f" WHERE c.id = {wanted} AND s.thread = ? AND s.ns = ?"
    rows = yield from Query(f"{_SELECT}{where}", [*args, *address.space])
    found = [_stored(row, seal_of) for row in rows]
    yield from _fill(found, seal_of)
    return found[0] if found else None


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


def _stored(row: Row, seal_of: SealOf) -> Stored:
    space, thread, ns, at, parent, header, cells, tag, meta, writes = row
    seal = seal_of(thread, ns)
    header = seal.open_part(HEADER, at, header, tag)
    places = Cells.unpack(seal.open_part(CELLS, at, cells, tag))
    opened = seal.open_metadata(at, (tag, meta))
    found = Stored(space, thread, ns, at, parent, header, places, opened)
    if writes is not None:
        found.kept = unpack_kept(seal.open_part(KEPT, at, writes, tag))
    return found


def _fill(found: Sequence[Stored], seal_of: SealOf) -> Program[None]:
    """Fetch the values and the pending writes of checkpoints."""
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
        values.append(own | loose)
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
    pending = yield from _pending(found, seals)
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
    found: Sequence[Stored], seals: Mapping[int, Seal]
) -> Program[dict[tuple[int, str], list[Pending]]]:
    """Fetch the other pending writes, by space and checkpoint."""
    spans: dict[int, list[str]] = {}
    for stored in found:
        spans.setdefault(stored.space, []).append(stored.id)
    pending: dict[tuple[int, str], list[Pending]] = {}
    for space, ids in spans.items():
        rows = yield from Query(
            "SELECT checkpoint, task, idx, channel, path, tag, data"
            " FROM towpath_writes WHERE space = ? AND checkpoint BETWEEN ? AND ?",
            (space, min(ids), max(ids)),
        )
        for checkpoint, task, idx, channel, path, *cell in rows:
            write = WriteCell(task, idx, channel, path, (cell[0], cell[1]))
            link = Link(*seals[space].open_write(checkpoint, write).cell)
            one = Pending(task, path, idx, channel, link)
            pending.setdefault((space, checkpoint), []).append(one)
    return pending
