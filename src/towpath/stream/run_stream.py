"""What `stream_events(version="v3")` returns: one run, read in several ways.

Nothing runs until something is read. Whoever has nothing left to read makes the
run go on until there is something for it; what that brings for others waits
for them. The last values, and what was asked, are kept for `output` and
`interrupts` whether anybody reads the channels or not.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from types import MappingProxyType, TracebackType
from typing import Any, Self

from towpath.stream._convert import convert_to_protocol_event
from towpath.stream._mux import StreamMux
from towpath.stream._types import ProtocolEvent
from towpath.stream.lifecycle import LifecyclePayload, SubgraphStatus
from towpath.stream.stream_channel import StreamChannel


class RunView:
    """What both colours of a run's stream share.

    The projections that are built in are attributes, all are in `extensions`.
    """

    values: StreamChannel[dict[str, Any]]
    updates: StreamChannel[dict[str, Any]]
    custom: StreamChannel[Any]
    messages: StreamChannel[Any]
    tasks: StreamChannel[dict[str, Any]]
    checkpoints: StreamChannel[dict[str, Any]]
    debug: StreamChannel[dict[str, Any]]
    lifecycle: StreamChannel[LifecyclePayload]
    subgraphs: StreamChannel[Any]
    extensions: MappingProxyType[str, Any]

    def __init__(self, mux: StreamMux) -> None:
        self._mux = mux
        self.extensions = MappingProxyType(mux.extensions)
        self._exhausted = False
        self._latest: Any = None
        self._interrupted = False
        self._interrupts: list[Any] = []
        self._scope_list = list(mux.scope)
        for key in mux.native_keys:
            setattr(self, key, mux.extensions[key])

    def __getattr__(self, name: str) -> StreamChannel[Any]:
        if name == "_mux":  # half made: there is nothing to tell yet
            raise AttributeError(name)
        failure = self._mux._events._error
        if isinstance(failure, AttributeError) and hasattr(type(self), name):
            raise failure  # the run's own, which a property passed on
        known = ", ".join(sorted(self._mux.native_keys))
        raise AttributeError(
            f"{type(self).__name__!r} object has no attribute {name!r} "
            f"(registered projections: {known})"
        )

    def _observe_event(self, event: ProtocolEvent) -> None:
        """Keep what `output` and `interrupts` tell."""
        params = event["params"]
        if event["method"] != "values" or params["namespace"] != self._scope_list:
            return
        self._latest = params["data"]
        if asked := params.get("interrupts"):
            self._interrupted = True
            self._interrupts.extend(asked)

    def _over(self) -> bool:
        """Whether nothing comes any more."""
        return self._exhausted

    def _result(self) -> Any:
        """The last values.

        Raises:
            BaseException: what the run failed with.
        """
        if (error := self._mux._events._error) is not None:
            raise error
        return self._latest


class GraphRunStream(RunView):
    """A run, read from a blocking program; closing it stops the run.

    Iterating yields every event. `with` closes it at the end of the block.
    """

    def __init__(
        self,
        graph_iter: Iterator[Any] | None,
        mux: StreamMux,
        *,
        wire_pump: bool = True,
    ) -> None:
        super().__init__(mux)
        self._graph_iter = graph_iter
        if wire_pump:
            self._wire_request_more(mux)

    def __iter__(self) -> Iterator[ProtocolEvent]:
        return iter(self._mux._events)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.abort()

    @property
    def output(self) -> Any:
        """Run to the end and return the last values.

        Raises:
            Exception: what the run failed with.
        """
        self._drain()
        return self._result()

    @property
    def interrupted(self) -> bool:
        """Whether the run, brought to its end, stopped on a question."""
        return self._drained()._interrupted

    @property
    def interrupts(self) -> list[Any]:
        """What the run, brought to its end, asked."""
        return self._drained()._interrupts

    def _drained(self) -> Self:
        self._drain()
        self._result()
        return self

    def interleave(self, *names: str) -> Iterator[tuple[str, Any]]:
        """Items of several projections with their names, in order of arrival.

        Raises:
            UnknownProjectionError: there is none of that name (TP-613).
            TypeError: it is no `StreamChannel`.
            RuntimeError: somebody reads it already.
        """
        lines = {}
        for name in names:
            channel = self.extensions[name]
            if not isinstance(channel, StreamChannel):
                raise TypeError(
                    "interleave() requires StreamChannel projections, got "
                    f"{type(channel).__name__} for {name!r}"
                )
            if channel._subscribed:
                raise RuntimeError(
                    f"StreamChannel {name!r} already has a subscriber; "
                    "use .tee(n) for fan-out."
                )
            lines[name] = channel._subscribe(1)[0]
        while True:
            while any(lines.values()):
                first = min((q[0][0], name) for name, q in lines.items() if q)[1]
                yield first, lines[first].popleft()[1]
            if self._over() or not (self._pump_next() or any(lines.values())):
                break
        if lines:
            self._result()

    def abort(self) -> None:
        """Stop the run; what was read so far stays, and `output` is the last of it."""
        if self._exhausted:
            return
        self._exhausted = True
        try:
            self._stop()
        finally:
            self._mux.close()

    def _drain(self) -> None:
        while not self._over() and self._pump_next():
            pass

    def _pump_next(self) -> bool:
        """Let the run go on by one event; False when there is none."""
        if self._exhausted or self._graph_iter is None:
            return False
        try:
            part = next(self._graph_iter, None)
            if part is not None:
                event = convert_to_protocol_event(part)
                self._observe_event(event)
                self._mux.push(event)
                return True
            self._exhausted = True
            self._mux.close()
        except BaseException as error:
            self._exhausted = True
            self._stop()
            self._mux.fail(error)
            if not isinstance(error, Exception):
                raise
        return False

    def _stop(self) -> None:
        close = getattr(self._graph_iter, "close", None)
        if close is not None:
            close()

    def _wire_request_more(self, mux: StreamMux) -> None:
        mux.bind_pump(self._pump_next)


class AsyncGraphRunStream(RunView):
    """A run, read in an event loop; closing it stops the run.

    Several tasks may read it at once. When the last task that waits for the run
    is cancelled, the run is.
    """

    def __init__(
        self,
        graph_aiter: AsyncIterator[Any] | None,
        mux: StreamMux,
        *,
        wire_pump: bool = True,
    ) -> None:
        super().__init__(mux)
        self._graph_aiter = graph_aiter
        self._step: asyncio.Task[bool] | None = None
        self._waiting = 0
        if wire_pump:
            self._wire_arequest_more(mux)

    def __aiter__(self) -> AsyncIterator[ProtocolEvent]:
        return aiter(self._mux._events)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        await self.abort()

    async def output(self) -> Any:
        """Run to the end and return the last values.

        Raises:
            Exception: what the run failed with.
        """
        await self._adrain()
        return self._result()

    async def interrupted(self) -> bool:
        """Whether the run, brought to its end, stopped on a question."""
        await self.output()
        return self._interrupted

    async def interrupts(self) -> list[Any]:
        """What the run, brought to its end, asked."""
        await self.output()
        return self._interrupts

    async def abort(self) -> None:
        """Stop the run, runs inside it first; `output` is the last it brought."""
        if self._exhausted:
            return
        self._exhausted = True
        try:
            await self._stop()
        finally:
            await self._mux.aclose()

    async def _stop(self) -> None:
        """End the run, in the middle of a step or between two."""
        if self._step is not None and not self._step.done():
            self._step.cancel()
            await asyncio.wait({self._step})
        await self._release()

    async def _release(self) -> None:
        close = getattr(self._graph_aiter, "aclose", None)
        if close is not None:
            await close()

    async def _adrain(self) -> None:
        while not self._over() and await self._apump_next():
            pass

    async def _apump_next(self) -> bool:
        """Let the run go on by one event, for all who wait; False at the end."""
        if self._exhausted or self._graph_aiter is None:
            return False
        step = self._step
        if step is None or step.done():
            step = self._step = asyncio.create_task(self._advance())
        self._waiting += 1
        try:
            return await asyncio.shield(step)
        except asyncio.CancelledError:
            if step.cancelled() and self._over():
                return False  # somebody else closed the stream
            if self._waiting == 1:
                await self._stop()
            raise
        finally:
            self._waiting -= 1

    async def _advance(self) -> bool:
        assert self._graph_aiter is not None
        try:
            part = await anext(self._graph_aiter, None)
            if part is not None:
                event = convert_to_protocol_event(part)
                self._observe_event(event)
                await self._mux.apush(event)
                return True
            self._exhausted = True
            await self._mux.aclose()
        except Exception as error:
            self._exhausted = True
            await self._release()
            await self._mux.afail(error)
        return False

    def _wire_arequest_more(self, mux: StreamMux) -> None:
        mux.bind_apump(self._apump_next)


class _SubgraphRunStreamMixin:
    """What is known of a subgraph beside its events."""

    path: tuple[str, ...]
    graph_name: str | None
    trigger_call_id: str | None
    status: SubgraphStatus
    error: str | None
    _seen_terminal: bool
    _exhausted: bool

    def _identify(
        self, path: tuple[str, ...], graph_name: str | None, trigger: str | None
    ) -> None:
        self.path = path
        self.graph_name = graph_name
        self.trigger_call_id = trigger
        self.status = "started"
        self.error = None
        self._seen_terminal = False

    def _mark_terminal(self, status: SubgraphStatus, error: str | None) -> None:
        self.status, self.error, self._seen_terminal = status, error, True

    def _over(self) -> bool:
        return self._seen_terminal or self._exhausted

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {'|'.join(self.path)}: {self.status}>"


class SubgraphRunStream(_SubgraphRunStreamMixin, GraphRunStream):
    """A subgraph of a run that is read; it goes on with the run around it."""

    def __init__(
        self,
        mux: StreamMux,
        *,
        path: tuple[str, ...],
        graph_name: str | None = None,
        trigger_call_id: str | None = None,
    ) -> None:
        GraphRunStream.__init__(self, None, mux, wire_pump=False)
        self._identify(path, graph_name, trigger_call_id)

    def _pump_next(self) -> bool:
        more = self._mux._pump_fn
        return more is not None and more()

    def abort(self) -> None:
        """Read no more of the subgraph, which goes on as long as its run does."""
        super().abort()


class AsyncSubgraphRunStream(_SubgraphRunStreamMixin, AsyncGraphRunStream):
    """Async twin of `SubgraphRunStream`."""

    def __init__(
        self,
        mux: StreamMux,
        *,
        path: tuple[str, ...],
        graph_name: str | None = None,
        trigger_call_id: str | None = None,
    ) -> None:
        AsyncGraphRunStream.__init__(self, None, mux, wire_pump=False)
        self._identify(path, graph_name, trigger_call_id)

    async def _apump_next(self) -> bool:
        more = self._mux._apump_fn
        return more is not None and await more()

    async def abort(self) -> None:
        """Read no more of the subgraph, which goes on as long as its run does."""
        await super().abort()
