"""Restores values, and checkpoints, from what is stored of them.

Decoding costs less by the many: what is decoded together takes one call of the codec,
where it can do that. So first everything that is to be decoded is gathered, and then
values are made of what that gave.

Where several of the values are versions of one, each link is decoded once: they have
containers of their own and share the elements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from operator import itemgetter
from typing import Any, Final, NamedTuple, cast

import ormsgpack

from towpath.checkpoint.base.model import PendingWrite
from towpath.checkpoint.changes import (
    APART,
    DICT,
    LIST,
    LIST_CHANGE,
    ROW,
    SCALARS,
    Link,
    Trace,
    digest_of,
    opening_of,
)
from towpath.checkpoint.record import Cell
from towpath.checkpoint.serde.base import SerializerProtocol
from towpath.checkpoint.serde.jsonplus import VALUE, JsonPlusSerializer
from towpath.errors import DeserializationError

_BATCH: Final = 32
_BATCH_BYTES: Final = 1 << 18
"""How much is decoded together: what nobody comes to ask for is not, then, and what
goes by on the way is soon gone."""

Frame = Sequence[Any]
"""An element of a value: its tag and its bytes. Those that stand for themselves,
as numbers and texts do, are none."""


class Pending(NamedTuple):
    """A pending write as it is stored."""

    task: str
    path: str
    idx: int
    channel: str
    link: Link
    start: int | None = None
    """Where in the list of the link the value begins."""


_place: Final = itemgetter(1, 0, 2)
"""Path, task and index of a pending write, by which they are put in order."""


class Item(NamedTuple):
    """What is stored of a checkpoint, or as much of it as is asked for."""

    cells: Sequence[Cell]
    """Values that belong to no channel."""
    links: Mapping[str, Link]
    """The values of channels."""
    writes: Sequence[Pending] = ()
    """Pending writes, in the order of their tasks."""


Restored = tuple[Sequence[Any], dict[str, Any], list[PendingWrite]]
"""The same, decoded."""


def in_order(writes: Sequence[Pending]) -> Sequence[Pending]:
    """Return pending writes in the order of their tasks."""
    return sorted(writes, key=_place) if len(writes) > 1 else writes


def asked_by(item: Item) -> list[Link]:
    """Return the links whose whole values are asked for."""
    whole = [write.link for write in item.writes if write.start is None]
    return [*item.links.values(), *whole]


def restore(serde: SerializerProtocol, item: Item) -> Restored:
    """Decode one checkpoint.

    Raises:
        DeserializationError: the bytes are damaged, or name a class that is not
            registered.
    """
    return _Reader(serde).read((item,))[0]


def restore_all(
    serde: SerializerProtocol,
    asked: Iterable[Link],
    items: Iterable[Item],
) -> Iterator[Restored]:
    """Decode checkpoints, some at a time; `asked` are the links of all of them.

    Raises:
        DeserializationError: as `restore`, when it comes to the one it is about.
    """
    reader, left, batch = _Reader(serde, asked), iter(items), list[Item]()
    try:
        while batch := reader.batch(left):
            yield from reader.read(batch)
    except DeserializationError:
        for item in chain(batch, left):  # what comes before the damage can be had
            yield restore(serde, item)


def restore_traced(
    serde: SerializerProtocol, item: Item
) -> tuple[Restored, dict[str, Trace]]:
    """Decode a checkpoint, and say what tells later what changed in its values.

    Raises:
        DeserializationError: as `restore`.
    """
    reader = _Reader(serde)
    frames, plans = reader.gather((item,))
    decoded = reader.decode(frames)
    [restored] = reader.made((item,), plans, iter(decoded))
    framed = {
        id(value): frame
        for frame, value in zip(frames, decoded, strict=True)
        if type(frame) is list
    }
    traces = {}
    for channel, link in item.links.items():
        trace = reader.trace(link, restored[1][channel], framed)
        if trace is not None:
            traces[channel] = trace
    return restored, traces


_Step = tuple[int, str, Any]
"""What makes a value, or changes it: the id of the link if others are made from what
it gives, else 0; its tag; and its content, the elements still encoded."""


class _Route(NamedTuple):
    """How a value is made that was taken apart."""

    start: int
    """The id of the link whose value is changed, or 0."""
    last: bool
    """Whether that value is this one, and nothing else is made from it."""
    steps: Sequence[_Step]
    cut: int = 0
    """How many elements of a list are not asked for."""


_Plan = Sequence[_Route | None]
"""How the values of a checkpoint are made; None for one that was not taken apart."""


class _Reader:
    """Reads checkpoints.

    Of several of them, it is told which links are `asked` for, as often as they are.
    """

    def __init__(self, serde: SerializerProtocol, asked: Iterable[Link] = ()) -> None:
        self._serde = serde
        self._plain = type(serde) is JsonPlusSerializer
        self._asked = dict(Counter(map(id, asked))) if asked else {}
        """How often the value of a link is still asked for, by its id."""
        self._ready: set[int] = set()
        """The links whose values are made by the time that it comes to the next one."""
        self._values: dict[int, Any] = {}
        """These values."""

    def batch(self, items: Iterator[Item]) -> list[Item]:
        """Take from the next checkpoints as many as should be decoded together."""
        batch: list[Item] = []
        size = 0
        for item in items:
            batch.append(item)
            size += sum([len(link[1]) for link in item[1].values() if link[2] is None])
            if size > _BATCH_BYTES or len(batch) == _BATCH:
                break
        return batch

    def read(self, items: Sequence[Item]) -> list[Restored]:
        """Decode the next checkpoints together."""
        frames, plans = self.gather(items)
        return self.made(items, plans, iter(self.decode(frames)))

    # What is to be decoded

    def gather(self, items: Sequence[Item]) -> tuple[list[Frame], list[_Plan]]:
        """Return what is to be decoded for the next checkpoints, and their plans."""
        frames: list[Frame] = []
        plans: list[_Plan] = []
        try:
            for cells, links, writes in items:
                frames += cells
                plan: list[_Route | None] = []
                for link in links.values():
                    if link[2] is None and link[0] not in APART:
                        frames.append(link)
                        plan.append(None)
                    else:
                        plan.append(self._route(link, frames))
                for _, _, _, _, link, start in writes:
                    if link[2] is None and link[0] not in APART:
                        frames.append(link)
                        plan.append(None)
                    elif start is None:
                        plan.append(self._route(link, frames))
                    else:
                        plan.append(self._end(link, start, frames))
                plans.append(plan)
        except Exception as error:
            raise _damaged(error) from error
        return frames, plans

    def _route(self, link: Link, frames: list[Frame]) -> _Route:
        """Plan how a value is made, and add what is to be decoded for it."""
        ready, asked, own = self._ready, self._asked, id(link)
        if asked:
            asked[own] -= 1
        if own in ready:
            last = not asked[own]
            if last:
                ready.discard(own)
            return _Route(own, last, ())
        return self._path(link, frames)

    def _path(self, link: Link, frames: list[Frame], cut: int = 0) -> _Route:
        """Plan how a value is made of another, and which of its elements are kept."""
        ready, asked = self._ready, self._asked
        links: list[Link] = []
        at: Link | None = link
        while at is not None and id(at) not in ready:
            links.append(at)
            at = at.base
        links.reverse()
        steps: list[_Step] = []
        for each, content in zip(links, self._contents(links), strict=True):
            key = id(each) if asked.get(id(each)) else 0
            if key:
                ready.add(key)
            steps.append((key, each.tag, content))
            if content is None:
                frames.append(each)
            else:
                for group in _groups(each.tag, content):
                    frames += [frame for frame in group if type(frame) is list]
        return _Route(0 if at is None else id(at), False, steps, cut)

    def _end(self, link: Link, start: int, frames: list[Frame]) -> _Route:
        """Plan how the elements of a list are made from one place on."""
        if link.tag in (LIST, LIST_CHANGE):
            size, own = 0, self._unpacked(link.data)
            if link.tag == LIST_CHANGE:  # the list grew from a size on: the rule
                grew = len(own) == 3 and own[0] == 0
                size, own = own[1:] if grew else (start + 1, ())
            if size <= start:
                own = own[start - size :]
                frames += [frame for frame in own if type(frame) is list]
                return _Route(0, False, ((0, LIST, own),))
        return self._path(link, frames, start)

    def _contents(self, links: Sequence[Link]) -> Sequence[Any]:
        """What links hold, the elements still encoded; None of one that has none."""
        if self._plain and len(links) > 2 and all(link[0] in APART for link in links):
            # What is in them has the codec's common form.
            return self.decode([(VALUE, link[1]) for link in links])
        return [
            self._unpacked(link.data) if link.tag in APART else None for link in links
        ]

    def _unpacked(self, data: bytes) -> Any:
        content = ormsgpack.unpackb(data)
        if self._plain:
            return content
        packed = self._serde.loads_typed((content[0], content[1]))
        return ormsgpack.unpackb(packed)

    def decode(self, frames: Sequence[Frame]) -> list[Any]:
        """Decode frames, by one call where the codec can."""
        if self._plain:
            return cast("JsonPlusSerializer", self._serde).loads_many(frames)
        return [self._serde.loads_typed((frame[0], frame[1])) for frame in frames]

    # What is made of it

    def made(
        self, items: Sequence[Item], plans: Sequence[_Plan], decoded: Iterator[Any]
    ) -> list[Restored]:
        """Make checkpoints as planned, of what was gathered for them, decoded."""
        try:
            return [
                self._restored(item, plan, decoded)
                for item, plan in zip(items, plans, strict=True)
            ]
        except Exception as error:
            raise _damaged(error) from error

    def _restored(self, item: Item, plan: _Plan, decoded: Iterator[Any]) -> Restored:
        cells, links, writes = item
        head = [*islice(decoded, len(cells))]
        values = {
            channel: next(decoded) if route is None else self._value(route, decoded)
            for channel, route in zip(links, plan, strict=False)
        }
        written = [
            (
                task,
                channel,
                next(decoded) if route is None else self._value(route, decoded),
            )
            for (task, _, _, channel, _, _), route in zip(
                writes, plan[len(links) :], strict=True
            )
        ]
        return head, values, written

    def _value(self, route: _Route, decoded: Iterator[Any]) -> Any:
        start, last, steps, cut = route
        values = self._values
        if last:
            return values.pop(start)
        value: Any = values[start].copy() if start else None
        for key, tag, content in steps:
            value = _applied(value, tag, content, decoded)
            if key:
                values[key] = value.copy()
        return value[cut:] if cut else value

    # What is remembered of it

    def trace(
        self, link: Link, value: Any, framed: Mapping[int, Frame]
    ) -> Trace | None:
        """Return what is to be remembered of a value; None if it cannot change.

        `framed` are the elements, encoded, by the ids of what they were decoded to.
        """
        if link.base is None and link.tag not in APART:
            if type(value) in SCALARS:
                return None
            digest = self._digest(value, link[:2])
            return Trace(None, digest, len(link.data))
        items = value if type(value) is list else value.values()
        found = [framed.get(id(item)) for item in items]
        start = opening_of(found) if self._plain and type(value) is list else None
        if start is not None:
            # As `digest_of` has it: there may be thousands.
            kept = [hash((frame[0], frame[1])) or 1 for frame in found if frame]
        else:
            kept = [
                self._digest(item, None if frame is None else (frame[0], frame[1]))
                for item, frame in zip(items, found, strict=True)
            ]
        steps = link.chain()
        since = sum([len(step.data) + ROW for step in steps[1:]])
        known: Any = (
            kept if type(value) is list else dict(zip(value, kept, strict=True))
        )
        return Trace(value.copy(), known, len(steps[0].data), since, start)

    def _digest(self, value: Any, cell: Cell | None) -> int:
        if type(value) in SCALARS:
            return 0
        if not self._plain:
            return digest_of(value, None)
        return digest_of(value, cell or self._serde.dumps_typed(value))


def _damaged(error: Exception) -> DeserializationError:
    if isinstance(error, DeserializationError):
        return error
    return DeserializationError(f"stored bytes are damaged: {error}")


def _groups(tag: str, content: Any) -> Sequence[Sequence[Any]]:
    """The elements in a cell's content, in the order in which they are taken."""
    if tag == LIST_CHANGE:
        return [part for part in content if type(part) is list]
    if tag == LIST:
        return (content,)
    return ((content if tag == DICT else content[1]).values(),)


def _applied(value: Any, tag: str, content: Any, decoded: Iterator[Any]) -> Any:
    """Change a value as a link says, or make it anew."""
    if tag == LIST_CHANGE:
        return _spliced(value, content, decoded)
    if tag == LIST:
        return _items(content, decoded)
    if tag not in APART:
        return next(decoded)
    if tag == DICT:
        return dict(zip(content, _items(content.values(), decoded), strict=True))
    lost, changed = content
    for key in lost:
        del value[key]
    value.update(zip(changed, _items(changed.values(), decoded), strict=True))
    return value


def _spliced(old: list[Any], parts: list[Any], decoded: Iterator[Any]) -> list[Any]:
    if len(parts) == 3 and parts[:2] == [0, len(old)]:  # it grew: the rule
        old += _items(parts[2], decoded)
        return old
    value: list[Any] = []
    pending = iter(parts)
    for part in pending:
        if isinstance(part, int):
            value += old[part : next(pending)]
        else:
            value += _items(part, decoded)
    return value


def _items(frames: Iterable[Any], decoded: Iterator[Any]) -> list[Any]:
    return [next(decoded) if type(frame) is list else frame for frame in frames]
