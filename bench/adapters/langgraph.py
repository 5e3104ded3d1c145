"""The peer whose interface this library has, as it is installed here."""

from __future__ import annotations

from bench.adapters.graphs import GraphAdapter


def adapter() -> GraphAdapter:
    return GraphAdapter("langgraph")
