"""Programs for threads over time: deleting, copying, pruning."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from towpath.checkpoint.programs import (
    CELL_BITS,
    Program,
    Query,
    new_space,
    span,
    sweep,
)
from towpath.checkpoint.record import Cell


def _spaces(thread: str) -> Program[list[int]]:
    rows = yield from Query(
        "SELECT id FROM towpath_spaces WHERE thread = ? ORDER BY id",
        (thread,),
        lock=thread,
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
        [span(space) for space in spaces],
        many=True,
    )
    yield Query("DELETE FROM towpath_spaces WHERE id = ?", keys, many=True)
    yield Query(
        "DELETE FROM towpath_leases WHERE thread = ?",
        [(thread,) for thread in threads],
        many=True,
    )


def copy_thread(source: str, target: str) -> Program[None]:
    """Copy a thread, with its whole history.

    Raises:
        ValueError: the target is not empty.
    """
    if (yield from _spaces(target)):
        raise ValueError(f"thread `{target}` is not empty")
    rows = yield from Query(
        "SELECT id, ns FROM towpath_spaces WHERE thread = ? ORDER BY id",
        (source,),
        lock=source,
    )
    for old, ns in rows:
        new = yield from new_space(target, ns)
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
            "INSERT INTO towpath_cells (id, base, tag, data)"
            " SELECT id + ?, base, tag, data"
            " FROM towpath_cells WHERE id BETWEEN ? AND ?",
            (new - old << CELL_BITS, *span(old)),
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
        yield from sweep(space)


def delete_where(doomed: Callable[[Cell], bool]) -> Program[None]:
    """Delete the checkpoints whose metadata is doomed, of all threads."""
    rows = yield from Query(
        "SELECT c.space, c.id, s.thread, c.meta_tag, c.meta"
        " FROM towpath_checkpoints c JOIN towpath_spaces s ON s.id = c.space"
    )
    found = [(*key, thread) for *key, thread, tag, meta in rows if doomed((tag, meta))]
    keys = [(space, at) for space, at, _ in found]
    for sql in (
        "DELETE FROM towpath_checkpoints WHERE space = ? AND id = ?",
        "DELETE FROM towpath_writes WHERE space = ? AND checkpoint = ?",
    ):
        yield Query(sql, keys, many=True)
    for space, thread in sorted({(space, thread) for space, _, thread in found}):
        yield from sweep(space, thread)
