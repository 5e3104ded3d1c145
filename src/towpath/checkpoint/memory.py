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
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from functools import partial
from typing import Any, Final, NamedTuple, Self, TypeVar

from towpath.checkpoint.base.lease import Lease, is_dead
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
from towpath.checkpoint.base.saver import (
    BaseCheckpointSaver,
    Capabilities,
    Staged,
    TaskWrites,
    Written,
    check_limit,
    matches,
)
from towpath.checkpoint.changes import CHANGES, SAME, Link, Reader
from towpath.checkpoint.heads import (
    Head,
    encode_values,
    read_traced,
)
from towpath.checkpoint.leasing import busy, check
from towpath.checkpoint.record import (
    Cell,
    WriteCell,
    changed,
    dump_channels,
    dump_metadata,
    dump_step,
    dump_writes,
    header_of,
    inherit,
    keeps_latest,
    load_writes,
    located,
    loose,
)
from towpath.checkpoint.serde.base import SerializerProtocol
from towpath.checkpoint.staged import StagedSaver, Storing
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
"""How many checkpoints of a listing are restored together, see `Reader`."""
_Keys = list[tuple[str, str, str]]
_Writes = list[WriteCell]


class Record(NamedTuple):
    """One stored checkpoint."""

    header: Cell
    versions: ChannelVersions
    cells: dict[str, Link]
    loose: dict[str, Link]
    metadata: Cell
    parent: str | None

    @property
    def links(self) -> dict[str, Link]:
        """The stored values of all channels."""
        return {**self.cells, **self.loose} if self.loose else self.cells


_Found = list[tuple[tuple[str, str, str], Record, _Writes]]
Space = dict[str, Record]
"""The checkpoints of one namespace of a thread, by id."""


def _spaces() -> defaultdict[str, Space]:
    return defaultdict(dict)


class InMemorySaver(StagedSaver):
    """Keeps checkpoints until the process ends, or until they are deleted.

    Safe to share between threads and event loops. Nothing waits, so the async
    methods are the blocking ones.
    """

    capabilities = Capabilities(
        inline=True,
        atomic_commit=True,
        deltas=True,
        leases=True,
        retention=True,
        staged=True,
    )

    storage: defaultdict[str, defaultdict[str, Space]]
    """Checkpoints by thread, namespace and id."""
    writes: defaultdict[tuple[str, str, str], dict[tuple[str, int], WriteCell]]
    """Pending writes by thread, namespace and checkpoint, then task and place."""

    def __init__(
        self,
        *,
        serde: SerializerProtocol | None = None,
        factory: type[defaultdict[Any, Any]] = defaultdict,
    ) -> None:
        super().__init__(serde=serde)
        self.storage = factory(_spaces)
        self.writes = factory(dict)
        self._lock = threading.Lock()
        self._leases: dict[str, Lease] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        return None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        return None

    # Reading

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that `config` names, or the newest."""
        address = locate(config)
        found = self._newest(address)
        if found is None:
            return None
        at, record, writes = found
        reader = Reader(self.serde)
        values = {c: reader.value(link) for c, link in record.links.items()}
        return self._tuple((*address.space, at), record, writes, values)

    def _acquire(self, lease: Lease) -> None:
        with self._lock:
            held = self._leases.get(lease.thread)
            if held is not None and held is not lease and not is_dead(held.owner):
                raise busy(lease.thread, held.owner)
            lease.grant(1 if held is None else held.epoch + 1)
            self._leases[lease.thread] = lease

    def _check(self, lease: Lease | None) -> None:
        held = None if lease is None else self._leases.get(lease.thread)
        check(lease, held.epoch if held is not None and held is lease else None)

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
            self._acquire(lease)
        found = self._newest(address)
        if found is None:
            return None
        at, record, writes = found
        values, traces = read_traced(Reader(self.serde), record.links)
        traces = {c: trace for c, trace in traces.items() if c in record.cells}
        self._heads.keep(address.space, Head(at, record.versions, traces))
        return self._tuple((*address.space, at), record, writes, values)

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
            links = [link for _, at, _ in found for link in at.links.values()]
            reader = Reader(self.serde, links)
            for key, record, writes in found:
                values = {c: reader.value(link) for c, link in record.links.items()}
                yield self._tuple(key, record, writes, values)
            if not left:
                return

    def _matching(self, keys: _Keys, filter: dict[str, Any] | None) -> _Found:
        found: _Found = []
        for thread, ns, at in keys:
            with self._lock:
                record = self._space(thread, ns).get(at)
                writes = self._pending(thread, ns, at)
            if record and matches(self.serde.loads_typed(record.metadata), filter):
                found.append(((thread, ns, at), record, writes))
        return found

    def _space(self, thread: str, ns: str) -> Space:
        # Not by indexing: asking must not make an entry.
        spaces = self.storage.get(thread)
        return spaces.get(ns, {}) if spaces else {}

    def _pending(self, thread: str, ns: str, at: str) -> _Writes:
        return [*self.writes.get((thread, ns, at), {}).values()]

    def _tuple(
        self,
        key: tuple[str, str, str],
        record: Record,
        writes: _Writes,
        values: dict[str, Any],
    ) -> CheckpointTuple:
        load = self.serde.loads_typed
        checkpoint = load(record.header)
        checkpoint["channel_versions"] = dict(record.versions)
        checkpoint["channel_values"] = values
        thread, ns, _ = key
        return CheckpointTuple(
            address_config(*key),
            checkpoint,
            load(record.metadata),
            address_config(thread, ns, record.parent) if record.parent else None,
            load_writes(self.serde, writes),
        )

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
    ) -> Staged[RunnableConfig]:
        """Encode what `commit` stores."""
        address = locate(config)
        pending = dump_step(self.serde, writes)
        if pending:
            located(config)
        record = self._record(address, checkpoint, metadata, new_versions, written)
        key = (*address.space, checkpoint["id"])
        return self._storing(partial(self._store, key, record, pending, lease))

    def _store(
        self,
        key: tuple[str, str, str],
        record: Record,
        pending: _Writes,
        lease: Lease | None,
    ) -> RunnableConfig:
        thread, ns, at = key
        with self._lock:
            self._check(lease)
            if pending and record.parent:
                self._keep(self.writes[thread, ns, record.parent], pending)
            self.storage[thread][ns][at] = record
        return address_config(*key)

    def _record(
        self,
        address: Address,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
        written: Written,
    ) -> Record:
        serde, space = self.serde, address.space
        with self._lock:
            parent = self._space(*space).get(address.id) if address.id else None
        header = header_of(checkpoint)
        versions = dict(header.pop("channel_versions"))
        head = self._heads.take(space, address.id if parent else None)
        channels = changed(versions, new_versions, parent and parent.versions)
        values = checkpoint["channel_values"]
        cells = encode_values(self._differ, head, values, channels, written)
        head.id = checkpoint["id"]
        self._heads.keep(space, head)
        links = _linked(cells, parent.cells if parent else {})
        if parent is not None:
            links = inherit(parent.cells, links, channels, versions)
        others = dump_channels(serde, checkpoint, loose(checkpoint))
        return Record(
            serde.dumps_typed(header),
            versions,
            links,
            {channel: Link(*cell) for channel, cell in others.items()},
            dump_metadata(serde, metadata),
            address.id,
        )

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
                self._check(lease)
                links = {**record.cells, **_linked(cells, record.cells)}
                space[address.id or ""] = record._replace(cells=links)
            if ended is not None:
                ended.end()
                if self._leases.get(ended.thread) is ended:
                    del self._leases[ended.thread]

    def stage_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
        *,
        lease: Lease | None = None,
    ) -> Staged[None]:
        """Encode what `put_writes` stores."""
        cells = dump_writes(self.serde, writes, task_id, task_path)
        key = located(config)
        return self._storing(partial(self._record_writes, key, cells, lease))

    @staticmethod
    def _storing(store: Callable[[], R]) -> Staged[R]:
        async def astore() -> R:
            return store()

        return Storing(store, astore)

    def _record_writes(
        self, key: tuple[str, str, str], cells: _Writes, lease: Lease | None
    ) -> None:
        with self._lock:
            self._check(lease)
            self._keep(self.writes[key], cells)

    @staticmethod
    def _keep(held: dict[tuple[str, int], WriteCell], cells: _Writes) -> None:
        for write in cells:
            if write.replaces or (write.task, write.idx) not in held:
                held[write.task, write.idx] = write

    # Threads over time

    def delete_thread(self, thread_id: str) -> None:
        """Delete everything of a thread."""
        with self._lock:
            self._drop(str(thread_id))

    def _drop(self, thread: str) -> None:
        self.storage.pop(thread, None)
        for key in [key for key in self.writes if key[0] == thread]:
            del self.writes[key]

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints whose metadata names one of these runs."""
        runs = frozenset(run_ids)
        with self._lock:
            for thread, spaces in self.storage.items():
                for ns, space in spaces.items():
                    doomed = [at for at in space if self._run(space[at]) in runs]
                    self._remove(thread, ns, doomed)

    def _run(self, record: Record) -> str | None:
        run: str | None = self.serde.loads_typed(record.metadata).get("run_id")
        return run

    def _remove(self, thread: str, ns: str, doomed: Iterable[str]) -> None:
        for at in doomed:
            del self.storage[thread][ns][at]
            self.writes.pop((thread, ns, at), None)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread, with its whole history, to one that is empty."""
        source, target = str(source_thread_id), str(target_thread_id)
        with self._lock:
            if self.storage.get(target):
                raise ValueError(f"thread `{target}` is not empty")
            for ns, space in self.storage.get(source, {}).items():
                self.storage[target][ns] = dict(space)
            for thread, ns, at in list(self.writes):
                if thread == source:
                    self.writes[target, ns, at] = dict(self.writes[source, ns, at])

    def prune(
        self, thread_ids: Sequence[str], *, strategy: str = "keep_latest"
    ) -> None:
        """Keep the newest checkpoint of each namespace, or ("delete") none."""
        keep = keeps_latest(strategy)
        with self._lock:
            for thread in map(str, thread_ids):
                if not keep:
                    self._drop(thread)
                    continue
                for ns, space in self.storage.get(thread, {}).items():
                    newest = max(space, default="")
                    self._remove(thread, ns, [at for at in space if at != newest])
                    if newest:
                        space[newest] = space[newest]._replace(parent=None)

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

    async def adelete_thread(self, thread_id: str) -> None:
        """Async twin of `delete_thread`."""
        self.delete_thread(thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Async twin of `delete_for_runs`."""
        self.delete_for_runs(run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Async twin of `copy_thread`."""
        self.copy_thread(source_thread_id, target_thread_id)

    async def aprune(
        self, thread_ids: Sequence[str], *, strategy: str = "keep_latest"
    ) -> None:
        """Async twin of `prune`."""
        self.prune(thread_ids, strategy=strategy)


def _linked(cells: dict[str, Cell], parent: Mapping[str, Link]) -> dict[str, Link]:
    """Tie encoded values to those of the parent that they build on."""
    return {
        channel: parent[channel]
        if cell == SAME
        else Link(*cell, parent[channel] if cell[0] in CHANGES else None)
        for channel, cell in cells.items()
    }


MemorySaver = InMemorySaver
"""The peer's former name."""
