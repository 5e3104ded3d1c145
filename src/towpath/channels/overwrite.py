"""How a write says that it replaces a value instead of being folded in.

Three forms: `Overwrite(x)`, `{"__overwrite__": x}` alone, and what `Overwrite`
becomes in JSON, `{"value": x, "type": "__overwrite__"}`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from towpath.constants import MISSING, OVERWRITE
from towpath.errors import ConcurrentUpdateError
from towpath.types import Overwrite

__all__ = ("MARKED", "overwritten", "single_overwrite")

MARKED = (Overwrite, dict)
"""The types a replacing write can have: a cheap test before `overwritten`."""


def overwritten(write: Any) -> Any:
    """Return the value that `write` puts in place; MISSING if it does not."""
    if isinstance(write, Overwrite):
        return write.value
    if isinstance(write, dict):
        if len(write) == 1:
            return write.get(OVERWRITE, MISSING)
        if write.get("type") == OVERWRITE:
            return write.get("value", MISSING)
    return MISSING


def single_overwrite(key: str, writes: Sequence[Any]) -> Any:
    """Return the one replacing value among a step's writes; MISSING if none.

    Raises:
        ConcurrentUpdateError: several writes replace the value (TP-203).
    """
    found = MISSING
    for write in writes:
        if isinstance(write, MARKED):
            value = overwritten(write)
            if value is MISSING:
                continue
            if found is not MISSING:
                raise ConcurrentUpdateError.overwrites(key)
            found = value
    return found
