"""A saver that keeps checkpoints in the memory of this process.

It is the model the other savers are tested against, and fast enough to be left
on: a value is encoded once, when its channel changes, and a checkpoint holds
references to the encoded values, most of them its parent's. Nothing is decoded
until somebody reads.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import (
    AsyncIterator,
    Callable,
    Iterator,
    Mapping,
    MutableMapping,
    Sequence,
)
from datetime import timedelta
from functools import partial
from typing import Any, Final, Self, TypeVar, cast

from towpath.checkpoint.base.lease import Lease
from towpath.checkpoint.base.model import (
    WRITES_IDX_MAP,
    Address,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    address_config,
    get_checkpoint_id,
    get_checkpoint_metadata,
    locate,
    writes_sort_key,
)
from towpath.checkpoint.base.rules import (
    Affected,
    Everything,
    Outline,
    Place,
    Rule,
    asks,
    marked,
    stale_writes,
)
from towpath.checkpoint.base.saver import (
    BaseCheckpointSaver,
    Capabilities,
    Staged,
    TaskWrites,
    Written,
    check_limit,
    matches,
)
from towpath.checkpoint.base.summary import ThreadSummary, is_own
from towpath.checkpoint.changes import Link
from towpath.checkpoint.heads import Head
from towpath.checkpoint.held import (
    NO_LINKS,
    NOWHERE,
    Part,
    Record,
    Space,
    Writes,
    WritesOf,
    checkpoint_tuple,
    dump_head,
    link_to,
    linked,
    part_of,
    placed,
    sum_of,
)
from towpath.checkpoint.leasing import LeaseTable
from towpath.checkpoint.overlay import layer
from towpath.checkpoint.record import (
    Cell,
    dump_channels,
    header_of,
    located,
)
from towpath.checkpoint.restoring import (
    Pending,
    asked_by,
    restore,
    restore_all,
    restore_traced,
)
from towpath.checkpoint.serde.base import SerializerProtocol
from towpath.checkpoint.staged import StagedSaver, Storing
from towpath.checkpoint.upkeep import ThreadPage, UpkeepSaver
from towpath.types import RunnableConfig

R = TypeVar("R")

__all__ = (
    "WRITES_IDX_MAP",
    "BaseCheckpointSaver",
    "Checkpoint",
    "CheckpointMetadata",
    "CheckpointTuple",
    "DeltaChannelHistory",
    "InMemorySaver",
    "MemorySaver",
    "SerializerProtocol",
    "get_checkpoint_id",
    "get_checkpoint_metadata",
    "writes_sort_key",
)

_PAGE: Final = 1024
"""How many checkpoints of a listing are restored together, see `restoring`."""
_Keys = list[tuple[str, str, str]]
_Writes = list[Pending]


_Found = list[tuple[tuple[str, str, str], Record]]


def _spaces() -> defaultdict[str, Space]:
    return defaultdict(Space)


class InMemorySaver(StagedSaver, UpkeepSaver):
    """Keeps checkpoints until the process ends, or until they are deleted.

    Safe to share between threads and event loops. Nothing waits, so the async
    methods are the blocking ones.
    """

    capabilities = Capabilities(
        inline=True,
        atomic_commit=True,
        carries=True,
        deltas=True,
        leases=True,
        retention=True,
        staged=True,
    )

    storage: defaultdict[str, defaultdict[str, Space]]
    """Checkpoints by thread, namespace and id."""

    def __init__(
        self,
        *,
        serde: SerializerProtocol | None = None,
        factory: type[defaultdict[Any, Any]] = defaultdict,
        ttl: timedelta | None = None,
    ) -> None:
        super().__init__(serde=serde)
        self.ttl = ttl
        self.storage = factory(_spaces)
        self._lock = threading.Lock()
        self._leases = LeaseTable()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        return None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        return None

    @property
    def writes(self) -> MutableMapping[tuple[str, str, str], Writes]:
        """Pending writes by thread, namespace and checkpoint, then task and place."""
        return WritesOf(self.storage)

    # Reading

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that `config` names, or the newest."""
        address = locate(config)
        found = self._newest(address)
        if found is None:
            return None
        at, record, writes = found
        restored = restore(self.serde, record.item(writes))
        return checkpoint_tuple((*address.space, at), record, restored)

    def _newest(self, address: Address) -> tuple[str, Record, _Writes] | None:
        """Return the checkpoint of an address, or the newest of its space."""
        with self._lock:
            space = self._space(*address.space)
            at = address.id or max(space, default="")
            record = space.get(at)
            if record is None:
                return None
            return at, record, self._pending(*address.space, at)

    def begin_run(
        self, config: RunnableConfig, lease: Lease | None = None
    ) -> CheckpointTuple | None:
        """As `get_tuple`, for a run that goes on from there."""
        address = locate(config)
        if lease is not None:
            with self._lock:
                self._leases.acquire(lease)
        found = self._newest(address)
        if found is None:
            return None
        at, record, writes = found
        restored, traces = restore_traced(self.serde, record.item(writes))
        cells = record.cells.flat()
        traces = {c: trace for c, trace in traces.items() if c in cells}
        self._heads.keep(address.space, Head(at, record.versions.flat(), traces))
        return checkpoint_tuple((*address.space, at), record, restored)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints, newest first; those of all threads without config."""
        check_limit(limit)
        scope = None if config is None else locate(config)
        until = get_checkpoint_id(before) if before else None
        return self._listed(self._keys(scope, until), filter, limit)

    def _keys(self, scope: Address | None, until: str | None) -> _Keys:
        """Return the addresses in scope, newest first."""
        with self._lock:
            found = [
                (thread, ns, at)
                for thread in (self.storage if scope is None else (scope.thread,))
                for ns, space in self.storage.get(thread, {}).items()
                for at in space
                if (until is None or at < until)
                and (scope is None or scope.covers(ns, at))
            ]
        return sorted(found, key=lambda key: key[2], reverse=True)

    def _listed(
        self, keys: _Keys, filter: dict[str, Any] | None, limit: int | None
    ) -> Iterator[CheckpointTuple]:
        left = len(keys) if limit is None else limit
        for start in range(0, len(keys), _PAGE):
            found = self._matching(keys[start : start + _PAGE], filter)[:left]
            left -= len(found)
            items = [record.item(self._taken(key)) for key, record in found]
            asked = [link for item in items for link in asked_by(item)]
            several = restore_all(self.serde, asked, items)
            for (key, record), restored in zip(found, several, strict=True):
                yield checkpoint_tuple(key, record, restored)
            if not left:
                return

    def _matching(self, keys: _Keys, filter: dict[str, Any] | None) -> _Found:
        with self._lock:
            there = [(key, self._space(*key[:2]).get(key[2])) for key in keys]
        return [
            (key, record)
            for key, record in there
            if record is not None  # it was deleted meanwhile
            and (not filter or matches(self._metadata(record), filter))
        ]

    def _metadata(self, record: Record) -> CheckpointMetadata:
        _, metadata = self.serde.loads_typed((record.tag, record.head))
        return cast("CheckpointMetadata", metadata)

    def _space(self, thread: str, ns: str) -> Space:
        # Not by indexing: asking must not make an entry.
        spaces = self.storage.get(thread)
        return spaces.get(ns, NOWHERE) if spaces else NOWHERE

    def _taken(self, key: tuple[str, str, str]) -> _Writes:
        with self._lock:
            return self._pending(*key)

    def _pending(self, thread: str, ns: str, at: str) -> _Writes:
        held = self._space(thread, ns).writes.get(at)
        return held.every() if held is not None else []

    # Writing

    def stage_commit(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
        writes: Sequence[TaskWrites] = (),
        *,
        written: Written = None,
        lease: Lease | None = None,
        own: Sequence[TaskWrites] = (),
    ) -> Staged[RunnableConfig]:
        """Encode what `commit` stores, and pending writes of the new checkpoint."""
        address = locate(config)
        if writes:
            located(config)
        serde, values = self.serde, checkpoint["channel_values"]
        record, links = self._record(
            address, checkpoint, metadata, new_versions, written
        )
        pending = [part_of(serde, each, values, links) for each in writes if each[2]]
        taken = [part_of(serde, each) for each in own if each[2]]
        key = (*address.space, checkpoint["id"])
        return self._storing(partial(self._store, key, record, pending, taken, lease))

    def _store(
        self,
        key: tuple[str, str, str],
        record: Record,
        pending: Sequence[Part],
        taken: Sequence[Part],
        lease: Lease | None,
    ) -> RunnableConfig:
        thread, ns, at = key
        with self._lock:
            self._leases.check(lease)
            space = self.storage[thread][ns]
            if pending and record.parent:
                space.keep(record.parent, pending)
            if taken:
                space.keep(at, taken)
            space[at] = record
        return address_config(*key)

    def _record(
        self,
        address: Address,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
        written: Written,
    ) -> tuple[Record, Mapping[str, Link]]:
        """Return what is stored of a checkpoint, and the links to what it changed."""
        serde = self.serde
        with self._lock:
            parent = self._space(*address.space).get(address.id or "")
        header = header_of(checkpoint)
        del header["channel_versions"], header["id"]
        if parent is None:  # a head would tell of what is gone
            ground = address._replace(id=None)
            encoded = self._encode(ground, checkpoint, new_versions, written)
        else:
            before = parent.versions
            encoded = self._encode(address, checkpoint, new_versions, written, before)
        versions, cells, links = placed(encoded, new_versions, parent)
        others = dump_channels(serde, checkpoint, encoded.loose)
        record = Record(
            *dump_head(serde, header, metadata),
            versions,
            cells,
            {name: link_to(cell) for name, cell in others.items()} or NO_LINKS,
            address.id,
        )
        return record, links

    def _stage_end(
        self,
        address: Address,
        cells: dict[str, Cell],
        lease: Lease | None,
        ended: Lease | None,
    ) -> Staged[None]:
        return self._storing(partial(self._end, address, cells, lease, ended))

    def _end(
        self,
        address: Address,
        cells: dict[str, Cell],
        lease: Lease | None,
        ended: Lease | None,
    ) -> None:
        with self._lock:
            space = self._space(*address.space)
            record = space.get(address.id or "")
            if cells and record is not None:
                self._leases.check(lease)
                links = record.cells.on(linked(cells, record.cells))
                space[address.id or ""] = record._replace(cells=links)
            if ended is not None:
                self._leases.release(ended)

    def stage_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[TaskWrites],
        *,
        lease: Lease | None = None,
    ) -> Staged[None]:
        """Encode what `put_writes` stores, of one task or of several."""
        parts = [part_of(self.serde, each) for each in writes if each[2]]
        key = located(config)
        return self._storing(partial(self._record_writes, key, parts, lease))

    @staticmethod
    def _storing(store: Callable[[], R]) -> Staged[R]:
        async def astore() -> R:
            return store()

        return Storing(store, astore)

    def _record_writes(
        self, key: tuple[str, str, str], parts: Sequence[Part], lease: Lease | None
    ) -> None:
        thread, ns, at = key
        with self._lock:
            self._leases.check(lease)
            self.storage[thread][ns].keep(at, parts)

    # Threads over time

    def _surveying(
        self, after: tuple[str, str] | None, most: int
    ) -> Staged[Sequence[ThreadSummary]]:
        return self._storing(partial(self._survey, after, most))

    def _survey(
        self, after: tuple[str, str] | None, most: int
    ) -> Sequence[ThreadSummary]:
        with self._lock:
            marks = [
                (max(space), thread)
                for thread in self.storage
                if (space := self._space(thread, ""))
            ]
            older = [mark for mark in marks if after is None or mark < after]
            return [
                self._summary(thread, at)
                for at, thread in sorted(older, reverse=True)[:most]
            ]

    def _summary(self, thread: str, at: str) -> ThreadSummary:
        record = self.storage[thread][""][at]
        shown = record._replace(
            cells=layer({c: link for c, link in record.cells.items() if is_own(c)}),
            loose=NO_LINKS,
        )
        restored = restore(self.serde, shown.item(self._pending(thread, "", at)))
        newest = checkpoint_tuple((thread, "", at), record, restored)
        written = self._written(thread).values()
        whole = sum_of(
            [record for _, record in self._places(thread)],
            [write for writes in written for write in writes],
        )
        return ThreadSummary(thread, newest, len(self.storage[thread][""]), whole.bytes)

    def _paging(self, after: str | None) -> Staged[ThreadPage]:
        return self._storing(partial(self._page, after))

    def _page(self, after: str | None) -> ThreadPage:
        with self._lock:
            return [
                (thread, max((at for (_, at), _ in self._places(thread)), default=None))
                for thread in sorted(self.storage)
                if after is None or thread > after
            ]

    def _removing(self, thread: str, rule: Rule, dry_run: bool) -> Staged[Affected]:
        return self._storing(partial(self._remove_doomed, thread, rule, dry_run))

    def _remove_doomed(self, thread: str, rule: Rule, dry_run: bool) -> Affected:
        with self._lock:
            records, written = dict(self._places(thread)), self._written(thread)
            outline = Outline(
                {place: record.parent for place, record in records.items()},
                {place for place, writes in written.items() if _asks(writes)},
                lambda place: self._metadata(records[place]),
                self._leases.is_held(thread),
            )
            if rule.spares(outline):
                return Affected(running=1)
            doomed = rule.doomed(outline)
            whole = isinstance(rule, Everything) or doomed == records.keys() != set()
            stale = {*written} if whole else stale_writes(outline, doomed, written)
            if not dry_run:
                self._delete(thread, doomed, stale, whole=whole)
        kept = [record for place, record in records.items() if place not in doomed]
        return sum_of(
            [records[place] for place in doomed],
            [write for place in stale for write in written[place]],
            kept,
        )

    def _places(self, thread: str) -> Iterator[tuple[Place, Record]]:
        for ns, space in self.storage.get(thread, {}).items():
            for at, record in space.items():
                yield (ns, at), record

    def _written(self, thread: str) -> dict[Place, _Writes]:
        return {
            (ns, at): writes.every()
            for ns, space in self.storage.get(thread, {}).items()
            for at, writes in space.writes.items()
        }

    def _delete(
        self, thread: str, doomed: set[Place], stale: set[Place], *, whole: bool
    ) -> None:
        if whole:
            self.storage.pop(thread, None)
            self._leases.forget(thread)
            return
        for ns, at in stale:
            del self.storage[thread][ns].writes[at]
        for ns, at in doomed:
            del self.storage[thread][ns][at]
        for ns, space in [*self.storage.get(thread, {}).items()]:
            for at, record in space.items():
                if record.parent is not None and (ns, record.parent) in doomed:
                    space[at] = record._replace(parent=None)
            if not (space or space.writes):
                del self.storage[thread][ns]

    def _copying(self, source: str, target: str, dry_run: bool) -> Staged[Affected]:
        return self._storing(partial(self._copy, source, target, dry_run))

    def _copy(self, source: str, target: str, dry_run: bool) -> Affected:
        with self._lock:
            if self.storage.get(target):
                raise ValueError(f"thread `{target}` is not empty")
            records, written = dict(self._places(source)), self._written(source)
            if not dry_run:
                for (ns, at), record in records.items():
                    self.storage[target][ns][at] = record
                for ns, at in written:
                    held = self.storage[source][ns].writes[at]
                    self.storage[target][ns].writes[at] = held.copy()
        return sum_of(
            [*records.values()], [write for each in written.values() for write in each]
        )

    def _sizing(self) -> Staged[int]:
        return self._storing(lambda: 0)

    def _vacuuming(self) -> Staged[None]:
        return self._storing(lambda: None)

    # The async twins: nothing here waits.

    async def abegin_run(
        self, config: RunnableConfig, lease: Lease | None = None
    ) -> CheckpointTuple | None:
        """Async twin of `begin_run`."""
        return self.begin_run(config, lease)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Async twin of `get_tuple`."""
        return self.get_tuple(config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Async twin of `list`."""
        for found in self.list(config, filter=filter, before=before, limit=limit):
            yield found


def _asks(writes: _Writes) -> bool:
    return asks(marked((write.task, write.channel, write.idx) for write in writes))


MemorySaver = InMemorySaver
"""The peer's former name."""
