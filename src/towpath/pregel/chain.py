"""A graph among langchain's Runnables.

To langchain a graph is a Runnable: `isinstance` says so as soon as
langchain-core is imported, `prompt | graph | parser` is a chain, and verbs
such as `with_retry` or `astream_events` are langchain's own, called with the
graph. langchain-core itself is never imported before one of them is used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Final

from towpath.pregel.arrival import on_import

HOME: Final = "langchain_core.runnables.base"
ADAPTER: Final = "towpath.integrations.runnable"


@cache
def runnable() -> Any:
    """Return langchain's class.

    Raises:
        ImportError: langchain-core is not installed.
    """
    try:
        return import_module(ADAPTER).Runnable
    except ModuleNotFoundError as error:
        raise ImportError(
            "chains, tools and event streams are langchain's: "
            "pip install 'towpath[langchain]'"
        ) from error


class Borrowed:
    """A method of langchain's Runnable, looked up when it is used."""

    def __init__(self, name: str = "") -> None:
        self.name = name

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, graph: Any, owner: type) -> Any:
        if graph is None:
            return self
        return getattr(runnable(), self.name).__get__(graph, owner)


class ChainVerbs:
    """The verbs of a Runnable that a graph has no form of its own for."""

    assign = Borrowed()
    """Add keys to the output, made by other Runnables."""
    pick = Borrowed()
    """Keep only some keys of the output."""
    pipe = Borrowed()
    """A chain of the graph and other Runnables, as `|`."""
    bind = Borrowed()
    """A Runnable that passes these keywords to every run."""
    map = Borrowed()
    """A Runnable that takes a list of inputs."""
    with_retry = Borrowed()
    """A Runnable that runs the graph again when it fails."""
    with_fallbacks = Borrowed()
    """A Runnable that tries others when the graph fails."""
    with_listeners = Borrowed()
    """A Runnable that tells of the start and the end of runs."""
    with_alisteners = Borrowed()
    """Async twin of `with_listeners`."""
    with_types = Borrowed()
    """A Runnable with other types of input and output."""
    as_tool = Borrowed()
    """A tool that an agent can call."""
    transform = Borrowed()
    """Stream over a stream of input."""
    atransform = Borrowed()
    """Async twin of `transform`."""
    astream_log = Borrowed()
    """Stream the run and the runs in it as JSON patches."""
    astream_events = Borrowed()
    """Stream what happens in the run and in the runs in it as events."""
    get_prompts = Borrowed()
    """The prompts in the graph."""
    config_specs = Borrowed()
    """What can be configured."""

    def __getattr__(self, name: str) -> Any:
        # langchain's methods call private ones of their own on the graph.
        if name[:1] == "_" and name[:2] != "__" and HOME in sys.modules:
            return Borrowed(name).__get__(self, type(self))
        raise AttributeError(f"{type(self).__name__!r} object has no {name!r}")

    def __or__(self, other: Any) -> Any:
        after: Callable[[Any], Any] = runnable().__or__.__get__(self)
        return after(other)

    def __ror__(self, other: Any) -> Any:
        before: Callable[[Any], Any] = runnable().__ror__.__get__(self)
        return before(other)


def join_runnables(kind: type) -> None:
    """Make langchain take objects of a class for Runnables."""
    # Of the module itself: it may be the adapter that is importing it.
    on_import(HOME, lambda: sys.modules[HOME].Runnable.register(kind))
