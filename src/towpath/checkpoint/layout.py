"""What the row of a checkpoint says, as bytes.

Its header are the versions of the channels and what nodes have seen. Its cells are
where the values are: the count of a cell of the space, or the value itself where that
is small, so that a thread of small values is read with its checkpoint.

Both name every channel. Where that is much, it is said once, in a *frame*, which is a
cell as well, and the rows that come after say in what they differ from it: as MPEG
does it with pictures, but that there is one step from a row to its frame, not a chain
of them. When the differences since a frame outweigh it, there is a new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import ormsgpack

from towpath.checkpoint.base.model import ChannelVersions, Checkpoint
from towpath.checkpoint.changes import CHANGES, DICT, LIST
from towpath.checkpoint.record import Cell
from towpath.checkpoint.serde.codec import Codec

NO_CELL: Final = -1
"""The count of a value that is None: it needs no cell."""
FRAME: Final = "tpf"
"""The tag of a frame."""

_INLINE_MAX: Final = 32
"""How many bytes a value may have to be in the row itself."""
WHOLE_MAX: Final = 512
"""How many bytes versions and cells may take to be said in each row."""
_APART: Final = CHANGES | {LIST, DICT}
"""What others may build on, or what builds on others: a cell by itself."""
_FIELDS: Final = ("v", "ts", "updated_channels", "channel_versions", "versions_seen")
_KNOWN: Final = frozenset({*_FIELDS, "id"})

Place = int | Sequence[Any]
"""Where a value is: the count of its cell, or the tag and the bytes themselves."""
Places = dict[str, Place]
Seen = Mapping[str, ChannelVersions]

_codec: Final = Codec()


def pack(content: object) -> bytes:
    """Encode what is ours."""
    try:
        packed: bytes = ormsgpack.packb(content)
    except TypeError:  # a version of more than 64 bits, say
        return _codec.encode(content)
    return packed


def in_row(cell: Cell) -> bool:
    """Tell whether a value is kept in the row rather than in a cell of its own."""
    tag, data = cell
    return len(data) <= _INLINE_MAX and tag not in _APART


def counts(places: Iterable[Place | None]) -> Iterator[int]:
    """Yield which cells values are in."""
    for place in places:
        if type(place) is int and place != NO_CELL:
            yield place


# The header


def pack_header(
    header: Mapping[str, Any], versions: ChannelVersions, seen: Seen
) -> bytes:
    """Encode a checkpoint without its values, and without its id.

    `versions` and `seen` are all that it has, or what differs from its frame.
    """
    if header.keys() == _KNOWN:
        told = (header["v"], header["ts"], header["updated_channels"])
        return pack([*told, versions, seen])
    return _codec.encode(  # others know of more
        {**header, "channel_versions": versions, "versions_seen": seen}
    )


def unpack_header(data: bytes, at: str, frame: Frame | None) -> Checkpoint:
    """Decode a checkpoint without its values."""
    header: Any = _codec.decode(data)
    if type(header) is list:
        header = {**dict(zip(_FIELDS, header, strict=True)), "id": at}
    if frame is not None:
        header["channel_versions"] = frame.versions | header["channel_versions"]
        header["versions_seen"] = frame.seen | header["versions_seen"]
    checkpoint: Checkpoint = header
    return checkpoint


# The cells


class Frame(NamedTuple):
    """What rows after it say the differences from."""

    versions: ChannelVersions
    seen: dict[str, ChannelVersions]
    own: Places

    def pack(self) -> bytes:
        """Encode it."""
        return pack([*self])

    @classmethod
    def unpack(cls, data: bytes) -> Frame:
        """Decode it."""
        return cls(*_codec.decode(data))


class Cells(NamedTuple):
    """Where the values of a checkpoint are, by channel."""

    own: dict[str, Place | None]
    """Of channels with a version: all, or what differs from the frame. None tells
    that there is no value any more."""
    loose: Places
    """Of channels without a version."""
    frame: int | None = None
    """The count of the cell that the frame is in."""
    since: int = 0
    """How many bytes the differences from it take so far, of all rows on the way."""

    def pack(self) -> bytes:
        """Encode them."""
        return pack([*self[:2]] if self.frame is None else [*self])

    @classmethod
    def unpack(cls, data: bytes) -> Cells:
        """Decode them."""
        return cls(*_codec.decode(data))

    def on(self, frame: Frame | None) -> tuple[Places, Places]:
        """Return where all values are, of channels with a version and without."""
        own = self.own if frame is None else {**frame.own, **self.own}
        return {c: place for c, place in own.items() if place is not None}, self.loose


class Basis(NamedTuple):
    """A frame that rows differ from, and what the last of them said."""

    at: int
    """The count of the cell that the frame is in."""
    size: int
    """How many bytes the frame takes."""
    seen: dict[str, ChannelVersions]
    """What the frame says of it."""
    versions: ChannelVersions
    own: dict[str, Place | None]
    since: int


def basis_of(frame: Frame, header: bytes, cells: Cells) -> Basis:
    """Return what a row with a frame said, the bytes of which are not sealed."""
    assert cells.frame is not None
    said = unpack_header(header, "", None)
    since = cells.since + len(cells.pack())
    return Basis(
        cells.frame,
        len(frame.pack()),
        frame.seen,
        said["channel_versions"],
        cells.own,
        since,
    )


class Known:
    """What is known of a stored checkpoint, so that it need not be decoded.

    `header` and `cells` are the bytes that are stored of it: another process may have
    stored others meanwhile, and then nothing of this is so.
    """

    __slots__ = ("basis", "cells", "header", "id", "own")

    def __init__(self) -> None:
        self.id: str | None = None
        self.header = self.cells = b""
        self.own: Places = {}
        self.basis: Basis | None = None

    def is_still(self, at: str, header: bytes, cells: bytes) -> bool:
        """Tell whether a checkpoint is this one, and stored as it was."""
        return (at, header, cells) == (self.id, self.header, self.cells)

    def follow(self, after: After) -> None:
        """Go on to the next checkpoint, which is stored."""
        self.id, self.header, self.cells = after.id, after.header, after.cells
        self.basis = after.basis
        if after.own is not None:
            self.own = after.own
            return
        for channel, place in after.changes.items():
            if place is None:
                self.own.pop(channel, None)
            else:
                self.own[channel] = place


class After(NamedTuple):
    """What is known of a checkpoint when it is stored."""

    id: str
    header: bytes
    cells: bytes
    own: Places | None
    """Where all values are, or None: `changes` say what differs from the parent."""
    changes: Mapping[str, Place | None]
    basis: Basis | None
