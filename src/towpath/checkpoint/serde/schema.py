"""Which classes the annotations of a state schema lead to."""

from __future__ import annotations

import enum
import inspect
import sys
import typing
from collections.abc import Iterable, Iterator
from typing import Any

from towpath.schema.hints import resolved_hints
from towpath.schema.pydantic import is_model, model_hints

_FOREIGN = frozenset(
    {"builtins", "collections", "datetime", "enum", "langchain_core", "numpy"}
    | {"pandas", "pydantic", "typing", "typing_extensions", "types", "towpath"}
)
"""Packages whose classes are not taken apart: they have stored forms of their
own, or none."""


def reachable(annotations: Iterable[Any]) -> Iterator[type]:
    """Yield every class that annotations mention, and their fields in turn."""
    seen: set[int] = set()
    # What is pending is kept alive here, so that an id cannot be used twice.
    kept = list(annotations)
    for found in kept:
        if id(found) in seen:
            continue
        seen.add(id(found))
        kept.extend(_parts(found))
        if isinstance(found, type) and not _foreign(found):
            yield found


def _parts(found: Any) -> Iterable[Any]:
    """Return the annotations inside an annotation."""
    if typing.get_origin(found) is typing.Literal:
        # Members of an enum may be written out.
        return [type(arg) for arg in typing.get_args(found)]
    args = typing.get_args(found)
    if args:
        flat = [
            part for arg in args for part in (arg if isinstance(arg, list) else [arg])
        ]
        return [typing.get_origin(found), *flat]
    if isinstance(found, type):
        return [] if _foreign(found) else _fields(found)
    if isinstance(found, typing.TypeVar):
        return [found.__bound__, *found.__constraints__]
    # A NewType has a supertype; a `type X = ...` statement a value.
    inner = getattr(found, "__supertype__", None) or getattr(found, "__value__", None)
    return [] if inner is None else [inner]


def _foreign(cls: type) -> bool:
    return cls.__module__.partition(".")[0] in _FOREIGN


def _fields(cls: type) -> Iterable[Any]:
    """Return the annotations of a class's fields and what it derives from."""
    if issubclass(cls, enum.Enum):
        return []
    bases = getattr(cls, "__orig_bases__", cls.__bases__)
    try:
        hints = model_hints(cls) if is_model(cls) else resolved_hints(cls)
        return [*hints.values(), *bases]
    except Exception:
        return [*_one_by_one(cls), *bases]


def _one_by_one(cls: type) -> Iterator[Any]:
    """Yield the annotations that can be evaluated when not all of them can."""
    names = vars(sys.modules.get(cls.__module__, object()))
    for annotation in inspect.get_annotations(cls).values():
        # A TypedDict wraps what was a str.
        text = getattr(annotation, "__forward_arg__", annotation)
        if not isinstance(text, str):
            yield annotation
            continue
        try:
            yield eval(text, dict(names))  # noqa: S307 - the program's own text
        except Exception:  # noqa: S112 - a name only checkers know
            continue
