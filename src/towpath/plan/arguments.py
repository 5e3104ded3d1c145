"""How to call a function with arguments of its caller's, as tasks and steps do."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from towpath.plan.actions import Action, Injected, injected, is_kind


class Spread:
    """Calls a function with `(args, kwargs)`; the caller's own come first."""

    __slots__ = ("function", "names")

    def __init__(self, function: Any, names: Sequence[str] = ()) -> None:
        self.function = function
        self.names = names

    def __call__(
        self, given: tuple[tuple[Any, ...], Mapping[str, Any]], **filled: Any
    ) -> Any:
        args, kwargs = given
        if filled:
            taken = self.names[: len(args)]
            filled = {n: v for n, v in filled.items() if n not in taken}
            kwargs = {**filled, **kwargs}
        return self.function(*args, **kwargs)


def spread(function: Any, name: str, *, fills: bool = True) -> Action:
    """How to call a function with the arguments that its caller gives.

    With `fills`, the engine adds those that it would give a node.
    """
    names, inject = injections(function) if fills else ((), ())
    call = Spread(function, names)
    if is_kind(function, inspect.iscoroutinefunction):
        return Action(name, None, call, inject, target=function)
    return Action(name, call, None, inject, target=function)


def named(action: Action, given: tuple[tuple[Any, ...], Mapping[str, Any]]) -> Any:
    """What a function was given, by the names of its parameters, for traces."""
    args, kwargs = given
    try:
        bound = inspect.signature(action.target).bind_partial(*args, **kwargs)
    except (TypeError, ValueError):
        return given
    bound.apply_defaults()
    filled = {name for name, _ in action.inject} - set(kwargs)
    return {name: v for name, v in bound.arguments.items() if name not in filled}


def injections(
    function: Any,
) -> tuple[tuple[str, ...], tuple[tuple[str, Injected], ...]]:
    """A function's positional parameters, and those that the engine fills."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return (), ()  # builtins and C callables
    fixed, either, named = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.KEYWORD_ONLY,
    )
    positional = tuple(p.name for p in parameters if p.kind in (fixed, either))
    found = [(p.name, injected(p)) for p in parameters if p.kind in (either, named)]
    return positional, tuple((name, what) for name, what in found if what)
