"""The state of a chat, and the reducer that keeps it."""

from __future__ import annotations

from typing import Annotated, Any

from typing_extensions import TypedDict

from towpath.chat.messages import (
    ALL,
    REMOVE,
    InvalidMessageError,
    Message,
    has_id,
    message_of,
    several,
)


def add_chat(left: Any, right: Any) -> list[Message]:
    """Add messages to a chat; one with an id that is known replaces that one.

    `right` is a message or a list of them, see `message_of`: dicts, texts, pairs,
    and what clients return. Messages without an id are given one. `remove(id)`
    removes a message, `remove_all()` all that came before it.

    >>> chat = add_chat([{"role": "user", "content": "hi", "id": "1"}], ("ai", "yes?"))
    >>> [message["role"] for message in chat]
    ['user', 'assistant']
    >>> add_chat(chat[:1], {"role": "user", "content": "hello", "id": "1"})
    [{'role': 'user', 'content': 'hello', 'id': '1'}]

    Raises:
        InvalidMessageError: something is no message, or a message that is not
            there is to be removed. (TP-640)
    """
    given = several(right)
    new = [message_of(each) for each in given]
    start = _after_last_removal_of_all(new)
    if start:
        left, new, given = [], new[start:], given[start:]
    old = several(left) if left else []
    if not any(map(has_id, given)):
        # They can replace and remove nothing: they go to the end, whatever is there.
        return [*old, *new]
    return _folded([message_of(each) for each in old], new)


# It leaves the messages it is given alone, so a chat is stored by its changes.
add_chat.pure = True  # type: ignore[attr-defined]  # see channels.binop.is_gentle


def _after_last_removal_of_all(new: list[dict[str, Any]]) -> int:
    """Return the place after the last `remove_all()`, 0 when there is none."""
    for place in range(len(new), 0, -1):
        message = new[place - 1]
        if message["role"] == REMOVE and message["id"] == ALL:
            return place
    return 0


def _folded(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[Any]:
    chat: list[dict[str, Any] | None] = [*old]
    places = {message["id"]: place for place, message in enumerate(old)}
    for message in new:
        id = message["id"]
        place = places.get(id)
        if message["role"] == REMOVE:
            if place is None or chat[place] is None:
                raise InvalidMessageError(
                    f"there is no message {id!r} to remove",
                    hint="remove_all() removes whatever there is",
                )
            chat[place] = None
        elif place is None:
            places[id] = len(chat)
            chat.append(message)
        else:
            chat[place] = message
    return [message for message in chat if message is not None]


class ChatState(TypedDict):
    """A state with a chat. Derive from it to add keys."""

    messages: Annotated[list[Message], add_chat]
