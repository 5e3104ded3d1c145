"""Runnables as nodes: their parts are runs below the node's, and streams.

The steps of a sequence are told of one by one, as the node's own. Somebody
who follows runs as streams (`astream_events`, `astream_log`) sees each part
pass on what it makes, and in the end what the node made as one chunk; to
everybody else a part is called once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.runnables import Runnable, RunnableSequence

from towpath.call.scope import TaskContext
from towpath.integrations.messages import MessageTap
from towpath.plan import Action

Part = Runnable[Any, Any]


def parts_of(action: Action | None) -> Sequence[Any]:
    """What is called in a node, one after the other."""
    if action is None:
        return ()
    target = action.target
    return target.steps if isinstance(target, RunnableSequence) else (target,)


def followers(run: Any) -> list[Any]:
    """The listeners to whom a run is a stream of chunks."""
    return [
        handler
        for handler in run.handlers
        if hasattr(handler, "tap_output_iter") and not isinstance(handler, MessageTap)
    ]


def show_stream(run: Any, output: Any) -> None:
    """Show what a node made as the only chunk of its run."""
    for handler in followers(run):
        for _ in handler.tap_output_iter(run.run_id, iter((output,))):
            pass


class PartRuns:
    """The call of a node that is a runnable."""

    def __init__(self, parts: Sequence[Part], context: TaskContext) -> None:
        run, config = context.local.run, context.config
        self.parts = [
            (part, config_below(config, run.get_child(f"seq:step:{index}")))
            for index, part in enumerate(parts, 1)
        ]
        self.streams = bool(followers(run))

    def blocking(self, given: Any) -> Any:
        """Call one part after the other, or stream through all of them."""
        if not self.streams:
            for part, config in self.parts:
                given = part.invoke(given, config)
            return given
        return total(list(self.stream(iter((given,)))))

    async def awaited(self, given: Any) -> Any:
        """Async twin of `blocking`."""
        if not self.streams:
            for part, config in self.parts:
                given = await part.ainvoke(given, config)
            return given
        return total([chunk async for chunk in self.astream(alone(given))])

    def stream(self, chunks: Iterator[Any]) -> Iterator[Any]:
        """Pass chunks through the parts."""
        for part, config in self.parts:
            chunks = part.transform(chunks, config)
        return chunks

    def astream(self, chunks: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Async twin of `stream`."""
        for part, config in self.parts:
            chunks = part.atransform(chunks, config)
        return chunks


def config_below(config: Mapping[str, Any], callbacks: Any) -> Any:
    """A config for what runs below a node's run."""
    return {**config, "callbacks": callbacks}


async def alone(value: Any) -> AsyncIterator[Any]:
    yield value


def total(chunks: Sequence[Any]) -> Any:
    """The sum of chunks; where they cannot be added, the last one counts."""
    whole = None
    for index, chunk in enumerate(chunks):
        try:
            whole = whole + chunk if index else chunk
        except TypeError:
            whole = chunk
    return whole
