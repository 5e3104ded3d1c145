"""State classes: which channels they declare, and how values take their form."""

from __future__ import annotations

from towpath.schema.fields import SchemaFields, class_channels, merge_channels
from towpath.schema.pydantic import answer_schema, check_answer
from towpath.schema.shape import (
    Shape,
    as_update,
    partial_shape_of,
    shape_of,
    validator_of,
)

__all__ = (
    "SchemaFields",
    "Shape",
    "answer_schema",
    "as_update",
    "check_answer",
    "class_channels",
    "merge_channels",
    "partial_shape_of",
    "shape_of",
    "validator_of",
)
