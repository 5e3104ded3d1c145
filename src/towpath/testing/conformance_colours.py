"""One face for both colours of a saver, so that a check is written once.

`Blocking` calls the blocking methods; `Looped` runs the async ones, each to its
end, on an event loop of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from towpath.checkpoint.base import (
    BaseCheckpointSaver,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    TaskWrites,
)
from towpath.checkpoint.base.lease import Lease
from towpath.checkpoint.base.saver import Staged
from towpath.types import RunnableConfig

R = TypeVar("R")


class Blocking:
    """A saver by its blocking methods, as the checks call it."""

    def __init__(self, saver: BaseCheckpointSaver[Any]) -> None:
        self.saver = saver

    def close(self) -> None:
        """Free what the face needs; the saver stays open."""

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self.saver.get_tuple(config)

    def list(
        self, config: RunnableConfig | None, **options: Any
    ) -> Sequence[CheckpointTuple]:
        return [*self.saver.list(config, **options)]

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: dict[str, Any],
    ) -> RunnableConfig:
        return self.saver.put(config, checkpoint, metadata, new_versions)

    def commit(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: dict[str, Any],
        writes: Sequence[TaskWrites],
    ) -> RunnableConfig:
        return self.saver.commit(config, checkpoint, metadata, new_versions, writes)

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        self.saver.put_writes(config, writes, task_id, task_path)

    def delta_history(
        self, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, Any]:
        return self.saver.get_delta_channel_history(config=config, channels=channels)

    def begin_run(
        self, config: RunnableConfig, lease: Lease | None = None
    ) -> CheckpointTuple | None:
        return self.saver.begin_run(config, lease)

    def run(self, job: Staged[R]) -> R:
        """Store what was staged."""
        return job.run()

    def tend(self, verb: str, *args: Any, **options: Any) -> Any:
        """Call a verb of `UpkeepSaver`, or of the peer's that are among them."""
        return getattr(self.saver, verb)(*args, **options)


class Looped(Blocking):
    """A saver by its async methods, each run to its end on one loop."""

    def __init__(self, saver: BaseCheckpointSaver[Any]) -> None:
        super().__init__(saver)
        self._runner = asyncio.Runner()
        self._run = self._runner.run

    def close(self) -> None:
        """Close the loop."""
        self._runner.close()

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self._run(self.saver.aget_tuple(config))

    def list(
        self, config: RunnableConfig | None, **options: Any
    ) -> Sequence[CheckpointTuple]:
        async def listed() -> Sequence[CheckpointTuple]:
            return [found async for found in self.saver.alist(config, **options)]

        return self._run(listed())

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: dict[str, Any],
    ) -> RunnableConfig:
        return self._run(self.saver.aput(config, checkpoint, metadata, new_versions))

    def commit(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: dict[str, Any],
        writes: Sequence[TaskWrites],
    ) -> RunnableConfig:
        commit = self.saver.acommit
        return self._run(commit(config, checkpoint, metadata, new_versions, writes))

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        self._run(self.saver.aput_writes(config, writes, task_id, task_path))

    def delta_history(
        self, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, Any]:
        history = self.saver.aget_delta_channel_history
        return self._run(history(config=config, channels=channels))

    def begin_run(
        self, config: RunnableConfig, lease: Lease | None = None
    ) -> CheckpointTuple | None:
        return self._run(self.saver.abegin_run(config, lease))

    def run(self, job: Staged[R]) -> R:
        return self._run(job.arun())

    def tend(self, verb: str, *args: Any, **options: Any) -> Any:
        return self._run(getattr(self.saver, f"a{verb}")(*args, **options))
