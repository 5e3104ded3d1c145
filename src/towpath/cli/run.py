"""Follow one run from its input, or from an answer, to its end or next question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any

from towpath.cli.outcome import Outcome, of_failure, of_snapshot
from towpath.cli.view import View

# Progress needs the first two, the result the third.
ALWAYS = ("tasks", "custom", "values")


@dataclass(frozen=True, slots=True)
class Request:
    """What is to run, and how."""

    graph: Any
    config: dict[str, Any]
    modes: tuple[str, ...]
    options: Mapping[str, Any]
    checkpoint: str | None = None
    """Where to start, if that is not the thread's newest checkpoint."""

    @property
    def start(self) -> dict[str, Any]:
        """Return the config that says where the run starts."""
        if self.checkpoint is None:
            return self.config
        settings = {**self.config["configurable"], "checkpoint_id": self.checkpoint}
        return {**self.config, "configurable": settings}

    @property
    def thread(self) -> str:
        """Return the id of the thread."""
        return str(self.config["configurable"]["thread_id"])


async def follow(request: Request, step: Any, view: View) -> Outcome:
    """Run until the graph ends, stops or fails, showing chunks as they come.

    The asynchronous verbs run every kind of node: one that is not asynchronous
    gets a thread.
    """
    modes = list(dict.fromkeys([*ALWAYS, *request.modes, *view.wants]))
    values: Any = None
    try:
        chunks = request.graph.astream(
            step,
            request.start,
            stream_mode=modes,
            subgraphs=True,
            **request.options,
        )
        async with aclosing(chunks):
            async for ns, mode, chunk in chunks:
                if mode == "values" and not ns:
                    values = without_interrupts(chunk)
                view.chunk(ns, mode, chunk)
        snapshot = await request.graph.aget_state(request.config)
    except Exception as error:
        return of_failure(request.thread, await standing(request), error)
    return of_snapshot(request.thread, snapshot, values)


async def standing(request: Request) -> Any:
    """Return the state that a failed run left, or None if it cannot be read."""
    with suppress(Exception):
        return await request.graph.aget_state(request.config)
    return None


def without_interrupts(chunk: Any) -> Any:
    """Drop the questions from a chunk of values; they are told on their own."""
    if isinstance(chunk, Mapping):
        return {key: value for key, value in chunk.items() if key != "__interrupt__"}
    return chunk


def ordered(modes: Sequence[str]) -> tuple[str, ...]:
    """Split `--stream a,b --stream c` into its modes, each once."""
    words = (word.strip() for mode in modes for word in mode.split(","))
    return tuple(dict.fromkeys(word for word in words if word))
