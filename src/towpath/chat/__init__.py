"""Chats without LangChain: messages are plain dicts, as OpenAI's API has them.

    {"role": "user", "content": "How far is the moon?", "id": "..."}

`ChatState` is a state with a list of them and `add_chat` the reducer that keeps it.
Nothing here knows a client: what a client returns is taken, and `for_client` gives
what a client expects.
"""

from __future__ import annotations

from towpath.chat.messages import (
    InvalidMessageError,
    Message,
    for_client,
    open_calls,
    remove,
    remove_all,
    tool_results,
)
from towpath.chat.state import ChatState, add_chat
from towpath.chat.streaming import acollect, collect, push_chunk

__all__ = (
    "ChatState",
    "InvalidMessageError",
    "Message",
    "acollect",
    "add_chat",
    "collect",
    "for_client",
    "open_calls",
    "push_chunk",
    "remove",
    "remove_all",
    "tool_results",
)
