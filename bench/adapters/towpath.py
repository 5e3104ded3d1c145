"""This library."""

from __future__ import annotations

from bench.adapters.graphs import GraphAdapter


def adapter() -> GraphAdapter:
    return GraphAdapter("towpath")
