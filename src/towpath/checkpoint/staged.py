"""Savers that encode at once and store later.

Such a saver says how to stage a commit and a task's writes; the contract's
methods to store, in both colours, follow from that. What is staged is encoded,
so a value is stored as it was when the method was called, whenever that is done.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeVar

from towpath.checkpoint.base.lease import Lease
from towpath.checkpoint.base.model import (
    Address,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    get_checkpoint_metadata,
    locate,
)
from towpath.checkpoint.base.saver import (
    BaseCheckpointSaver,
    Exact,
    Staged,
    TaskWrites,
    Written,
)
from towpath.checkpoint.changes import Differ
from towpath.checkpoint.heads import Heads, changed_in_place, encode_values
from towpath.checkpoint.layout import Known
from towpath.checkpoint.overlay import Layer
from towpath.checkpoint.record import Cell, changed, follows, loose
from towpath.semantics import default
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


def joined(config: RunnableConfig, metadata: CheckpointMetadata) -> CheckpointMetadata:
    """The metadata with what the default semantics store of a config.

    A run decides this by its graph's semantics, and hands its saver a bare config;
    others put checkpoints with the config that they have.
    """
    chosen, given = default(), config.get("metadata") or {}
    whole: Mapping[str, Any] = get_checkpoint_metadata(config, metadata)
    own: Mapping[str, Any] = metadata
    exact = chosen.strict_codec
    bare = {key: value if exact else whole[key] for key, value in own.items()}
    for key, value in whole.items():
        if chosen.keeps(key) if key in given else chosen.stores(key, value):
            bare.setdefault(key, value)
    return bare  # type: ignore[return-value]  # TypedDicts cannot hold open keys


class Encoded(NamedTuple):
    """What changed in a checkpoint since its parent, encoded."""

    channels: Collection[str]
    cells: dict[str, Cell]
    loose: Collection[str]
    """The channels without a version."""
    versions: ChannelVersions
    known: Known
    """Of the parent, when what was staged before is stored."""
    exact: bool
    """Whether the parent is remembered, and nothing else differs from it."""


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
        parent: Layer[str | int | float] | None = None,
    ) -> Encoded:
        """Encode what changed since the parent.

        `parent` are the parent's versions, where those of the head are not enough.
        """
        head = self._heads.take(address.space, address.id)
        versions = checkpoint["channel_versions"]
        channels: Collection[str]
        if type(new_versions) is Exact and head.id is not None:
            # Neither compared nor copied: there may be many, all but a few the same.
            exact, channels = True, tuple(new_versions)
            head.versions = None
        else:
            known = head.versions if parent is None else parent.flat()
            versions = head.versions = dict(versions)
            exact = known is not None and follows(versions, new_versions, known)
            channels = changed(versions, new_versions, known)
        values = checkpoint["channel_values"]
        cells = encode_values(self._differ, head, values, channels, written)
        apart: Collection[str] = ()
        if head.loose or type(new_versions) is not Exact:
            apart = loose(checkpoint)
        head.id, head.loose = checkpoint["id"], bool(apart)
        self._heads.keep(address.space, head)
        return Encoded(channels, cells, apart, versions, head.known, exact=exact)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint as a child of the one `config` names.

        What the default semantics store of a config joins the metadata.
        """
        whole = joined(config, metadata)
        return self.commit(config, checkpoint, whole, new_versions, ())

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
        whole = joined(config, metadata)
        return self.acommit(config, checkpoint, whole, new_versions, ())

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
        self.stage_writes(config, [(task_id, task_path, writes)]).run()

    def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> Coroutine[Any, Any, None]:
        """Async twin of `put_writes`."""
        return self.stage_writes(config, [(task_id, task_path, writes)]).arun()

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
