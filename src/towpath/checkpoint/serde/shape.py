"""How objects of the usual kinds of classes are taken apart and put together.

A class whose objects are their fields needs no code of the user's: dataclasses,
pydantic models, enums and named tuples. Putting one together fills in the
fields and calls nothing of the class, neither `__init__` nor a validator: the
value is what it was when it was stored.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from functools import cached_property
from typing import Any, Final, NamedTuple

from towpath.schema.pydantic import is_model

_SOLID = (BaseException, bytes, dict, float, frozenset, int, list, set, str, tuple)
"""Classes whose objects hold more than their attributes."""


class Shape(NamedTuple):
    """How the objects of one class become a payload, and back."""

    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


def shape_of(cls: type) -> Shape | None:
    """Return the shape of a class, or None when its objects are not plain."""
    if issubclass(cls, enum.Enum):
        return _enum_shape(cls)
    if issubclass(cls, tuple):
        fields = getattr(cls, "_fields", None)
        return None if fields is None else Shape(list, cls._make)  # type: ignore[attr-defined]  # a named tuple's
    if issubclass(cls, _SOLID):
        return None
    if dataclasses.is_dataclass(cls):
        return _dataclass_shape(cls)
    return _pydantic_shape(cls) if is_model(cls) else None


def _enum_shape(cls: type[enum.Enum]) -> Shape:
    # A member is found by name, but a combination of flags has none.
    if issubclass(cls, enum.Flag):
        return Shape(lambda member: member.value, cls)
    return Shape(lambda member: member.name, cls.__members__.__getitem__)


def _recomputed(cls: type) -> frozenset[str]:
    """Return what objects of a class keep in `__dict__` only to be quick."""
    return frozenset(
        name
        for base in cls.__mro__
        for name, member in vars(base).items()
        if isinstance(member, cached_property)
    )


def _attributes(value: object, without: frozenset[str]) -> dict[str, Any]:
    """Return a copy of what an object's `__dict__` holds, without these names."""
    held: dict[str, Any] = getattr(value, "__dict__", {})
    if without.isdisjoint(held):
        return dict(held)
    return {name: item for name, item in held.items() if name not in without}


def _fill(value: object, attributes: dict[str, Any]) -> None:
    for name, item in attributes.items():
        if name[:2] == "__":  # not fields: `__class__`, `__dict__`
            raise ValueError(f"an object has no field {name!r}")
        object.__setattr__(value, name, item)


def _defaults(cls: type) -> dict[str, Callable[[], Any]]:
    """Return what makes the default of each field of a dataclass that has one."""
    found: dict[str, Callable[[], Any]] = {}
    for field in dataclasses.fields(cls):
        if field.default_factory is not dataclasses.MISSING:
            found[field.name] = field.default_factory
        elif field.default is not dataclasses.MISSING:
            found[field.name] = lambda default=field.default: default  # type: ignore[misc]  # mypy cannot infer a lambda with a default
    return found


_UNSET: Final = object()


def _dataclass_shape(cls: type) -> Shape:
    # Fields may live in slots, in `__dict__`, or, with inheritance, in both.
    names = [field.name for field in dataclasses.fields(cls)]
    defaults = _defaults(cls)
    recomputed = _recomputed(cls)

    def encode(value: object) -> dict[str, Any]:
        fields = _attributes(value, recomputed)
        for name in names:
            # `init=False` fields may never have been set.
            item = getattr(value, name, _UNSET)
            if item is not _UNSET:
                fields[name] = item
        return fields

    def decode(payload: dict[str, Any]) -> object:
        value: object = object.__new__(cls)
        _fill(value, payload)
        # A field that was added to the class since.
        for name in defaults.keys() - payload.keys():
            object.__setattr__(value, name, defaults[name]())
        return value

    return Shape(encode, decode)


# No field has an empty name, so what else a model holds goes under it.
_REST = ""


def _pydantic_shape(cls: Any) -> Shape:
    recomputed = _recomputed(cls)

    def encode(value: Any) -> dict[str, Any]:
        private = value.__pydantic_private__
        if private is not None:
            private = {k: v for k, v in private.items() if not _undefined(v)}
        rest = [
            sorted(value.__pydantic_fields_set__),
            value.__pydantic_extra__,
            private,
        ]
        return {**_attributes(value, recomputed), _REST: rest}

    def decode(payload: dict[str, Any]) -> object:
        fields_set, extra, private = payload.pop(_REST)
        for name in cls.model_fields.keys() - payload.keys():
            field = cls.model_fields[name]
            if not field.is_required():
                payload[name] = field.get_default(call_default_factory=True)
        value = object.__new__(cls)
        object.__setattr__(value, "__dict__", payload)
        object.__setattr__(value, "__pydantic_fields_set__", set(fields_set))
        object.__setattr__(value, "__pydantic_extra__", extra)
        object.__setattr__(value, "__pydantic_private__", private)
        return value

    return Shape(encode, decode)


def _undefined(value: object) -> bool:
    """Tell whether a private attribute of a model was never set."""
    return type(value).__name__ == "PydanticUndefinedType"
