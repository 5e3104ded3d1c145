"""`langgraph.pregel._call`."""

from __future__ import annotations

from typing import Any

__all__ = ("identifier",)


def identifier(obj: Any, name: str | None = None) -> str | None:
    """The module and name of a function or class; None for other objects."""
    own = getattr(obj, "__qualname__", None)
    if own is None:
        return None
    return f"{getattr(obj, '__module__', None)}.{name or own}"
