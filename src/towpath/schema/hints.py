"""What a state class annotates, resolved.

Annotations may be strings, may name things local to the function in which the
class was made, and may use the type variables of a generic class. Here they
become types, with `Annotated` metadata kept and the markers that only say
whether a key may be absent taken off.
"""

from __future__ import annotations

import sys
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Generic,
    Protocol,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)
from weakref import WeakKeyDictionary

from towpath.channels.empties import stripped
from towpath.errors import InvalidGraphError

__all__ = ("callers_names", "class_of", "is_root", "resolved_hints", "unknown_name")


# The annotations of classes, resolved by what their modules know; a graph asks
# for them again and again. What only callers know may be different next time.
_KNOWN: Final[WeakKeyDictionary[type, dict[str, Any]]] = WeakKeyDictionary()


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
    known = _KNOWN.get(cls)
    if known is not None:
        return known
    try:
        found = get_type_hints(cls, include_extras=True)
    except NameError:
        pass
    else:
        _KNOWN[cls] = found
        return found
    try:
        return get_type_hints(cls, localns=callers_names(), include_extras=True)
    except NameError as error:
        raise unknown_name(cls, error) from error


def unknown_name(cls: type, error: NameError) -> InvalidGraphError:
    """Make the error for an annotation that names what cannot be found."""
    return InvalidGraphError(
        f"the annotations of `{cls.__name__}` name `{error.name}`, "
        "which cannot be found",
        hint="import it outside of `if TYPE_CHECKING:`, or define it in the module",
    )


def callers_names() -> dict[str, Any]:
    """Return the local names of the callers outside of the package.

    A class that was made inside a function, with its annotations as strings,
    may name what only that function knows. The innermost caller wins.
    """
    frame = sys._getframe()  # noqa: SLF001 - the documented way
    found: dict[str, Any] = {}
    while frame.f_back is not None:
        frame = frame.f_back
        if not frame.f_globals.get("__name__", "").startswith("towpath."):
            found = {**frame.f_locals, **found}
    return found


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
