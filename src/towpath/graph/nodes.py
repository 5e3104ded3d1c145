"""What a builder remembers of one node, and what its function's hints say."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from towpath.errors import InvalidGraphError
from towpath.plan import Action
from towpath.plan.actions import is_plain
from towpath.schema.hints import resolved_hints
from towpath.types import CachePolicy, Command, RetryPolicy, TimeoutPolicy, TracePolicy


@dataclass(slots=True)
class StateNodeSpec:
    """One node as it was added; policies left None take the graph's defaults."""

    runnable: Any
    action: Action
    input_schema: Any = None
    defer: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    retry_policy: tuple[RetryPolicy, ...] | None = None
    cache_policy: CachePolicy[Any] | None = None
    error_handler: Action | None = None
    timeout: TimeoutPolicy | None = None
    trace_policy: TracePolicy | None = None
    ends: tuple[str, ...] | dict[str, str] = ()


@dataclass(slots=True)
class NodeDefaults:
    """What `set_node_defaults` gives to nodes that do not say otherwise."""

    retry_policy: tuple[RetryPolicy, ...] | None = None
    cache_policy: CachePolicy[Any] | None = None
    error_handler: Action | None = None
    timeout: TimeoutPolicy | None = None


def name_of(action: Any) -> str:
    """The name of a node that was added without one.

    Raises:
        InvalidGraphError: nothing in `action` can serve as a name.
    """
    name = getattr(action, "name", None)
    if isinstance(name, str) and name and hasattr(action, "invoke"):
        return name
    while isinstance(action, functools.partial):
        action = action.func
    name = getattr(action, "__name__", None) or type(action).__name__
    if name in ("", "<lambda>") and not isinstance(name, str):
        raise InvalidGraphError("the node has no name; give one: add_node(name, fn)")
    return str(name)


def hinted_function(action: Any) -> Callable[..., Any] | None:
    """The function whose annotations speak for an action."""
    while isinstance(action, functools.partial):
        action = action.func
    if inspect.isfunction(action) or inspect.ismethod(action):
        return action
    call = getattr(type(action), "__call__", None)  # noqa: B004 - the method itself
    return call if inspect.isfunction(call) else None


def hints_of(action: Any) -> dict[str, Any]:
    """The resolved annotations of an action, or what of them resolves."""
    function = hinted_function(action)
    if function is None or not getattr(function, "__annotations__", None):
        return {}
    try:
        return typing.get_type_hints(function, include_extras=True)
    except Exception:  # a name that only exists while type checking
        return dict(getattr(function, "__annotations__", {}))


def first_parameter(action: Any) -> str | None:
    """The name of the parameter that takes the state."""
    if is_plain(action) and action.__code__.co_argcount:
        return str(action.__code__.co_varnames[0])
    function = hinted_function(action)
    if function is None:
        return None
    names = list(inspect.signature(function).parameters)
    bound = inspect.isfunction(action) or isinstance(action, functools.partial)
    skip = 0 if bound or inspect.ismethod(action) else 1
    return names[skip] if len(names) > skip else None


def input_schema_of(action: Any, hints: Mapping[str, Any]) -> Any:
    """The schema class that a node's first parameter is annotated with."""
    if not hints:
        return None
    hint = hints.get(first_parameter(action) or "")
    origin = typing.get_origin(hint) or hint
    if isinstance(origin, type) and resolved_hints(origin):
        return hint
    return None


class Said:
    """What the hints of one action say to a builder, looked up as it is needed."""

    __slots__ = ("action", "asked", "ends", "found", "hints")

    def __init__(self, action: Any) -> None:
        self.action = action
        self.hints = hints_of(action)
        self.ends = destinations_of(self.hints)
        self.asked = False
        self.found: Any = None

    def schema(self) -> Any:
        """The schema of what the action takes, where a class says it."""
        if not self.asked:
            self.found = input_schema_of(self.action, self.hints)
            self.asked = True
        return self.found


def destinations_of(hints: Mapping[str, Any]) -> tuple[str, ...]:
    """Where a node says it goes: `-> Command[Literal["a", "b"]]`."""
    hint = hints.get("return")
    found: list[str] = []
    for part in alternatives(hint):
        if typing.get_origin(part) is Command:
            for arg in typing.get_args(part):
                found.extend(literals(arg))
    return tuple(dict.fromkeys(found))


def answers_of(hints: Mapping[str, Any]) -> tuple[str, ...]:
    """The answers a path function can give: `-> Literal["a", "b"]`."""
    hint = hints.get("return")
    found: list[str] = []
    for part in alternatives(hint):
        found.extend(literals(part))
    return tuple(dict.fromkeys(found))


def alternatives(hint: Any) -> list[Any]:
    """The members of a union, of a list's item type, or the hint itself."""
    origin = typing.get_origin(hint)
    if origin is typing.Union or type(hint).__name__ == "UnionType":
        return [p for arg in typing.get_args(hint) for p in alternatives(arg)]
    if origin in (list, tuple, Sequence):
        return [p for arg in typing.get_args(hint) for p in alternatives(arg)]
    return [hint]


def literals(hint: Any) -> list[Any]:
    if typing.get_origin(hint) is typing.Literal:
        return list(typing.get_args(hint))
    if typing.get_origin(hint) is typing.Union or type(hint).__name__ == "UnionType":
        return [x for arg in typing.get_args(hint) for x in literals(arg)]
    return []
