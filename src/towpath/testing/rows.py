"""What is wrong with the rows of a SQL saver: those that nothing leads to.

A checkpoint leads to its parent and to its cells, a cell to the one it builds
on, a space to its thread. A row that none of these reach would stay in the
database for ever, and one that is missing makes a checkpoint unreadable. The
programs are those of any SQL saver, so one checker serves all databases.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from towpath.checkpoint.base.lease import is_dead
from towpath.checkpoint.programs import (
    CELL_BITS,
    Needs,
    Program,
    Query,
    Row,
    needed,
)
from towpath.checkpoint.sealing import PLAIN
from towpath.checkpoint.sql import SqlSaver

TABLES: Final = ("spaces", "checkpoints", "cells", "writes", "leases")


def strays(saver: SqlSaver) -> list[str]:
    """Tell every row that nothing leads to, and every one that is missed.

    No run may be under way. Checkpoints of which only some were deleted are
    told of too, since their children still name them.
    """
    return list(_told(saver._read(_all)))  # noqa: SLF001 - tests look inside


def row_counts(saver: SqlSaver) -> dict[str, int]:
    """Count the rows of each table."""
    found = saver._read(_all)  # noqa: SLF001
    return {table: len(found[table]) for table in TABLES}


_Rows = dict[str, list[Row]]
_NEEDED: Final = "needed"


def _all() -> Program[_Rows]:
    columns = {
        "spaces": "id, thread",
        "checkpoints": "space, id, parent, cells, meta_tag, writes",
        "cells": "id, base",
        "writes": "space, checkpoint, task",
        "leases": "thread, owner",
    }
    found: _Rows = {}
    for table in TABLES:
        found[table] = yield from Query(f"SELECT {columns[table]} FROM towpath_{table}")  # noqa: S608
    found[_NEEDED] = []
    for space, _ in found["spaces"]:
        rows = [row for row in found["checkpoints"] if row[0] == space]
        needs = [Needs.of(PLAIN, (at, *rest)) for _, at, _, *rest in rows]
        for count in (yield from needed(space, PLAIN, needs)):
            found[_NEEDED].append(((space << CELL_BITS) | count,))
    return found


def _told(found: _Rows) -> Iterator[str]:
    spaces = {space for space, _ in found["spaces"]}
    threads = {thread for _, thread in found["spaces"]}
    stored = {(space, at) for space, at, *_ in found["checkpoints"]}
    used = {space for space, _ in stored}
    for space in sorted(spaces - used):
        yield f"space {space} has no checkpoint"
    for space, at, parent, *_ in found["checkpoints"]:
        if space not in spaces:
            yield f"checkpoint {at} is in no space"
        if parent is not None and (space, parent) not in stored:
            yield f"checkpoint {at} has no parent {parent}"
    for space, at, task in found["writes"]:
        if (space, at) not in stored:
            yield f"writes of task {task} are under no checkpoint"
    for thread, owner in found["leases"]:
        if owner is not None and not is_dead(owner):  # else it is free
            yield f"the lease of thread {thread} is held by {owner}"
        if thread not in threads:
            yield f"the lease of thread {thread} has no space"
    yield from _told_of_cells(found)


def _told_of_cells(found: _Rows) -> Iterator[str]:
    bases: dict[int, int | None] = dict(found["cells"])
    missed = {number for (number,) in found[_NEEDED]}
    reached: set[int] = set()
    while missed:
        reached |= missed
        steps = [(n, bases.get(n)) for n in missed]
        missed = {n - base for n, base in steps if base} - reached
    for number in sorted(reached - bases.keys()):
        yield f"cell {number} is missing"
    for number in sorted(bases.keys() - reached):
        yield f"cell {number} is of no use"
