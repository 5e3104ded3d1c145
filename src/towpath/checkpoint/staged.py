"""Savers that encode at once and store later.

Such a saver says how to stage a commit and a task's writes; the contract's
methods to store, in both colours, follow from that. What is staged is encoded,
so a value is stored as it was when the method was called, whenever that is done.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final, TypeVar

from towpath.checkpoint.base.lease import Lease
from towpath.checkpoint.base.model import (
    Address,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    locate,
)
from towpath.checkpoint.base.saver import (
    BaseCheckpointSaver,
    Staged,
    TaskWrites,
    Written,
)
from towpath.checkpoint.changes import Differ
from towpath.checkpoint.heads import Heads, changed_in_place, encode_values
from towpath.checkpoint.record import Cell, changed
from towpath.types import RunnableConfig

R = TypeVar("R")


class Storing(Staged[R]):
    """What is encoded, and how it is stored in either colour."""

    def __init__(
        self, store: Callable[[], R], astore: Callable[[], Coroutine[Any, Any, R]]
    ) -> None:
        self._store = store
        self._astore = astore

    def run(self) -> R:
        """Store it, and wait until it is stored."""
        return self._store()

    async def arun(self) -> R:
        """Async twin of `run`."""
        return await self._astore()


_SINGLE: Final = frozenset({"put", "aput", "put_writes", "aput_writes"})
_OTHERS: Final = frozenset({"commit", "acommit", "get_tuple", "aget_tuple"})


class StagedSaver(BaseCheckpointSaver[int]):
    """A saver whose methods to store are made of `stage_commit` and `stage_writes`.

    A subclass of a user's that has its own way of storing or reading declares
    nothing that would pass it by.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = vars(cls).keys() & (_SINGLE | _OTHERS)
        if not own or cls.__module__.startswith("towpath."):
            return
        ours = (StagedSaver.commit, StagedSaver.acommit)
        one_by_one = own & _SINGLE and (cls.commit, cls.acommit) == ours
        cls.capabilities = replace(
            cls.capabilities,
            atomic_commit=cls.capabilities.atomic_commit and not one_by_one,
            deltas=False,
            leases=False,
            staged=False,
            carries=False,
        )

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._heads = Heads()

    @cached_property
    def _differ(self) -> Differ:
        return Differ(self.serde)

    def _encode(
        self,
        address: Address,
        checkpoint: Checkpoint,
        new_versions: ChannelVersions,
        written: Written,
        parent: ChannelVersions | None = None,
    ) -> tuple[Collection[str], dict[str, Cell]]:
        """Encode what changed since the parent; return which channels those are, too.

        `parent` are the parent's versions, where those of the head are not enough.
        """
        head = self._heads.take(address.space, address.id)
        versions = dict(checkpoint["channel_versions"])
        known = head.versions if parent is None else parent
        channels = changed(versions, new_versions, known)
        values = checkpoint["channel_values"]
        cells = encode_values(self._differ, head, values, channels, written)
        head.id, head.versions = checkpoint["id"], versions
        self._heads.keep(address.space, head)
        return channels, cells

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
        # Not `async`: a coroutine would encode when it first runs, and a task
        # made of it may run after its maker has gone on changing the values.
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
        stage = self.stage_commit
        return stage(config, checkpoint, metadata, new_versions, writes).run()

    def acommit(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
        writes: Sequence[TaskWrites],
    ) -> Coroutine[Any, Any, RunnableConfig]:
        """Async twin of `commit`."""
        stage = self.stage_commit
        return stage(config, checkpoint, metadata, new_versions, writes).arun()

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Record what a task wrote on top of the checkpoint `config` names."""
        self.stage_writes(config, writes, task_id, task_path).run()

    def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> Coroutine[Any, Any, None]:
        """Async twin of `put_writes`."""
        return self.stage_writes(config, writes, task_id, task_path).arun()

    def end_run(
        self,
        config: RunnableConfig,
        values: Mapping[str, Any] | None,
        lease: Lease | None = None,
        *,
        release: bool = False,
    ) -> Staged[None] | None:
        """Forget a run, and encode what was changed in the values of its thread."""
        address = locate(config)
        head = self._heads.take(address.space, address.id)
        self._heads.drop(address.space)
        cells: dict[str, Cell] = {}
        if values is not None:
            cells = changed_in_place(self._differ, head, values)
        ended = lease if release else None
        if not cells and ended is None:
            return None
        return self._stage_end(address, cells, lease, ended)

    def _stage_end(
        self,
        address: Address,
        cells: dict[str, Cell],
        lease: Lease | None,
        ended: Lease | None,
    ) -> Staged[None]:
        """Stage the replacement of values of a checkpoint, and the end of a lease."""
        raise NotImplementedError
