"""What a saver in memory holds of each checkpoint, and what it weighs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from towpath.checkpoint.base.model import (
    WRITES_IDX_MAP,
    ChannelVersions,
    CheckpointMetadata,
    CheckpointTuple,
    address_config,
)
from towpath.checkpoint.base.rules import Affected
from towpath.checkpoint.base.saver import Exact, TaskWrites
from towpath.checkpoint.changes import APART, CHANGES, SAME, Link
from towpath.checkpoint.kept import start_of
from towpath.checkpoint.layout import in_row
from towpath.checkpoint.overlay import Layer, layer
from towpath.checkpoint.record import Cell, dump, dump_metadata, inherit
from towpath.checkpoint.restoring import Item, Pending, Restored, in_order
from towpath.checkpoint.serde.base import SerializerProtocol
from towpath.checkpoint.staged import Encoded
from towpath.constants import GRAPH, MISSING
from towpath.errors import SerializationError
from towpath.shared import Shared

NO_LINKS: Final[Mapping[str, Link]] = MappingProxyType({})
_plain: Final[dict[Cell, Link]] = {}
"""Links to values of one byte: small numbers, None, truth values. All share them."""
_graphs: Final = Shared[Link](256)
"""Links to what tells which graph made a thread; its threads share one."""
_paths: Final = Shared[str]()


class Record(NamedTuple):
    """One stored checkpoint; `tag` and `head` are its header and metadata, encoded."""

    tag: str
    head: bytes
    versions: Layer[str | int | float]
    cells: Layer[Link]
    loose: Mapping[str, Link]
    parent: str | None

    @property
    def links(self) -> dict[str, Link]:
        """The stored values of all channels."""
        cells = self.cells.flat()
        return {**cells, **self.loose} if self.loose else cells

    def item(self, writes: Sequence[Pending]) -> Item:
        """Return what is to be decoded of it."""
        return Item(((self.tag, self.head),), self.links, in_order(writes))


def dump_head(
    serde: SerializerProtocol, header: Mapping[str, Any], metadata: CheckpointMetadata
) -> Cell:
    """Encode header and metadata, saying that it is the metadata where that fails."""
    try:
        return serde.dumps_typed([header, metadata])
    except (SerializationError, RecursionError):
        dump_metadata(serde, metadata)
        raise


def checkpoint_tuple(
    key: tuple[str, str, str], record: Record, restored: Restored
) -> CheckpointTuple:
    [(checkpoint, metadata)], values, writes = restored
    checkpoint["id"] = key[2]
    checkpoint["channel_versions"] = dict(record.versions.flat())
    checkpoint["channel_values"] = values
    thread, ns, _ = key
    parent = address_config(thread, ns, record.parent) if record.parent else None
    return CheckpointTuple(address_config(*key), checkpoint, metadata, parent, writes)


def sum_of(
    records: Sequence[Record],
    writes: Sequence[Pending],
    others: Sequence[Record] = (),
) -> Affected:
    """Count what these hold, but for the cells that others need."""
    cells, needed = _cells_of(records), _cells_of(others)
    in_cells = cells.keys() | needed.keys()
    apart = [write.link for write in writes if id(write.link) not in in_cells]
    for number in needed:
        cells.pop(number, None)
    return Affected(
        threads=1 if records or writes else 0,
        checkpoints=len(records),
        writes=len(writes),
        cells=len(cells),
        bytes=sum(len(record.head) for record in records)
        + sum(len(link.data) for link in apart)
        + sum(cells.values()),
    )


def _cells_of(records: Iterable[Record]) -> dict[int, int]:
    """Return the sizes of stored values, of those they build on, too, by identity.

    But for those of a few bytes: other savers keep them with each checkpoint.
    """
    sizes: dict[int, int] = {}
    for record in records:
        for link in record.links.values():
            at: Link | None = link
            while at is not None and id(at) not in sizes:
                if not in_row((at.tag, at.data)):
                    sizes[id(at)] = len(at.data)
                at = at.base
    return sizes


def placed(
    encoded: Encoded, new_versions: ChannelVersions, parent: Record | None
) -> tuple[Layer[str | int | float], Layer[Link], Mapping[str, Link]]:
    """Return versions and stored values of a checkpoint, and those that it changed."""
    if parent is None:
        links = linked(encoded.cells, {})
        if GRAPH in links:
            links[GRAPH] = _graphs.one(links[GRAPH])
        return layer(encoded.versions), layer(links), links
    links = linked(encoded.cells, parent.cells)
    if encoded.exact and type(new_versions) is Exact:
        changes = {c: links.get(c, MISSING) for c in encoded.channels}
        return parent.versions.on(new_versions), parent.cells.on(changes), links
    versions = encoded.versions
    cells = inherit(parent.cells.flat(), links, encoded.channels, versions)
    return layer(versions), layer(cells), links


def linked(cells: dict[str, Cell], parent: Mapping[str, Link]) -> dict[str, Link]:
    """Tie encoded values to those of the parent that they build on."""
    return {
        channel: parent[channel]
        if cell == SAME
        else Link(*cell, parent[channel])
        if cell[0] in CHANGES
        else link_to(cell)
        for channel, cell in cells.items()
    }


def link_to(cell: Cell) -> Link:
    """Return the link to a value that builds on no other."""
    if len(cell[1]) > 1 or cell[0] in APART:
        return Link(*cell)
    return _plain.get(cell) or _plain.setdefault(cell, Link(*cell))


Part = tuple[Any, ...]
"""What a task wrote: its id, and of each write the path, the place among its writes,
the channel, the link to the value, and where in that the value begins, if it does not
at the start. One tuple, which takes a third of what one for each would."""


def part_of(
    serde: SerializerProtocol,
    wrote: TaskWrites,
    values: Mapping[str, Any] = {},
    links: Mapping[str, Link] = {},
) -> Part:
    """Encode what a task wrote, but for what the checkpoint has that it led to.

    As a rule that is what is then stored, or the end of a list that is. `values` are
    the new checkpoint's, and `links` those of them that it is stored with.
    """
    task, path, writes = wrote
    path = _paths.one(path)  # the tasks of all threads have the same
    content: list[Any] = [task]
    for place, (channel, value) in enumerate(writes):
        link, start = None, None
        if channel in links:
            link, whole = links[channel], values[channel]
            if whole is not value and (start := start_of(whole, value)) is None:
                link = None
        if link is None:
            link = link_to(dump(serde, value, channel))
        content += (path, WRITES_IDX_MAP.get(channel, place), channel, link, start)
    if len(set(content[2::5])) < len(writes):  # one replaces another
        return _joined(content)
    return tuple(content)


def _joined(*parts: Sequence[Any]) -> Part:
    """Join what one task wrote. In a place the first stays, or the last to replace."""
    own: dict[int, Pending] = {}
    for write in chain.from_iterable(map(pending_of, parts)):
        if write.idx < 0 or write.idx not in own:
            own[write.idx] = write
    task: str = parts[0][0]
    return (task, *chain.from_iterable(write[1:] for write in own.values()))


def pending_of(part: Sequence[Any]) -> list[Pending]:
    """Return what one task wrote, write by write."""
    task, *writes = part
    return [Pending(task, *write) for write in zip(*[iter(writes)] * 5, strict=True)]


class Writes(Mapping[tuple[str, int], Pending]):
    """The pending writes of a checkpoint, by task and place."""

    __slots__ = ("_tasks",)

    def __init__(self) -> None:
        self._tasks: dict[str, Part] | Part = ()
        """What each task wrote, or what the only one did."""

    def copy(self) -> Writes:
        twin = Writes()
        tasks = self._tasks
        twin._tasks = tasks.copy() if isinstance(tasks, dict) else tasks
        return twin

    def keep(self, part: Part) -> None:
        """Add what a task wrote."""
        if not self._tasks:
            self._tasks = part
            return
        tasks, task = self._by_task(), part[0]
        tasks[task] = _joined(tasks[task], part) if task in tasks else part
        self._tasks = tasks if len(tasks) > 1 else tasks[task]

    def every(self) -> list[Pending]:
        """Return the writes."""
        return [
            write for part in self._by_task().values() for write in pending_of(part)
        ]

    def _by_task(self) -> dict[str, Part]:
        tasks = self._tasks
        if isinstance(tasks, dict):
            return tasks
        return {tasks[0]: tasks} if tasks else {}

    def __getitem__(self, key: tuple[str, int]) -> Pending:
        task, idx = key
        for write in pending_of(self._by_task()[task]):
            if write.idx == idx:
                return write
        raise KeyError(key)

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return iter([(write.task, write.idx) for write in self.every()])

    def __len__(self) -> int:
        return len(self.every())


class Space(dict[str, Record]):
    """The checkpoints of one namespace of a thread, by id."""

    __slots__ = ("writes",)

    def __init__(self) -> None:
        super().__init__()
        self.writes: dict[str, Writes] = {}
        """What is pending on them, and on some that are not stored, by their ids."""

    def keep(self, at: str, parts: Iterable[Part]) -> None:
        """Add what tasks wrote on a checkpoint."""
        held = self.writes.get(at)
        if held is None:
            held = self.writes[at] = Writes()
        for part in parts:
            held.keep(part)


NOWHERE: Final = Space()
"""Where there is nothing; nothing is put there."""
_Key = tuple[str, str, str]


class WritesOf(MutableMapping[_Key, Writes]):
    """The pending writes of a storage, by thread, namespace and checkpoint."""

    def __init__(self, storage: Mapping[str, Mapping[str, Space]]) -> None:
        self._storage = storage

    def _of(self, key: _Key) -> dict[str, Writes]:
        thread, ns, _ = key
        # Not by indexing: asking must not make an entry.
        return self._storage.get(thread, {}).get(ns, NOWHERE).writes

    def __getitem__(self, key: _Key) -> Writes:
        try:
            return self._of(key)[key[2]]
        except KeyError:
            raise KeyError(key) from None

    def __setitem__(self, key: _Key, writes: Writes) -> None:
        thread, ns, at = key
        self._storage[thread][ns].writes[at] = writes

    def __delitem__(self, key: _Key) -> None:
        try:
            del self._of(key)[key[2]]
        except KeyError:
            raise KeyError(key) from None

    def __iter__(self) -> Iterator[_Key]:
        for thread, spaces in self._storage.items():
            for ns, space in spaces.items():
                for at in space.writes:
                    yield thread, ns, at

    def __len__(self) -> int:
        return sum(1 for _ in self)
