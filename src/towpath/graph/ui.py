"""Pieces of a user interface in the state: pushed from nodes, drawn elsewhere."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypedDict, cast
from uuid import uuid4

from towpath.config import get_config, get_stream_writer
from towpath.constants import CONF, CONFIG_KEY_SEND

__all__ = (
    "AnyUIMessage",
    "RemoveUIMessage",
    "UIMessage",
    "delete_ui_message",
    "push_ui_message",
    "ui_message_reducer",
)


class UIMessage(TypedDict):
    """One piece: which component to draw, and with what."""

    type: Literal["ui"]
    id: str
    name: str
    props: dict[str, Any]
    metadata: dict[str, Any]


class RemoveUIMessage(TypedDict):
    """The piece with this id is to go."""

    type: Literal["remove-ui"]
    id: str


AnyUIMessage: TypeAlias = UIMessage | RemoveUIMessage


def push_ui_message(
    name: str,
    props: dict[str, Any],
    *,
    id: str | None = None,
    metadata: dict[str, Any] | None = None,
    message: Any = None,
    state_key: str | None = "ui",
    merge: bool = False,
) -> UIMessage:
    """Send a piece to the `custom` stream now, and write it to the state.

    `message` is the chat message it belongs to. With `merge` the props are
    merged into those of the piece with the same id. `state_key=None` leaves
    the state alone.

    Raises:
        OutsideNodeError: no node is running here (TP-604).
    """
    config = get_config()
    facts: dict[str, Any] = {
        "merge": merge,
        "run_id": config.get("run_id"),
        "tags": config.get("tags"),
        "name": config.get("run_name"),
        **(metadata or {}),
    }
    if message is not None:
        facts["message_id"] = message.id
    piece: UIMessage = {
        "type": "ui",
        "id": id or str(uuid4()),
        "name": name,
        "props": props,
        "metadata": facts,
    }
    tell(piece, state_key)
    return piece


def delete_ui_message(id: str, *, state_key: str = "ui") -> RemoveUIMessage:
    """Remove a piece: from the state, and for those who listen to `custom`.

    Raises:
        OutsideNodeError: no node is running here (TP-604).
    """
    piece: RemoveUIMessage = {"type": "remove-ui", "id": id}
    tell(piece, state_key)
    return piece


def tell(piece: AnyUIMessage, state_key: str | None) -> None:
    get_stream_writer()(piece)
    if state_key is not None:
        get_config()[CONF][CONFIG_KEY_SEND]([(state_key, piece)])


def ui_message_reducer(
    left: list[AnyUIMessage] | AnyUIMessage, right: list[AnyUIMessage] | AnyUIMessage
) -> list[AnyUIMessage]:
    """Fold pieces into pieces: one with a known id replaces it, or removes it.

    Raises:
        ValueError: a piece that does not exist is to be removed.
    """
    found = list(left) if isinstance(left, list) else [left]
    places = {piece["id"]: index for index, piece in enumerate(found)}
    removed: set[str] = set()
    for piece in right if isinstance(right, list) else [right]:
        key = piece["id"]
        if piece["type"] == "remove-ui":
            if key not in places:
                raise ValueError(
                    "Attempting to delete an UI message with an ID that doesn't "
                    f"exist ('{key}')"
                )
            removed.add(key)
        elif key in places:
            removed.discard(key)
            found[places[key]] = replaced(found[places[key]], piece)
        else:
            places[key] = len(found)
            found.append(piece)
    return [piece for piece in found if piece["id"] not in removed]


def replaced(old: AnyUIMessage, new: AnyUIMessage) -> AnyUIMessage:
    """The new piece, with the old one's props below its own if it is to merge."""
    whole = cast("UIMessage", new)
    if not whole.get("metadata", {}).get("merge"):
        return new
    props = {**cast("UIMessage", old).get("props", {}), **whole["props"]}
    return {**whole, "props": props}
