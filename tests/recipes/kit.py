"""Small graphs and one way to run them in both colours."""

from __future__ import annotations

import asyncio
import operator
from collections import Counter
from collections.abc import Callable
from typing import Annotated, Any

from typing_extensions import TypedDict

from towpath import END, START, StateGraph

THREAD: dict[str, Any] = {"configurable": {"thread_id": "thread"}}


class Log(TypedDict, total=False):
    """The state of most recipes."""

    log: Annotated[list, operator.add]
    note: str


class Colour:
    """Calls the verbs of a graph, blocking or in an event loop of its own."""

    def __init__(self, *, asynchronous: bool) -> None:
        self.runner = asyncio.Runner() if asynchronous else None

    def __enter__(self) -> Colour:
        return self

    def __exit__(self, *failure: object) -> None:
        if self.runner is not None:
            self.runner.close()

    def invoke(self, app: Any, given: Any, config: Any = THREAD, **options: Any) -> Any:
        return self._call(app, "invoke", given, config, **options)

    def state(self, app: Any, config: Any = THREAD, **options: Any) -> Any:
        return self._call(app, "get_state", config, **options)

    def update(
        self, app: Any, values: Any, config: Any = THREAD, **options: Any
    ) -> Any:
        return self._call(app, "update_state", config, values, **options)

    def stream(
        self, app: Any, given: Any, config: Any = THREAD, **options: Any
    ) -> list[Any]:
        return self._collect(app, "stream", given, config, **options)

    def history(self, app: Any, config: Any = THREAD, **options: Any) -> list[Any]:
        return self._collect(app, "get_state_history", config, **options)

    def _call(self, app: Any, verb: str, *given: Any, **options: Any) -> Any:
        if self.runner is None:
            return getattr(app, verb)(*given, **options)
        return self.runner.run(getattr(app, f"a{verb}")(*given, **options))

    def _collect(self, app: Any, verb: str, *given: Any, **options: Any) -> list[Any]:
        if self.runner is None:
            return list(getattr(app, verb)(*given, **options))

        async def collect() -> list[Any]:
            return [item async for item in getattr(app, f"a{verb}")(*given, **options)]

        return self.runner.run(collect())


def wire(*edges: tuple[Any, str], state: Any = Log, **nodes: Any) -> StateGraph:
    """Return a builder; without edges every node starts at once."""
    builder = StateGraph(state)
    for name, action in nodes.items():
        builder.add_node(name, action)
    for source, target in edges or [(START, name) for name in nodes]:
        builder.add_edge(source, target)
    return builder


def chain(state: Any = Log, **nodes: Any) -> StateGraph:
    """Return a builder in which each node follows the one before."""
    names = [START, *nodes, END]
    edges = list(zip(names, names[1:], strict=False))
    return wire(*edges, state=state, **nodes)


def logs(text: str, calls: Counter | None = None) -> Callable[[Any], Any]:
    """Return a node that logs a text."""

    def node(state: Any) -> Any:
        if calls is not None:
            calls[text] += 1
        return {"log": [text]}

    return node


def questions(app_or_result: Any) -> dict[str, str]:
    """Return the open questions of a result or a snapshot: value -> id."""
    found = getattr(app_or_result, "interrupts", None)
    if found is None:
        found = app_or_result.get("__interrupt__", ())
    return {one.value: one.id for one in found}
