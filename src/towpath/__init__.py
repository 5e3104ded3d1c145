"""Towpath: a durable runtime for stateful graphs.

The names used most are importable from here; everything else from the module
it lives in. Nothing is imported before it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from towpath.version import __version__

if TYPE_CHECKING:
    from towpath.checkpoint.memory import InMemorySaver
    from towpath.checkpoint.sqlite import SqliteSaver
    from towpath.config import get_config, get_store, get_stream_writer
    from towpath.constants import END, START
    from towpath.func import entrypoint, task
    from towpath.graph.state import CompiledStateGraph, StateGraph
    from towpath.migration import Migration
    from towpath.runtime import Runtime, get_runtime
    from towpath.types import (
        CachePolicy,
        Command,
        Interrupt,
        Overwrite,
        RetryPolicy,
        Send,
        TimeoutPolicy,
        interrupt,
    )

HOMES = {
    "InMemorySaver": "checkpoint.memory",
    "SqliteSaver": "checkpoint.sqlite",
    "get_config": "config",
    "get_store": "config",
    "get_stream_writer": "config",
    "END": "constants",
    "START": "constants",
    "entrypoint": "func",
    "task": "func",
    "CompiledStateGraph": "graph.state",
    "StateGraph": "graph.state",
    "Runtime": "runtime",
    "get_runtime": "runtime",
    "Migration": "migration",
    "CachePolicy": "types",
    "Command": "types",
    "Interrupt": "types",
    "Overwrite": "types",
    "RetryPolicy": "types",
    "Send": "types",
    "TimeoutPolicy": "types",
    "interrupt": "types",
}

__all__ = (
    "END",
    "START",
    "CachePolicy",
    "Command",
    "CompiledStateGraph",
    "InMemorySaver",
    "Interrupt",
    "Migration",
    "Overwrite",
    "RetryPolicy",
    "Runtime",
    "Send",
    "SqliteSaver",
    "StateGraph",
    "TimeoutPolicy",
    "__version__",
    "entrypoint",
    "get_config",
    "get_runtime",
    "get_store",
    "get_stream_writer",
    "interrupt",
    "task",
)


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"towpath.{HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
