"""One module per library; each has `adapter()`, which fails where it is missing.

A further library (burr, pydantic-graph) is a further module with the same
function: what it cannot do, its `prepare` answers with None.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

from bench.workloads import Colour, Workload

NAMES = ("towpath", "langgraph", "raw")
Job = Callable[[], Any]
"""Does the work once; returns an awaitable in the async colour."""


class Adapter(Protocol):
    """One library."""

    name: str
    version: str

    def prepare(self, workload: Workload, colour: Colour) -> Job | None:
        """What does this work, ready to be timed; None: cannot be done."""


def load(names: tuple[str, ...] = NAMES) -> tuple[list[Adapter], list[str]]:
    """The adapters that can be had here, and the names of those that cannot."""
    found, missing = [], []
    for name in names:
        try:
            found.append(import_module(f"bench.adapters.{name}").adapter())
        except ImportError as error:
            missing.append(f"{name} ({error})")
    return found, missing
