"""How what is stored is sealed: bound to its place, so that it opens nowhere else.

A program seals what it stores and opens what it reads with the `Seal` of a
namespace. Where a saver has no keys, that is `PLAIN`, which changes nothing.

Sealed are values, pending writes, metadata, the header, and which cells a checkpoint
is made of; each together with where it is (thread, namespace, and the checkpoint, or
the number of the cell and of the one it builds on). So whoever can write to the
database, but has no key, can delete rows and nothing else: what is changed, moved or
put in another's place does not open. Ids, the names of tasks and of the channels that
pending writes are for, and what was put on what, are in the clear and not protected.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from towpath.checkpoint.record import Cell, WriteCell
from towpath.checkpoint.serde.keyring import Keyring, context_of, is_sealed, sealed_tag

Columns = tuple[bytes, bytes, str, bytes]
"""What is stored of a checkpoint: header, cells, and tag and bytes of its metadata."""

HEADER: Final = "header"
CELLS: Final = "cells"
"""The parts of a checkpoint that have no tag; that of the metadata tells of both."""


class Seal:
    """Leaves everything in a namespace as it is."""

    def close_checkpoint(self, at: str, columns: Columns) -> Columns:  # noqa: ARG002
        """Seal what is stored of a checkpoint."""
        return columns

    def close_part(self, part: str, at: str, data: bytes, meta_tag: str) -> bytes:  # noqa: ARG002
        """Seal the header or the cells of a checkpoint, if its metadata is."""
        return data

    def open_part(self, part: str, at: str, data: bytes, meta_tag: str) -> bytes:  # noqa: ARG002
        """Open the header or the cells of a checkpoint."""
        return data

    def open_metadata(self, at: str, meta: Cell) -> Cell:  # noqa: ARG002
        """Open the metadata of a checkpoint."""
        return meta

    def close_write(self, at: str, write: WriteCell) -> WriteCell:  # noqa: ARG002
        """Seal a pending write of a checkpoint."""
        return write

    def open_write(self, at: str, write: WriteCell) -> WriteCell:  # noqa: ARG002
        """Open a pending write of a checkpoint."""
        return write

    def close_cell(self, count: int, base: int | None, cell: Cell) -> Cell:  # noqa: ARG002
        """Seal a value: by the count of its cell, and how far back its base is."""
        return cell

    def open_cell(self, count: int, base: int | None, cell: Cell) -> Cell:  # noqa: ARG002
        """Open a value."""
        return cell

    def is_current(self, cell: Cell) -> bool:  # noqa: ARG002
        """Tell whether something is sealed as it would be now."""
        return True


class KeyringSeal(Seal):
    """Seals what is in a namespace with the keys of a ring.

    Raises:
        SealError: (TP-510) from whatever opens something that does not open.
    """

    def __init__(self, ring: Keyring, thread: str, ns: str) -> None:
        self._ring = ring
        self._space = context_of(thread, ns)

    def close_checkpoint(self, at: str, columns: Columns) -> Columns:
        """Seal what is stored of a checkpoint."""
        header, cells, tag, meta = columns
        tag, meta = self._ring.seal(tag, meta, self._of("metadata", at))
        header = self.close_part(HEADER, at, header, tag)
        return header, self.close_part(CELLS, at, cells, tag), tag, meta

    def close_part(self, part: str, at: str, data: bytes, meta_tag: str) -> bytes:
        """Seal the header or the cells of a checkpoint, if its metadata is."""
        if not is_sealed(meta_tag):
            return data  # it is older than the keys, until it is sealed as a whole
        return self._ring.seal(part, data, self._of(part, at))[1]

    def open_part(self, part: str, at: str, data: bytes, meta_tag: str) -> bytes:
        """Open the header or the cells of a checkpoint."""
        tag = sealed_tag(part) if is_sealed(meta_tag) else part
        return self._ring.unseal(tag, data, self._of(part, at))[1]

    def open_metadata(self, at: str, meta: Cell) -> Cell:
        """Open the metadata of a checkpoint."""
        return self._ring.unseal(*meta, self._of("metadata", at))

    def close_write(self, at: str, write: WriteCell) -> WriteCell:
        """Seal a pending write of a checkpoint."""
        sealed = self._ring.seal(*write.cell, self._of_write(at, write))
        return WriteCell(*write[:-1], sealed)

    def open_write(self, at: str, write: WriteCell) -> WriteCell:
        """Open a pending write of a checkpoint."""
        opened = self._ring.unseal(*write.cell, self._of_write(at, write))
        return WriteCell(*write[:-1], opened)

    def close_cell(self, count: int, base: int | None, cell: Cell) -> Cell:
        """Seal a value: by the count of its cell, and how far back its base is."""
        return self._ring.seal(*cell, self._of_cell(count, base))

    def open_cell(self, count: int, base: int | None, cell: Cell) -> Cell:
        """Open a value."""
        return self._ring.unseal(*cell, self._of_cell(count, base))

    def is_current(self, cell: Cell) -> bool:
        """Tell whether something is sealed as it would be now."""
        return not self._ring.needs_rotation(*cell)

    # As `context_of`, several times as fast: no two places have one context, and it
    # is part of the stored format.

    def _of(self, part: str, at: str, rest: str = "") -> bytes:
        text = f"{part}:{len(at)}:{at}{rest}"
        return self._space + text.encode("utf-8", "surrogatepass")

    def _of_write(self, at: str, write: WriteCell) -> bytes:
        task, idx, channel, _, _ = write
        return self._of("write", at, f"{len(task)}:{task}{idx}:{channel}")

    def _of_cell(self, count: int, base: int | None) -> bytes:
        return self._space + b"cell:%d:%d" % (count, base or 0)


SealOf = Callable[[str, str], Seal]
"""Gives the seal of a thread's namespace."""
PLAIN: Final = Seal()


def plain(thread: str, ns: str) -> Seal:  # noqa: ARG001
    """Return the seal of any namespace where there are no keys."""
    return PLAIN
