"""The projections that are built in: one of each stream mode, and of subgraphs.

Each shows what happens in its own namespace.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any, ClassVar, Final

from towpath.stream._types import ProtocolEvent, StreamTransformer
from towpath.stream.lifecycle import (
    LifecycleCause,
    LifecyclePayload,
    LifecycleTransformer,
    Scope,
    SubgraphStatus,
    _status_from_exception,
    _TasksLifecycleBase,
)
from towpath.stream.run_stream import AsyncSubgraphRunStream, SubgraphRunStream
from towpath.stream.stream_channel import StreamChannel

__all__ = [
    "CheckpointsTransformer",
    "CustomTransformer",
    "DebugTransformer",
    "LifecycleCause",
    "LifecyclePayload",
    "LifecycleTransformer",
    "MessagesTransformer",
    "SubgraphStatus",
    "SubgraphTransformer",
    "TasksTransformer",
    "UpdatesTransformer",
    "ValuesTransformer",
    "_TasksLifecycleBase",
]


CHAT: Final = "towpath.integrations.chat"


@cache
def chat() -> Any:
    """What makes streams of messages: a message is langchain's, and so are they."""
    return import_module(CHAT)


class ModeTransformer(StreamTransformer):
    """The chunks of one stream mode, as they are."""

    _native = True

    def __init__(self, scope: Scope = ()) -> None:
        super().__init__(scope)
        self._scope_list = list(scope)
        self._log: StreamChannel[Any] = StreamChannel()

    @property
    def mode(self) -> str:
        return self.required_stream_modes[0]

    def init(self) -> dict[str, Any]:
        return {self.mode: self._log}

    def process(self, event: ProtocolEvent) -> bool:
        params = event["params"]
        if event["method"] == self.mode and params["namespace"] == self._scope_list:
            self._take(params["data"])
        return True

    def _take(self, data: Any) -> None:
        self._log.push(data)


class ValuesTransformer(ModeTransformer):
    """`values`: the whole state after each step."""

    required_stream_modes: ClassVar[tuple[str, ...]] = ("values",)

    @property
    def error(self) -> BaseException | None:
        """What the run failed with, if it did."""
        return self._log._error


class CustomTransformer(ModeTransformer):
    """`custom`: what nodes send with a stream writer."""

    required_stream_modes: ClassVar[tuple[str, ...]] = ("custom",)


class UpdatesTransformer(ModeTransformer):
    """`updates`: what each node wrote."""

    required_stream_modes: ClassVar[tuple[str, ...]] = ("updates",)


class CheckpointsTransformer(ModeTransformer):
    """`checkpoints`: each checkpoint, as `get_state` would show it."""

    required_stream_modes: ClassVar[tuple[str, ...]] = ("checkpoints",)


class DebugTransformer(ModeTransformer):
    """`debug`: checkpoints and tasks, with step and time."""

    required_stream_modes: ClassVar[tuple[str, ...]] = ("debug",)


class TasksTransformer(ModeTransformer):
    """`tasks`: start and result of each task."""

    required_stream_modes: ClassVar[tuple[str, ...]] = ("tasks",)


class MessagesTransformer(ModeTransformer):
    """`messages`: a stream per message, whose text can be read as it comes.

    A message that a node returned whole comes as a stream that is complete.
    """

    required_stream_modes: ClassVar[tuple[str, ...]] = ("messages",)

    def __init__(self, scope: Scope = ()) -> None:
        super().__init__(scope)
        self._by_run: dict[Any, Any] = {}
        self._pump_fn: Any = None
        self._apump_fn: Any = None

    def _bind_pump(self, fn: Any) -> None:
        self._pump_fn = fn

    def _bind_apump(self, fn: Any) -> None:
        self._apump_fn = fn

    def _take(self, data: Any) -> None:
        what, metadata = data
        if isinstance(what, dict):
            self._continue(what, metadata)
        elif (events := chat().events_of_whole(what)) is not None:
            whole = self._new_stream(metadata, what.id)
            for event in events:
                whole.dispatch(event)
            self._log.push(whole)

    def _continue(self, event: dict[str, Any], metadata: dict[str, Any]) -> None:
        """An event of a model that runs; what began unseen is passed over."""
        run_id = metadata.get("run_id")
        if event["event"] == "message-start":
            self._by_run[run_id] = begun = self._new_stream(metadata, event.get("id"))
            begun.dispatch(event)
            self._log.push(begun)
        elif (stream := self._by_run.get(run_id)) is not None:
            stream.dispatch(event)
            if event["event"] == "message-finish":
                del self._by_run[run_id]

    def _new_stream(self, metadata: dict[str, Any], message_id: str | None) -> Any:
        stream = chat().message_stream(
            is_async=self._pump_fn is None,
            namespace=self._scope_list,
            node=metadata.get("langgraph_node"),
            message_id=message_id,
        )
        if self._pump_fn is not None:
            stream.set_request_more(self._pump_fn)
        elif self._apump_fn is not None:
            stream.set_arequest_more(self._apump_fn)
        return stream

    def finalize(self) -> None:
        self.fail(RuntimeError("the run ended before the message was complete"))

    def fail(self, err: BaseException) -> None:
        for stream in self._by_run.values():
            stream.fail(err)
        self._by_run.clear()


class SubgraphTransformer(_TasksLifecycleBase):
    """`subgraphs`: a stream per subgraph right below, like that of the run."""

    _native = True
    supports_sync: ClassVar[bool] = True

    def __init__(self, scope: Scope = ()) -> None:
        super().__init__(scope)
        self._log: StreamChannel[Any] = StreamChannel()
        self._handles: dict[Scope, Any] = {}
        self._mux: Any = None

    def init(self) -> dict[str, Any]:
        return {"subgraphs": self._log}

    def _on_register(self, mux: Any) -> None:
        self._mux = mux

    def _should_track(self, ns: Scope) -> bool:
        return ns[:-1] == self.scope and len(ns) == len(self.scope) + 1

    def process(self, event: ProtocolEvent) -> bool:
        kept = super().process(event)
        if (handle := self._handle_for_event(event)) is not None:
            handle._observe_event(event)
            handle._mux.push(event)
        return kept

    async def aprocess(self, event: ProtocolEvent) -> bool:
        params, kept = event["params"], event["method"] != "tasks"
        if kept or "triggers" in params["data"]:
            super().process(event)
        else:
            ns = tuple(params["namespace"])
            for ended in self._pop_terminal_transitions(ns, params["data"]):
                await self._aon_terminal(*ended)
        if (handle := self._handle_for_event(event)) is not None:
            handle._observe_event(event)
            await handle._mux.apush(event)
        return kept

    async def afinalize(self) -> None:
        for ns in self._take_open():
            await self._aon_terminal(ns, "completed", None)

    async def afail(self, err: BaseException) -> None:
        status, error = _status_from_exception(err)
        for ns in self._take_open():
            await self._aon_terminal(ns, status, error)

    def _on_started(
        self, ns: Scope, graph_name: str | None, trigger_call_id: str | None
    ) -> None:
        kind = AsyncSubgraphRunStream if self._mux.is_async else SubgraphRunStream
        handle = self._handles[ns] = kind(
            self._mux._make_child(ns),
            path=ns,
            graph_name=graph_name,
            trigger_call_id=trigger_call_id,
        )
        self._log.push(handle)

    def _on_terminal(
        self, ns: Scope, status: SubgraphStatus, error: str | None
    ) -> None:
        if (handle := self._handles.pop(ns, None)) is not None:
            handle._mark_terminal(status, error)
            if status == "failed":
                handle._mux.fail(RuntimeError(error))
            else:
                handle._mux.close()

    async def _aon_terminal(
        self, ns: Scope, status: SubgraphStatus, error: str | None
    ) -> None:
        if (handle := self._handles.pop(ns, None)) is not None:
            handle._mark_terminal(status, error)
            if status == "failed":
                await handle._mux.afail(RuntimeError(error))
            else:
                await handle._mux.aclose()

    def _handle_for_event(self, event: ProtocolEvent) -> Any:
        """The stream of the subgraph that an event is from, or from below."""
        ns = event["params"]["namespace"]
        depth = len(self.scope) + 1
        handle = self._handles.get(tuple(ns[:depth])) if len(ns) >= depth else None
        # One that its reader has closed takes no more.
        return None if handle is None or handle._exhausted else handle
