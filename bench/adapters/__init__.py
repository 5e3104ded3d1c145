"""The contestants: Towpath, the peer with the same interface, and plain Python."""

from __future__ import annotations

from importlib.util import find_spec

from bench.adapters.base import Adapter, Job
from bench.adapters.libraries import Langgraph, Towpath
from bench.adapters.raw import Raw

__all__ = ("OURS", "PEER", "RAW", "Adapter", "Job", "present")

OURS, PEER, RAW = "towpath", "langgraph", "raw"


def present() -> list[Adapter]:
    """Return the contestants that are installed, Towpath first."""
    peers = [Langgraph()] if find_spec(PEER) else []
    return [Towpath(), *peers, Raw()]
