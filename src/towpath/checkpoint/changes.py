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
from itertools import count
from operator import is_, is_not
from typing import Any, Final, NamedTuple, cast

import ormsgpack

from towpath.checkpoint.base.saver import Added
from towpath.checkpoint.record import Cell, dump
from towpath.checkpoint.serde.base import SerializerProtocol
from towpath.checkpoint.serde.codec import Codec
from towpath.checkpoint.serde.jsonplus import JsonPlusSerializer
from towpath.errors import DeserializationError, SerializationError
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

_OURS: Final = CHANGES | {LIST, DICT}
_ROW: Final = 96
"""What a row costs beside its content, in bytes: on disk, and in reading."""
_OUTWEIGHED: Final = 2
"""How many times the whole the changes to it may weigh."""
_SCALARS: Final = frozenset({str, int, float, bool, type(None)})
_HOLDERS: Final = (list, tuple, set, frozenset, dict)

Writes = Sequence[Any] | None


class Link(NamedTuple):
    """A stored value: whole, or a change to its base."""

    tag: str
    data: bytes
    base: Link | None = None

    @property
    def undivided(self) -> bool:
        """Whether it is a whole value that was not taken apart."""
        return self.base is None and self.tag not in (LIST, DICT)

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
    change. `whole` and `since` are the sizes of the last whole value and of the
    changes since, in bytes.
    """

    __slots__ = ("digests", "index", "items", "since", "whole")

    def __init__(self, items: Any, digests: Any, whole: int, since: int = 0) -> None:
        self.items = items
        self.digests = digests
        self.whole = whole
        self.since = since
        self.index: dict[int, Any] | None = None

    def place(self) -> dict[int, Any]:
        """Return where each element that can change is, by its id."""
        if self.index is None:
            self.index = {
                id(item): at for at, item in _entries(self.items) if self.digests[at]
            }
        return self.index

    def outweighed(self, size: int) -> bool:
        """Tell whether the whole should be stored rather than this change."""
        return self.since + size + _ROW > _OUTWEIGHED * (self.whole + _ROW)


def suspects(written: Iterable[Any]) -> set[int]:
    """Return the ids of everything that is reached through built-in containers."""
    found: set[int] = set()
    pending = list(written)
    while pending:
        item = pending.pop()
        if type(item) in _SCALARS or id(item) in found:
            continue
        found.add(id(item))
        if isinstance(item, _HOLDERS):
            pending.extend(item.values() if isinstance(item, dict) else item)
        elif isinstance(item, Overwrite):
            pending.append(item.value)
    return found


class Differ:
    """Encodes values as what changed in them."""

    def __init__(self, serde: SerializerProtocol) -> None:
        self._serde = serde
        self._plain = type(serde) is JsonPlusSerializer

    def store(
        self, channel: str, value: Any, trace: Trace | None, writes: Writes
    ) -> tuple[Cell, Trace | None]:
        """Encode a value, and return what is to be remembered of it.

        `writes` are what was written to the channel since; None where that does
        not tell what may have changed in place.

        Raises:
            SerializationError: something in it has no exact stored form.
        """
        if type(value) in _SCALARS:
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
        since = trace.since + len(data) + _ROW
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
        trace.since += len(data) + _ROW
        return (LIST_CHANGE, data), trace

    def _whole_list(self, value: list[Any]) -> tuple[Cell, Trace]:
        digests: list[int] = []
        data = self._pack(self._frames(value, digests))
        return (LIST, data), Trace(list(value), digests, len(data))

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
        since = trace.since + len(data) + _ROW
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
        dumps, plain = self._serde.dumps_typed, self._plain
        frames: list[Any] = []
        for item in items:
            if plain and type(item) in _SCALARS:
                frames.append(item)
                digests.append(0)
                continue
            cell = dumps(item)
            frames.append(cell)
            digests.append(self._digest(item, cell))
        return frames

    def _digest(self, item: Any, cell: Cell | None = None) -> int:
        if not self._plain:
            return digest_of(item, None)
        return digest_of(item, cell or self._serde.dumps_typed(item))

    def _stale(self, trace: Trace, writes: Writes) -> set[Any]:
        """Return the places of elements that are no longer what was stored."""
        places: Iterable[Any]
        if writes is None:
            places = [at for at, _ in _entries(trace.items) if trace.digests[at]]
        elif writes:
            index = trace.place()
            places = [index[known] for known in suspects(writes) if known in index]
        else:
            return set()
        stale = {at for at in places if self._changed(trace, at)}
        if stale:
            # One object may be in several places, and is known by one of them.
            gone = {id(trace.items[at]) for at in stale}
            stale |= {at for at, item in _entries(trace.items) if id(item) in gone}
        return stale

    def _changed(self, trace: Trace, at: Any) -> bool:
        try:
            return bool(self._digest(trace.items[at]) != trace.digests[at])
        except (SerializationError, RecursionError):
            return True

    def _pack(self, content: Any) -> bytes:
        packed: bytes = ormsgpack.packb(content)
        if self._plain:
            return packed
        # Keys, too, are for that codec alone to see.
        wrapped: bytes = ormsgpack.packb(self._serde.dumps_typed(packed))
        return wrapped


class Reader:
    """Restores values from the links they are stored as.

    Where several of `wanted` are versions of one value, each link is decoded
    once: they have containers of their own and share the elements.
    """

    def __init__(self, serde: SerializerProtocol, wanted: Iterable[Link] = ()) -> None:
        self._serde = serde
        self._plain = type(serde) is JsonPlusSerializer
        self._wanted = {id(link): link for link in wanted}
        self._built: dict[int, Any] = {}
        self._ready: Iterator[Any] = iter(())
        """Elements that are decoded, in the order in which they are asked for."""

    def value(self, link: Link) -> Any:
        """Restore a value.

        Raises:
            DeserializationError: the bytes are damaged, or name a class that
                is not registered.
        """
        if link.undivided:
            return self._serde.loads_typed((link.tag, link.data))
        return self._restore(link, None)

    def end(self, link: Link, start: int) -> Any:
        """Restore the elements of a list from one place on."""
        if link.tag in (LIST, LIST_CHANGE):
            content = self._unpack(link.data)
            if link.tag == LIST:
                return self._alone(content[start:])
            if len(content) == 3 and content[0] == 0 and content[1] <= start:
                return self._alone(content[2][start - content[1] :])
        return self.value(link)[start:]

    def _alone(self, frames: list[Any]) -> list[Any]:
        self._ready = self._decoded([(LIST, frames)])
        return self._items(frames, None)

    def traced(self, link: Link) -> tuple[Any, Trace | None]:
        """Restore a value, and what is to be remembered of it."""
        if link.undivided:
            value = self._serde.loads_typed((link.tag, link.data))
            if type(value) in _SCALARS:
                return value, None
            digest = self._digest(value, (link.tag, link.data))
            return value, Trace(None, digest, len(link.data))
        digests: dict[Any, int] = {}
        value = self._restore(link, digests)
        chain = link.chain()
        since = sum(len(step.data) + _ROW for step in chain[1:])
        kept: Any = digests
        if type(value) is list:
            kept = [digests[id(item)] for item in value]
        else:
            kept = {key: digests[id(item)] for key, item in value.items()}
        return value, Trace(value.copy(), kept, len(chain[0].data), since)

    def _digest(self, item: Any, cell: Cell) -> int:
        return digest_of(item, cell if self._plain else None)

    def _restore(self, link: Link, digests: dict[Any, int] | None) -> Any:
        steps: list[Link] = []
        at: Link | None = link
        while at is not None and id(at) not in self._built:
            steps.append(at)
            at = at.base
        value = None if at is None else self._built[id(at)].copy()
        steps.reverse()
        try:
            ours = [(s.tag, self._unpack(s.data)) for s in steps if s.tag in _OURS]
            self._ready = self._decoded(ours)
            contents = iter(ours)
            for step in steps:
                if step.tag in _OURS:
                    value = self._apply(value, *next(contents), digests)
                else:
                    value = self._foreign(step, digests)
                if id(step) in self._wanted:
                    self._built[id(step)] = value.copy()
        except DeserializationError:
            raise
        except Exception as error:
            raise DeserializationError(f"stored bytes are damaged: {error}") from error
        return value

    def _decoded(self, contents: Iterable[tuple[str, Any]]) -> Iterator[Any]:
        """Decode the elements of all steps, by one call where the codec can."""
        frames = [
            (frame[0], frame[1])
            for tag, content in contents
            for group in _groups(tag, content)
            for frame in group
            if type(frame) is list
        ]
        if self._plain:
            return iter(cast("JsonPlusSerializer", self._serde).loads_many(frames))
        return map(self._serde.loads_typed, frames)

    def _apply(
        self, value: Any, tag: str, content: Any, digests: dict[Any, int] | None
    ) -> Any:
        if tag == LIST:
            return self._items(content, digests)
        if tag == LIST_CHANGE:
            return self._spliced(value, content, digests)
        if tag == DICT:
            items = self._items(content.values(), digests)
            return dict(zip(content, items, strict=True))
        lost, changed = content
        for key in lost:
            del value[key]
        items = self._items(changed.values(), digests)
        value.update(zip(changed, items, strict=True))
        return value

    def _foreign(self, step: Link, digests: dict[Any, int] | None) -> Any:
        """Restore a list or dict that was stored without taking it apart."""
        value = self._serde.loads_typed((step.tag, step.data))
        if digests is not None:
            for _, item in _entries(value):
                plain = self._plain and type(item) not in _SCALARS
                cell = self._serde.dumps_typed(item) if plain else None
                digests[id(item)] = digest_of(item, cell)
        return value

    def _spliced(
        self, old: list[Any], parts: list[Any], digests: dict[Any, int] | None
    ) -> list[Any]:
        if len(parts) == 3 and parts[:2] == [0, len(old)]:
            old += self._items(parts[2], digests)
            return old
        value: list[Any] = []
        pending = iter(parts)
        for part in pending:
            if isinstance(part, int):
                value += old[part : next(pending)]
            else:
                value += self._items(part, digests)
        return value

    def _items(
        self, frames: Iterable[Any], digests: dict[Any, int] | None
    ) -> list[Any]:
        ready = self._ready
        items = [next(ready) if type(frame) is list else frame for frame in frames]
        if digests is not None:
            for item, frame in zip(items, frames, strict=True):
                framed = type(frame) is list
                digests[id(item)] = self._digest(item, tuple(frame)) if framed else 0
        return items

    def _unpack(self, data: bytes) -> Any:
        content = ormsgpack.unpackb(data)
        if self._plain:
            return content
        tag, packed = content
        return ormsgpack.unpackb(self._serde.loads_typed((tag, packed)))


def _groups(tag: str, content: Any) -> Iterable[Iterable[Any]]:
    """The elements in a cell's content, in the order in which they are taken."""
    if tag == LIST:
        return (content,)
    if tag == LIST_CHANGE:
        return (part for part in content if type(part) is list)
    if tag == DICT:
        return (content.values(),)
    return (content[1].values(),)


_own: Final = Codec(learn=True)
_unknown: Final = count(1 << 64)


def digest_of(item: Any, cell: Cell | None) -> int:
    """Return a number that tells whether a value was changed; 0: it cannot be.

    `cell` is the value encoded, by a codec that always gives the same bytes for
    it. The hash of bytes is SipHash with a random key: that two encodings share
    one is as likely as one in 2**61, and nobody can bring it about.
    """
    if type(item) in _SCALARS:
        return 0
    if cell is not None:
        return hash(cell) or 1
    try:
        return hash(_own.encode(item)) or 1
    except SerializationError:
        return next(_unknown)  # equal to no other, as if it had changed


def _entries(items: Any) -> Iterable[tuple[Any, Any]]:
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
