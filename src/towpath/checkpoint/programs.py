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
- `checkpoints`: the header of each, and which cells it is made of, see `layout`. A
  branch refers to cells of its own; an unchanged channel costs a reference. `writes`
  are those of its tasks that came with the next checkpoint; `written`, how many.
- `writes`: all other pending writes. They may come before their checkpoint does.
- `leases`: which run may write to a thread, and until when if it does not renew
  that. The time is the database's. The epoch outlives the run.
"""

from __future__ import annotations

from collections.abc import (
    Callable,
    Collection,
    Coroutine,
    Generator,
    Iterable,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from towpath.checkpoint.kept import reached, unpack_kept
from towpath.checkpoint.layout import Cells, Frame, counts
from towpath.checkpoint.sealing import CELLS, KEPT, Seal
from towpath.errors import PersistenceError

R = TypeVar("R")
Row = tuple[Any, ...]

CELL_BITS: Final = 32
"""How many bits of a cell's number count within its space."""
NOW: Final = "(julianday('now') - 2440587.5) * 86400.0"
"""The time, in seconds since 1970."""
NEED: Final = (
    "WITH RECURSIVE need(id) AS (SELECT value FROM json_each(?)"
    " UNION SELECT c.id - c.base FROM towpath_cells c JOIN need n ON c.id = n.id"
    " WHERE c.base IS NOT NULL)"
)
"""The numbers of cells in a JSON list, and of those that they build on."""

HOLD: Final = "/* hold */"
"""Behind a query of rows: nobody else changes them until this program is over.

A database with one writer at a time has nothing to do for it.
"""


@dataclass(slots=True)
class Query:
    """One statement. `yield from` it to get the rows."""

    sql: str
    args: Sequence[Any] = ()
    many: bool = False
    """Run it once for each of `args`; there are no rows then."""
    lock: str | None = None
    """A thread whose other writers wait, from before this statement to the end.

    Two statements that number cells of one space at once would choose the same
    numbers. A database with one writer at a time has nothing to do for it.
    """

    def __iter__(self) -> Generator[Query, list[Row], list[Row]]:
        rows = yield self
        return rows


Program = Generator[Query, list[Row], R]
Make = Callable[[], Program[R]]
"""Makes a program, again if it has to be run again."""


class Ready:
    """Something that is done already, or is done by awaiting it."""

    def __init__(
        self, pending: Callable[[], Coroutine[Any, Any, None]] | None = None
    ) -> None:
        self._pending = pending

    def __await__(self) -> Generator[Any, None, None]:
        if self._pending is not None:
            yield from self._pending().__await__()


Migrations = tuple[tuple[str, ...], ...]
"""What each version of the tables adds."""

MIGRATIONS: Final[Migrations] = (
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
            base INTEGER,
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
        """CREATE TABLE towpath_leases (
            thread TEXT PRIMARY KEY,
            owner TEXT,
            epoch INTEGER NOT NULL,
            expires REAL NOT NULL)""",
    ),
    (
        "ALTER TABLE towpath_checkpoints ADD COLUMN written INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE towpath_checkpoints ADD COLUMN writes BLOB",
    ),
)
"""What each version of the schema adds. A released entry never changes."""


VERSIONS: Final = "towpath_migrations"
"""The table of the versions that the tables of savers have had."""


def migrate(
    versions: str = VERSIONS, migrations: Migrations = MIGRATIONS
) -> Program[None]:
    """Bring tables to the newest version.

    Raises:
        PersistenceError: a newer Towpath made them.
    """
    yield Query(f"CREATE TABLE IF NOT EXISTS {versions} (v INTEGER PRIMARY KEY)")
    [(version,)] = yield from Query(f"SELECT max(v) FROM {versions}")
    done = 0 if version is None else version + 1
    if done > len(migrations):
        raise PersistenceError(
            f"the tables are of version {done}, this Towpath knows {len(migrations)}",
            hint="upgrade towpath",
        )
    for number in range(done, len(migrations)):
        for statement in migrations[number]:
            yield Query(statement)
        yield Query(f"INSERT INTO {versions} (v) VALUES (?)", (number,))


def span(space: int) -> tuple[int, int]:
    """Return the first and the last number of a space's cells."""
    return space << CELL_BITS, (space + 1 << CELL_BITS) - 1


def new_space(thread: str, ns: str) -> Program[int]:
    """Add a namespace of a thread; return its number."""
    [(space,)] = yield from Query(
        # Writes come without a lock, so another process may have made it just now.
        "INSERT INTO towpath_spaces (thread, ns) VALUES (?, ?)"
        " ON CONFLICT (thread, ns) DO UPDATE SET ns = excluded.ns RETURNING id",
        (thread, ns),
    )
    return int(space)


def as_json(numbers: Iterable[int]) -> str:
    """Return numbers as one argument of a query."""
    return f"[{','.join(map(str, numbers))}]"


def load_frames(
    wanted: Iterable[tuple[int, int | None]], seals: Mapping[int, Seal]
) -> Program[dict[tuple[int, int | None], Frame | None]]:
    """Fetch the frames of rows, each named by its space and the count of its cell.

    A row that has none has None.
    """
    frames: dict[tuple[int, int | None], Frame | None] = dict.fromkeys(wanted)
    numbers = [span(space)[0] | count for space, count in frames if count is not None]
    if not numbers:
        return frames
    rows = yield from Query(
        "SELECT id, tag, data FROM towpath_cells"
        " WHERE id IN (SELECT value FROM json_each(?))",
        (as_json(numbers),),
    )
    for number, *cell in rows:
        space, count = divmod(number, 1 << CELL_BITS)
        _, data = seals[space].open_cell(count, None, (cell[0], cell[1]))
        frames[space, count] = Frame.unpack(data)
    return frames


@dataclass(frozen=True, slots=True)
class Needs:
    """What the row of a checkpoint needs: its cells, and those of kept writes."""

    cells: Cells
    kept: Collection[int] = ()

    @classmethod
    def of(cls, seal: Seal, row: Row) -> Needs:
        """Read them from the columns `id, cells, meta_tag, writes`."""
        at, cells, tag, writes = row
        opened = Cells.unpack(seal.open_part(CELLS, at, cells, tag))
        if writes is None:
            return cls(opened)
        return cls(opened, reached(unpack_kept(seal.open_part(KEPT, at, writes, tag))))


def needed(space: int, seal: Seal, needs: Sequence[Needs]) -> Program[set[int]]:
    """Return which cells rows need, but for those that these build on."""
    frames = yield from load_frames(
        {(space, one.cells.frame) for one in needs}, {space: seal}
    )
    live = {count for _, count in frames if count is not None}
    for one in needs:
        live.update(one.kept)
        for places in one.cells.on(frames[space, one.cells.frame]):
            live.update(counts(places.values()))
    return live


def sweep(space: int, seal: Seal) -> Program[None]:
    """Delete the cells of a space that no checkpoint needs."""
    rows = yield from Query(
        "SELECT id, cells, meta_tag, writes FROM towpath_checkpoints WHERE space = ?",
        (space,),
    )
    yield from drop_cells(space, seal, [Needs.of(seal, row) for row in rows], dry=False)


def drop_cells(
    space: int, seal: Seal, needs: Sequence[Needs], dry: bool
) -> Program[list[int]]:
    """Delete the cells of a space that these checkpoints do not need.

    Return the size of each, in bytes. If `dry`, do nothing else.
    """
    live = yield from needed(space, seal, needs)
    first, last = span(space)
    rest = (
        "FROM towpath_cells WHERE id BETWEEN ? AND ?"
        f" AND id NOT IN ({NEED} SELECT id FROM need)"
    )
    rows = yield from Query(
        f"SELECT length(data) {rest}"
        if dry
        else f"DELETE {rest} RETURNING length(data)",
        (first, last, as_json(first | count for count in live)),
    )
    return [size for (size,) in rows]
