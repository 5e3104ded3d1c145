"""Programs that go over all rows of a thread: copying it, and changing its keys.

What is sealed is bound to its thread, so it is opened and sealed anew. A page of rows
is in memory at a time, however long the thread is. What is not sealed the database
copies by itself, about six times as fast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from towpath.checkpoint.base.rules import Affected
from towpath.checkpoint.programs import CELL_BITS, Program, Query, Row, new_space, span
from towpath.checkpoint.record import WriteCell
from towpath.checkpoint.sealing import CELLS, HEADER, KEPT, PLAIN, Seal, SealOf

_PAGE: Final = 200


@dataclass(frozen=True, slots=True)
class _Table:
    """A table, and how its rows are opened and sealed: key and columns together."""

    name: str
    owner: tuple[str, ...]
    """The column that names the space; in cells, their number does."""
    key: tuple[str, ...]
    columns: tuple[str, ...]
    contents: str
    """How many bytes a row holds, and how many writes are kept in it."""
    open: Callable[[Seal, Row], Row]
    close: Callable[[Seal, Row], Row]

    def within(self, space: int) -> tuple[str, Row]:
        """Return the condition for the rows of a space."""
        if self.owner:
            return "space = ?", (space,)
        return "id BETWEEN ? AND ?", span(space)

    def moved(self, row: Row, old: int, new: int) -> Row:
        """Return a row as it is inserted into another space."""
        if self.owner:
            return new, *row
        number, *rest = row
        return number + (new - old << CELL_BITS), *rest


def _open_checkpoint(seal: Seal, row: Row) -> Row:
    at, parent, written, writes, header, cells, tag, meta = row
    return (
        at,
        parent,
        written,
        None if writes is None else seal.open_part(KEPT, at, writes, tag),
        seal.open_part(HEADER, at, header, tag),
        seal.open_part(CELLS, at, cells, tag),
        *seal.open_metadata(at, (tag, meta)),
    )


def _close_checkpoint(seal: Seal, row: Row) -> Row:
    at, parent, written, writes, *columns = row
    header, cells, tag, meta = columns
    closed = seal.close_checkpoint(at, (header, cells, tag, meta))
    if writes is not None:
        writes = seal.close_part(KEPT, at, writes, closed[2])
    return at, parent, written, writes, *closed


def _write(row: Row) -> tuple[str, WriteCell]:
    checkpoint, task, idx, channel, path, tag, data = row
    return checkpoint, WriteCell(task, idx, channel, path, (tag, data))


def _open_write(seal: Seal, row: Row) -> Row:
    *place, _, _ = row
    return *place, *seal.open_write(*_write(row)).cell


def _close_write(seal: Seal, row: Row) -> Row:
    *place, _, _ = row
    return *place, *seal.close_write(*_write(row)).cell


def _open_cell(seal: Seal, row: Row) -> Row:
    number, base, *cell = row
    count = number & (1 << CELL_BITS) - 1
    return number, base, *seal.open_cell(count, base, (cell[0], cell[1]))


def _close_cell(seal: Seal, row: Row) -> Row:
    number, base, *cell = row
    count = number & (1 << CELL_BITS) - 1
    return number, base, *seal.close_cell(count, base, (cell[0], cell[1]))


_CHECKPOINTS: Final = _Table(
    "towpath_checkpoints",
    ("space",),
    ("id",),
    ("parent", "written", "writes", "header", "cells", "meta_tag", "meta"),
    "length(header) + length(cells) + length(meta) + coalesce(length(writes), 0),"
    " written",
    _open_checkpoint,
    _close_checkpoint,
)
_TABLES: Final = (
    _CHECKPOINTS,
    _Table(
        "towpath_writes",
        ("space",),
        ("checkpoint", "task", "idx"),
        ("channel", "path", "tag", "data"),
        "length(data), 0",
        _open_write,
        _close_write,
    ),
    _Table(
        "towpath_cells",
        (),
        ("id",),
        ("base", "tag", "data"),
        "length(data), 0",
        _open_cell,
        _close_cell,
    ),
)


def _pages(
    table: _Table, space: int, work: Callable[[Sequence[Row]], Program[None]]
) -> Program[None]:
    """Have something done to the rows of a space, page by page."""
    key = ", ".join(table.key)
    where, args = table.within(space)
    fields = ", ".join([*table.key, *table.columns])
    marks = ", ".join("?" * len(table.key))
    sql = f"SELECT {fields} FROM {table.name} WHERE {where}"
    end = f" ORDER BY {key} LIMIT {_PAGE}"
    rows = yield from Query(f"{sql}{end}", args)
    while rows:
        yield from work(rows)
        after = rows[-1][: len(table.key)]
        if len(rows) < _PAGE:
            return
        further = f" AND ({key}) > ({marks})"
        rows = yield from Query(f"{sql}{further}{end}", (*args, *after))


class _Count:
    """Counts rows by table, and their bytes."""

    def __init__(self) -> None:
        self.rows = dict.fromkeys((table.name for table in _TABLES), 0)
        self.kept = self.bytes = 0

    def add(self, table: _Table, contents: Sequence[Row]) -> None:
        """Count rows, each by how much it holds."""
        self.rows[table.name] += len(contents)
        self.bytes += sum(size for size, _ in contents)
        self.kept += sum(kept for _, kept in contents)

    def affected(self) -> Affected:
        """Return the counts."""
        checkpoints, writes, cells = self.rows.values()
        threads = 1 if checkpoints or writes or cells else 0
        return Affected(threads, checkpoints, writes + self.kept, cells, self.bytes)


def _spaces(thread: str, dry: bool) -> Program[list[Row]]:
    rows = yield from Query(
        "SELECT id, ns FROM towpath_spaces WHERE thread = ? ORDER BY id",
        (thread,),
        lock=None if dry else thread,
    )
    return rows


# Copying


def copy_thread(
    source: str, target: str, seal_of: SealOf, dry: bool
) -> Program[Affected]:
    """Copy a thread, with its whole history; if `dry`, only count it.

    Raises:
        ValueError: the target is not empty.
        SealError: (TP-510) it is sealed, and there are no keys.
    """
    if (yield from _spaces(target, dry)):
        raise ValueError(f"thread `{target}` is not empty")
    count = _Count()
    for old, ns in (yield from _spaces(source, dry)):
        new = None if dry else (yield from new_space(target, ns))
        seals = seal_of(source, ns), seal_of(target, ns)
        if seals[0] is PLAIN:
            yield from _require_plain(old)
        for table in _TABLES:
            if new is None:
                contents = yield from _contents(table, old)
            elif seals == (PLAIN, PLAIN):
                contents = yield from _copy(table, old, new)
            else:
                contents = yield from _copy_sealed(table, old, new, *seals)
            count.add(table, contents)
    return count.affected()


def _require_plain(space: int) -> Program[None]:
    # What is sealed opens in its thread only: its copy would be of no use.
    rows = yield from Query(
        "SELECT id, cells, meta_tag FROM towpath_checkpoints"
        " WHERE space = ? AND meta_tag LIKE '%@' LIMIT 1",
        (space,),
    )
    for row in rows:
        PLAIN.open_part(CELLS, *row)


def _contents(table: _Table, space: int) -> Program[list[Row]]:
    where, args = table.within(space)
    rows = yield from Query(
        f"SELECT {table.contents} FROM {table.name} WHERE {where}",
        args,
    )
    return rows


def _copy(table: _Table, old: int, new: int) -> Program[list[Row]]:
    """Copy the rows of a space as they are; return how much each holds."""
    fields = [*table.owner, *table.key, *table.columns]
    moved = new if table.owner else new - old << CELL_BITS
    values = ["?" if table.owner else "id + ?", *fields[1:]]
    where, args = table.within(old)
    rows = yield from Query(
        f"INSERT INTO {table.name} ({', '.join(fields)})"
        f" SELECT {', '.join(values)} FROM {table.name} WHERE {where}"
        f" RETURNING {table.contents}",
        (moved, *args),
    )
    return rows


def _copy_sealed(
    table: _Table, old: int, new: int, here: Seal, there: Seal
) -> Program[list[Row]]:
    """Copy the rows of a space, sealed for the new one; return how much each holds."""
    fields = [*table.owner, *table.key, *table.columns]
    insert = (
        f"INSERT INTO {table.name} ({', '.join(fields)})"
        f" VALUES ({', '.join('?' * len(fields))})"
    )
    contents: list[Row] = []

    def copy(rows: Sequence[Row]) -> Program[None]:
        contents.extend(_held(table, row) for row in rows)
        sealed = [table.close(there, table.open(here, row)) for row in rows]
        yield Query(insert, [table.moved(row, old, new) for row in sealed], many=True)

    yield from _pages(table, old, copy)
    return contents


def _held(table: _Table, row: Row) -> Row:
    """Return how many bytes a row holds, and how many writes are kept in it."""
    size = sum(len(field) for field in row if isinstance(field, bytes))
    return size, row[2] if table is _CHECKPOINTS else 0


# Changing keys


def rotate(thread: str, seal_of: SealOf, dry: bool) -> Program[Affected]:
    """Seal again what is not sealed with the current key; if `dry`, only count it."""
    count = _Count()
    for space, ns in (yield from _spaces(thread, dry)):
        for table in _TABLES:
            yield from _rotate(table, space, seal_of(thread, ns), count, dry)
    return count.affected()


def _rotate(
    table: _Table, space: int, seal: Seal, count: _Count, dry: bool
) -> Program[None]:
    named = " AND ".join(f"{name} = ?" for name in (*table.owner, *table.key))
    settings = ", ".join(f"{name} = ?" for name in table.columns)
    # Pending writes are recorded without a lock: what was replaced meanwhile stays.
    same = f"{table.columns[-1]} = ?"
    update = f"UPDATE {table.name} SET {settings} WHERE {named} AND {same}"
    width = len(table.key)
    owner = (space,) if table.owner else ()

    def reseal(rows: Sequence[Row]) -> Program[None]:
        stale = [row for row in rows if not seal.is_current((row[-2], row[-1]))]
        count.add(table, [_held(table, row) for row in stale])
        if stale and not dry:
            sealed = [table.close(seal, table.open(seal, row)) for row in stale]
            changes = [
                (*new[width:], *owner, *old[:width], old[-1])
                for old, new in zip(stale, sealed, strict=True)
            ]
            yield Query(update, changes, many=True)

    yield from _pages(table, space, reseal)
