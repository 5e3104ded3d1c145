"""Callbacks on the life of a run: it was interrupted, it was resumed.

`GraphCallbackHandler` is a langchain handler where langchain-core is
installed, so one object can hear of models and of the graph; else it stands
alone. It is made when it is first asked for, because importing langchain-core
takes long and most runs have no handler.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from uuid import UUID

from towpath.context import RunnableConfig
from towpath.interrupts import Interrupt

__all__ = (
    "GraphCallbackHandler",
    "GraphInterruptEvent",
    "GraphLifecycleEvent",
    "GraphLifecycleStatus",
    "GraphResumeEvent",
    "get_async_graph_callback_manager_for_config",
    "get_sync_graph_callback_manager_for_config",
)

log = logging.getLogger(__name__)

GraphLifecycleStatus: TypeAlias = Literal[
    "input", "pending", "done", "interrupt_before", "interrupt_after", "out_of_steps"
]
"""Where a run is when something happens to it."""


@dataclass(frozen=True)
class GraphInterruptEvent:
    """A run stopped at questions, or at a breakpoint."""

    run_id: UUID | None
    status: GraphLifecycleStatus
    checkpoint_id: str
    checkpoint_ns: tuple[str, ...]
    interrupts: tuple[Interrupt[Any], ...]


@dataclass(frozen=True)
class GraphResumeEvent:
    """A run goes on from a checkpoint."""

    run_id: UUID | None
    status: GraphLifecycleStatus
    checkpoint_id: str
    checkpoint_ns: tuple[str, ...]


GraphLifecycleEvent: TypeAlias = GraphInterruptEvent | GraphResumeEvent


class GraphListener:
    """The part of a handler that hears of the graph."""

    def on_interrupt(self, event: GraphInterruptEvent) -> Any:
        """Hear that a run stopped at a question."""

    def on_resume(self, event: GraphResumeEvent) -> Any:
        """Hear that a run goes on."""


if TYPE_CHECKING:

    class GraphCallbackHandler(GraphListener):
        """Subclass it to hear of interrupts and resumes."""


def __getattr__(name: str) -> Any:
    if name != "GraphCallbackHandler":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    handler = globals()[name] = _make_handler()
    return handler


def _make_handler() -> type:
    doc = {"__doc__": "Subclass it to hear of interrupts and resumes."}
    bases: tuple[type, ...] = (GraphListener,)
    try:
        from langchain_core.callbacks.base import BaseCallbackHandler
    except ImportError:
        pass
    else:
        bases = (GraphListener, BaseCallbackHandler)
    return type("GraphCallbackHandler", bases, {"__module__": __name__, **doc})


class GraphCallbackManager:
    """Tells the listeners of a run, in order. Their errors are logged.

    A listener with `raise_error = True` stops the run by an error.
    """

    def __init__(self, handlers: Iterable[Any], run_id: UUID | None) -> None:
        self.handlers = [h for h in handlers if isinstance(h, GraphListener)]
        self.run_id = run_id

    def on_interrupt(self, event: GraphInterruptEvent) -> None:
        """Tell that the run stopped."""
        for handler in self.handlers:
            self._settle(handler, _call(handler, "on_interrupt", event))

    def on_resume(self, event: GraphResumeEvent) -> None:
        """Tell that the run goes on."""
        for handler in self.handlers:
            self._settle(handler, _call(handler, "on_resume", event))

    def _settle(self, handler: Any, pending: Awaitable[Any] | None) -> None:
        if pending is None:
            return
        from asyncio import run
        from concurrent.futures import ThreadPoolExecutor

        # In a thread, because this one may have a running loop.
        with ThreadPoolExecutor(1) as pool:
            pool.submit(run, _finish(handler, pending)).result()


class AsyncGraphCallbackManager(GraphCallbackManager):
    """Tells the listeners of an async run."""

    async def on_interrupt(  # type: ignore[override]  # the peer's: same name, awaited
        self, event: GraphInterruptEvent
    ) -> None:
        """Tell that the run stopped."""
        await self._tell("on_interrupt", event)

    async def on_resume(  # type: ignore[override]  # as above
        self, event: GraphResumeEvent
    ) -> None:
        """Tell that the run goes on."""
        await self._tell("on_resume", event)

    async def _tell(self, method: str, event: GraphLifecycleEvent) -> None:
        for handler in self.handlers:
            pending = _call(handler, method, event)
            if pending is not None:
                await _finish(handler, pending)


def _call(
    handler: Any, method: str, event: GraphLifecycleEvent
) -> Awaitable[Any] | None:
    try:
        result = getattr(handler, method)(event)
    except Exception as error:
        _failed(handler, error)
        return None
    return result if isawaitable(result) else None


async def _finish(handler: Any, pending: Awaitable[Any]) -> None:
    try:
        await pending
    except Exception as error:
        _failed(handler, error)


def _failed(handler: Any, error: Exception) -> None:
    # An observer that fails must not end what it observes, unless it says so.
    if getattr(handler, "raise_error", False):
        raise error
    log.warning("Error in callback of %s: %r", type(handler).__name__, error)


def get_sync_graph_callback_manager_for_config(
    config: RunnableConfig, *, run_id: UUID | None = None
) -> GraphCallbackManager:
    """Return what tells the graph listeners among a config's callbacks."""
    return GraphCallbackManager(_handlers(config), run_id)


def get_async_graph_callback_manager_for_config(
    config: RunnableConfig, *, run_id: UUID | None = None
) -> AsyncGraphCallbackManager:
    """Return what tells the graph listeners among an async run's callbacks."""
    return AsyncGraphCallbackManager(_handlers(config), run_id)


def _handlers(config: RunnableConfig) -> list[Any]:
    """Return the handlers of `callbacks`: one, a list, or a manager of them."""
    callbacks = config.get("callbacks")
    if callbacks is None:
        return []
    if isinstance(callbacks, (list, tuple)):
        return list(callbacks)
    return list(getattr(callbacks, "handlers", [callbacks]))
