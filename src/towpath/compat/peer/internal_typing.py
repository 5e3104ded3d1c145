"""`langgraph._internal._typing`."""

from __future__ import annotations

from typing import TypedDict

from towpath.constants import MISSING

__all__ = ("MISSING", "DeprecatedKwargs")


class DeprecatedKwargs(TypedDict):
    """Keywords that a function takes no longer; none of them by name."""
