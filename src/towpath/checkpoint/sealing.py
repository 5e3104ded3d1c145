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
from towpath.checkpoint.serde.keyring import MARK, Keyring, SealError, context_of

Columns = tuple[bytes, bytes, str, bytes]
"""What is stored of a checkpoint: header, cells, and tag and bytes of its metadata."""

HEADER: Final = "header"
CELLS: Final = "cells"
KEPT: Final = "writes"
"""The parts of a checkpoint that have no tag; that of the metadata tells of all."""


_BOUND: Final = "@"
"""Ends the tag of what a saver has sealed, which is more than its serializer may
have encrypted. Part of the stored format."""

_SEALED: Final = MARK + _BOUND


class Seal:
    """Leaves everything in a namespace as it is.

    Raises:
        SealError: (TP-510) a checkpoint is sealed.
    """

    def close_checkpoint(self, at: str, columns: Columns) -> Columns:  # noqa: ARG002
        """Seal what is stored of a checkpoint."""
        return columns

    def close_part(self, part: str, at: str, data: bytes, meta_tag: str) -> bytes:  # noqa: ARG002
        """Seal the header or the cells of a checkpoint, if its metadata is."""
        return data

    def open_part(self, part: str, at: str, data: bytes, meta_tag: str) -> bytes:  # noqa: ARG002
        """Open the header or the cells of a checkpoint."""
        if _is_bound(meta_tag):
            raise SealError(
                "this database is encrypted, and the saver has no key",
                hint="give it one: encryption=Keyring(...), or TOWPATH_AES_KEY to the "
                "command line",
            )
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
        tag, meta = self._close((tag, meta), self._of("metadata", at))
        header = self.close_part(HEADER, at, header, tag)
        return header, self.close_part(CELLS, at, cells, tag), tag, meta

    def close_part(self, part: str, at: str, data: bytes, meta_tag: str) -> bytes:
        """Seal the header or the cells of a checkpoint, if its metadata is."""
        if not _is_bound(meta_tag):
            return data  # it is older than the keys, until it is sealed as a whole
        return self._close((part, data), self._of(part, at))[1]

    def open_part(self, part: str, at: str, data: bytes, meta_tag: str) -> bytes:
        """Open the header or the cells of a checkpoint."""
        tag = part + _SEALED if _is_bound(meta_tag) else part
        return self._open((tag, data), self._of(part, at))[1]

    def open_metadata(self, at: str, meta: Cell) -> Cell:
        """Open the metadata of a checkpoint."""
        return self._open(meta, self._of("metadata", at))

    def close_write(self, at: str, write: WriteCell) -> WriteCell:
        """Seal a pending write of a checkpoint."""
        sealed = self._close(write.cell, self._of_write(at, write))
        return WriteCell(*write[:-1], sealed)

    def open_write(self, at: str, write: WriteCell) -> WriteCell:
        """Open a pending write of a checkpoint."""
        opened = self._open(write.cell, self._of_write(at, write))
        return WriteCell(*write[:-1], opened)

    def close_cell(self, count: int, base: int | None, cell: Cell) -> Cell:
        """Seal a value: by the count of its cell, and how far back its base is."""
        return self._close(cell, self._of_cell(count, base))

    def open_cell(self, count: int, base: int | None, cell: Cell) -> Cell:
        """Open a value."""
        return self._open(cell, self._of_cell(count, base))

    def is_current(self, cell: Cell) -> bool:
        """Tell whether something is sealed as it would be now."""
        tag, data = cell
        plain = tag.removesuffix(_BOUND)
        return _is_bound(tag) and not self._ring.needs_rotation(plain, data)

    def _close(self, cell: Cell, context: bytes) -> Cell:
        tag, data = self._ring.seal(*cell, context)
        return tag + _BOUND, data

    def _open(self, cell: Cell, context: bytes) -> Cell:
        tag, data = cell
        if _is_bound(tag):
            return self._ring.unseal(tag[: -len(_BOUND)], data, context)
        if self._ring.accept_plain:
            return cell
        raise SealError(
            f"a stored value of the form {tag!r} is not encrypted",
            hint="if it is older than the key: Keyring(..., accept_plain=True)",
        )

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


def _is_bound(tag: str) -> bool:
    return tag.endswith(_BOUND)


SealOf = Callable[[str, str], Seal]
"""Gives the seal of a thread's namespace."""
PLAIN: Final = Seal()


def plain(thread: str, ns: str) -> Seal:  # noqa: ARG001
    """Return the seal of any namespace where there are no keys."""
    return PLAIN
