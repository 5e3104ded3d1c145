"""Checkpoints in SQLite."""

from __future__ import annotations

from towpath.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    SerializerProtocol,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from towpath.checkpoint.serde.jsonplus import JsonPlusSerializer
from towpath.checkpoint.sqlite.saver import SqliteSaver

__all__ = (
    "WRITES_IDX_MAP",
    "BaseCheckpointSaver",
    "Checkpoint",
    "CheckpointMetadata",
    "CheckpointTuple",
    "DeltaChannelHistory",
    "JsonPlusSerializer",
    "SerializerProtocol",
    "SqliteSaver",
    "get_checkpoint_id",
    "get_checkpoint_metadata",
)
