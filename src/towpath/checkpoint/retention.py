"""Programs for threads over time: deleting and pruning."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple

from towpath.checkpoint import leasing
from towpath.checkpoint.base.rules import (
    Affected,
    Outline,
    Place,
    Rule,
    TaskMarks,
    asks,
    stale_writes,
)
from towpath.checkpoint.kept import Kept, unpack_kept
from towpath.checkpoint.programs import (
    Needs,
    Program,
    Query,
    Row,
    drop_cells,
)
from towpath.checkpoint.record import Cell
from towpath.checkpoint.sealing import KEPT, Seal, SealOf, plain
from towpath.constants import INTERRUPT, RESUME


class Inside(NamedTuple):
    """What it takes to look inside of stored checkpoints."""

    load: Callable[[Cell], Mapping[str, Any]]
    """Decodes metadata."""
    seal_of: SealOf = plain


_PAGE: Final = 500
_OF_THREAD: Final = "space IN (SELECT id FROM towpath_spaces WHERE thread = ?)"
CHECKPOINT_SIZE: Final = (
    "length(header) + length(cells) + length(meta) + coalesce(length(writes), 0)"
)


def page(after: str | None) -> Program[list[tuple[str, str | None]]]:
    """Fetch threads that sort after one, each with its newest checkpoint."""
    where = "" if after is None else " WHERE s.thread > ?"
    rows = yield from Query(
        "SELECT s.thread, max((SELECT max(k.id) FROM towpath_checkpoints k"
        f" WHERE k.space = s.id)) FROM towpath_spaces s{where}"
        " GROUP BY s.thread ORDER BY s.thread LIMIT ?",
        (_PAGE,) if after is None else (after, _PAGE),
    )
    return [(thread, newest) for thread, newest in rows]


# Removing


def remove(thread: str, rule: Rule, inside: Inside, dry: bool) -> Program[Affected]:
    """Remove from a thread what a rule dooms; if `dry`, only count it."""
    known = yield from _look(thread, inside, dry)
    if rule.spares(known.outline):
        return Affected(running=1)
    doomed = rule.doomed(known.outline)
    if doomed and len(doomed) == len(known.nodes):
        return (yield from delete(thread, dry))
    stale = stale_writes(known.outline, doomed, known.written)
    if not dry:
        yield from _delete_places(known, doomed, stale)
    seals = {known.spaces[ns]: inside.seal_of(thread, ns) for ns, _ in doomed}
    cells = yield from _unused_cells(known, doomed, seals, dry)
    if not dry:
        yield from _delete_empty(known, doomed)
    sizes = [known.nodes[place].size for place in doomed]
    writes = [known.written[place] for place in stale]
    return Affected(
        threads=1 if doomed or stale else 0,
        checkpoints=len(doomed),
        writes=sum(count for count, _ in writes)
        + sum(known.nodes[place].written for place in doomed),
        cells=len(cells),
        bytes=sum(sizes) + sum(size for _, size in writes) + sum(cells),
    )


def delete(thread: str, dry: bool) -> Program[Affected]:
    """Delete everything of a thread; if `dry`, only count it."""
    if not dry:
        # First, so that it waits for who is storing under the thread's lease.
        yield Query(
            "DELETE FROM towpath_leases WHERE thread = ?", (thread,), lock=thread
        )
    take = partial(_take, args=(thread,), dry=dry)
    checkpoints = yield from take(
        "towpath_checkpoints", f"{CHECKPOINT_SIZE}, written", _OF_THREAD
    )
    writes = yield from take("towpath_writes", "length(data)", _OF_THREAD)
    cells = yield from take(
        "towpath_cells",
        "length(data)",
        # The count of a cell is 32 bits wide, see CELL_BITS.
        "id IN (SELECT k.id FROM towpath_spaces s JOIN towpath_cells k"
        " ON k.id BETWEEN (s.id << 32) AND (s.id << 32) + 4294967295"
        " WHERE s.thread = ?)",
    )
    spaces = yield from take("towpath_spaces", "id", "thread = ?")
    return Affected(
        threads=1 if spaces else 0,
        checkpoints=len(checkpoints),
        writes=len(writes) + sum(written for _, written in checkpoints),
        cells=len(cells),
        bytes=sum(size for size, *_ in (*checkpoints, *writes, *cells)),
    )


def _take(
    table: str,
    fields: str,
    where: str,
    *,
    args: Sequence[Any],
    dry: bool,
) -> Program[list[Row]]:
    """Delete rows, or only find them; return fields of each."""
    sql = (
        f"SELECT {fields} FROM {table} WHERE {where}"
        if dry
        else f"DELETE FROM {table} WHERE {where} RETURNING {fields}"
    )
    rows = yield from Query(sql, args)
    return rows


class _Node(NamedTuple):
    """A stored checkpoint, without its values."""

    space: int
    needs: Needs
    meta: Cell
    size: int
    written: int
    """How many writes are kept with it."""


@dataclass(slots=True)
class _Known:
    """What a thread is made of, and where that is stored."""

    outline: Outline
    nodes: dict[Place, _Node] = field(default_factory=dict)
    written: dict[Place, tuple[int, int]] = field(default_factory=dict)
    """How many pending writes a checkpoint has, and of how many bytes."""
    spaces: dict[str, int] = field(default_factory=dict)

    def keys(self, places: Collection[Place]) -> list[Row]:
        """Return the keys of places in the tables."""
        return [(self.spaces[ns], at) for ns, at in places]


def _look(thread: str, inside: Inside, dry: bool) -> Program[_Known]:
    rows = yield from Query(
        "SELECT s.id, s.ns, c.id, c.parent, c.cells, c.meta_tag, c.meta, c.writes,"
        f" c.written, {CHECKPOINT_SIZE} FROM towpath_spaces s"
        " JOIN towpath_checkpoints c ON c.space = s.id WHERE s.thread = ?",
        (thread,),
        lock=None if dry else thread,
    )
    asked: set[Place] = set()

    def metadata(place: Place) -> Mapping[str, Any]:
        ns, at = place
        seal = inside.seal_of(thread, ns)
        return inside.load(seal.open_metadata(at, known.nodes[place].meta))

    known = _Known(Outline({}, asked, metadata))
    kept: dict[Place, tuple[bytes, str]] = {}
    for space, ns, at, parent, cells, tag, meta, writes, written, size in rows:
        if writes is not None:
            kept[ns, at] = (writes, tag)
        known.outline.parents[ns, at] = parent
        known.spaces[ns] = space
        needs = Needs.of(inside.seal_of(thread, ns), (at, cells, tag, writes))
        known.nodes[ns, at] = _Node(space, needs, (tag, meta), int(size), written)
    rows = yield from Query(
        "SELECT s.id, s.ns, w.checkpoint, w.task, count(*), sum(length(w.data)),"
        " max(CASE WHEN w.channel = ? THEN 1 ELSE 0 END),"
        " max(CASE WHEN w.channel = ? THEN 1 ELSE 0 END),"
        " max(CASE WHEN w.idx >= 0 THEN 1 ELSE 0 END) FROM towpath_spaces s"
        " JOIN towpath_writes w ON w.space = s.id WHERE s.thread = ?"
        " GROUP BY s.id, s.ns, w.checkpoint, w.task",
        (INTERRUPT, RESUME, thread),
    )
    tasks: dict[Place, dict[str, TaskMarks]] = {}
    for space, ns, at, task, count, size, *marks in rows:
        known.spaces[ns] = space
        counted, sized = known.written.get((ns, at), (0, 0))
        known.written[ns, at] = (counted + int(count), sized + int(size))
        tasks.setdefault((ns, at), {})[task] = TaskMarks(*map(bool, marks))
    for (ns, at), of in tasks.items():
        if (ns, at) in kept and any(marks.asked for marks in of.values()):
            part = inside.seal_of(thread, ns).open_part(KEPT, at, *kept[ns, at])
            _mark_ended(of, unpack_kept(part))
        if asks(of.values()):
            asked.add((ns, at))
    known.outline.running = yield from leasing.is_held(thread)
    return known


def _mark_ended(tasks: dict[str, TaskMarks], kept: Iterable[Kept]) -> None:
    """Note the results that came with the next checkpoint."""
    for one in kept:
        if one.task in tasks:
            tasks[one.task] = tasks[one.task]._replace(ended=True)


def _delete_places(
    known: _Known, doomed: Collection[Place], stale: Collection[Place]
) -> Program[None]:
    """Delete checkpoints and pending writes, and what refers to them."""
    orphans = [
        (ns, at)
        for (ns, at), parent in known.outline.parents.items()
        if (ns, parent) in doomed and (ns, at) not in doomed
    ]
    for sql, places in (
        ("DELETE FROM towpath_checkpoints WHERE space = ? AND id = ?", doomed),
        ("DELETE FROM towpath_writes WHERE space = ? AND checkpoint = ?", stale),
        (
            "UPDATE towpath_checkpoints SET parent = NULL WHERE space = ? AND id = ?",
            orphans,
        ),
    ):
        if places:
            yield Query(sql, known.keys(places), many=True)


def _unused_cells(
    known: _Known, doomed: Collection[Place], seals: Mapping[int, Seal], dry: bool
) -> Program[list[int]]:
    """Delete the cells that only the doomed need; return the size of each."""
    live: dict[int, list[Needs]] = {space: [] for space in seals}
    for place, node in known.nodes.items():
        if node.space in live and place not in doomed:
            live[node.space].append(node.needs)
    sizes: list[int] = []
    for space, needs in live.items():
        sizes += yield from drop_cells(space, seals[space], needs, dry)
    return sizes


def _delete_empty(known: _Known, doomed: Collection[Place]) -> Program[None]:
    """Delete the namespaces of which nothing is left."""
    kept = {ns for ns, _ in known.nodes.keys() - doomed}
    empty = [(known.spaces[ns],) * 3 for ns in {ns for ns, _ in doomed} - kept]
    if empty:
        yield Query(
            "DELETE FROM towpath_spaces WHERE id = ?"
            " AND NOT EXISTS (SELECT 1 FROM towpath_checkpoints WHERE space = ?)"
            " AND NOT EXISTS (SELECT 1 FROM towpath_writes WHERE space = ?)",
            empty,
            many=True,
        )
