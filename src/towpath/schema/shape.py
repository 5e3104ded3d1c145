"""The form in which a node gets the state, and what it gives back writes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from towpath.channels.last_value import LastValue
from towpath.constants import ROOT
from towpath.schema.fields import class_channels, schema_hints
from towpath.schema.hints import class_of, is_root
from towpath.schema.pydantic import (
    field_validator,
    is_model,
    model_maker,
    partial_maker,
)
from towpath.types import annotated_keys, attributes_of

__all__ = ("Shape", "as_update", "partial_shape_of", "shape_of", "validator_of")


@dataclass(frozen=True, slots=True)
class Shape:
    """How a schema reads the state."""

    schema: Any
    keys: tuple[str, ...]
    """The keys it reads, managed ones included."""
    root: bool
    """Whether the state is one value and has no keys."""
    make: Callable[[dict[str, Any]], Any] | None
    """Makes an instance of the values that are there, by key; None when a node
    gets the dict itself (or, of a root state, the value)."""


def shape_of(schema: Any) -> Shape:
    """Return how a schema reads the state.

    A required key that is not there is an error of the class, when made.
    """
    cls = class_of(schema)
    make = None
    if is_model(cls):
        make = model_maker(cls)
    elif isinstance(cls, type) and dataclasses.is_dataclass(cls):
        make = _dataclass_maker(cls)
    return Shape(schema, tuple(schema_hints(schema)), is_root(schema), make)


def partial_shape_of(schema: Any) -> Shape:
    """Return how a schema reads a state that is not whole yet.

    As `shape_of`, but a pydantic model is made of the keys that are there.
    """
    shape, cls = shape_of(schema), class_of(schema)
    return replace(shape, make=partial_maker(cls)) if is_model(cls) else shape


def _dataclass_maker(cls: type) -> Callable[[dict[str, Any]], Any]:
    late = frozenset(f.name for f in dataclasses.fields(cls) if not f.init)
    if not late:
        return lambda values: cls(**values)

    def make(values: dict[str, Any]) -> Any:
        made = cls(**{k: v for k, v in values.items() if k not in late})
        for key in late & values.keys():
            object.__setattr__(made, key, values[key])  # it may be frozen
        return made

    return make


def as_update(
    value: Any,
    keys: Collection[str],
    starts: Mapping[str, Callable[[], Any]] | None = None,
) -> list[tuple[str, Any]] | None:
    """Return the writes of what a node returned or a caller gave as input.

    `keys` are those of the schema. A dict writes all it holds, undeclared keys
    too, for the caller to judge. Any other object with annotated attributes,
    a dataclass or a pydantic model say, writes those of them that are keys.
    None writes nothing. `None` is returned for what is no update.

    `starts` are the values reducers start from: an object that leaves such a
    field at its default does not fold the default in once more.
    """
    if isinstance(value, dict):
        if len(keys) == 1 and ROOT in keys:
            return [(ROOT, value)]
        return list(value.items())
    if value is None:
        return []
    if len(keys) == 1 and ROOT in keys:
        return [(ROOT, value)]
    cls = type(value)
    if cls is type or not annotated_keys(cls):
        return None
    pairs = [(k, v) for k, v in attributes_of(value) if k in keys]
    if not starts:
        return pairs
    chosen = getattr(value, "model_fields_set", None)
    return [
        (k, v) for k, v in pairs if k not in starts or _differs(k, v, starts, chosen)
    ]


def _differs(
    key: str,
    value: Any,
    starts: Mapping[str, Callable[[], Any]],
    chosen: Collection[str] | None,
) -> bool:
    """Tell whether an object says something of its own about a field."""
    if chosen is not None:
        return key in chosen
    return bool(value != starts[key]())


def validator_of(schema: Any) -> Callable[[str, Any], Any] | None:
    """Return what validates a write to a pydantic state: (key, value) -> value.

    The value comes back as the field's rules correct it. A write that a reducer
    folds is no value of the field, so only plain fields are validated; others
    come back as they are. None: there is nothing to validate.
    """
    cls = class_of(schema)
    if not is_model(cls):
        return None
    check = field_validator(cls)
    plain = frozenset(
        key
        for key, channel in class_channels(schema).channels.items()
        if type(channel) is LastValue
    )
    if check is None or not plain:
        return None
    validate = check

    def validated(key: str, value: Any) -> Any:
        return validate(key, value) if key in plain else value

    return validated
