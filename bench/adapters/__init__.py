"""The contestants: Towpath, the libraries beside it, and plain Python twice."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from bench.adapters.base import Adapter, Job
from bench.adapters.floor import Floor
from bench.adapters.libraries import Towpath
from bench.adapters.raw import Raw

__all__ = ("FLOORS", "OURS", "PEER", "RAW", "Adapter", "Job", "absent", "present")

OURS, PEER, RAW = "towpath", "langgraph", "raw"
FLOORS = ("floor", RAW)
"""Contestants that are no engines."""

_OTHERS = (
    (PEER, "bench.adapters.libraries", "Langgraph"),
    ("pydantic_graph", "bench.adapters.pydantic_graphs", "PydanticGraph"),
    ("burr", "bench.adapters.burr", "Burr"),
    ("workflows", "bench.adapters.llama", "Llama"),
)


def present() -> list[Adapter]:
    """Return the contestants that are installed: Towpath first, bare Python last."""
    others = [
        getattr(import_module(home), name)()
        for package, home, name in _OTHERS
        if find_spec(package)
    ]
    return [Towpath(), *others, Floor(), Raw()]


def absent() -> list[str]:
    """Return the packages of contestants that are not installed."""
    return [package for package, *_ in _OTHERS if not find_spec(package)]
