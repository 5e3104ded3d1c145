"""Checkpoints in Postgres, through psycopg 3 and its pool."""

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
from towpath.errors import MissingExtraError

try:
    from towpath.checkpoint.postgres.database import AsyncConn, Conn
    from towpath.checkpoint.postgres.saver import PostgresSaver
    from towpath.checkpoint.postgres.shallow import ShallowPostgresSaver
except ModuleNotFoundError as missing:
    raise MissingExtraError(
        f"`{missing.name}` is not installed", hint="pip install 'towpath[postgres]'"
    ) from missing

__all__ = (
    "WRITES_IDX_MAP",
    "AsyncConn",
    "BaseCheckpointSaver",
    "Checkpoint",
    "CheckpointMetadata",
    "CheckpointTuple",
    "Conn",
    "DeltaChannelHistory",
    "PostgresSaver",
    "SerializerProtocol",
    "ShallowPostgresSaver",
    "get_checkpoint_id",
    "get_checkpoint_metadata",
)
