"""The nodes of a compiled graph as its users see them: to look at, and to run alone.

A node that runs alone is a function that is called: nothing is stored, folded or
told, and what a graph would give it besides its input is not there.

>>> from typing import TypedDict
>>> from towpath import START, StateGraph
>>> class State(TypedDict):
...     text: str
>>> builder = StateGraph(State)
>>> _ = builder.add_node("shout", lambda state: {"text": state["text"].upper()})
>>> _ = builder.add_edge(START, "shout")
>>> builder.compile().nodes["shout"].invoke({"text": "hi"})
{'text': 'HI'}
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from towpath.call.attempt import wrong_colour
from towpath.plan import Action, NodeSpec
from towpath.types import CachePolicy, RetryPolicy, TracePolicy

RUNNABLE: Final = "towpath.integrations.runnable"


class Alone:
    """A function as something to invoke, where there is no langchain."""

    def __init__(self, action: Action) -> None:
        self.name = action.name
        self.func: Callable[..., Any] | None = action.call
        self.afunc: Callable[..., Any] | None = action.acall

    def invoke(self, input: Any, _config: Any = None) -> Any:
        """Call the function."""
        if self.func is None:
            raise wrong_colour(self.name)
        return self.func(input)

    async def ainvoke(self, input: Any, _config: Any = None) -> Any:
        """Async twin of `invoke`; a blocking function is called in place."""
        if self.afunc is None:
            return self.invoke(input)
        return await self.afunc(input)


class NodeFace:
    """A node: what wakes it, what it is, its policies. Runs alone by `invoke`."""

    def __init__(self, spec: NodeSpec) -> None:
        self.spec = spec

    def __getattr__(self, name: str) -> Any:
        if name == "spec":
            raise AttributeError(name)
        return getattr(self.spec, name)

    def __repr__(self) -> str:
        return f"<node {self.spec.name!r}>"

    @property
    def bound(self) -> Any:
        """What the node calls, with `invoke` and `ainvoke`."""
        action = self.spec.action
        if action is None or hasattr(action.target, "invoke"):
            return None if action is None else action.target
        if "langchain_core" in sys.modules:
            return import_module(RUNNABLE).RunnableCallable(
                action.target, name=action.name
            )
        return Alone(action)

    @property
    def channels(self) -> list[str]:
        """The keys that the node reads."""
        return [*self.spec.view.keys, *self.spec.view.managed]

    @property
    def triggers(self) -> list[str]:
        """The channels that wake the node."""
        return list(self.spec.triggers)

    @property
    def metadata(self) -> Mapping[str, Any] | None:
        """What the node was given as metadata."""
        return self.spec.metadata or None

    @property
    def tags(self) -> Sequence[str] | None:
        """Tags of the node's runs."""
        return list(self.spec.tags) or None

    @property
    def retry_policy(self) -> Sequence[RetryPolicy] | None:
        """When the node is tried again."""
        return self.spec.retry or None

    @property
    def cache_policy(self) -> CachePolicy[Any] | None:
        """How the node's results are kept."""
        return self.spec.cache

    @property
    def trace_policy(self) -> TracePolicy | None:
        """What traces show of the node."""
        return self.spec.trace

    @property
    def error_handler_node(self) -> str | None:
        """The node that takes over when this one has failed."""
        return self.spec.error_handler

    @property
    def is_error_handler(self) -> bool:
        """Whether this node takes over for another."""
        return self.spec.handles is not None

    @property
    def subgraphs(self) -> list[Any]:
        """The graph that the node is, if it is one."""
        graph = None if self.spec.action is None else self.spec.action.graph
        return [] if graph is None else [graph]

    def invoke(self, input: Any, config: Mapping[str, Any] | None = None) -> Any:
        """Call the node with this input, and return what it returns."""
        return input if self.bound is None else self.bound.invoke(input, config)

    async def ainvoke(self, input: Any, config: Mapping[str, Any] | None = None) -> Any:
        """Async twin of `invoke`."""
        return input if self.bound is None else await self.bound.ainvoke(input, config)

    def stream(
        self, input: Any, config: Mapping[str, Any] | None = None
    ) -> Iterator[Any]:
        """Call the node, and yield what it returns, in parts where it has some."""
        if hasattr(self.bound, "stream"):
            yield from self.bound.stream(input, config)
        else:
            yield self.invoke(input, config)

    async def astream(
        self, input: Any, config: Mapping[str, Any] | None = None
    ) -> AsyncIterator[Any]:
        """Async twin of `stream`."""
        if hasattr(self.bound, "astream"):
            async for part in self.bound.astream(input, config):
                yield part
        else:
            yield await self.ainvoke(input, config)
