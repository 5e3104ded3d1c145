"""Streams of chat messages, which langchain-core makes of events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.language_models._compat_bridge import message_to_events
from langchain_core.language_models.chat_model_stream import (
    AsyncChatModelStream,
    ChatModelStream,
)
from langchain_core.messages import AIMessageChunk, BaseMessage, ToolMessage


def message_stream(
    *, is_async: bool, namespace: list[str], node: str | None, message_id: str | None
) -> Any:
    """An empty stream of one message's events."""
    kind = AsyncChatModelStream if is_async else ChatModelStream
    return kind(namespace=namespace, node=node, message_id=message_id)


def events_of_whole(message: Any) -> Iterable[Mapping[str, Any]] | None:
    """The events of a message that came in one piece; None if it has none.

    Pieces of a message belong to a stream of another kind, and what a tool
    answered is no message of a model.
    """
    if not isinstance(message, BaseMessage):
        return None
    if isinstance(message, AIMessageChunk | ToolMessage):
        return None
    return message_to_events(message, message_id=message.id)
