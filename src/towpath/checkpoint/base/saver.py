"""The contract of a checkpointer.

The method names and signatures are the peer's, so a saver written for it works
here. A saver implements the blocking methods, the async ones, or both: an async
method that is not overridden runs its blocking twin in a thread.

What a saver owes, beyond the signatures:

- What it is handed is what it was at the time of the call. Whatever the caller
  does to a value afterwards, the stored one does not change, and every read
  makes fresh objects.
- `put` stores the values of the channels in `new_versions`. Those of the other
  channels are the parent's; the parent is the checkpoint that `config` names.
  Where the saver does not have that parent, or has another version of a
  channel, it takes the value from `channel_values`.
- `put_writes` is idempotent, see `WRITES_IDX_MAP`.
- `list` gives the newest first. `limit=0` gives nothing, a negative limit is a
  `ValueError`. A `filter` matches checkpoints whose metadata has every key with
  an equal value; a missing key matches nothing, not even None.

`towpath.testing.conformance` checks all of it. What a saver can do beyond this
it declares in `capabilities`.
"""

from __future__ import annotations

import builtins
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, ParamSpec, TypeVar

from towpath.checkpoint.base.lease import Lease
from towpath.checkpoint.base.model import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    PendingWrite,
    V,
)
from towpath.checkpoint.base.rules import Affected
from towpath.checkpoint.serde.holder import HasSerde
from towpath.types import RunnableConfig

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

TaskWrites = tuple[str, str, Sequence[tuple[str, Any]]]
"""Task id, task path, and what the task wrote: (channel, value) in order."""
Written = Mapping[str, Sequence[Any] | None] | None
"""What was written to each channel since the parent; None where that does not
tell what may have changed."""


class Added(tuple[Any, ...]):
    """Writes that were added to the end of what the channel held."""

    __slots__ = ()


class Exact(dict[str, Any]):
    """New versions that are all in which a checkpoint differs from its parent.

    A saver that remembers the parent need not compare them with its versions. Nor need
    it copy what is in the containers of the checkpoint: it is replaced, not changed.
    The containers themselves are the caller's again when the checkpoint is stored.
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a saver can do beyond the peer's contract."""

    inline: bool = False
    """Its blocking methods never wait, so an event loop may call them directly."""
    atomic_commit: bool = False
    """`commit` records writes and checkpoint in one transaction."""
    leases: bool = False
    """It grants one running writer per thread."""
    deltas: bool = False
    """It stores a value that grew as its new part."""
    retention: bool = False
    """It has the verbs and options of `UpkeepSaver`, each thread atomic by itself."""
    staged: bool = False
    """`stage_commit` and `stage_writes` encode at once and store later."""
    carries: bool = False
    """`stage_commit` takes pending writes of the new checkpoint, too, as `own`."""


class Staged(Generic[R]):
    """Something to store, encoded already: what becomes of its values is no matter.

    What is staged for a thread must be run in the order of staging, once each.
    """

    def run(self) -> R:
        """Store it, and wait until it is stored."""
        raise NotImplementedError

    async def arun(self) -> R:
        """Async twin of `run`."""
        raise NotImplementedError

    def along(self, later: Staged[T]) -> Staged[T] | None:
        """Return what stores this and then that, for less than one by one.

        None, the default, if there is no such way. It stores both or nothing, and
        has the result of the later one. If it fails, each can still be run by itself.
        """
        del later
        return None


async def in_thread(
    function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs
) -> R:
    """Run a blocking function in a thread and wait for it."""
    # Importing asyncio takes 30 ms that a blocking program need not pay.
    import asyncio

    return await asyncio.to_thread(function, *args, **kwargs)


class BaseCheckpointSaver(HasSerde, Generic[V]):
    """Keeps the checkpoints of threads. See the module for what it owes."""

    capabilities: Capabilities = Capabilities()

    @property
    def config_specs(self) -> builtins.list[Any]:
        """Configurable fields this saver declares: none."""
        return []

    def get_next_version(self, current: V | None, channel: None) -> V:  # noqa: ARG002
        """Return the version after `current`; versions only grow."""
        if isinstance(current, str):
            raise NotImplementedError
        previous: Any = current
        following: Any = 1 if previous is None else previous + 1
        return following  # type: ignore[no-any-return]  # V is not only int

    def with_allowlist(
        self,
        extra_allowlist: Collection[tuple[str, ...]],  # noqa: ARG002
    ) -> BaseCheckpointSaver[V]:
        """Return the saver itself.

        The peer narrows here what stored bytes may import. Ours never import
        anything, see `towpath.checkpoint.serde`.
        """
        return self

    # Reading

    def get(self, config: RunnableConfig) -> Checkpoint | None:
        """Return the checkpoint that `config` names, or the thread's newest."""
        found = self.get_tuple(config)
        return found.checkpoint if found else None

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return that checkpoint with its metadata, parent and pending writes."""
        raise NotImplementedError

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints, newest first; those of all threads without config."""
        raise NotImplementedError

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Collect what rebuilds `channels`, as they were at this checkpoint.

        For each, walk from the parent up to the nearest checkpoint that stores
        a value: that is the `seed`; `writes` are those recorded since, in order.
        """
        walk = DeltaWalk(channels)
        at = self.get_tuple(config)
        while at and at.parent_config and walk.open:
            at = self.get_tuple(at.parent_config)
            walk.visit(at)
        return walk.histories

    # Writing

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint as a child of the one `config` names."""
        raise NotImplementedError

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Record what a task wrote on top of the checkpoint `config` names."""
        raise NotImplementedError

    def commit(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
        writes: Sequence[TaskWrites],
    ) -> RunnableConfig:
        """Record the last writes of a step, then the checkpoint they lead to.

        The writes belong to the parent, the checkpoint that `config` names. In
        savers that declare `atomic_commit`, both are stored or neither is.
        """
        for task_id, task_path, written in writes:
            self.put_writes(config, written, task_id, task_path)
        return self.put(config, checkpoint, metadata, new_versions)

    # Storing changes: of savers that declare `deltas` or `staged`

    def begin_run(
        self,
        config: RunnableConfig,
        lease: Lease | None = None,  # noqa: ARG002
    ) -> CheckpointTuple | None:
        """As `get_tuple`, for a run that goes on from there.

        A saver may remember what it read, to tell later what has changed. One
        that declares `leases` grants the lease in the same transaction.

        Raises:
            ThreadBusyError: another run holds the thread (TP-502).
        """
        return self.get_tuple(config)

    def end_run(
        self,
        config: RunnableConfig,  # noqa: ARG002
        values: Mapping[str, Any] | None,  # noqa: ARG002
        lease: Lease | None = None,  # noqa: ARG002
        *,
        release: bool = False,  # noqa: ARG002
    ) -> Staged[None] | None:
        """Forget a run, and return what remains to be stored of it, if anything.

        `config` names its last checkpoint. `values` are those of its channels:
        what was changed in them in place, and returned by no node, is found
        here. They are None for a run that did not come to its end. `release`
        tells to take the lease back.
        """
        return None

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
        """Encode what `commit` stores, for savers that declare `staged`.

        `written` says what was written to each channel since the parent. What
        else is in the same container, and is the same object, was not changed.
        Where `lease` is no longer held, running it is a `LeaseLostError`, and
        nothing is stored; so it is with `stage_writes`. `own` are pending writes of
        the new checkpoint, for savers that declare `carries`.
        """
        raise NotImplementedError

    def stage_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[TaskWrites],
        *,
        lease: Lease | None = None,
    ) -> Staged[None]:
        """Encode what `put_writes` stores, of one task or of several at once.

        For savers that declare `staged`: all of it is stored, or nothing.
        """
        raise NotImplementedError

    # Threads over time: the peer's verbs. Savers that declare `retention` have more
    # options and say what they did, see `towpath.checkpoint.upkeep`.

    def delete_thread(self, thread_id: str) -> Affected | None:
        """Delete everything of a thread."""
        raise NotImplementedError

    def delete_for_runs(self, run_ids: Sequence[str]) -> Affected | None:
        """Delete the checkpoints whose metadata names one of these runs."""
        raise NotImplementedError

    def copy_thread(
        self, source_thread_id: str, target_thread_id: str
    ) -> Affected | None:
        """Copy a thread, with its whole history, to one that is empty."""
        raise NotImplementedError

    def prune(
        self, thread_ids: Sequence[str], *, strategy: str = "keep_latest"
    ) -> Affected | None:
        """Keep the newest checkpoint of each namespace, or ("delete") none."""
        raise NotImplementedError

    # The async twins

    async def abegin_run(
        self,
        config: RunnableConfig,
        lease: Lease | None = None,  # noqa: ARG002
    ) -> CheckpointTuple | None:
        """Async twin of `begin_run`."""
        return await self.aget_tuple(config)

    async def aget(self, config: RunnableConfig) -> Checkpoint | None:
        """Async twin of `get`."""
        found = await self.aget_tuple(config)
        return found.checkpoint if found else None

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Async twin of `get_tuple`."""
        return await in_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Async twin of `list`."""
        pull = partial(
            next, self.list(config, filter=filter, before=before, limit=limit)
        )
        while (found := await in_thread(pull, None)) is not None:
            yield found

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Async twin of `get_delta_channel_history`."""
        walk = DeltaWalk(channels)
        at = await self.aget_tuple(config)
        while at and at.parent_config and walk.open:
            at = await self.aget_tuple(at.parent_config)
            walk.visit(at)
        return walk.histories

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Async twin of `put`."""
        return await in_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Async twin of `put_writes`."""
        await in_thread(self.put_writes, config, writes, task_id, task_path)

    async def acommit(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
        writes: Sequence[TaskWrites],
    ) -> RunnableConfig:
        """Async twin of `commit`."""
        for task_id, task_path, written in writes:
            await self.aput_writes(config, written, task_id, task_path)
        return await self.aput(config, checkpoint, metadata, new_versions)

    async def adelete_thread(self, thread_id: str) -> Affected | None:
        """Async twin of `delete_thread`."""
        return await in_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> Affected | None:
        """Async twin of `delete_for_runs`."""
        return await in_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(
        self, source_thread_id: str, target_thread_id: str
    ) -> Affected | None:
        """Async twin of `copy_thread`."""
        return await in_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(
        self, thread_ids: Sequence[str], *, strategy: str = "keep_latest"
    ) -> Affected | None:
        """Async twin of `prune`."""
        return await in_thread(self.prune, thread_ids, strategy=strategy)


class DeltaWalk:
    """Collects the writes of channels on the way up to a stored value."""

    def __init__(self, channels: Sequence[str]) -> None:
        self.histories: dict[str, DeltaChannelHistory] = {
            channel: {"writes": []} for channel in channels
        }
        self.open = set(channels)
        """The channels whose stored value was not met yet."""

    def visit(self, at: CheckpointTuple | None) -> None:
        """Take the next ancestor in: its writes come before those we have."""
        if at is None:
            return
        values = at.checkpoint["channel_values"]
        for channel in tuple(self.open):
            history = self.histories[channel]
            history["writes"] = _of(channel, at.pending_writes) + history["writes"]
            if channel in values:
                history["seed"] = values[channel]
                self.open.discard(channel)


def _of(channel: str, writes: list[PendingWrite] | None) -> list[PendingWrite]:
    return [write for write in writes or () if write[1] == channel]


def check_limit(limit: int | None) -> int | None:
    """Return `limit`, the one rule for it: 0 is nothing, None is everything.

    Raises:
        ValueError: it is negative.
    """
    if limit is not None and limit < 0:
        raise ValueError(f"`limit` must not be negative, got {limit}")
    return limit


def matches(metadata: Mapping[str, Any], filter: Mapping[str, Any] | None) -> bool:
    """Tell whether metadata has every key of `filter` with an equal value."""
    if not filter:
        return True
    return all(key in metadata and metadata[key] == filter[key] for key in filter)
