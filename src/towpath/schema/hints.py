"""What a state class annotates, resolved.

Annotations may be strings, may name things local to the function in which the
class was made, and may use the type variables of a generic class. Here they
become types, with `Annotated` metadata kept and the markers that only say
whether a key may be absent taken off.
"""

from __future__ import annotations

import sys
from collections import ChainMap
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    Protocol,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from towpath.channels.empties import stripped
from towpath.errors import InvalidGraphError

__all__ = ("class_of", "is_root", "resolved_hints")


def class_of(schema: Any) -> Any:
    """Return the class of a schema: of `State[int]` the class `State`."""
    return get_origin(schema) or schema


def is_root(schema: Any) -> bool:
    """Tell whether a schema is a single value: `list`, `Annotated[int, add]`.

    All others declare keys, be it none.
    """
    if schema is Any or get_origin(schema) is Annotated:
        return True
    cls = class_of(schema)
    return not isinstance(cls, type) or not hasattr(cls, "__annotations__")


def resolved_hints(schema: Any) -> dict[str, Any]:
    """Return the type of every key, bases first.

    Raises:
        InvalidGraphError: a name in an annotation cannot be found (TP-101).
    """
    cls = class_of(schema)
    bound = _bindings(schema)
    return {
        name: _bind(stripped(hint), bound)
        for name, hint in _hints(cls).items()
        if hint is not ClassVar and get_origin(hint) is not ClassVar
    }


def _hints(cls: type) -> dict[str, Any]:
    try:
        return get_type_hints(cls, include_extras=True)
    except NameError:
        pass
    try:
        return get_type_hints(cls, localns=_locals(), include_extras=True)
    except NameError as error:
        raise InvalidGraphError(
            f"the annotations of `{cls.__name__}` name `{error.name}`, "
            "which cannot be found",
            hint="import it outside of `if TYPE_CHECKING:`, or define it in the module",
        ) from error


def _locals() -> ChainMap[str, Any]:
    """Return the local names of the callers, innermost first."""
    frame = sys._getframe()  # noqa: SLF001 - the documented way
    scopes = []
    while frame.f_back is not None:
        frame = frame.f_back
        if not frame.f_globals.get("__name__", "").startswith("towpath."):
            scopes.append(frame.f_locals)
    return ChainMap(*scopes)


def _bindings(schema: Any) -> dict[Any, Any]:
    """Return what the type variables of a schema and its bases stand for."""
    cls = class_of(schema)
    bound: dict[Any, Any] = {}
    if cls is not schema:
        variables = getattr(cls, "__parameters__", ())
        bound.update(zip(variables, get_args(schema), strict=False))
    for base in getattr(cls, "__orig_bases__", ()):
        if get_origin(base) not in (None, Generic, Protocol):
            for variable, meaning in _bindings(base).items():
                bound.setdefault(variable, bound.get(meaning, meaning))
    return bound


def _bind(hint: Any, bound: dict[Any, Any]) -> Any:
    if not bound:
        return hint
    if isinstance(hint, TypeVar):
        return bound.get(hint, hint)
    variables = getattr(hint, "__parameters__", ())
    if not variables:
        return hint
    return hint[tuple(bound.get(variable, variable) for variable in variables)]
