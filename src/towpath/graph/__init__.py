"""Declaring graphs: `StateGraph` and what goes with it."""

from typing import TYPE_CHECKING, Any

from towpath.constants import END, START
from towpath.graph.state import StateGraph

if TYPE_CHECKING:
    from towpath.graph.message import MessageGraph, MessagesState, add_messages

__all__ = (
    "END",
    "START",
    "MessageGraph",
    "MessagesState",
    "StateGraph",
    "add_messages",
)


def __getattr__(name: str) -> Any:
    # Messages are langchain's, which is loaded only by those who use them.
    if name in ("add_messages", "MessagesState", "MessageGraph"):
        try:
            from towpath.graph import message
        except ModuleNotFoundError as error:
            raise ImportError(
                f"{name} works on langchain's messages: pip install towpath[langchain]"
            ) from error
        return getattr(message, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
