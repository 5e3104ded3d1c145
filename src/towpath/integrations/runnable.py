"""Graphs and functions as langchain's Runnables.

A compiled graph is a Runnable by registration: `isinstance` says so, and the
methods it has no form of its own for are langchain's (`towpath.pregel.chain`).
`RunnableCallable` is a Runnable around a function that may take the config,
the runtime, the store or the stream writer of the node it is called in; tool
nodes of other packages derive from it.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import Context
from functools import partial
from typing import Any, Final

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.base import RunnableLike
from langchain_core.runnables.config import ensure_config, set_config_context

from towpath.constants import CONF, CONFIG_KEY_RUNTIME
from towpath.plan.actions import Injected, injected

__all__ = ("Runnable", "RunnableCallable", "RunnableLike")

PLACES: Final[Mapping[Injected, str]] = {
    "store": "store",
    "writer": "stream_writer",
    "previous": "previous",
}
"""Where in a runtime the value of a parameter is."""


def _unheard(chunk: object) -> None:
    """Take what is written where nobody streams."""


class RunnableCallable(Runnable[Any, Any]):
    """A function, a coroutine function or both, as a Runnable.

    Parameters after the first that are named or annotated `config`, `runtime`,
    `store`, `writer` or `previous` are filled from the config. `trace=False`
    shows no run of its own to listeners. With `recurse` a Runnable that the
    function returns is invoked in its place, with the same input. With
    `explode_args` the input is `(args, kwargs)`.

    Raises:
        ValueError: neither function was given; or, when it is called, a
            parameter can be filled only in a graph.
        TypeError: called blocking, and there is only a coroutine function.
    """

    def __init__(
        self,
        func: Callable[..., Any] | None,
        afunc: Callable[..., Awaitable[Any]] | None = None,
        *,
        name: str | None = None,
        tags: Sequence[str] | None = None,
        trace: bool = True,
        recurse: bool = True,
        explode_args: bool = False,
        **kwargs: Any,
    ) -> None:
        if func is not None and afunc is None and inspect.iscoroutinefunction(func):
            func, afunc = None, func
        taken = func or afunc
        if taken is None:
            raise ValueError("At least one of func or afunc must be provided.")
        self.name = name or name_of(taken)
        self.func = func
        self.afunc = afunc
        self.tags = tags
        self.kwargs = kwargs
        self.trace = trace
        self.recurse = recurse
        self.explode_args = explode_args
        self.func_accepts = accepted(taken)

    def __repr__(self) -> str:
        shown = ("tags", "recurse", "explode_args", "func_accepts")
        inside = ", ".join(f"{key}={getattr(self, key)!r}" for key in shown)
        return f"{self.get_name()}({inside})"

    def invoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Any:
        """Call the function."""
        if self.func is None:
            raise self.colourless()
        call = partial(self.called, kwargs)
        if self.trace:
            return self._call_with_config(call, input, self.tagged(config))
        return call(input, None, ensure_config() if config is None else config)

    async def ainvoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Any:
        """Await the coroutine function; call the other one in a thread."""
        if self.afunc is None:
            return await asyncio.to_thread(self.invoke, input, config, **kwargs)
        call = partial(self.acalled, kwargs)
        if self.trace:
            return await self._acall_with_config(call, input, self.tagged(config))
        return await call(input, None, ensure_config() if config is None else config)

    def called(
        self,
        kwargs: Mapping[str, Any],
        given: Any,
        run_manager: Any,
        config: RunnableConfig,
    ) -> Any:
        """Call the function, and the Runnable that it returns."""
        del run_manager  # langchain has put it into the config already
        assert self.func is not None
        with set_config_context(config) as context:
            args, words = self.arguments(given, config, kwargs)
            result = context.run(self.func, *args, **words)
            if self.recurse and isinstance(result, Runnable):
                result = context.run(result.invoke, given, config)
        return result

    async def acalled(
        self,
        kwargs: Mapping[str, Any],
        given: Any,
        run_manager: Any,
        config: RunnableConfig,
    ) -> Any:
        """Async twin of `called`."""
        del run_manager
        assert self.afunc is not None
        with set_config_context(config) as context:
            args, words = self.arguments(given, config, kwargs)
            result = await within(context, partial(self.afunc, *args, **words))
            if self.recurse and isinstance(result, Runnable):
                result = await within(context, partial(result.ainvoke, given, config))
        return result

    def colourless(self) -> TypeError:
        """What a blocking call of a coroutine function raises."""
        return TypeError(
            f'No synchronous function provided to "{self.get_name()}".\n'
            "Either initialize with a synchronous function or invoke via the "
            "async API (ainvoke, astream, etc.)"
        )

    def tagged(self, config: RunnableConfig | None) -> RunnableConfig:
        """The config with the tags of this Runnable."""
        whole = ensure_config(config)
        if self.tags:
            whole["tags"] = [*whole.get("tags", ()), *self.tags]
        return whole

    def arguments(
        self, given: Any, config: RunnableConfig, kwargs: Mapping[str, Any]
    ) -> tuple[Sequence[Any], dict[str, Any]]:
        """What the function is called with."""
        args: Sequence[Any] = (given,)
        words = {**self.kwargs, **kwargs}
        if self.explode_args:
            args, exploded = given
            words.update(exploded)
        for name, (kind, default) in self.func_accepts.items():
            if name not in words:
                words[name] = self.value_of(kind, name, default, config)
        return args, words

    def value_of(
        self, kind: Injected, name: str, default: Any, config: RunnableConfig
    ) -> Any:
        """What fills a parameter."""
        if kind == "config":
            return config
        runtime = (config.get(CONF) or {}).get(CONFIG_KEY_RUNTIME)
        if runtime is not None:
            return runtime if kind == "runtime" else getattr(runtime, PLACES[kind])
        if kind == "writer":
            return _unheard
        if default is inspect.Parameter.empty:
            raise ValueError(
                f"Missing required config key {name!r} for {self.get_name()!r}."
            )
        return default


def name_of(function: Any) -> str | None:
    """The name of a function that has one."""
    name = getattr(function, "__name__", None)
    if name is None:
        name = type(function).__name__
    return None if name == "<lambda>" else name


def accepted(function: Callable[..., Any]) -> dict[str, tuple[Injected, Any]]:
    """The parameters that are filled from the config, and their defaults."""
    found: dict[str, tuple[Injected, Any]] = {}
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return found
    for index, parameter in enumerate(parameters):
        if parameter.kind not in (
            parameter.POSITIONAL_OR_KEYWORD,
            parameter.KEYWORD_ONLY,
        ):
            continue
        if index == 0 and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            continue
        kind = injected(parameter)
        if kind is not None and kind != "error":
            found[parameter.name] = (kind, parameter.default)
    return found


async def within(context: Context, call: Callable[[], Awaitable[Any]]) -> Any:
    """Await in a context."""

    async def run() -> Any:
        return await call()

    return await asyncio.create_task(run(), context=context)
