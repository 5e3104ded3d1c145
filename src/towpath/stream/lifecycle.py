"""Following subgraphs by what their tasks tell.

A subgraph begins with the first start of a task in its namespace, and ends with
the result of the task it hangs under, or with the run. The last part of a
namespace is `node:id of that task`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, NotRequired

from typing_extensions import TypedDict

from towpath.errors import GraphDrained, GraphInterrupt
from towpath.stream._types import ProtocolEvent, StreamTransformer
from towpath.stream.stream_channel import StreamChannel

SubgraphStatus = Literal["started", "completed", "failed", "interrupted", "drained"]
Scope = tuple[str, ...]
Transition = tuple[Scope, SubgraphStatus, str | None]
"""A namespace, how it ended, and the text of the error if one ended it."""


class LifecycleCause(TypedDict):
    """The tool call that a subgraph runs for."""

    type: Literal["toolCall"]
    tool_call_id: str


class LifecyclePayload(TypedDict, total=False):
    """What became of a subgraph; `trigger_call_id` is the task it hangs under."""

    event: SubgraphStatus
    namespace: list[str]
    graph_name: NotRequired[str]
    trigger_call_id: NotRequired[str]
    cause: NotRequired[LifecycleCause]
    error: NotRequired[str]


class _TasksLifecycleBase(StreamTransformer):
    """Calls `_on_started` and `_on_terminal` for each subgraph that is tracked."""

    required_stream_modes: ClassVar[tuple[str, ...]] = ("tasks",)

    def __init__(self, scope: Scope = ()) -> None:
        super().__init__(scope)
        self._seen: set[Scope] = set()
        self._open: dict[Scope, str] = {}
        self._lc_by_ns: dict[Scope, str | None] = {}
        self._pending_tool_calls: dict[str, str] = {}
        self._pending_cause: LifecycleCause | None = None

    # -- for subclasses -----------------------------------------------------------

    def _on_register(self, mux: Any) -> None:
        """Take note of the mux that this belongs to."""

    def _should_track(self, ns: Scope) -> bool:
        """Whether a namespace is one to follow."""
        depth = len(self.scope)
        return len(ns) > depth and ns[:depth] == self.scope

    def _on_started(
        self, ns: Scope, graph_name: str | None, trigger_call_id: str | None
    ) -> None:
        """A subgraph began."""

    def _on_terminal(
        self, ns: Scope, status: SubgraphStatus, error: str | None
    ) -> None:
        """A subgraph ended."""

    # -- events -------------------------------------------------------------------

    def process(self, event: ProtocolEvent) -> bool:
        if event["method"] != "tasks":
            return True
        ns, task = tuple(event["params"]["namespace"]), event["params"]["data"]
        if "triggers" in task:
            self._handle_task_start(ns, task)
        else:
            self._handle_task_result(ns, task)
        return False

    def finalize(self) -> None:
        for ns in self._take_open():
            self._on_terminal(ns, "completed", None)

    def fail(self, err: BaseException) -> None:
        status, error = _status_from_exception(err)
        for ns in self._take_open():
            self._on_terminal(ns, status, error)

    def _take_open(self) -> list[Scope]:
        """The subgraphs that have not ended, which the caller ends."""
        still = list(self._open)
        self._open.clear()
        return still

    def _handle_task_start(self, ns: Scope, data: dict[str, Any]) -> None:
        self._record_identity(ns, data)
        self._record_pending_tool_calls(data)
        if ns in self._seen or not self._should_track(ns):
            return
        self._seen.add(ns)
        node, trigger = _parse_ns_segment(ns[-1])
        if trigger is not None:
            self._open[ns] = trigger
        agent = self._lc_by_ns.get(ns)
        call = self._pending_tool_calls.get(trigger) if agent and trigger else None
        self._pending_cause = (
            None if call is None else {"type": "toolCall", "tool_call_id": call}
        )
        self._on_started(ns, agent or node, trigger)

    def _handle_task_result(self, ns: Scope, data: dict[str, Any]) -> None:
        for ended, status, error in self._pop_terminal_transitions(ns, data):
            self._on_terminal(ended, status, error)

    def _pop_terminal_transitions(
        self, ns: Scope, data: dict[str, Any]
    ) -> list[Transition]:
        """The subgraphs that end with this task's result; they are open no more."""
        status, error = _terminal_from_result(data)
        ended = [
            below
            for below, task in self._open.items()
            if below[:-1] == ns and task == data["id"]
        ]
        for below in ended:
            del self._open[below]
        return [(below, status, error) for below in ended]

    def _record_identity(self, ns: Scope, data: dict[str, Any]) -> None:
        """Note the agent's name that the metadata of a run may carry."""
        self._lc_by_ns[ns] = (data.get("metadata") or {}).get("lc_agent_name")

    def _record_pending_tool_calls(self, data: dict[str, Any]) -> None:
        """Note the tool call that a task was started for."""
        if (call := tool_call_in(data.get("input"))) is not None:
            self._pending_tool_calls[data["id"]] = call


def tool_call_in(given: Any) -> str | None:
    """The id of the tool call that a task was given, alone or first of a list."""
    if isinstance(given, dict):
        call = given.get("tool_call")
    else:
        call = given[0] if isinstance(given, list) and given else None
    found = call.get("id") if isinstance(call, dict) else None
    return found if isinstance(found, str) else None


def _parse_ns_segment(segment: str) -> tuple[str, str | None]:
    """The node and the task id of one part of a namespace."""
    node, colon, task = segment.partition(":")
    return node, task if colon else None


def _terminal_from_result(data: dict[str, Any]) -> tuple[SubgraphStatus, str | None]:
    if data.get("interrupts"):
        return "interrupted", None
    if data.get("error") is not None:
        return "failed", str(data["error"])
    return "completed", None


def _status_from_exception(err: BaseException) -> tuple[SubgraphStatus, str | None]:
    if isinstance(err, GraphInterrupt):
        return "interrupted", None
    if isinstance(err, GraphDrained):
        return "drained", None
    return "failed", str(err)


class LifecycleTransformer(_TasksLifecycleBase):
    """`lifecycle`: beginnings and ends of all subgraphs, also as events."""

    _native = True

    def init(self) -> dict[str, Any]:
        self._channel: StreamChannel[LifecyclePayload] = StreamChannel("lifecycle")
        return {"lifecycle": self._channel}

    def _should_track(self, ns: Scope) -> bool:
        """Only what hangs under a task of its own, whose result ends it."""
        return super()._should_track(ns) and ":" in ns[-1]

    def _on_started(
        self, ns: Scope, graph_name: str | None, trigger_call_id: str | None
    ) -> None:
        payload: LifecyclePayload = {"event": "started", "namespace": list(ns)}
        if graph_name is not None:
            payload["graph_name"] = graph_name
        if trigger_call_id is not None:
            payload["trigger_call_id"] = trigger_call_id
        if self._pending_cause is not None:
            payload["cause"] = self._pending_cause
        self._channel.push(payload)

    def _on_terminal(
        self, ns: Scope, status: SubgraphStatus, error: str | None
    ) -> None:
        payload: LifecyclePayload = {"event": status, "namespace": list(ns)}
        if error is not None:
            payload["error"] = error
        self._channel.push(payload)
