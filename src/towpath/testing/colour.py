"""Running a graph of a user's in the colour that its nodes ask for.

A graph with a node that can only be awaited is run by an event loop of its own,
in another thread if this one has a loop that runs; any other graph blocks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

R = TypeVar("R")


def is_async(graph: Any) -> bool:
    """Whether a graph, or one inside it, has a node that must be awaited."""
    graphs = [graph, *(inner for _, inner in graph.get_subgraphs(recurse=True))]
    actions = [spec.action for each in graphs for spec in each.nodes.values()]
    return any(action is not None and action.call is None for action in actions)


def run_loop(make: Callable[[], Coroutine[Any, Any, R]]) -> R:
    """Run a coroutine to its end, whether or not a loop runs here."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(make())
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(copy_context().run, asyncio.run, make()).result()


def invoke(
    graph: Any, input: Any, config: Mapping[str, Any] | None, **options: Any
) -> Any:
    """Run a graph in its colour and return its output."""
    if is_async(graph):
        return run_loop(lambda: graph.ainvoke(input, config, **options))
    return graph.invoke(input, config, **options)


def stream_of(
    graph: Any, input: Any, config: Mapping[str, Any] | None, **options: Any
) -> list[Any]:
    """Run a graph in its colour and return its chunks."""
    if not is_async(graph):
        return list(graph.stream(input, config, **options))

    async def collect() -> list[Any]:
        return [chunk async for chunk in graph.astream(input, config, **options)]

    return run_loop(collect)
