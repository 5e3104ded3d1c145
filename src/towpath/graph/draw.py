"""What `get_graph()` returns: nodes and edges, to look at or to draw."""

from towpath.pregel.diagram import DrawingError, Edge, Graph, Node

__all__ = ("DrawingError", "Edge", "Graph", "Node")
