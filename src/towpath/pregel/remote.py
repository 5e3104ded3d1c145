"""A graph that runs on a server, used like one that runs here.

Everything is asked of a client of `langgraph_sdk` (the extra `remote`), yours
or one made for `url`. In a node of a local graph it is a subgraph: what it
tells is told with the local run, and what it asks stops the local run, whose
answer goes back to it. Each verb makes the arguments of one call and reads
its answer; what both colours share is in `wire`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NoReturn, Self

from towpath.call.scope import TaskContext
from towpath.constants import CONF, NS_SEP
from towpath.context import current
from towpath.errors import GraphInterrupt
from towpath.pregel.batches import BatchVerbs
from towpath.pregel.chain import ChainVerbs
from towpath.pregel.config import merge
from towpath.pregel.diagram import Graph
from towpath.pregel.ports import tracer
from towpath.pregel.protocol import PregelProtocol
from towpath.pregel.remote_events import RemoteEventVerbs
from towpath.pregel.wire import (
    PAGE,
    Chunk,
    Look,
    RemoteException,
    checkpoint_of,
    chunks_of,
    config_of,
    drawing,
    questions_in,
    sent_config,
    sent_input,
    sent_modes,
    snapshot,
    thread_of,
)
from towpath.step.tasks import question_of
from towpath.types import All, Command, GraphOutput, StateSnapshot, StreamMode

__all__ = ("RemoteException", "RemoteGraph")

Config = Mapping[str, Any]
Headers = dict[str, str] | None
Stops = All | Sequence[str] | None
MISSING: Final = (
    "{} client is not initialized: give RemoteGraph a `url`, or a client as `{}`"
)


@dataclass(slots=True)
class Call:
    """One run elsewhere: what the client is asked, and who hears of it."""

    request: dict[str, Any]
    look: Look
    task: TaskContext | None

    def hear(self, came: Any) -> Iterator[Any]:
        """A part of the server's stream, as the caller gets it.

        Raises:
            GraphInterrupt: it asks, and a local run can stop for that.
        """
        for chunk in chunks_of(came):
            if self.task is not None:
                self.pass_on(self.task, chunk)
            yield from self.look.shown(chunk)

    def pass_on(self, task: TaskContext, chunk: Chunk) -> None:
        """Tell the local run around it of a chunk."""
        if (asked := questions_in(chunk)) and not chunk.ns:
            question = GraphInterrupt(asked)
            task.park(question)
            raise question
        if chunk.mode in task.scope.inner_modes:
            ns = (*task.task.ns.split(NS_SEP), *chunk.ns)
            task.scope.emit((ns, chunk.mode, chunk.payload))


class RemoteGraph(
    RemoteEventVerbs,
    BatchVerbs[Any, Any, Any, Any],
    ChainVerbs,
    PregelProtocol[Any, Any, Any, Any],
):
    """A graph on a server, by the id or name of an assistant there.

    `distributed_tracing` sends the trace that runs here along, in headers.

    Raises:
        ImportError: `url` is given, and `langgraph_sdk` is not installed.
    """

    def __init__(
        self,
        assistant_id: str,
        /,
        *,
        url: str | None = None,
        api_key: str | None = None,
        headers: Headers = None,
        client: Any = None,
        sync_client: Any = None,
        config: Config | None = None,
        name: str | None = None,
        distributed_tracing: bool = False,
    ) -> None:
        self.assistant_id = assistant_id
        self.name = name or assistant_id
        self.config = config
        self.distributed_tracing = distributed_tracing
        if url is not None:
            sdk = sdk_of()
            reach = {"url": url, "api_key": api_key, "headers": headers}
            client = client or sdk.get_client(**reach)
            sync_client = sync_client or sdk.get_sync_client(**reach)
        self.client = client
        self.sync_client = sync_client

    def __repr__(self) -> str:
        return f"<RemoteGraph {self.name!r}>"

    def get_name(self, suffix: str | None = None, *, name: str | None = None) -> str:
        """The graph's name, or the one given, with a suffix."""
        base = name or self.name
        return f"{base}{suffix}" if suffix else base

    def copy(self, update: dict[str, Any]) -> Self:
        """One like this with some attributes replaced."""
        twin = object.__new__(type(self))
        twin.__dict__.update({**self.__dict__, **update})
        return twin

    def with_config(self, config: Config | None = None, **kwargs: Any) -> Self:
        """One like this whose runs start from this config."""
        merged = merge(self.config, config, kwargs)
        return self.copy({"config": {**merged, CONF: merged.get(CONF) or {}}})

    # -- running --------------------------------------------------------------

    def stream(
        self,
        input: Any,
        config: Config | None = None,
        *,
        context: Any = None,
        stream_mode: StreamMode | list[StreamMode] | None = None,
        interrupt_before: Stops = None,
        interrupt_after: Stops = None,
        subgraphs: bool = False,
        headers: Headers = None,
        params: Any = None,
        version: Literal["v1", "v2"] = "v1",
        **kwargs: Any,
    ) -> Iterator[Any]:
        """Run there, and yield what happens; as `stream` of a local graph.

        Without a mode it is "updates". Of several modes, a chunk comes as the
        client gives it, with its `event`, `data` and `id`. Further keywords are
        the client's (`durability`, `webhook`, ...).

        Raises:
            RemoteException: the graph failed there.
            GraphInterrupt: it asks something, in a node of a local graph.
            ValueError: there is no client of this colour.
        """
        given = stops(context, interrupt_before, interrupt_after, params, kwargs)
        look = look_of(stream_mode, version, subgraphs=subgraphs)
        call = self.call(input, config, look, headers, given)
        for came in self.blocking.runs.stream(**call.request):
            yield from call.hear(came)

    async def astream(
        self,
        input: Any,
        config: Config | None = None,
        *,
        context: Any = None,
        stream_mode: StreamMode | list[StreamMode] | None = None,
        interrupt_before: Stops = None,
        interrupt_after: Stops = None,
        subgraphs: bool = False,
        headers: Headers = None,
        params: Any = None,
        version: Literal["v1", "v2"] = "v1",
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        """Async twin of `stream`."""
        given = stops(context, interrupt_before, interrupt_after, params, kwargs)
        look = look_of(stream_mode, version, subgraphs=subgraphs)
        call = self.call(input, config, look, headers, given)
        async for came in self.looping.runs.stream(**call.request):
            for told in call.hear(came):
                yield told

    def invoke(
        self,
        input: Any,
        config: Config | None = None,
        *,
        version: Literal["v1", "v2"] = "v1",
        **kwargs: Any,
    ) -> Any:
        """Run there to the end and return the last state; None if there is none.

        The keywords are those of `stream`, except the mode.

        Raises:
            As `stream`.
        """
        last = None
        for state in self.stream(
            input, config, stream_mode="values", version=version, **kwargs
        ):
            last = state
        return result(last, version)

    async def ainvoke(
        self,
        input: Any,
        config: Config | None = None,
        *,
        version: Literal["v1", "v2"] = "v1",
        **kwargs: Any,
    ) -> Any:
        """Async twin of `invoke`."""
        last = None
        async for state in self.astream(
            input, config, stream_mode="values", version=version, **kwargs
        ):
            last = state
        return result(last, version)

    def call(
        self,
        input: Any,
        config: Config | None,
        look: Look,
        headers: Headers,
        given: dict[str, Any],
    ) -> Call:
        """What a run is asked for with, and who listens to it."""
        task = current.get()
        task = task if isinstance(task, TaskContext) else None
        heard = () if task is None else sorted(task.scope.inner_modes & TOLD)
        merged = merge(self.config, config)
        own = OURS if task is not None else frozenset()
        answers = {} if task is None else answers_of(task)
        sent, command = sent_input(Command(resume=answers) if answers else input)
        request = {
            "thread_id": (merged.get(CONF) or {}).get("thread_id"),
            "assistant_id": self.assistant_id,
            "input": sent,
            "command": command,
            "config": sent_config(merged, own),
            "stream_mode": sent_modes(look.modes, heard),
            "stream_subgraphs": look.subgraphs or bool(heard),
            "if_not_exists": "create",
            "headers": self.traced(headers),
            **given,
        }
        return Call(request, look, task)

    # -- states -----------------------------------------------------------------

    def get_state(
        self,
        config: Config,
        *,
        subgraphs: bool = False,
        headers: Headers = None,
        params: Any = None,
    ) -> StateSnapshot:
        """The state of a thread there.

        Raises:
            KeyError: the config names no thread.
        """
        given = self.placed(config, headers, params)
        threads = self.blocking.threads
        return snapshot(threads.get_state(subgraphs=subgraphs, **given))

    async def aget_state(
        self,
        config: Config,
        *,
        subgraphs: bool = False,
        headers: Headers = None,
        params: Any = None,
    ) -> StateSnapshot:
        """Async twin of `get_state`."""
        given = self.placed(config, headers, params)
        threads = self.looping.threads
        return snapshot(await threads.get_state(subgraphs=subgraphs, **given))

    def get_state_history(
        self,
        config: Config,
        *,
        filter: dict[str, Any] | None = None,
        before: Config | None = None,
        limit: int | None = None,
        headers: Headers = None,
        params: Any = None,
    ) -> Iterator[StateSnapshot]:
        """The states of a thread there, newest first; ten, unless `limit` says."""
        given = self.placed(config, headers, params, history(filter, before, limit))
        yield from map(snapshot, self.blocking.threads.get_history(**given))

    async def aget_state_history(
        self,
        config: Config,
        *,
        filter: dict[str, Any] | None = None,
        before: Config | None = None,
        limit: int | None = None,
        headers: Headers = None,
        params: Any = None,
    ) -> AsyncIterator[StateSnapshot]:
        """Async twin of `get_state_history`."""
        given = self.placed(config, headers, params, history(filter, before, limit))
        for told in await self.looping.threads.get_history(**given):
            yield snapshot(told)

    def update_state(
        self,
        config: Config,
        values: Any,
        as_node: str | None = None,
        *,
        headers: Headers = None,
        params: Any = None,
    ) -> Config:
        """Change the state of a thread there.

        Raises:
            KeyError: the config names no thread.
        """
        change = {"values": values, "as_node": as_node}
        given = self.placed(config, headers, params, change)
        return config_of(self.blocking.threads.update_state(**given)["checkpoint"])

    async def aupdate_state(
        self,
        config: Config,
        values: Any,
        as_node: str | None = None,
        *,
        headers: Headers = None,
        params: Any = None,
    ) -> Config:
        """Async twin of `update_state`."""
        change = {"values": values, "as_node": as_node}
        given = self.placed(config, headers, params, change)
        changed = await self.looping.threads.update_state(**given)
        return config_of(changed["checkpoint"])

    def bulk_update_state(self, config: Config, updates: Any) -> NoReturn:
        """Servers have no such call.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("a graph elsewhere is changed by update_state only")

    async def abulk_update_state(self, config: Config, updates: Any) -> NoReturn:
        """Async twin of `bulk_update_state`."""
        self.bulk_update_state(config, updates)

    def placed(
        self,
        config: Config,
        headers: Headers,
        params: Any,
        more: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """What a call about a thread is made with."""
        merged = merge(self.config, config)
        return {
            "thread_id": thread_of(merged),
            "checkpoint": checkpoint_of(merged),
            "headers": self.traced(headers),
            "params": params,
            **(more or {}),
        }

    # -- the graph ----------------------------------------------------------------

    def get_graph(
        self,
        config: Config | None = None,
        *,
        xray: int | bool = False,
        headers: Headers = None,
        params: Any = None,
    ) -> Graph:
        """The graph as nodes and edges."""
        del config
        given = self.drawn(xray, headers, params)
        return drawing(self.blocking.assistants.get_graph(**given))

    async def aget_graph(
        self,
        config: Config | None = None,
        *,
        xray: int | bool = False,
        headers: Headers = None,
        params: Any = None,
    ) -> Graph:
        """Async twin of `get_graph`."""
        del config
        given = self.drawn(xray, headers, params)
        return drawing(await self.looping.assistants.get_graph(**given))

    def drawn(self, xray: int | bool, headers: Headers, params: Any) -> dict[str, Any]:
        """What a call for a drawing is made with."""
        return {
            "assistant_id": self.assistant_id,
            "xray": xray,
            "headers": self.traced(headers),
            "params": params,
        }

    # -- clients --------------------------------------------------------------------

    @property
    def blocking(self) -> Any:
        """The client of blocking calls."""
        if self.sync_client is None:
            raise ValueError(MISSING.format("Sync", "sync_client"))
        return self.sync_client

    @property
    def looping(self) -> Any:
        """The client of calls that are awaited."""
        if self.client is None:
            raise ValueError(MISSING.format("Async", "client"))
        return self.client

    def traced(self, headers: Headers) -> Headers:
        """Headers with the trace that runs here, where it is to go on there."""
        adapter = tracer() if self.distributed_tracing else None
        traces = {} if adapter is None else adapter.trace_headers()
        if not traces:
            return headers
        baggage = [(headers or {}).get("baggage"), traces.pop("baggage", None)]
        if joined := ",".join(each for each in baggage if each):
            traces["baggage"] = joined
        return {**(headers or {}), **traces}


OURS: Final = frozenset({"__pregel_task_id", "__pregel_durability"})
"""Keys of a task's config that mean nothing elsewhere."""
TOLD: Final = frozenset({"values", "updates", "custom", "messages", "tasks", "debug"})
"""Modes in which a graph elsewhere tells the local run what it does."""


def sdk_of() -> Any:
    """The client library.

    Raises:
        ImportError: it is not installed.
    """
    try:
        import langgraph_sdk
    except ImportError as error:
        raise ImportError(
            "RemoteGraph(url=...) needs langgraph-sdk: pip install 'towpath[remote]', "
            "or give it clients of your own as `client` and `sync_client`"
        ) from error
    return langgraph_sdk


def look_of(
    mode: StreamMode | list[StreamMode] | None, version: str, *, subgraphs: bool
) -> Look:
    """What a caller of `stream` wants to see."""
    single = mode is None or isinstance(mode, str)
    asked = (mode or "updates",) if single else tuple(mode or ())
    names = tuple("messages" if m == "messages-tuple" else str(m) for m in asked)
    return Look(names, single, subgraphs, version == "v2")


def stops(
    context: Any, before: Stops, after: Stops, params: Any, more: dict[str, Any]
) -> dict[str, Any]:
    """The keywords of a run that go to the server as they are."""
    return {
        "context": context,
        "interrupt_before": before,
        "interrupt_after": after,
        "params": params,
        **more,
    }


def history(
    filter: dict[str, Any] | None, before: Config | None, limit: int | None
) -> dict[str, Any]:
    """The keywords of a history."""
    return {
        "limit": PAGE if limit is None else limit,
        "before": None if before is None else checkpoint_of(before),
        "metadata": filter,
    }


def result(last: Any, version: str) -> Any:
    """The output of a run, of its last state."""
    if version == "v1" or last is None:
        return last
    return GraphOutput(last["data"], last["interrupts"])


def answers_of(task: TaskContext) -> dict[str, Any]:
    """Answers that the local run was given to what was asked elsewhere."""
    answers, local = task.scope.req.answers, task.task
    if not local.parked:
        return {}
    own = {question_of(local, index) for index in range(len(local.answers) + 1)}
    asked = {question.id for question in local.parked} - own
    return {each: answers[each] for each in asked if each in answers}
