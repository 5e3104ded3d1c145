"""Telling graph callbacks that a run stopped or goes on.

The program tells of it in a mode of its own, which never reaches a caller's
stream: the outermost run turns it into events for the `GraphCallbackHandler`s
among the config's callbacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID, uuid4

from towpath.callbacks import (
    AsyncGraphCallbackManager,
    GraphCallbackManager,
    GraphInterruptEvent,
    GraphLifecycleEvent,
    GraphResumeEvent,
    get_async_graph_callback_manager_for_config,
    get_sync_graph_callback_manager_for_config,
)
from towpath.kernel.request import LIFECYCLE, Chunk

MODE: Final = frozenset({LIFECYCLE})


class Listeners:
    """The graph callbacks of one run, in both colours."""

    __slots__ = ("later", "now", "run_id")

    def __init__(
        self, now: GraphCallbackManager, later: AsyncGraphCallbackManager, run_id: UUID
    ) -> None:
        self.now = now
        self.later = later
        self.run_id = run_id

    def hear(self, chunk: Chunk) -> None:
        """Tell the handlers of a blocking run."""
        event = self.event(chunk)
        if isinstance(event, GraphInterruptEvent):
            self.now.on_interrupt(event)
        else:
            self.now.on_resume(event)

    async def ahear(self, chunk: Chunk) -> None:
        """Async twin of `hear`."""
        event = self.event(chunk)
        if isinstance(event, GraphInterruptEvent):
            await self.later.on_interrupt(event)
        else:
            await self.later.on_resume(event)

    def event(self, chunk: Chunk) -> GraphLifecycleEvent:
        ns, _, (what, status, checkpoint_id, interrupts) = chunk
        if what == "interrupt":
            return GraphInterruptEvent(
                self.run_id, status, checkpoint_id, ns, tuple(interrupts)
            )
        return GraphResumeEvent(self.run_id, status, checkpoint_id, ns)


def listeners_of(config: Mapping[str, Any]) -> Listeners | None:
    """The graph callbacks in a config; None when there are none."""
    if not config.get("callbacks"):
        return None
    given: Any = config
    run_id = config.get("run_id") or uuid4()
    now = get_sync_graph_callback_manager_for_config(given, run_id=run_id)
    if not now.handlers:
        return None
    later = get_async_graph_callback_manager_for_config(given, run_id=run_id)
    return Listeners(now, later, run_id)
