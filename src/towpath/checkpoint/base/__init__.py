"""The contract between the engine and whatever keeps its checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from towpath.checkpoint.base.id import checkpoint_id, uuid6
from towpath.checkpoint.base.model import (
    EXCLUDED_METADATA_KEYS,
    LATEST_VERSION,
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    PendingWrite,
    V,
    copy_checkpoint,
    create_checkpoint,
    empty_checkpoint,
    get_checkpoint_id,
    get_checkpoint_metadata,
    get_serializable_checkpoint_metadata,
    writes_sort_key,
)
from towpath.checkpoint.base.rules import Affected
from towpath.checkpoint.base.saver import (
    BaseCheckpointSaver,
    Capabilities,
    TaskWrites,
)
from towpath.checkpoint.serde.base import SerializerProtocol, maybe_add_typed_methods
from towpath.checkpoint.serde.types import ChannelProtocol
from towpath.constants import ERROR, INTERRUPT, RESUME, SCHEDULED
from towpath.errors import EmptyChannelError
from towpath.types import RunnableConfig

if TYPE_CHECKING:
    from towpath.checkpoint.serde.jsonplus import JsonPlusSerializer

__all__ = (
    "ERROR",
    "EXCLUDED_METADATA_KEYS",
    "INTERRUPT",
    "LATEST_VERSION",
    "RESUME",
    "SCHEDULED",
    "WRITES_IDX_MAP",
    "Affected",
    "BaseCheckpointSaver",
    "Capabilities",
    "ChannelProtocol",
    "ChannelVersions",
    "Checkpoint",
    "CheckpointMetadata",
    "CheckpointTuple",
    "DeltaChannelHistory",
    "EmptyChannelError",
    "JsonPlusSerializer",
    "PendingWrite",
    "RunnableConfig",
    "SerializerProtocol",
    "TaskWrites",
    "V",
    "checkpoint_id",
    "copy_checkpoint",
    "create_checkpoint",
    "empty_checkpoint",
    "get_checkpoint_id",
    "get_checkpoint_metadata",
    "get_serializable_checkpoint_metadata",
    "maybe_add_typed_methods",
    "uuid6",
    "writes_sort_key",
)


def __getattr__(name: str) -> Any:
    # The codec loads ormsgpack, which the contract alone does not need.
    if name == "JsonPlusSerializer":
        from towpath.checkpoint.serde.jsonplus import JsonPlusSerializer

        return JsonPlusSerializer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
