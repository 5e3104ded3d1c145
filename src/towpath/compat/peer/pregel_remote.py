"""`langgraph.pregel.remote`, declared only: agents ask whether a graph is one."""

from __future__ import annotations

from typing import Any

from towpath.errors import TowpathError

__all__ = ("RemoteGraph",)


class UnsupportedRemoteError(TowpathError, NotImplementedError):
    """Graphs that run on a server cannot be called yet."""

    code = "TP-633"


class RemoteGraph:
    """A graph that runs on a server."""

    def __init__(self, assistant_id: str, /, **options: Any) -> None:
        """Refuse.

        Raises:
            UnsupportedRemoteError: always (TP-633).
        """
        del options
        raise UnsupportedRemoteError(
            f"`{assistant_id}` runs on a server, and Towpath calls none yet",
            hint="call it with langgraph_sdk in a node",
        )
