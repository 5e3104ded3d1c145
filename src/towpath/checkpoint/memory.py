"""A saver that keeps checkpoints in the memory of this process.

It is the model the other savers are tested against, and fast enough to be left
on: a value is encoded once, when its channel changes, and a checkpoint holds
references to the encoded values, most of them its parent's. Nothing is decoded
until somebody reads.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Self

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
    TaskWrites,
    check_limit,
    matches,
)
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
from towpath.types import RunnableConfig

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

_Keys = list[tuple[str, str, str]]
_Writes = list[WriteCell]


class Record(NamedTuple):
    """One stored checkpoint."""

    header: Cell
    versions: ChannelVersions
    cells: dict[str, Cell]
    loose: dict[str, Cell]
    metadata: Cell
    parent: str | None


Space = dict[str, Record]
"""The checkpoints of one namespace of a thread, by id."""


def _spaces() -> defaultdict[str, Space]:
    return defaultdict(dict)


class InMemorySaver(BaseCheckpointSaver[int]):
    """Keeps checkpoints until the process ends, or until they are deleted.

    Safe to share between threads and event loops. Nothing waits, so the async
    methods are the blocking ones.
    """

    capabilities = Capabilities(inline=True, atomic_commit=True, retention=True)

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
        thread, ns = address.space
        with self._lock:
            space = self._space(thread, ns)
            at = address.id or max(space, default=None)
            record = space.get(at) if at else None
            writes = self._pending(thread, ns, at) if at and record else []
        if at is None or record is None:
            return None
        return self._tuple((thread, ns, at), record, writes)

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
        for thread, ns, at in keys:
            if left <= 0:
                return
            with self._lock:
                record = self._space(thread, ns).get(at)
                writes = self._pending(thread, ns, at)
            if record and matches(self.serde.loads_typed(record.metadata), filter):
                left -= 1
                yield self._tuple((thread, ns, at), record, writes)

    def _space(self, thread: str, ns: str) -> Space:
        # Not by indexing: asking must not make an entry.
        spaces = self.storage.get(thread)
        return spaces.get(ns, {}) if spaces else {}

    def _pending(self, thread: str, ns: str, at: str) -> _Writes:
        return [*self.writes.get((thread, ns, at), {}).values()]

    def _tuple(
        self, key: tuple[str, str, str], record: Record, writes: _Writes
    ) -> CheckpointTuple:
        load = self.serde.loads_typed
        checkpoint = load(record.header)
        checkpoint["channel_versions"] = dict(record.versions)
        checkpoint["channel_values"] = {
            channel: load(cell)
            for cells in (record.cells, record.loose)
            for channel, cell in cells.items()
        }
        thread, ns, _ = key
        return CheckpointTuple(
            address_config(*key),
            checkpoint,
            load(record.metadata),
            address_config(thread, ns, record.parent) if record.parent else None,
            load_writes(self.serde, writes),
        )

    # Writing

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint as a child of the one `config` names."""
        return self.commit(config, checkpoint, metadata, new_versions, ())

    def commit(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
        writes: Sequence[TaskWrites],
    ) -> RunnableConfig:
        """Record the last writes of a step, and the checkpoint they lead to."""
        address = locate(config)
        thread, ns = address.space
        parent_id = address.id
        pending = dump_step(self.serde, writes)
        if pending and parent_id is None:
            raise ValueError("writes belong to a checkpoint: `config` must name it")
        with self._lock:
            parent = self._space(thread, ns).get(parent_id) if parent_id else None
        record = self._record(checkpoint, metadata, new_versions, parent, parent_id)
        with self._lock:
            if pending and parent_id:
                self._keep(self.writes[thread, ns, parent_id], pending)
            self.storage[thread][ns][checkpoint["id"]] = record
        return address_config(thread, ns, checkpoint["id"])

    def _record(
        self,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
        parent: Record | None,
        parent_id: str | None,
    ) -> Record:
        serde = self.serde
        header = header_of(checkpoint)
        versions = dict(header.pop("channel_versions"))
        channels = changed(versions, new_versions, parent and parent.versions)
        cells = dump_channels(serde, checkpoint, channels)
        if parent is not None:
            cells = inherit(parent.cells, cells, channels, versions)
        return Record(
            serde.dumps_typed(header),
            versions,
            cells,
            dump_channels(serde, checkpoint, loose(checkpoint)),
            dump_metadata(serde, metadata),
            parent_id,
        )

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Record what a task wrote on top of the checkpoint `config` names."""
        key = located(config)
        cells = dump_writes(self.serde, writes, task_id, task_path)
        with self._lock:
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

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Async twin of `put`."""
        return self.commit(config, checkpoint, metadata, new_versions, ())

    async def acommit(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
        writes: Sequence[TaskWrites],
    ) -> RunnableConfig:
        """Async twin of `commit`."""
        return self.commit(config, checkpoint, metadata, new_versions, writes)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Async twin of `put_writes`."""
        self.put_writes(config, writes, task_id, task_path)

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


MemorySaver = InMemorySaver
"""The peer's former name."""
