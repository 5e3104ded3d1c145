"""How to call one user function.

Users hand us functions, coroutine functions, generators, methods, partials,
callable objects and anything with `invoke`/`ainvoke`. All of that is looked
at once, here, when the graph is built; a run only follows the resulting
`Action`: which callable for which colour, and which parameters to inject.
"""

from __future__ import annotations

import functools
import inspect
import re
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from towpath.errors import InvalidGraphError, NotAGraphPartError

Injected = Literal["config", "runtime", "store", "writer", "previous", "error"]

BY_NAME: Final[dict[str, Injected]] = {
    "config": "config",
    "runtime": "runtime",
    "store": "store",
    "writer": "writer",
    "previous": "previous",
    "error": "error",
}
BY_TYPE: Final[dict[str, Injected]] = {
    "RunnableConfig": "config",
    "Runtime": "runtime",
    "BaseStore": "store",
    "StreamWriter": "writer",
    "NodeError": "error",
}
# A parameter of that name is filled when its annotation says nothing against it.
VAGUE: Final = frozenset({"", "Any", "object", "dict", "Mapping", "Callable"})
# These hold something a caller may well mean differently, so an annotation of
# another kind keeps them from being filled.
HEAD: Final = re.compile(r"^(?:[\w.]*\.)?(\w+)")


# Nobody changes one; not frozen, because a large graph makes thousands.
@dataclass(slots=True, eq=False)
class Action:
    """One user function, ready to be called.

    `call` blocks, `acall` returns an awaitable; either may be missing. `yields`
    says that the callable is a generator whose items are partial updates.
    """

    name: str
    call: Callable[..., Any] | None
    acall: Callable[..., Any] | None
    inject: tuple[tuple[str, Injected], ...] = ()
    yields: bool = False
    graph: Any = None
    target: Any = None

    @property
    def blocking(self) -> bool:
        """A blocking function with one result, or a graph."""
        return bool(
            self.call is not None
            and (self.acall is None or self.graph is not None)
            and not self.yields
        )

    @property
    def awaited(self) -> bool:
        """An async function with one result, or a graph."""
        return bool(
            self.acall is not None
            and (self.call is None or self.graph is not None)
            and not self.yields
        )


def action_of(target: Any, name: str) -> Action:
    """Look at a user's callable once and say how to call it.

    Raises:
        InvalidGraphError: `target` cannot be called, or requires a parameter
            that nothing can fill.
    """
    if is_plain(target):
        return function_action(target, name, target.__code__.co_flags)
    if hasattr(target, "invoke") and hasattr(target, "ainvoke"):
        return invocable_action(target, name)
    if not callable(target):
        if hasattr(target, "invoke"):
            return Action(name, target.invoke, None, config_of(target), target=target)
        msg = f"node `{name}` is {type(target).__name__}, which cannot be called"
        raise NotAGraphPartError(
            msg, hint="pass a function, a coroutine function or a compiled graph"
        )
    inject = injections(target, name)
    if is_kind(target, inspect.iscoroutinefunction):
        return Action(name, None, target, inject, target=target)
    if is_kind(target, inspect.isasyncgenfunction):
        return Action(name, None, target, inject, yields=True, target=target)
    yields = is_kind(target, inspect.isgeneratorfunction)
    return Action(name, target, None, inject, yields=yields, target=target)


def is_plain(target: Any) -> bool:
    """Whether a target is a function of which its code says everything."""
    return type(target) is types.FunctionType and not target.__dict__


def function_action(target: types.FunctionType, name: str, flags: int) -> Action:
    """How to call a plain function, as its code's flags say."""
    inject = injections(target, name)
    if flags & inspect.CO_COROUTINE:
        return Action(name, None, target, inject, target=target)
    if flags & inspect.CO_ASYNC_GENERATOR:
        return Action(name, None, target, inject, yields=True, target=target)
    yields = bool(flags & inspect.CO_GENERATOR)
    return Action(name, target, None, inject, yields=yields, target=target)


def invocable_action(target: Any, name: str) -> Action:
    """Anything with `invoke` and `ainvoke`: a runnable, or a compiled graph."""
    if hasattr(target, "plan_of_graph"):
        return Action(name, target.invoke, target.ainvoke, graph=target, target=target)
    inject = config_of(target)
    return Action(name, target.invoke, target.ainvoke, inject, target=target)


def config_of(target: Any) -> tuple[tuple[str, Injected], ...]:
    """Pass the config to `invoke` only where it takes one."""
    try:
        parameters = inspect.signature(target.invoke).parameters
    except (TypeError, ValueError):
        return (("config", "config"),)
    return (("config", "config"),) if "config" in parameters else ()


def is_kind(target: Any, test: Callable[[Any], bool]) -> bool:
    """Ask `test` of a function, of what a partial wraps, or of a `__call__`."""
    while isinstance(target, functools.partial):
        target = target.func
    if test(target):
        return True
    call = None if inspect.isclass(target) else getattr(target, "__call__", None)  # noqa: B004
    return test(call)


def injections(target: Any, name: str) -> tuple[tuple[str, Injected], ...]:
    """Which parameters after the first are filled by the engine, and with what."""
    if takes_state_only(target):
        return ()
    try:
        parameters = list(inspect.signature(target).parameters.values())
    except (TypeError, ValueError):
        return ()  # builtins and C callables: the state is all they get
    if not parameters:
        raise InvalidGraphError(
            f"node `{name}` takes no parameter, and is given the state",
            hint="give it one for the state",
        )
    found: list[tuple[str, Injected]] = []
    bound = target.keywords if isinstance(target, functools.partial) else {}
    for index, parameter in enumerate(parameters):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if index == 0 and parameter.kind is not parameter.KEYWORD_ONLY:
            continue
        kind = injected(parameter)
        if kind and parameter.name not in bound:
            if parameter.kind is parameter.POSITIONAL_ONLY:
                refuse(parameter, name, "is positional-only")
            found.append((parameter.name, kind))
        elif parameter.default is parameter.empty:
            refuse(parameter, name, "has no default, and nothing fills it")
    return tuple(found)


def takes_state_only(target: Any) -> bool:
    """Whether a plain function has one parameter; asked first, because cheap."""
    if not isinstance(target, types.FunctionType) or hasattr(target, "__wrapped__"):
        return False
    code = target.__code__
    flags = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    return (
        code.co_argcount == 1
        and code.co_kwonlyargcount == 0
        and not code.co_flags & flags
    )


def refuse(parameter: inspect.Parameter, name: str, why: str) -> None:
    msg = f"node `{name}`: parameter `{parameter.name}` {why}"
    raise InvalidGraphError(
        msg,
        hint="a node takes the state, and by name or annotation: "
        "config, runtime, store, writer, previous",
    )


def injected(parameter: inspect.Parameter) -> Injected | None:
    """What fills this parameter, judged by annotation first and then by name."""
    heads = heads_of(parameter.annotation)
    for head in heads:
        if head in BY_TYPE:
            return BY_TYPE[head]
    kind = BY_NAME.get(parameter.name)
    if kind and (heads <= VAGUE or kind in ("previous", "error")):
        return kind
    return None


def heads_of(annotation: Any) -> frozenset[str]:
    """The bare class names in an annotation: `Runtime[Ctx] | None` -> {Runtime}."""
    if annotation is inspect.Parameter.empty or annotation is None:
        return frozenset({""})
    if isinstance(annotation, str):
        return text_heads(annotation)
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, types.UnionType):
        parts = [heads_of(part) for part in typing.get_args(annotation)]
        return frozenset().union(*parts) - {"", "NoneType"} or frozenset({""})
    if origin is typing.Annotated:
        return heads_of(typing.get_args(annotation)[0])
    if annotation is type(None):
        return frozenset({"NoneType"})
    name = getattr(origin or annotation, "__name__", None)
    return frozenset({name if isinstance(name, str) else str(annotation)})


def text_heads(annotation: str) -> frozenset[str]:
    """The same for an annotation that is text (postponed evaluation)."""
    text = annotation.strip("'\" ")
    inner = re.fullmatch(
        r"(?:[\w.]*\.)?(?:Optional|Annotated)\[(.*)\]", text, re.DOTALL
    )
    if inner:
        text = inner[1]
    heads = set()
    for part in text.split("|"):
        match = HEAD.match(part.strip("'\" "))
        if match and match[1] != "None":
            heads.add(match[1])
    return frozenset(heads or {""})
