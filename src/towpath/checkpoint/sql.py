"""A saver over a SQL database, whichever it is and in both colours.

Each method encodes what it was given, has a program run, and decodes what came
back. A subclass says how programs are run: blocking in `_read` and `_write`,
and for an event loop in `_aread` and `_awrite`. Encoding comes before any
waiting, so a value is stored as it was when the method was called.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from towpath.checkpoint import programs
from towpath.checkpoint.base.model import (
    Address,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    address_config,
    get_checkpoint_id,
    locate,
)
from towpath.checkpoint.base.saver import (
    BaseCheckpointSaver,
    Capabilities,
    TaskWrites,
    check_limit,
    matches,
)
from towpath.checkpoint.programs import Draft, Program, Scope, Stored
from towpath.checkpoint.record import (
    Cell,
    changed,
    dump_channels,
    dump_metadata,
    dump_step,
    dump_writes,
    header_of,
    keeps_latest,
    load_writes,
    located,
    loose,
)
from towpath.checkpoint.serde.codec import Codec
from towpath.types import RunnableConfig

R = TypeVar("R")

_PAGE: Final = 64
"""How many checkpoints a listing fetches at once."""
_HEADS_MAX: Final = 4096
"""How many threads' newest versions are remembered."""

_codec: Final = Codec()


class SqlSaver(BaseCheckpointSaver[int]):
    """The part of a SQL saver that does not depend on the database."""

    capabilities = Capabilities(atomic_commit=True, retention=True)

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._heads = _Heads()

    def _read(self, program: Program[R]) -> R:
        raise NotImplementedError

    def _write(self, program: Program[R]) -> R:
        raise NotImplementedError

    async def _aread(self, program: Program[R]) -> R:
        raise NotImplementedError

    async def _awrite(self, program: Program[R]) -> R:
        raise NotImplementedError

    # Reading

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that `config` names, or the newest."""
        return self._read(self._latest(locate(config)))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Async twin of `get_tuple`."""
        return await self._aread(self._latest(locate(config)))

    def _latest(self, address: Address) -> Program[CheckpointTuple | None]:
        # Decoding is part of the program, so that it is done in the thread.
        stored = yield from programs.latest(address)
        return None if stored is None else self._tuple(stored)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints, newest first; those of all threads without config."""
        listing = _Listing(self._scope(config, filter, before), limit)
        return self._listed(listing)

    def _listed(self, listing: _Listing) -> Iterator[CheckpointTuple]:
        while (program := listing.next_page()) is not None:
            for stored in listing.take(self._read(program)):
                yield self._tuple(stored)

    def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Async twin of `list`."""
        listing = _Listing(self._scope(config, filter, before), limit)
        return self._alisted(listing)

    async def _alisted(self, listing: _Listing) -> AsyncIterator[CheckpointTuple]:
        while (program := listing.next_page()) is not None:
            for stored in listing.take(await self._aread(program)):
                yield self._tuple(stored)

    def _scope(
        self,
        config: RunnableConfig | None,
        filter: Mapping[str, Any] | None,
        before: RunnableConfig | None,
    ) -> Scope:
        def keep(meta: Cell) -> bool:
            return matches(self.serde.loads_typed(meta), filter)

        address = None if config is None else locate(config)
        until = get_checkpoint_id(before) if before else None
        return Scope(address, until, keep if filter else None)

    def _tuple(self, stored: Stored) -> CheckpointTuple:
        load = self.serde.loads_typed
        checkpoint: Checkpoint = _codec.decode(stored.header)
        checkpoint["channel_values"] = {c: load(x) for c, x in stored.cells.items()}
        thread, ns, parent = stored.thread, stored.ns, stored.parent
        self._heads.note((thread, ns), stored.id, checkpoint["channel_versions"])
        return CheckpointTuple(
            address_config(thread, ns, stored.id),
            checkpoint,
            load(stored.meta),
            address_config(thread, ns, parent) if parent else None,
            load_writes(self.serde, stored.writes),
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

    def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> Coroutine[Any, Any, RunnableConfig]:
        """Async twin of `put`."""
        return self.acommit(config, checkpoint, metadata, new_versions, ())

    def commit(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
        writes: Sequence[TaskWrites],
    ) -> RunnableConfig:
        """Record the last writes of a step, and the checkpoint they lead to."""
        draft = self._draft(config, checkpoint, metadata, new_versions, writes)
        while missing := self._write(programs.commit(draft)):
            draft.cells |= dump_channels(self.serde, checkpoint, missing)
        return self._done(draft)

    def acommit(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
        writes: Sequence[TaskWrites],
    ) -> Coroutine[Any, Any, RunnableConfig]:
        """Async twin of `commit`."""
        # Not `async`: a coroutine would encode when it first runs, and a task
        # made of it may run after its maker has gone on changing the values.
        draft = self._draft(config, checkpoint, metadata, new_versions, writes)
        draft.cells |= dump_channels(self.serde, checkpoint, self._wanted(draft))
        return self._acommitted(draft, checkpoint)

    async def _acommitted(self, draft: Draft, checkpoint: Checkpoint) -> RunnableConfig:
        while missing := await self._awrite(programs.commit(draft)):
            draft.cells |= dump_channels(self.serde, checkpoint, missing)
        return self._done(draft)

    def _draft(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
        writes: Sequence[TaskWrites],
    ) -> Draft:
        serde = self.serde
        address = locate(config)
        if writes:
            located(config)
        return Draft(
            *address.space,
            id=checkpoint["id"],
            parent=address.id,
            header=_codec.encode(header_of(checkpoint)),
            versions=dict(checkpoint["channel_versions"]),
            new_versions=dict(new_versions),
            held=frozenset(checkpoint["channel_values"]),
            meta=dump_metadata(serde, metadata),
            cells=dump_channels(serde, checkpoint, new_versions),
            loose=dump_channels(serde, checkpoint, loose(checkpoint)),
            writes=dump_step(serde, writes),
        )

    def _wanted(self, draft: Draft) -> frozenset[str]:
        """Return the channels whose values may have to be stored."""
        known = self._heads.versions((draft.thread, draft.ns), draft.parent)
        channels = changed(draft.versions, draft.new_versions, known)
        return draft.held.intersection(channels).difference(draft.cells)

    def _done(self, draft: Draft) -> RunnableConfig:
        self._heads.note((draft.thread, draft.ns), draft.id, draft.versions)
        return address_config(draft.thread, draft.ns, draft.id)

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Record what a task wrote on top of the checkpoint `config` names."""
        cells = dump_writes(self.serde, writes, task_id, task_path)
        self._write(programs.put_writes(*located(config), cells))

    def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> Coroutine[Any, Any, None]:
        """Async twin of `put_writes`."""
        cells = dump_writes(self.serde, writes, task_id, task_path)
        return self._awrite(programs.put_writes(*located(config), cells))

    # Threads over time

    def delete_thread(self, thread_id: str) -> None:
        """Delete everything of a thread."""
        self._write(programs.delete_threads([str(thread_id)]))

    async def adelete_thread(self, thread_id: str) -> None:
        """Async twin of `delete_thread`."""
        await self._awrite(programs.delete_threads([str(thread_id)]))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints whose metadata names one of these runs."""
        self._write(self._delete_for_runs(run_ids))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Async twin of `delete_for_runs`."""
        await self._awrite(self._delete_for_runs(run_ids))

    def _delete_for_runs(self, run_ids: Sequence[str]) -> Program[None]:
        runs = frozenset(run_ids)
        load = self.serde.loads_typed
        return programs.delete_where(lambda meta: load(meta).get("run_id") in runs)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread, with its whole history, to one that is empty."""
        source, target = str(source_thread_id), str(target_thread_id)
        self._write(programs.copy_thread(source, target))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Async twin of `copy_thread`."""
        source, target = str(source_thread_id), str(target_thread_id)
        await self._awrite(programs.copy_thread(source, target))

    def prune(
        self, thread_ids: Sequence[str], *, strategy: str = "keep_latest"
    ) -> None:
        """Keep the newest checkpoint of each namespace, or ("delete") none."""
        self._write(_prune(thread_ids, strategy))

    async def aprune(
        self, thread_ids: Sequence[str], *, strategy: str = "keep_latest"
    ) -> None:
        """Async twin of `prune`."""
        await self._awrite(_prune(thread_ids, strategy))


def _prune(thread_ids: Sequence[str], strategy: str) -> Program[None]:
    threads = [str(thread) for thread in thread_ids]
    keep = keeps_latest(strategy)
    return programs.prune(threads) if keep else programs.delete_threads(threads)


class _Listing:
    """A listing under way: where it is, and how many are still wanted."""

    def __init__(self, scope: Scope, limit: int | None) -> None:
        self._scope = scope
        self._left = check_limit(limit)
        self._mark: programs.Mark | None = None
        self._over = False

    def next_page(self) -> Program[programs.Page] | None:
        """Return the program of the next page, or None at the end."""
        left = self._left
        if self._over or left == 0:
            return None
        # With a filter, a page of `left` rows would seldom yield as many.
        small = left is not None and self._scope.keep is None
        size = min(left, _PAGE) if small and left is not None else _PAGE
        return programs.page(self._scope, self._mark, size)

    def take(self, page: programs.Page) -> Iterator[Stored]:
        """Yield the checkpoints of a page, as many as are still wanted."""
        found, self._mark = page
        self._over = self._mark is None
        for stored in found:
            if self._left is not None:
                if self._left == 0:
                    return
                self._left -= 1
            yield stored


class _Heads:
    """The versions of the checkpoint each thread was last seen at.

    A hint, which says what a parent is likely to hold: the database decides.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._heads: dict[tuple[str, str], tuple[str, ChannelVersions]] = {}

    def note(self, space: tuple[str, str], at: str, versions: ChannelVersions) -> None:
        with self._lock:
            self._heads.pop(space, None)
            self._heads[space] = at, versions
            if len(self._heads) > _HEADS_MAX:
                del self._heads[next(iter(self._heads))]

    def versions(
        self, space: tuple[str, str], at: str | None
    ) -> ChannelVersions | None:
        with self._lock:
            head = self._heads.get(space)
        return head[1] if head and head[0] == at else None
