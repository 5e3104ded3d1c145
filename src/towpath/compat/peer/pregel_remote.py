"""`langgraph.pregel.remote`, declared only: agents ask whether a graph is one."""

from __future__ import annotations

from typing import Any

__all__ = ("RemoteException", "RemoteGraph")


class RemoteException(Exception):  # noqa: N818 - the peer's name
    """A graph on a server failed."""


class RemoteGraph:
    """A graph that runs on a server."""

    def __init__(self, assistant_id: str, /, **options: Any) -> None:
        """Refuse.

        Raises:
            NotImplementedError: always.
        """
        del options
        raise NotImplementedError(
            f"`{assistant_id}` runs on a server, and Towpath calls none; call it with "
            "langgraph_sdk in a node"
        )
