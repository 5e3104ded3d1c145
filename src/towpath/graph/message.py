"""Messages in the state: `add_messages`, and what is built on it.

The messages are langchain's, so importing this module imports
`langchain_core`; `towpath.graph` does so only when one of its names is asked
for.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Annotated, Any, Final, Literal, TypeAlias, cast
from uuid import uuid4

from langchain_core.messages import (
    AnyMessage,
    BaseMessage,
    BaseMessageChunk,
    MessageLikeRepresentation,
    RemoveMessage,
    convert_to_messages,
    convert_to_openai_messages,
    message_chunk_to_message,
)
from typing_extensions import TypedDict

from towpath.config import get_config
from towpath.constants import CONF, CONFIG_KEY_SEND
from towpath.graph.state import StateGraph
from towpath.warnings import LangGraphDeprecatedSinceV10

__all__ = ("REMOVE_ALL_MESSAGES", "MessageGraph", "MessagesState", "add_messages")

Messages: TypeAlias = list[MessageLikeRepresentation] | MessageLikeRepresentation
Format: TypeAlias = Literal["langchain-openai"]
ID: Final = attrgetter("id")

REMOVE_ALL_MESSAGES: Final = "__remove_all__"
"""`RemoveMessage(id=REMOVE_ALL_MESSAGES)` removes all that came before it."""


def add_messages(
    left: Messages | None = None,
    right: Messages | None = None,
    *,
    format: Format | None = None,
) -> Any:
    """Append messages to a list of messages; one with a known id replaces it.

    Anything that langchain can turn into a message counts as one, alone or in
    a list. A message without an id is given one. `RemoveMessage(id=...)`
    removes; with `REMOVE_ALL_MESSAGES` as its id it removes everything before
    it. `format="langchain-openai"` gives the contents in OpenAI's form. Called
    without messages it returns a reducer with that format:
    `Annotated[list, add_messages(format="langchain-openai")]`.

        >>> from langchain_core.messages import AIMessage, HumanMessage
        >>> [m.content for m in add_messages([HumanMessage("hi", id="1")], "you")]
        ['hi', 'you']
        >>> [
        ...     m.content
        ...     for m in add_messages([AIMessage("a", id="1")], AIMessage("b", id="1"))
        ... ]
        ['b']

    Raises:
        ValueError: one side is missing, the format is unknown, or a message
            that does not exist is to be removed.
    """
    if left is None and right is None:
        return known_pure(functools.partial(add_messages, format=format))
    if left is None or right is None:
        only = "right" if not left else "left"
        raise ValueError(
            "Must specify non-null arguments for both 'left' and 'right'. "
            f"Only received: '{only}'."
        )
    return formatted(added(left, right), format)


def known_pure(reducer: Any) -> Any:
    """Say of a reducer what `channels.binop` asks: messages are left alone, by ids."""
    reducer.pure = reducer.idempotent = True
    return reducer


known_pure(add_messages)


def added(left: Messages, right: Messages) -> list[BaseMessage]:
    """Fold new messages into old ones, which nearly always means: append them.

    There may be thousands of old ones, so they are looked at by nothing that takes a
    step of Python for each. Looked at they are: nodes can change a message's id.
    """
    ids = ids_of(left) if type(left) is list else None
    old = coerced(left) if ids is None else cast("list[BaseMessage]", left)
    if ids is None:
        ids = list(map(ID, old))
    new = coerced(right)
    fresh = {message.id for message in new}
    if (
        len(fresh) < len(new)
        or not fresh.isdisjoint(ids)
        or any(isinstance(message, RemoveMessage) for message in new)
    ):
        return merged(old, new)
    return [*old, *new]


def ids_of(messages: list[Any]) -> list[str] | None:
    """The ids of messages; None where something has to be made one, or needs an id."""
    for kind in {*map(type, messages)}:
        if not issubclass(kind, BaseMessage) or issubclass(kind, BaseMessageChunk):
            return None
    ids = list(map(ID, messages))
    return ids if all(ids) else None


def coerced(messages: Messages) -> list[BaseMessage]:
    """Whatever stands for messages as messages; each has an id afterwards."""
    several = messages if isinstance(messages, list) else [messages]
    found = []
    for message in convert_to_messages(several):
        whole = (
            message_chunk_to_message(message)
            if isinstance(message, BaseMessageChunk)
            else message
        )
        if whole.id is None:
            whole.id = str(uuid4())
        found.append(whole)
    return found


def merged(left: list[BaseMessage], right: list[BaseMessage]) -> list[BaseMessage]:
    """Fold new messages into old ones."""
    for index in range(len(right) - 1, -1, -1):
        new = right[index]
        if isinstance(new, RemoveMessage) and new.id == REMOVE_ALL_MESSAGES:
            return right[index + 1 :]  # as it is: so the peer
    found = list(left)
    places = {message.id: index for index, message in enumerate(found)}
    removed: set[str | None] = set()
    for message in right:
        place = places.get(message.id)
        if isinstance(message, RemoveMessage):
            if place is None:
                raise ValueError(
                    "Attempting to delete a message with an ID that doesn't exist "
                    f"('{message.id}')"
                )
            removed.add(message.id)
        elif place is None:
            places[message.id] = len(found)
            found.append(message)
        else:
            removed.discard(message.id)
            found[place] = message
    if removed:
        return [message for message in found if message.id not in removed]
    return found


def formatted(messages: list[BaseMessage], format: Format | None) -> list[BaseMessage]:
    if format is None:
        return messages
    if format != "langchain-openai":
        raise ValueError(
            f"Unrecognized format={format!r}. Expected one of 'langchain-openai', None."
        )
    plain = convert_to_openai_messages(messages)
    return convert_to_messages(cast("Iterable[MessageLikeRepresentation]", plain))


class MessagesState(TypedDict):
    """A state with a list of messages that `add_messages` keeps."""

    messages: Annotated[list[AnyMessage], add_messages]


class MessageGraph(StateGraph[Any, Any, Any, Any]):
    """A graph whose whole state is a list of messages.

    Deprecated: use a `StateGraph` with a `messages` key.
    """

    def __init__(self) -> None:
        warnings.warn(
            "MessageGraph is deprecated in LangGraph v1.0.0, to be removed in v2.0.0. "
            "Please use StateGraph with a `messages` key instead.",
            LangGraphDeprecatedSinceV10,
            stacklevel=2,
        )
        super().__init__(Annotated[list[AnyMessage], add_messages])  # type: ignore[arg-type] # a bare value as the state


def push_message(
    message: MessageLikeRepresentation | BaseMessageChunk,
    *,
    state_key: str | None = "messages",
) -> AnyMessage:
    """Send a message to the `messages` stream now, and write it to the state.

    `state_key=None` leaves the state alone.

    Raises:
        ValueError: the message has no id, so that a listener could not tell it
            from the one in the state.
        OutsideNodeError: no node is running here (TP-604).
    """
    config = get_config()
    whole = convert_to_messages([message])[0]
    if whole.id is None:
        raise ValueError("Message ID is required")
    listeners: Sequence[Any] = getattr(config.get("callbacks"), "handlers", ())
    for listener in listeners:
        tell: Callable[..., None] | None = getattr(listener, "pushed", None)
        if tell is not None:
            tell(whole, dict(config["metadata"]))
    if state_key is not None:
        config[CONF][CONFIG_KEY_SEND]([(state_key, whole)])
    return cast("AnyMessage", whole)
