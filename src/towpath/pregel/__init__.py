"""Compiled graphs and their verbs; raw graphs of nodes and channels."""

from towpath.pregel.main import Pregel
from towpath.pregel.nodes import NodeBuilder

__all__ = ("NodeBuilder", "Pregel")
