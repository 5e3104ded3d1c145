"""Where a run meets parts that may or may not be there."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any, Final, Protocol

from towpath.plan import Plan
from towpath.step.state import Bump, next_int

TRACER: Final = "towpath.integrations.langchain"
OBSERVERS: Final[list[Callable[[Any, Any], Any]]] = []
"""Who wants to see each run of the process. Each is given the run's scope and what
traces it so far, and returns what is to trace it."""


class Graph(Protocol):
    """What the makers of runs need to know of a compiled graph."""

    plan_of_graph: Plan
    name: str
    checkpointer: Any
    store: Any
    cache: Any
    config: Any
    stream_mode: Any
    step_timeout: float | None

    @property
    def context_schema(self) -> Any:
        """The type of `runtime.context`."""


def bump_of(saver: Any) -> Bump:
    """How channel versions count: as the saver wants, ours by integers."""
    if saver is None:
        return next_int
    bump: Bump = saver.get_next_version
    return bump


def tracer() -> Any:
    """The adapter to langchain, if the program has loaded that.

    langchain is never imported for this: a program that has not loaded it has
    nothing that could be traced.
    """
    return adapter() if "langchain_core" in sys.modules else None


@cache
def adapter() -> Any:
    # Through the import system, which waits for a thread that is importing it.
    return import_module(TRACER)


def trace_of(scope: Any) -> Any:
    """The bridge to a tracing library, if anybody listens."""
    bridge = adapter().trace(scope) if "langchain_core" in sys.modules else None
    for observer in OBSERVERS:
        bridge = observer(scope, bridge)
    return bridge


@contextmanager
def unobserved() -> Iterator[None]:
    """Let nobody see the runs that are made meanwhile: they are not real."""
    kept, OBSERVERS[:] = OBSERVERS[:], []
    try:
        yield
    finally:
        OBSERVERS[:] = kept


def surrounding() -> dict[str, Any]:
    """What a runnable of another library, around this call, says of it."""
    adapter = tracer()
    return {} if adapter is None else adapter.surrounding()
