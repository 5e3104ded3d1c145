"""Events of models and tools, as the streams of a run tell them.

`EventTap` takes the place of `MessageTap` where a run is read as events:
langchain sends a model's answer as events when one of its handlers is marked as
taking them, so an `invoke` in a node is told piece by piece.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.tracers._streaming import _V2StreamingCallbackHandler

from towpath.constants import TAG_NOSTREAM
from towpath.errors import GraphBubbleUp
from towpath.integrations.messages import MessageTap, Tap
from towpath.pregel._tools import _tool_call_writer


class EventTap(MessageTap, _V2StreamingCallbackHandler):
    """Sends a model's events, and messages that come in one piece.

    What a tool answered is no message of a model, and is not among them.
    """

    def on_stream_event(
        self, event: Mapping[str, Any], *, run_id: UUID, **kwargs: Any
    ) -> None:
        del kwargs
        metadata = self.models.get(run_id)
        if metadata is None:
            return
        if run_id not in self.streaming:
            self.streaming.add(run_id)
            if (message_id := event.get("id")) is not None:
                self.seen.add(message_id)
        self.tell((dict(event), {**metadata, "run_id": str(run_id)}))

    def on_llm_new_token(self, *args: Any, **kwargs: Any) -> None:
        """Pieces of messages are not events."""

    def once(self, message: BaseMessage, metadata: dict[str, Any]) -> None:
        if not isinstance(message, ToolMessage):
            super().once(message, metadata)


class ToolTap(Tap):
    """Sends starts, results and errors of tools, and what they send meanwhile."""

    ignore_llm = True
    ignore_chat_model = True
    ignore_agent = False  # what langchain files tools under

    def __init__(self, scope: Any) -> None:
        super().__init__(scope)
        self.calls: dict[UUID, tuple[str, Any]] = {}

    def on_tool_start(
        self,
        serialized: dict[str, Any],
        input_str: str,
        *,
        run_id: UUID,
        tags: list[str] | None = None,
        inputs: dict[str, Any] | None = None,
        tool_call_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        if TAG_NOSTREAM in (tags or ()):
            return
        call = tool_call_id or str(run_id)
        name = kwargs.get("name") or (serialized or {}).get("name")
        given = input_str if inputs is None else inputs
        self.tell(event("tool-started", call, tool_name=name, input=given))

        def write(delta: Any) -> None:
            self.tell(event("tool-output-delta", call, delta=delta))

        self.calls[run_id] = call, _tool_call_writer.set(write)

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        del kwargs
        if (call := self.ended(run_id)) is not None:
            self.tell(event("tool-finished", call, output=output))

    def on_tool_error(
        self, error: BaseException, *, run_id: UUID, **kwargs: Any
    ) -> None:
        """Tell of a failure; a question or a command is none."""
        del kwargs
        call = self.ended(run_id)
        if call is not None and not isinstance(error, GraphBubbleUp):
            self.tell(event("tool-error", call, message=str(error)))

    def ended(self, run_id: UUID) -> str | None:
        call, token = self.calls.pop(run_id, (None, None))
        if token is not None:
            try:
                _tool_call_writer.reset(token)
            except ValueError:
                _tool_call_writer.set(None)  # it ends in another context
        return call


def event(what: str, call: str, **more: Any) -> dict[str, Any]:
    """An event of one tool call."""
    return {"event": what, "tool_call_id": call, **more}
