"""Values as bytes: which have a stored form, and how more are given one.

The names are looked up when they are asked for. Much imports modules of this
package by themselves: if it loaded some of them, two threads that came from
both sides could meet halfway, and find a module half loaded.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from towpath.checkpoint.serde.registry import register, register_schema
    from towpath.checkpoint.serde.types import RecordedError

HOMES = {
    "RecordedError": "types",
    "register": "registry",
    "register_schema": "registry",
}

__all__ = ("RecordedError", "register", "register_schema")


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{HOMES[name]}"), name)
    globals()[name] = value
    return value
