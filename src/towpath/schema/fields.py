"""A state class becomes channels, one per key.

A key is, in this order: a managed value; the channel in its `Annotated`; a
reducer, when the last `Annotated` metadata is callable; else a `LastValue`.
A schema without keys (`list`, `Annotated[int, operator.add]`) is one channel,
named `__root__`.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, get_args, get_origin

from towpath.channels.base import BaseChannel
from towpath.channels.binop import BinaryOperatorAggregate
from towpath.channels.delta import DeltaChannel
from towpath.channels.empties import stripped, unwrapped
from towpath.channels.last_value import LastValue
from towpath.constants import ROOT
from towpath.errors import ChannelConflictError, InvalidReducerError
from towpath.managed.base import ManagedValueSpec, is_managed_value
from towpath.schema.hints import class_of, is_root, resolved_hints
from towpath.schema.pydantic import is_model, model_default, model_hints

__all__ = ("SchemaFields", "class_channels", "merge_channels", "schema_hints")

Channel = BaseChannel[Any, Any, Any]


@dataclass(frozen=True, slots=True)
class SchemaFields:
    """What a state class declares."""

    channels: dict[str, Channel] = field(default_factory=dict)
    """The channel of every key that is written."""
    managed: dict[str, ManagedValueSpec] = field(default_factory=dict)
    """The keys that the engine computes."""
    hints: dict[str, Any] = field(default_factory=dict)
    """The type of every key, in the order of declaration."""
    starts: dict[str, Callable[[], Any]] = field(default_factory=dict)
    """What makes the value that a reducer starts from, where a default says."""


def schema_hints(schema: Any) -> dict[str, Any]:
    """Return the type of every key of a schema, in the order of declaration."""
    if is_root(schema):
        return {ROOT: schema}
    cls = class_of(schema)
    return model_hints(cls) if is_model(cls) else resolved_hints(schema)


def class_channels(schema: Any, use_defaults: bool = False) -> SchemaFields:
    """Make the channels that a state class declares.

    With `use_defaults` the default of a dataclass or pydantic field is what
    its reducer starts from; else it only fills in for a value a node reads.

    Raises:
        InvalidReducerError: a reducer does not take two values (TP-102).
        InvalidGraphError: an annotation cannot be resolved (TP-101).
    """
    cls = class_of(schema)
    found = SchemaFields(hints=schema_hints(schema))
    lenient = is_model(cls)
    for key, hint in found.hints.items():
        declared = _declared(key, hint, lenient)
        if not isinstance(declared, BaseChannel):
            found.managed[key] = declared
            continue
        declared.key = key
        found.channels[key] = declared
        if use_defaults and isinstance(declared, BinaryOperatorAggregate):
            start = _default_of(cls, key)
            if start is not None:
                declared.start = found.starts[key] = start
                declared.value = start()
    return found


def merge_channels(
    known: dict[str, Channel], new: dict[str, Channel]
) -> dict[str, Channel]:
    """Return the channels of two schemas of one graph.

    A key of both must be the same channel; a plain `LastValue` gives way.

    Raises:
        ChannelConflictError: a key is two different channels (TP-103).
    """
    merged = dict(known)
    for key, channel in new.items():
        other = merged.setdefault(key, channel)
        if other is channel or type(channel) is LastValue:
            continue
        if type(other) is LastValue or _starts(channel, other):
            merged[key] = channel
        elif other != channel:
            raise ChannelConflictError(
                f"Channel '{key}' already exists with a different type: "
                f"{_shown(other)} in one schema, {_shown(channel)} in another",
                hint=f"annotate `{key}` in the same way in both, or leave the "
                "reducer out of one",
            )
    return merged


def _starts(channel: Channel, other: Channel) -> bool:
    """Tell whether `channel` is `other` and knows what to start from."""
    return (
        isinstance(channel, BinaryOperatorAggregate)
        and channel == other
        and channel.start is not None
    )


def _shown(channel: Channel) -> str:
    operator = getattr(channel, "operator", None) or getattr(channel, "reducer", None)
    name = type(channel).__name__
    return name if operator is None else f"{name}({_name(operator)})"


def _name(function: Any) -> str:
    return getattr(function, "__name__", None) or repr(function)


def _declared(key: str, hint: Any, lenient: bool) -> Channel | ManagedValueSpec:
    hint = stripped(hint)
    if get_origin(hint) is not Annotated:
        return LastValue(hint)
    metadata = get_args(hint)[1:]
    for item in metadata:
        if is_managed_value(item):
            return item
    channel = _channel(unwrapped(hint), metadata)
    if channel is not None:
        return channel
    reducer = _reducer(metadata, lenient)
    if reducer is None:
        return LastValue(hint)
    _check_reducer(key, reducer)
    return BinaryOperatorAggregate(hint, reducer)


def _channel(typ: Any, metadata: tuple[Any, ...]) -> Channel | None:
    for item in metadata:
        if isinstance(item, DeltaChannel):
            return DeltaChannel(
                item.reducer, typ, snapshot_frequency=item.snapshot_frequency
            )
        # A copy, because the key is set on it and schemas may share it.
        if isinstance(item, BaseChannel):
            return item.copy()
        if isinstance(item, type) and issubclass(item, BaseChannel):
            return item(typ)
    return None


def _reducer(metadata: tuple[Any, ...], lenient: bool) -> Any:
    """Return the reducer: the last metadata, if callable.

    In a pydantic model the constraints of the field may stand after it.
    """
    if not lenient:
        return metadata[-1] if callable(metadata[-1]) else None
    return next((item for item in reversed(metadata) if callable(item)), None)


def _check_reducer(key: str, reducer: Any) -> None:
    if isinstance(reducer, (types.BuiltinFunctionType, types.MethodDescriptorType)):
        return  # what builtins say of themselves changes from version to version
    if inspect.iscoroutinefunction(reducer):
        found = f"async {_name(reducer)}"
    else:
        try:
            signature = inspect.signature(reducer)
        except (ValueError, TypeError):
            # Builtins like `max` do not tell; a class like `int` is no reducer.
            if not isinstance(reducer, type):
                return
            found = _name(reducer)
        else:
            if _takes_two(signature):
                return
            found = f"{_name(reducer)}{signature}"
    raise InvalidReducerError(
        f"Invalid reducer signature of `{key}`. Expected (a, b) -> c. Got {found}",
        hint="a reducer takes the value so far and a write, and returns the new value",
    )


def _takes_two(signature: inspect.Signature) -> bool:
    several = inspect.Parameter.VAR_POSITIONAL
    named = inspect.Parameter.KEYWORD_ONLY
    parameters = signature.parameters.values()
    return (
        not any(p.kind is several for p in parameters)
        and sum(
            p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
            # One that must be named can never be given, so it counts as too many.
            or (p.kind is named and p.default is p.empty)
            for p in parameters
        )
        == 2
    )


def _default_of(cls: Any, key: str) -> Callable[[], Any] | None:
    if is_model(cls):
        return model_default(cls, key)
    if not dataclasses.is_dataclass(cls):
        return None
    declared = {f.name: f for f in dataclasses.fields(cls)}.get(key)
    if declared is None:
        return None
    if declared.default_factory is not dataclasses.MISSING:
        return declared.default_factory
    if declared.default is not dataclasses.MISSING:
        value = declared.default
        return lambda: value
    return None
