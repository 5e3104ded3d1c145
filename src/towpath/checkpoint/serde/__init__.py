"""Values as bytes: which have a stored form, and how more are given one."""

from __future__ import annotations

from towpath.checkpoint.serde.registry import register, register_schema
from towpath.checkpoint.serde.types import RecordedError

__all__ = ("RecordedError", "register", "register_schema")
