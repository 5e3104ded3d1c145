"""How objects of the usual kinds of classes are taken apart and put together.

A class whose objects are their fields needs no code of the user's: dataclasses,
pydantic models, enums and named tuples. Putting one together fills in the
fields and calls nothing of the class, neither `__init__` nor a validator: the
value is what it was when it was stored.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import Any, Final, NamedTuple

from towpath.checkpoint.serde.kinds import listed
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
        return _tuple_shape(cls) if hasattr(cls, "_fields") else None
    if issubclass(cls, _SOLID):
        return None
    if dataclasses.is_dataclass(cls):
        return _dataclass_shape(cls)
    return _pydantic_shape(cls) if is_model(cls) else None


def _tuple_shape(cls: Any) -> Shape:
    return Shape(list, lambda payload: cls._make(listed(payload)))


def _enum_shape(cls: type[enum.Enum]) -> Shape:
    # A member is found by name, but a combination of flags has none.
    if issubclass(cls, enum.Flag):
        return Shape(lambda member: member.value, cls)
    return Shape(lambda member: member.name, cls.__members__.__getitem__)


def _recomputed(cls: type) -> frozenset[str]:
    """Return what objects of a class keep in `__dict__` besides their data."""
    cached = {
        name
        for base in cls.__mro__
        for name, member in vars(base).items()
        if isinstance(member, cached_property)
    }
    # What `Box[int](1)` notes about itself; an annotation is no data.
    return frozenset(cached | {"__orig_class__"})


def _kept(held: dict[str, Any], without: frozenset[str]) -> dict[str, Any]:
    """Return a copy of an object's `__dict__`, without what is no data."""
    if without.isdisjoint(held):
        return held.copy()
    return {name: item for name, item in held.items() if name not in without}


def _defaults(cls: type) -> dict[str, Callable[[], Any]]:
    """Return what makes the default of each field of a dataclass that has one."""
    found: dict[str, Callable[[], Any]] = {}
    for field in dataclasses.fields(cls):
        if field.default_factory is not dataclasses.MISSING:
            found[field.name] = field.default_factory
        elif field.default is not dataclasses.MISSING:
            found[field.name] = lambda default=field.default: default  # type: ignore[misc]  # mypy cannot infer a lambda with a default
    return found


def _slots(cls: type) -> dict[str, Any]:
    """Return the slots of a class and its bases that nothing else hides."""
    members: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        members.update(vars(base))
    return {
        name: member
        for name, member in members.items()
        if inspect.ismemberdescriptor(member)
    }


def _dataclass_shape(cls: type) -> Shape:
    # Fields may live in slots, in `__dict__`, or, with inheritance, in both. A
    # name in the bytes is looked for among the slots and is otherwise only put
    # into `__dict__`, so that it cannot call a property.
    slots = _slots(cls)
    defaults = _defaults(cls)
    without = _recomputed(cls)

    def encode(value: object) -> dict[str, Any]:
        held = getattr(value, "__dict__", None)
        fields = {} if held is None else _kept(held, without)
        for name, slot in slots.items():
            # A slot may never have been filled, as that of an `init=False` field.
            with suppress(AttributeError):
                fields[name] = slot.__get__(value)
        return fields

    def decode(payload: dict[str, Any]) -> object:
        value: object = object.__new__(cls)
        if not defaults.keys() <= payload.keys():
            # A field that was added to the class since.
            added = defaults.keys() - payload.keys()
            payload |= {name: defaults[name]() for name in added}
        for name in slots.keys() & payload.keys():
            slots[name].__set__(value, payload.pop(name))
        if payload:
            value.__dict__.update(payload)
        return value

    return Shape(encode, decode)


_REST: Final = ""
"""What else a model holds goes under this name, which no field has."""

_set: Final = object.__setattr__


def _pydantic_shape(cls: Any) -> Shape:
    without = _recomputed(cls)
    defaults = _Defaults(cls)

    def encode(value: Any) -> dict[str, Any]:
        fields = _kept(value.__dict__, without)
        private = value.__pydantic_private__
        if private is not None:
            private = {k: v for k, v in private.items() if not _undefined(v)}
        fields_set = sorted(value.__pydantic_fields_set__)
        fields[_REST] = [fields_set, value.__pydantic_extra__, private]
        return fields

    def decode(payload: dict[str, Any]) -> object:
        fields_set, extra, private = payload.pop(_REST)
        if not defaults.names <= payload.keys():
            defaults.fill(payload)
        value = object.__new__(cls)
        _set(value, "__dict__", payload)
        _set(value, "__pydantic_fields_set__", set(listed(fields_set)))
        _set(value, "__pydantic_extra__", extra)
        _set(value, "__pydantic_private__", private)
        return value

    return Shape(encode, decode)


class _Defaults:
    """The defaults of a model, for fields that were added to it since."""

    def __init__(self, model: Any) -> None:
        self._model = model

    @cached_property
    def names(self) -> frozenset[str]:
        # Not before a model is decoded: until then it may refer to later ones.
        fields = self._model.model_fields.items()
        return frozenset(name for name, field in fields if not field.is_required())

    def fill(self, payload: dict[str, Any]) -> None:
        for name, field in self._model.model_fields.items():
            if name in self.names and name not in payload:
                payload[name] = field.get_default(
                    call_default_factory=True, validated_data=payload
                )


def _undefined(value: object) -> bool:
    """Tell whether a private attribute of a model was never set."""
    return type(value).__name__ == "PydanticUndefinedType"
