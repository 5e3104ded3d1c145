"""Copies of containers, so that no two parties hold the same one.

Only the built-in containers are copied, all the way down; what they hold is
shared. That is what keeps a list that a caller passed in, and goes on using,
from being the very list that the graph keeps.
"""

from __future__ import annotations

from typing import Any, Final

NESTED: Final = frozenset({dict, list, tuple, set})


def isolate(value: Any) -> Any:
    """Copy dicts, lists and sets all the way down; share everything else."""
    kind = type(value)
    if kind is dict:
        own = value.copy()
        for key, part in value.items():
            if type(part) in NESTED:
                own[key] = isolate(part)
        return own
    if kind is list:
        return [isolate(v) if type(v) in NESTED else v for v in value]
    if kind is tuple:
        return tuple([isolate(v) if type(v) in NESTED else v for v in value])
    if kind is set:
        return set(value)
    return value
