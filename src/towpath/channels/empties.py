"""The empty value of a declared type: where a reducer starts from."""

from __future__ import annotations

from collections import abc
from typing import Annotated, Any, NotRequired, Required, get_args, get_origin

from towpath.constants import MISSING

__all__ = ("empty_of", "unwrapped")

_CONCRETE: dict[Any, type] = {
    abc.Sequence: list,
    abc.MutableSequence: list,
    abc.Set: set,
    abc.MutableSet: set,
    abc.Mapping: dict,
    abc.MutableMapping: dict,
}
_WRAPPERS = (Annotated, Required, NotRequired)


def unwrapped(typ: Any) -> Any:
    """Strip `Annotated`, `Required` and `NotRequired` from a type."""
    while get_origin(typ) in _WRAPPERS:
        typ = get_args(typ)[0]
    return typ


def empty_of(typ: Any) -> Any:
    """Make the empty value of `typ`, or MISSING when it has none.

    Abstract collections have that of the concrete one: `Sequence` a list.
    """
    typ = unwrapped(typ)
    origin = get_origin(typ) or typ
    try:
        return _CONCRETE.get(origin, origin)()
    except Exception:  # a constructor of the user's may raise anything
        return MISSING
