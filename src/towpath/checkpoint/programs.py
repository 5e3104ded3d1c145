"""The SQL of a saver, written once for every driver.

A program is a generator that yields `Query` objects and is sent their rows. It
does no I/O, so the same one runs on a blocking connection, in a thread, or on
an async connection; a driver runs each in one transaction. Programs see encoded
values only, and what a driver hands them was encoded beforehand.

The tables:

- `spaces`: one row per namespace of a thread. The others refer to its number,
  so a long namespace is stored once.
- `cells`: the encoded values. The number of a cell is that of its space and a
  count within the space (`CELL_BITS`): one tree, in which the cells of a thread
  lie together, and a thread is copied by shifting numbers.
- `checkpoints`: the header of each, and which cells it is made of. A branch
  refers to cells of its own; an unchanged channel costs a reference.
- `writes`: pending writes. They may come before their checkpoint does.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeVar

from towpath.checkpoint.base.model import Address, ChannelVersions
from towpath.checkpoint.record import Cell, WriteCell, changed, inherit
from towpath.checkpoint.serde.codec import Codec
from towpath.errors import PersistenceError

R = TypeVar("R")
Row = tuple[Any, ...]

CELL_BITS: Final = 32
"""How many bits of a cell's number count within its space."""

_codec: Final = Codec()


@dataclass(slots=True)
class Query:
    """One statement. `yield from` it to get the rows."""

    sql: str
    args: Sequence[Any] = ()
    many: bool = False
    """Run it once for each of `args`; there are no rows then."""

    def __iter__(self) -> Generator[Query, list[Row], list[Row]]:
        rows = yield self
        return rows


Program = Generator[Query, list[Row], R]

MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (
        """CREATE TABLE towpath_spaces (
            id INTEGER PRIMARY KEY,
            thread TEXT NOT NULL,
            ns TEXT NOT NULL,
            UNIQUE (thread, ns))""",
        """CREATE TABLE towpath_checkpoints (
            space INTEGER NOT NULL,
            id TEXT NOT NULL,
            parent TEXT,
            header BLOB NOT NULL,
            cells BLOB NOT NULL,
            meta_tag TEXT NOT NULL,
            meta BLOB NOT NULL,
            PRIMARY KEY (space, id)) WITHOUT ROWID""",
        # With a rowid, because values of a few KB would not fit into the leaves
        # of a tree without one.
        """CREATE TABLE towpath_cells (
            id INTEGER PRIMARY KEY,
            tag TEXT NOT NULL,
            data BLOB NOT NULL)""",
        """CREATE TABLE towpath_writes (
            space INTEGER NOT NULL,
            checkpoint TEXT NOT NULL,
            task TEXT NOT NULL,
            idx INTEGER NOT NULL,
            channel TEXT NOT NULL,
            path TEXT NOT NULL,
            tag TEXT NOT NULL,
            data BLOB NOT NULL,
            UNIQUE (space, checkpoint, task, idx))""",
    ),
)
"""What each version of the schema adds. A released entry never changes."""


def migrate() -> Program[None]:
    """Bring the tables to the newest version.

    Raises:
        PersistenceError: a newer Towpath made them.
    """
    yield Query("CREATE TABLE IF NOT EXISTS towpath_migrations (v INTEGER PRIMARY KEY)")
    [(version,)] = yield from Query("SELECT max(v) FROM towpath_migrations")
    done = 0 if version is None else version + 1
    if done > len(MIGRATIONS):
        raise PersistenceError(
            f"the tables are of version {done}, this Towpath knows {len(MIGRATIONS)}",
            hint="upgrade towpath",
        )
    for number in range(done, len(MIGRATIONS)):
        for statement in MIGRATIONS[number]:
            yield Query(statement)
        yield Query("INSERT INTO towpath_migrations (v) VALUES (?)", (number,))


# Writing


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
    """The values encoded so far."""
    loose: dict[str, Cell]
    """Values of channels without a version."""
    writes: list[WriteCell] = field(default_factory=list)
    """Pending writes of the parent."""


class _Parent(NamedTuple):
    """What a new checkpoint builds on."""

    space: int | None
    versions: ChannelVersions | None
    cells: dict[str, int]
    newest: int | None
    """The number of the space's newest cell, whoever refers to it."""


def commit(draft: Draft) -> Program[set[str]]:
    """Store pending writes and the checkpoint they lead to.

    Nothing is stored when the result is not empty: it names the channels whose
    values the draft lacks. They are in no parent that is stored here.
    """
    parent = yield from _parent(draft)
    channels = changed(draft.versions, draft.new_versions, parent.versions)
    missing = {c for c in channels if c in draft.held and c not in draft.cells}
    if missing:
        return missing
    space = parent.space
    if space is None:
        space = yield from _new_space(draft.thread, draft.ns)
    own = {c: draft.cells[c] for c in channels if c in draft.cells}
    values = [*own.values(), *draft.loose.values()]
    numbers = yield from _store_cells(space, parent.newest, values)
    placed = dict(zip(own, numbers, strict=False))
    cells = inherit(parent.cells, placed, channels, draft.versions)
    loose = dict(zip(draft.loose, numbers[len(own) :], strict=True))
    yield Query(
        "INSERT INTO towpath_checkpoints"
        " (space, id, parent, header, cells, meta_tag, meta)"
        " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (space, id) DO UPDATE SET"
        " parent = excluded.parent, header = excluded.header,"
        " cells = excluded.cells, meta_tag = excluded.meta_tag, meta = excluded.meta",
        (
            space,
            draft.id,
            draft.parent,
            draft.header,
            _codec.encode([cells, loose]),
            *draft.meta,
        ),
    )
    if draft.writes:
        assert draft.parent is not None
        yield from _store_writes(space, draft.parent, draft.writes)
    return set()


def _parent(draft: Draft) -> Program[_Parent]:
    rows = yield from Query(
        # The count of a cell is 32 bits wide, see CELL_BITS.
        "SELECT s.id, c.header, c.cells, (SELECT max(k.id) FROM towpath_cells k"
        " WHERE k.id BETWEEN (s.id << 32) AND (s.id << 32) + 4294967295)"
        " FROM towpath_spaces s"
        " LEFT JOIN towpath_checkpoints c ON c.space = s.id AND c.id = ?"
        " WHERE s.thread = ? AND s.ns = ?",
        (draft.parent, draft.thread, draft.ns),
    )
    if not rows:
        return _Parent(None, None, {}, None)
    [(space, header, cells, newest)] = rows
    if header is None:
        return _Parent(space, None, {}, newest)
    versions = _codec.decode(header)["channel_versions"]
    return _Parent(space, versions, _codec.decode(cells)[0], newest)


def _new_space(thread: str, ns: str) -> Program[int]:
    [(space,)] = yield from Query(
        "INSERT INTO towpath_spaces (thread, ns) VALUES (?, ?) RETURNING id",
        (thread, ns),
    )
    return int(space)


def _span(space: int) -> tuple[int, int]:
    """Return the first and the last number of a space's cells."""
    return space << CELL_BITS, (space + 1 << CELL_BITS) - 1


def _store_cells(
    space: int, newest: int | None, cells: Sequence[Cell]
) -> Program[list[int]]:
    """Store values after the newest; return their counts within the space."""
    first, _ = _span(space)
    start = first if newest is None else newest + 1
    numbers = range(start, start + len(cells))
    if cells:
        yield Query(
            "INSERT INTO towpath_cells (id, tag, data) VALUES (?, ?, ?)",
            [(number, *cell) for number, cell in zip(numbers, cells, strict=True)],
            many=True,
        )
    return [number - first for number in numbers]


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
    space: int, checkpoint: str, writes: Sequence[WriteCell]
) -> Program[None]:
    for replaces, sql in ((False, _KEEP_WRITE), (True, _REPLACE_WRITE)):
        rows = [
            (space, checkpoint, w.task, w.idx, w.channel, w.path, *w.cell)
            for w in writes
            if w.replaces is replaces
        ]
        if rows:
            yield Query(sql, rows, many=True)


def put_writes(
    thread: str, ns: str, checkpoint: str, writes: Sequence[WriteCell]
) -> Program[None]:
    """Record what a task wrote on top of a checkpoint."""
    rows = yield from Query(
        "SELECT id FROM towpath_spaces WHERE thread = ? AND ns = ?", (thread, ns)
    )
    space = rows[0][0] if rows else (yield from _new_space(thread, ns))
    yield from _store_writes(space, checkpoint, writes)


# Reading


@dataclass(slots=True)
class Stored:
    """A checkpoint as it is stored."""

    space: int
    thread: str
    ns: str
    id: str
    parent: str | None
    header: bytes
    numbers: tuple[dict[str, int], dict[str, int]]
    meta: Cell
    cells: dict[str, Cell] = field(default_factory=dict)
    writes: list[WriteCell] = field(default_factory=list)


_SELECT = (
    "SELECT s.id, s.thread, s.ns, c.id, c.parent, c.header, c.cells, c.meta_tag, c.meta"
    " FROM towpath_spaces s JOIN towpath_checkpoints c ON c.space = s.id"
)


def latest(address: Address) -> Program[Stored | None]:
    """Fetch the checkpoint of an address, or the newest of its space."""
    where, args = " WHERE s.thread = ? AND s.ns = ?", [*address.space]
    if address.id is not None:
        where, args = where + " AND c.id = ?", [*args, address.id]
    rows = yield from Query(f"{_SELECT}{where} ORDER BY c.id DESC LIMIT 1", args)
    found = [_stored(row) for row in rows]
    yield from _fill(found)
    return found[0] if found else None


@dataclass(frozen=True, slots=True)
class Scope:
    """Which checkpoints a listing is about."""

    address: Address | None
    until: str | None
    keep: Callable[[Cell], bool] | None
    """Decides by the metadata."""


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
    found = [_stored(row) for row in rows]
    mark = (found[-1].id, found[-1].space) if len(found) == size else None
    if scope.keep is not None:
        found = [stored for stored in found if scope.keep(stored.meta)]
    yield from _fill(found)
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


def _stored(row: Row) -> Stored:
    space, thread, ns, at, parent, header, cells, meta_tag, meta = row
    own, loose = _codec.decode(cells)
    return Stored(space, thread, ns, at, parent, header, (own, loose), (meta_tag, meta))


def _fill(found: Sequence[Stored]) -> Program[None]:
    """Fetch the values and the pending writes of checkpoints."""
    if not found:
        return
    wanted = {
        stored.space << CELL_BITS | number
        for stored in found
        for numbers in stored.numbers
        for number in numbers.values()
    }
    rows = yield from Query(
        "SELECT id, tag, data FROM towpath_cells"
        " WHERE id IN (SELECT value FROM json_each(?))",
        (_json(wanted),),
    )
    cells = {number: (tag, data) for number, tag, data in rows}
    pending = yield from _pending(found)
    for stored in found:
        first, _ = _span(stored.space)
        for numbers in stored.numbers:
            stored.cells.update((c, cells[first | n]) for c, n in numbers.items())
        stored.writes = pending.get((stored.space, stored.id), [])


def _pending(
    found: Sequence[Stored],
) -> Program[dict[tuple[int, str], list[WriteCell]]]:
    """Fetch pending writes, by space and checkpoint."""
    spans: dict[int, list[str]] = {}
    for stored in found:
        spans.setdefault(stored.space, []).append(stored.id)
    pending: dict[tuple[int, str], list[WriteCell]] = {}
    for space, ids in spans.items():
        rows = yield from Query(
            "SELECT checkpoint, task, idx, channel, path, tag, data"
            " FROM towpath_writes WHERE space = ? AND checkpoint BETWEEN ? AND ?",
            (space, min(ids), max(ids)),
        )
        for checkpoint, task, idx, channel, path, *cell in rows:
            write = WriteCell(task, idx, channel, path, (cell[0], cell[1]))
            pending.setdefault((space, checkpoint), []).append(write)
    return pending


def _json(numbers: Iterable[int]) -> str:
    return f"[{','.join(map(str, numbers))}]"


# Threads over time


def _spaces(thread: str) -> Program[list[int]]:
    rows = yield from Query(
        "SELECT id FROM towpath_spaces WHERE thread = ? ORDER BY id", (thread,)
    )
    return [space for (space,) in rows]


def delete_threads(threads: Sequence[str]) -> Program[None]:
    """Delete everything of these threads."""
    spaces: list[int] = []
    for thread in threads:
        spaces += yield from _spaces(thread)
    keys = [(space,) for space in spaces]
    yield Query("DELETE FROM towpath_checkpoints WHERE space = ?", keys, many=True)
    yield Query("DELETE FROM towpath_writes WHERE space = ?", keys, many=True)
    yield Query(
        "DELETE FROM towpath_cells WHERE id BETWEEN ? AND ?",
        [_span(space) for space in spaces],
        many=True,
    )
    yield Query("DELETE FROM towpath_spaces WHERE id = ?", keys, many=True)


def copy_thread(source: str, target: str) -> Program[None]:
    """Copy a thread, with its whole history.

    Raises:
        ValueError: the target is not empty.
    """
    if (yield from _spaces(target)):
        raise ValueError(f"thread `{target}` is not empty")
    rows = yield from Query(
        "SELECT id, ns FROM towpath_spaces WHERE thread = ? ORDER BY id", (source,)
    )
    for old, ns in rows:
        new = yield from _new_space(target, ns)
        yield Query(
            "INSERT INTO towpath_checkpoints"
            " (space, id, parent, header, cells, meta_tag, meta)"
            " SELECT ?, id, parent, header, cells, meta_tag, meta"
            " FROM towpath_checkpoints WHERE space = ?",
            (new, old),
        )
        yield Query(
            "INSERT INTO towpath_writes"
            " (space, checkpoint, task, idx, channel, path, tag, data)"
            " SELECT ?, checkpoint, task, idx, channel, path, tag, data"
            " FROM towpath_writes WHERE space = ?",
            (new, old),
        )
        yield Query(
            "INSERT INTO towpath_cells (id, tag, data) SELECT id + ?, tag, data"
            " FROM towpath_cells WHERE id BETWEEN ? AND ?",
            (new - old << CELL_BITS, *_span(old)),
        )


def prune(threads: Sequence[str]) -> Program[None]:
    """Keep the newest checkpoint of each namespace of these threads."""
    spaces: list[int] = []
    for thread in threads:
        spaces += yield from _spaces(thread)
    for space in spaces:
        [(newest,)] = yield from Query(
            "SELECT max(id) FROM towpath_checkpoints WHERE space = ?", (space,)
        )
        for sql in (
            "DELETE FROM towpath_checkpoints WHERE space = ? AND id <> ?",
            "DELETE FROM towpath_writes WHERE space = ? AND checkpoint <> ?",
        ):
            yield Query(sql, (space, newest))
        yield Query(
            "UPDATE towpath_checkpoints SET parent = NULL WHERE space = ?", (space,)
        )
        yield from _sweep(space)


def delete_where(doomed: Callable[[Cell], bool]) -> Program[None]:
    """Delete the checkpoints whose metadata is doomed, of all threads."""
    rows = yield from Query("SELECT space, id, meta_tag, meta FROM towpath_checkpoints")
    keys = [(space, at) for space, at, tag, meta in rows if doomed((tag, meta))]
    for sql in (
        "DELETE FROM towpath_checkpoints WHERE space = ? AND id = ?",
        "DELETE FROM towpath_writes WHERE space = ? AND checkpoint = ?",
    ):
        yield Query(sql, keys, many=True)
    for space in {space for space, _ in keys}:
        yield from _sweep(space)


def _sweep(space: int) -> Program[None]:
    """Delete the cells of a space that no checkpoint refers to."""
    rows = yield from Query(
        "SELECT cells FROM towpath_checkpoints WHERE space = ?", (space,)
    )
    live = {number for (cells,) in rows for number in _numbers(cells)}
    first, last = _span(space)
    yield Query(
        "DELETE FROM towpath_cells WHERE id BETWEEN ? AND ?"
        " AND id NOT IN (SELECT value FROM json_each(?))",
        (first, last, _json(first | number for number in live)),
    )


def _numbers(cells: bytes) -> Iterator[int]:
    for numbers in _codec.decode(cells):
        yield from numbers.values()
