"""The empty value of a declared type: where a reducer starts from."""

from __future__ import annotations

from collections import abc
from collections.abc import Hashable
from typing import Annotated, Any, NotRequired, Required, get_args, get_origin

from towpath.constants import MISSING

__all__ = ("empty_of", "kind_of", "made", "stripped", "unwrapped")

_CONCRETE: dict[Any, type] = {
    abc.Sequence: list,
    abc.MutableSequence: list,
    abc.Set: set,
    abc.MutableSet: set,
    abc.Mapping: dict,
    abc.MutableMapping: dict,
}


def _is_presence(origin: Any) -> bool:
    # `ReadOnly` is new in Python 3.13, and typing_extensions has its own.
    return origin in (Required, NotRequired) or (
        getattr(origin, "_name", None) == "ReadOnly"
    )


def stripped(typ: Any) -> Any:
    """Strip what says of a key only whether it is there: `NotRequired[...]`."""
    while _is_presence(get_origin(typ)):
        typ = get_args(typ)[0]
    return typ


def unwrapped(typ: Any) -> Any:
    """Strip `Annotated` as well: the bare type of a key."""
    typ = stripped(typ)
    while get_origin(typ) is Annotated:
        typ = stripped(get_args(typ)[0])
    return typ


def empty_of(typ: Any) -> Any:
    """Make the empty value of `typ`, or MISSING when it has none.

    Abstract collections have that of the concrete one: `Sequence` a list.
    """
    return made(kind_of(typ))


def kind_of(typ: Any) -> Any:
    """What makes the empty value of `typ` when called, if anything does."""
    typ = unwrapped(typ)
    origin = get_origin(typ) or typ
    return _CONCRETE.get(origin, origin) if isinstance(origin, Hashable) else origin


def made(kind: Any) -> Any:
    """Call what may make an empty value; MISSING when it does not."""
    try:
        return kind()
    except Exception:  # a constructor of the user's may raise anything
        return MISSING
