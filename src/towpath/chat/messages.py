"""Messages: what counts as one, and what is made of them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from typing_extensions import TypedDict

from towpath.errors import TowpathError, nearest


class Message(TypedDict, total=False):
    """A message as it is in the state. Other keys of a client's stay as they are."""

    id: str
    role: str
    content: str | list[Any] | None
    name: str
    tool_calls: list[dict[str, Any]]
    tool_call_id: str


REMOVE: Final = "remove"
"""The role of what removes a message."""
ALL: Final = "*"
ROLES: Final = ("system", "developer", "user", "assistant", "tool", "function")
_ALIASES: Final = {"human": "user", "ai": "assistant"}


class InvalidMessageError(TowpathError, ValueError):
    """Something that was added to a chat is no message."""

    code = "TP-640"


def remove(id: str) -> dict[str, Any]:
    """Return what removes a message from a chat, to be added like a message."""
    return {"role": REMOVE, "id": id}


def remove_all() -> dict[str, Any]:
    """Return what removes every message that came before it."""
    return remove(ALL)


def new_id() -> str:
    """Make an id for a message."""
    return f"msg_{os.urandom(12).hex()}"


def several(given: Any) -> Sequence[Any]:
    """Return what was added to a chat as several: a list is, anything else is one."""
    return given if isinstance(given, list) else (given,)


def has_id(given: Any) -> bool:
    """Tell whether something that stands for a message comes with an id."""
    if isinstance(given, Mapping):
        return given.get("id") is not None
    return getattr(given, "id", None) is not None


def message_of(given: Any) -> dict[str, Any]:
    """Return something that stands for a message as one, with an id.

    A text is the user's; a pair is role and content; a client's object is what
    its `model_dump()` says.

    Raises:
        InvalidMessageError: it is no message. (TP-640)
    """
    found = _dict_of(given)
    role = found.get("role")
    role = _ALIASES.get(role, role) if isinstance(role, str) else role
    if role == REMOVE:
        return _removal(found)
    if role not in ROLES:
        raise InvalidMessageError(
            f"{_shown(given)} has the role {role!r}",
            hint=f"a role is one of {', '.join(ROLES)}.{nearest(role, ROLES)}",
        )
    _check_content(given, role, found)
    _check_calls(given, role, found)
    id = found.get("id")
    if id is not None and (not isinstance(id, str) or not id):
        raise InvalidMessageError(
            f"{_shown(given)} has the id {id!r}", hint="an id is a text"
        )
    if id is None or role != found["role"] or "content" not in found:
        # A message as it was given may be somebody else's, too.
        return {"content": None, **found, "role": role, "id": id or new_id()}
    return found


def _dict_of(given: Any) -> dict[str, Any]:
    if type(given) is dict:
        return given
    if isinstance(given, Mapping):
        return dict(given)
    if isinstance(given, str):
        return {"role": "user", "content": given}
    if isinstance(given, tuple) and len(given) == 2:
        return {"role": given[0], "content": given[1]}
    dump = getattr(given, "model_dump", None)
    if callable(dump) and hasattr(given, "role"):
        return dict(dump(mode="json", exclude_none=True))
    raise InvalidMessageError(
        f"{_shown(given)} is no message, but of type {type(given).__name__}",
        hint="a message is a dict with `role` and `content`, a text, a pair of role "
        "and content, or an object of a client that has `role` and `model_dump`; "
        "LangChain's messages are for `towpath.graph.add_messages`",
    )


def _removal(found: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(found.get("id"), str):
        raise InvalidMessageError(
            f"{_shown(found)} does not say which message to remove",
            hint="remove(id), or remove_all()",
        )
    return found


def _check_content(given: Any, role: str, found: dict[str, Any]) -> None:
    content = found.get("content")
    if isinstance(content, (str, list)):
        return
    if content is None and role == "assistant":
        return
    kind = "none" if content is None else f"one of type {type(content).__name__}"
    raise InvalidMessageError(
        f"the content of {_shown(given)} is {kind}",
        hint="content is a text, or a list of parts; only the assistant may have none",
    )


def _check_calls(given: Any, role: str, found: dict[str, Any]) -> None:
    if role == "tool" and not isinstance(found.get("tool_call_id"), str):
        raise InvalidMessageError(
            f"{_shown(given)} does not say which call it answers",
            hint="give it the `id` of the call as `tool_call_id`",
        )
    calls = found.get("tool_calls")
    if calls is None:
        return
    if not isinstance(calls, list) or not all(
        isinstance(call, Mapping) and isinstance(call.get("id"), str) for call in calls
    ):
        raise InvalidMessageError(
            f"the `tool_calls` of {_shown(given)} are no list of calls with ids"
        )


def _shown(given: Any) -> str:
    text = repr(given)
    return text if len(text) <= 80 else f"{text[:77]}..."


# What is made of them


def for_client(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return messages as a client sends them: without the ids, which are the chat's.

    >>> for_client([{"role": "user", "content": "hi", "id": "1"}])
    [{'role': 'user', 'content': 'hi'}]
    """
    return [
        {key: value for key, value in message.items() if key != "id"}
        for message in messages
    ]


def open_calls(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the tool calls of the newest assistant message that have no result yet.

    Each is `{"id", "name", "arguments"}`, the arguments decoded from their JSON.

    Raises:
        InvalidMessageError: the arguments of a call are no JSON. (TP-640)
    """
    answered: set[Any] = set()
    for message in reversed(messages):
        role = message.get("role")
        if role == "tool":
            answered.add(message.get("tool_call_id"))
        elif role == "assistant":
            calls = message.get("tool_calls") or ()
            return [_call(call) for call in calls if call["id"] not in answered]
    return []


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    function: Mapping[str, Any] = call.get("function") or {}
    text = function.get("arguments") or "{}"
    try:
        arguments = json.loads(text) if isinstance(text, str) else text
    except ValueError as error:
        raise InvalidMessageError(
            f"the arguments of call {call['id']!r} are no JSON: {text:.80}"
        ) from error
    return {
        "id": call["id"],
        "name": function.get("name", ""),
        "arguments": arguments,
    }


def tool_results(results: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the messages that answer tool calls, from results by id of the call.

    What is no text becomes JSON.

    >>> [message] = tool_results({"call_1": {"km": 384_400}})
    >>> message["content"]
    '{"km": 384400}'
    """
    return [
        {
            "role": "tool",
            "tool_call_id": id,
            "content": result
            if isinstance(result, str)
            else json.dumps(result, ensure_ascii=False, default=str),
        }
        for id, result in results.items()
    ]
