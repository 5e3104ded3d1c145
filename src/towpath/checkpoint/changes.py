"""Values as they are stored: whole, or as changes to what was stored before.

A list or a dict is stored as its elements, each encoded by itself. When it has
changed, the elements that stayed are found by identity, at the speed of C and
whatever the reducer did, and only what is new is stored: a list as the ranges
that it took over and the elements between them, a dict as the keys that it set
and lost. Each such change refers to the stored value before it. When the changes
outweigh the whole, the whole is stored again, so that reading stays bounded: as
LSM trees do it, the sum of all that is written stays proportional to what changed.

Identity does not show that an element was changed in place. So each element's
encoding is remembered as a digest, and an element that may have been changed, a
`suspect`, is encoded again and compared. Suspects are what was written back to
the channel; all elements, where it is not known what the reducer did; and all of
them at the end of a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import count, islice
from operator import is_, is_not
from typing import Any, Final, NamedTuple

import ormsgpack

from towpath.checkpoint.base.saver import Added
from towpath.checkpoint.record import Cell, dump
from towpath.checkpoint.serde.base import SerializerProtocol
from towpath.checkpoint.serde.codec import Codec
from towpath.checkpoint.serde.jsonplus import VALUE, JsonPlusSerializer
from towpath.errors import SerializationError
from towpath.types import Overwrite

LIST: Final = "tpl"
LIST_CHANGE: Final = "tpl+"
DICT: Final = "tpd"
DICT_CHANGE: Final = "tpd+"
CHANGES: Final = frozenset({LIST_CHANGE, DICT_CHANGE})
"""The tags of cells that say only what changed."""
NULL: Final[Cell] = ("null", b"")
"""None as our codec has it."""
SAME: Final[Cell] = ("tp=", b"")
"""Stands for a value that is stored already: the parent's cell serves."""

APART: Final = CHANGES | {LIST, DICT}
"""The tags of cells that keep elements apart."""
ROW: Final = 96
"""What a row costs beside its content, in bytes: on disk, and in reading."""
_OUTWEIGHED: Final = 2
"""How many times the whole the changes to it may weigh."""
SCALARS: Final = frozenset({str, int, float, bool, type(None)})
_CELLS: Final = frozenset({tuple, list})
_HOLDERS: Final = (list, tuple, set, frozenset, dict)

Writes = Sequence[Any] | None


class Link(NamedTuple):
    """A stored value: whole, or a change to its base."""

    tag: str
    data: bytes
    base: Link | None = None

    def chain(self) -> list[Link]:
        """Return the links from the whole value up to this one."""
        links = [self]
        while (base := links[-1].base) is not None:
            links.append(base)
        links.reverse()
        return links


class Trace:
    """What is known of a stored value, to tell later what changed in it.

    `items` are the elements that were stored, in a container of our own;
    `digests` those of their encodings, by the same places, 0 for what cannot
    change. `start` is how many a list began with, and the digest of all of their
    encodings. `whole` and `since` are the sizes of the last whole value and of the
    changes since, in bytes.
    """

    __slots__ = ("digests", "index", "items", "since", "start", "whole")

    def __init__(
        self,
        items: Any,
        digests: Any,
        whole: int,
        since: int = 0,
        start: tuple[int, int] | None = None,
    ) -> None:
        self.items = items
        self.digests = digests
        self.whole = whole
        self.since = since
        self.start = start
        self.index: dict[int, Any] | None = None

    def place(self) -> dict[int, Any]:
        """Return where each element that can change is, by its id."""
        if self.index is None:
            self.index = {
                id(item): at for at, item in entries(self.items) if self.digests[at]
            }
        return self.index

    def outweighed(self, size: int) -> bool:
        """Tell whether the whole should be stored rather than this change."""
        return self.since + size + ROW > _OUTWEIGHED * (self.whole + ROW)


def opening_of(cells: Sequence[Any]) -> tuple[int, int] | None:
    """What a trace remembers of the elements that a list begins with.

    None if they are not all kept apart, in the codec's common form.
    """
    if not cells or not all(map(_CELLS.__contains__, map(type, cells))):
        return None
    if {cell[0] for cell in cells} != {VALUE}:
        return None
    return len(cells), hash(b"".join([cell[1] for cell in cells]))


def suspects(written: Iterable[Any]) -> set[int]:
    """Return the ids of everything that is reached through built-in containers."""
    found: set[int] = set()
    pending = list(written)
    for item in pending:  # which grows meanwhile
        kind = type(item)
        if kind in SCALARS or id(item) in found:
            continue
        found.add(id(item))
        if isinstance(item, _HOLDERS):
            held = item.values() if isinstance(item, dict) else item
            if not SCALARS.issuperset(map(type, held)):
                pending.extend(held)
        elif isinstance(item, Overwrite):
            pending.append(item.value)
    return found


class Differ:
    """Encodes values as what changed in them."""

    def __init__(self, serde: SerializerProtocol) -> None:
        self._serde = serde
        self.plain = type(serde) is JsonPlusSerializer
        """Whether the forms of the codec are known here."""

    def store(
        self, channel: str, value: Any, trace: Trace | None, writes: Writes
    ) -> tuple[Cell, Trace | None]:
        """Encode a value, and return what is to be remembered of it.

        `writes` are what was written to the channel since; None where that does
        not tell what may have changed in place.

        Raises:
            SerializationError: something in it has no exact stored form.
        """
        if type(value) in SCALARS:
            return dump(self._serde, value, channel), None
        try:
            if type(value) is list:
                return self._list(value, trace, writes)
            if type(value) is dict and set(map(type, value)) <= {str}:
                return self._dict(value, trace, writes)
        except (SerializationError, RecursionError, TypeError):
            pass  # encoding the whole succeeds, or knows the path to what cannot be
        cell = dump(self._serde, value, channel)
        known = Trace(None, self._digest(value, cell), len(cell[1]))
        same = trace is not None and trace.digests == known.digests
        return (SAME if same else cell), known

    # Lists

    def _list(
        self, value: list[Any], trace: Trace | None, writes: Writes
    ) -> tuple[Cell, Trace]:
        if trace is None or type(trace.digests) is not list:
            return self._whole_list(value)
        stale = self._stale(trace, writes)
        added = isinstance(writes, Added)
        if not stale and _starts_with(value, trace.items, added=added):
            return self._longer(value, trace)
        frames: list[Any] = []
        digests: list[int] = []
        for part in _script(trace.items, value):
            for piece in _without(part, stale, trace.items):
                if not piece:
                    continue
                if isinstance(piece, range):
                    frames += piece.start, piece.stop
                    digests += trace.digests[piece.start : piece.stop]
                else:
                    frames.append(self._frames(piece, digests))
        data = self._pack(frames)
        if trace.outweighed(len(data)):
            return self._whole_list(value)
        since = trace.since + len(data) + ROW
        known = Trace(list(value), digests, trace.whole, since)
        return (LIST_CHANGE, data), known

    def _longer(self, value: list[Any], trace: Trace) -> tuple[Cell, Trace]:
        """Encode what a list grew by, in time that depends on that alone."""
        size = len(trace.items)
        added = value[size:]
        if not added:
            return SAME, trace
        digests: list[int] = []
        data = self._pack([0, size, self._frames(added, digests)])
        if trace.outweighed(len(data)):
            return self._whole_list(value)
        places = trace.place()
        for at, (item, digest) in enumerate(zip(added, digests, strict=True), size):
            if digest:
                places[id(item)] = at
        trace.items += added
        trace.digests += digests
        trace.since += len(data) + ROW
        return (LIST_CHANGE, data), trace

    def _whole_list(self, value: list[Any]) -> tuple[Cell, Trace]:
        digests: list[int] = []
        frames = self._frames(value, digests)
        data = self._pack(frames)
        start = opening_of(frames) if self.plain else None
        return (LIST, data), Trace(list(value), digests, len(data), start=start)

    # Dicts

    def _dict(
        self, value: dict[str, Any], trace: Trace | None, writes: Writes
    ) -> tuple[Cell, Trace]:
        if trace is None or type(trace.digests) is not dict:
            return self._whole_dict(value)
        old = trace.items
        stale = self._stale(trace, writes)
        if not stale and _identical_dict(value, old):
            return SAME, trace
        lost = [key for key in old if key not in value]
        kept = [key for key in old if key in value]
        if not all(map(is_, kept, value)) and kept != list(value)[: len(kept)]:
            return self._whole_dict(value)  # a change would not keep the order
        changed = {
            key: item
            for key, item in value.items()
            if key in stale or key not in old or old[key] is not item
        }
        digests: list[int] = []
        frames = self._frames(changed.values(), digests)
        data = self._pack([lost, dict(zip(changed, frames, strict=True))])
        if trace.outweighed(len(data)):
            return self._whole_dict(value)
        known = dict(trace.digests)
        for key in lost:
            del known[key]
        known |= zip(changed, digests, strict=True)
        since = trace.since + len(data) + ROW
        return (DICT_CHANGE, data), Trace(dict(value), known, trace.whole, since)

    def _whole_dict(self, value: dict[str, Any]) -> tuple[Cell, Trace]:
        digests: list[int] = []
        frames = self._frames(value.values(), digests)
        data = self._pack(dict(zip(value, frames, strict=True)))
        known = dict(zip(value, digests, strict=True))
        return (DICT, data), Trace(dict(value), known, len(data))

    # Elements

    def _frames(self, items: Iterable[Any], digests: list[int]) -> list[Any]:
        """Encode elements, each by itself; add their digests to `digests`."""
        dumps, plain = self._serde.dumps_typed, self.plain
        frames: list[Any] = []
        for item in items:
            if plain and type(item) in SCALARS:
                frames.append(item)
                digests.append(0)
                continue
            cell = dumps(item)
            frames.append(cell)
            digests.append(self._digest(item, cell))
        return frames

    def _digest(self, item: Any, cell: Cell | None = None) -> int:
        if not self.plain:
            return digest_of(item, None)
        return digest_of(item, cell or self._serde.dumps_typed(item))

    def _stale(self, trace: Trace, writes: Writes) -> set[Any]:
        """Return the places of elements that are no longer what was stored."""
        places: Iterable[Any]
        if writes is None:
            same = self._unchanged(trace)
            places = [
                at
                for at, _ in islice(entries(trace.items), same, None)
                if trace.digests[at]
            ]
        elif writes:
            index = trace.place()
            places = [index[known] for known in suspects(writes) if known in index]
        else:
            return set()
        stale = {at for at in places if self._changed(trace, at)}
        if stale:
            # One object may be in several places, and is known by one of them.
            gone = {id(trace.items[at]) for at in stale}
            stale |= {at for at, item in entries(trace.items) if id(item) in gone}
        return stale

    def _unchanged(self, trace: Trace) -> int:
        """Return how many elements, from the first, are seen at once to be the same."""
        if trace.start is None:
            return 0
        size, known = trace.start
        with suppress(SerializationError, RecursionError):
            encoded = self._serde.dumps_typed(trace.items[:size])[1]
            if hash(encoded[_head(size) :]) == known:
                return size
        return 0

    def _changed(self, trace: Trace, at: Any) -> bool:
        try:
            return bool(self._digest(trace.items[at]) != trace.digests[at])
        except (SerializationError, RecursionError):
            return True

    def _pack(self, content: Any) -> bytes:
        packed: bytes = ormsgpack.packb(content)
        if self.plain:
            return packed
        # Keys, too, are for that codec alone to see.
        wrapped: bytes = ormsgpack.packb(self._serde.dumps_typed(packed))
        return wrapped


_own: Final = Codec(learn=True)
_unknown: Final = count(1 << 64)


def _head(size: int) -> int:
    """How many bytes msgpack begins a list of so many elements with."""
    return 1 if size < 16 else 3 if size < 1 << 16 else 5


def digest_of(item: Any, cell: Cell | None) -> int:
    """Return a number that tells whether a value was changed; 0: it cannot be.

    `cell` is the value encoded, by a codec that always gives the same bytes for
    it. The hash of bytes is SipHash with a random key: that two encodings share
    one is as likely as one in 2**61, and nobody can bring it about.
    """
    if type(item) in SCALARS:
        return 0
    if cell is not None:
        return hash(cell) or 1
    try:
        return hash(_own.encode(item)) or 1
    except SerializationError:
        return next(_unknown)  # equal to no other, as if it had changed


def entries(items: Any) -> Iterable[tuple[Any, Any]]:
    return items.items() if type(items) is dict else enumerate(items)


def _starts_with(value: list[Any], start: list[Any], *, added: bool) -> bool:
    size = len(start)
    if len(value) < size:
        return False
    if added:
        # Nothing else can have been done to the start. Comparing takes identical
        # elements as equal without a look: a tenth of the time that `is_` takes.
        with suppress(Exception):
            return value[:size] == start
    return all(map(is_, value, start))


def _identical_dict(value: dict[str, Any], other: dict[str, Any]) -> bool:
    return (
        len(value) == len(other)
        and all(map(is_, value.values(), other.values()))
        and list(value) == list(other)
    )


def _script(old: list[Any], new: list[Any]) -> Iterator[range | list[Any]]:
    """Yield what makes `new`: ranges of places in `old`, and elements of its own."""
    shorter = min(len(old), len(new))
    head = _alike(old, new, shorter)
    tail = _alike(reversed(old), reversed(new), shorter - head)
    if head:
        yield range(head)
    stop = len(old) - tail
    places = {id(old[at]): at for at in range(head, stop)}
    run, own = range(0), []
    for item in new[head : len(new) - tail]:
        at = places.get(id(item))
        if at is not None and at == run.stop and run:
            run = range(run.start, at + 1)
            continue
        if run:
            yield run
            run = range(0)
        if at is None:
            own.append(item)
            continue
        if own:
            yield own
            own = []
        run = range(at, at + 1)
    yield run
    yield own
    yield range(stop, len(old))


def _alike(one: Iterable[Any], other: Iterable[Any], most: int) -> int:
    """Return how many elements at the start are identical, at most so many."""
    differ = map(is_not, one, other)
    return next((at for at, other in enumerate(differ) if other or at == most), most)


def _without(
    part: range | list[Any], stale: set[int], old: list[Any]
) -> Iterator[range | list[Any]]:
    """Yield a part of a script with the elements at stale places spelled out."""
    if not isinstance(part, range):
        yield part
        return
    start = part.start
    for at in sorted(stale.intersection(part)):
        yield range(start, at)
        yield [old[at]]
        start = at + 1
    yield range(start, part.stop)
