"""A client's stream of chunks, shown while it arrives, and the message it makes.

Chunks are those of OpenAI's API and the many that copy it, as objects or dicts, or
plain texts. Each is shown in stream mode "custom" as

    {"message": id, "delta": {"content": "..."}}

where `id` is the one that the whole message will have, and in stream mode "messages"
as a part of that message, with metadata that say where it comes from:

    {"role": "assistant", "id": id, "content": "..."}
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Mapping
from typing import Any

from towpath.chat.messages import new_id
from towpath.context import ambient

_JOINED = ("content", "refusal")


def collect(chunks: Iterable[Any]) -> dict[str, Any]:
    """Show chunks as they come, and return the message they make.

    Raises:
        OutsideNodeError: no node is running here (TP-604).
    """
    draft = _Draft("collect")
    for chunk in chunks:
        draft.take(chunk)
    return draft.message


async def acollect(chunks: AsyncIterable[Any]) -> dict[str, Any]:
    """Async twin of `collect`."""
    draft = _Draft("acollect")
    async for chunk in chunks:
        draft.take(chunk)
    return draft.message


def push_chunk(delta: Mapping[str, Any] | str, *, id: str) -> None:
    """Show a part of a message: some of its text, or of its other fields.

    For clients whose chunks `collect` does not know. `id` is the one of the whole
    message, for the node to return.

    Raises:
        OutsideNodeError: no node is running here (TP-604).
    """
    part = {"content": delta} if isinstance(delta, str) else dict(delta)
    task: Any = ambient("push_chunk")
    task.writer({"message": id, "delta": part})
    task.tell_message({"role": "assistant", "id": id, **part})


class _Draft:
    """A message that is not whole yet."""

    def __init__(self, caller: str) -> None:
        ambient(caller)  # nobody is to wait for a whole answer that nothing can show
        self.message: dict[str, Any] = {
            "role": "assistant",
            "content": None,
            "id": new_id(),
        }

    def take(self, chunk: Any) -> None:
        """Add a chunk to the message, and show what is new."""
        delta = _delta(chunk)
        if not delta:
            return
        for key, value in delta.items():
            if key in _JOINED:
                self.message[key] = (self.message.get(key) or "") + value
            elif key == "tool_calls":
                for piece in value:
                    self._call(piece)
            elif key != "id":
                self.message[key] = value
        push_chunk(delta, id=self.message["id"])

    def _call(self, piece: Mapping[str, Any]) -> None:
        """Add a piece of a tool call: the calls are told apart by their places."""
        calls: list[dict[str, Any]] = self.message.setdefault("tool_calls", [])
        place = piece.get("index", len(calls))
        while len(calls) <= place:
            blank = {"name": "", "arguments": ""}
            calls.append({"id": "", "type": "function", "function": blank})
        call = calls[place]
        call["id"] = piece.get("id") or call["id"]
        for key, text in (piece.get("function") or {}).items():
            call["function"][key] = call["function"].get(key, "") + (text or "")


def _delta(chunk: Any) -> dict[str, Any]:
    """Return what a chunk adds to a message, without what is None."""
    if isinstance(chunk, str):
        return {"content": chunk} if chunk else {}
    choices = _part(chunk, "choices")
    if not choices:
        return {}  # the last one may tell what the call cost, and nothing else
    delta = _part(choices[0], "delta")
    if delta is not None and not isinstance(delta, Mapping):
        delta = delta.model_dump(mode="json", exclude_none=True)
    return {key: value for key, value in (delta or {}).items() if value is not None}


def _part(whole: Any, name: str) -> Any:
    return whole.get(name) if isinstance(whole, Mapping) else getattr(whole, name, None)
