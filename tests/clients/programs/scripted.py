"""A chat model that says what a script says, and what programs show of a run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable

IDS = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class Scripted(BaseChatModel):
    """Answers with the next reply; a function among them gets the messages."""

    replies: list[Any]
    heard: list[Any] = []
    bound: list[str] = []

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _next(self, messages: list[BaseMessage]) -> AIMessage:
        self.heard.append([message.type for message in messages])
        reply = self.replies.pop(0)
        if isinstance(reply, Callable):
            reply = reply(messages)
        return AIMessage(reply) if isinstance(reply, str) else reply

    def _generate(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._next(messages))])

    def _stream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        whole = self._next(messages)
        words = str(whole.content).split(" ")
        for index, word in enumerate(words):
            last = index == len(words) - 1
            text = word if last else f"{word} "
            chunk = AIMessageChunk(text, tool_calls=whole.tool_calls if last else [])
            yield ChatGenerationChunk(message=chunk)

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, Any]:
        names = [
            getattr(one, "name", None) or getattr(one, "__name__", "?") for one in tools
        ]
        self.bound.append(sorted(str(name) for name in names))
        return self


def calls(*asked: tuple[str, dict[str, Any]], text: str = "") -> AIMessage:
    """A reply that calls tools, with ids made from their names."""
    made = [
        {"name": name, "args": args, "id": f"{name}-{index}", "type": "tool_call"}
        for index, (name, args) in enumerate(asked)
    ]
    return AIMessage(text, tool_calls=made)


def plain(value: Any) -> Any:
    """Values as JSON, without what differs from run to run."""
    if isinstance(value, BaseMessage):
        shown = {"type": value.type, "content": value.content, "name": value.name}
        for key in ("tool_calls", "tool_call_id", "status", "artifact"):
            found = getattr(value, key, None)
            if found:
                shown[key] = plain(found)
        return shown
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if hasattr(value, "model_dump"):
        return plain(value.model_dump())
    if type(value).__name__ == "Interrupt":
        return {"interrupt": plain(value.value)}
    if isinstance(value, str):
        return IDS.sub("<id>", value)
    if isinstance(value, (int, float, bool)) or value is None:
        return value
    return f"<{type(value).__name__}>"


def show(**observed: Any) -> None:
    """Print what was observed; two libraries must print the same."""
    print(json.dumps(plain(observed), sort_keys=True))


def thread(name: str = "1", **more: Any) -> dict[str, Any]:
    return {"configurable": {"thread_id": name, **more}}
