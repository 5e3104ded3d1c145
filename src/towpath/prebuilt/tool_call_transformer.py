"""The calls of tools in an event stream: a handle for each, filled as it goes on.

A graph compiled with `transformers=[ToolCallTransformer]` has them as
`stream.tool_calls` in `stream_events(version="v3")`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

from langchain_core.messages import ToolMessage

from towpath.stream._types import ProtocolEvent, StreamTransformer
from towpath.stream.stream_channel import StreamChannel


class ToolCallStream:
    """One call of a tool: what it was given, sends meanwhile, and came to."""

    def __init__(
        self, tool_call_id: str, tool_name: str, given: Any, deltas: StreamChannel[Any]
    ) -> None:
        self.tool_call_id = tool_call_id
        self.tool_name = tool_name
        self.input = given
        self.output_deltas = deltas
        """What the tool sends with `runtime.emit_output_delta`."""
        self.output: Any = None
        """What it returned; of a message the content."""
        self.error: str | None = None
        """What it failed with."""
        self.completed = False
        """Whether it is over; a call that asked a person has no output then."""

    def end(self, output: Any = None, error: str | None = None) -> None:
        """The call is over."""
        whole = isinstance(output, ToolMessage)
        self.output = output.content if whole else output
        self.error, self.completed = error, True
        self.output_deltas.close()

    def fail(self, error: BaseException) -> None:
        """The run ended with an error before the call was over."""
        self.error, self.completed = str(error), True
        self.output_deltas.fail(error)


class ToolCallTransformer(StreamTransformer):
    """`tool_calls`: a `ToolCallStream` for each call in a namespace."""

    required_stream_modes: ClassVar[tuple[str, ...]] = ("tools",)
    _native = True

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        super().__init__(scope)
        self._calls: StreamChannel[ToolCallStream] = StreamChannel()
        self._open: dict[str, ToolCallStream] = {}
        self._pump: Callable[[], bool] | None = None
        self._apump: Callable[[], Awaitable[bool]] | None = None

    def init(self) -> dict[str, Any]:
        return {"tool_calls": self._calls}

    def _bind_pump(self, pump: Callable[[], bool]) -> None:
        self._pump = pump

    def _bind_apump(self, pump: Callable[[], Awaitable[bool]]) -> None:
        self._apump = pump

    def process(self, event: ProtocolEvent) -> bool:
        params = event["params"]
        if event["method"] == "tools" and tuple(params["namespace"]) == self.scope:
            self._take(params["data"])
        return True

    def _take(self, data: dict[str, Any]) -> None:
        what, call_id = data["event"], data["tool_call_id"]
        if what == "tool-started":
            self._open[call_id] = call = self._begun(data)
            self._calls.push(call)
        elif what == "tool-output-delta" and call_id in self._open:
            self._open[call_id].output_deltas.push(data["delta"])
        elif call_id in self._open:
            self._open.pop(call_id).end(data.get("output"), data.get("message"))

    def _begun(self, data: dict[str, Any]) -> ToolCallStream:
        deltas: StreamChannel[Any] = StreamChannel()
        # As the mux does for what `init` returns; these come later.
        deltas._bind(is_async=bool(self._calls._is_async))
        deltas._request_more, deltas._arequest_more = self._pump, self._apump
        return ToolCallStream(
            data["tool_call_id"], data["tool_name"], data["input"], deltas
        )

    def finalize(self) -> None:
        for call in self._open.values():
            call.end()
        self._open.clear()

    def fail(self, err: BaseException) -> None:
        for call in self._open.values():
            call.fail(err)
        self._open.clear()
