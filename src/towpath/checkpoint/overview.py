"""What there is to say of threads at a glance, without their states.

A page of threads takes one row of each, its newest checkpoint, of which only the
channels of the engine's own are read: they tell what runs next, and may be a few bytes
where the state is a long chat. What is counted and summed, the database does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from towpath.checkpoint.base.summary import is_own
from towpath.checkpoint.programs import Program, Query, as_json
from towpath.checkpoint.reading import Stored, newest
from towpath.checkpoint.retention import CHECKPOINT_SIZE
from towpath.checkpoint.sealing import SealOf


def survey(
    after: tuple[str, str] | None, most: int, seal_of: SealOf
) -> Program[list[tuple[Stored, int, int]]]:
    """Fetch newest checkpoints of threads, each with how many and how big they are."""
    found = yield from newest(after, most, seal_of, is_own)
    counts = yield from _summed(
        found, "towpath_checkpoints c ON c.space = s.id", CHECKPOINT_SIZE
    )
    writes = yield from _summed(
        found, "towpath_writes w ON w.space = s.id", "length(w.data)"
    )
    # The count of a cell is 32 bits wide, see CELL_BITS.
    cells = yield from _summed(
        found,
        "towpath_cells k ON k.id BETWEEN (s.id << 32) AND (s.id << 32) + 4294967295",
        "length(k.data)",
    )
    return [
        (
            stored,
            counts[stored.thread][0],
            sum(sums.get(stored.thread, (0, 0))[1] for sums in (counts, writes, cells)),
        )
        for stored in found
    ]


def _summed(
    found: Sequence[Stored], table: str, size: str
) -> Program[dict[str, tuple[int, int]]]:
    """Return by thread how many rows of its root there are, and the size of all."""
    rows: Sequence[Any] = yield from Query(
        f"SELECT s.thread, sum(CASE WHEN s.ns = '' THEN 1 ELSE 0 END), sum({size})"
        f" FROM towpath_spaces s JOIN {table} WHERE s.thread IN"
        " (SELECT t.thread FROM towpath_spaces t"
        " WHERE t.id IN (SELECT value FROM json_each(?))) GROUP BY s.thread",
        (as_json(stored.space for stored in found),),
    )
    return {thread: (int(count), int(size)) for thread, count, size in rows}
