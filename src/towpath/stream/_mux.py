"""One source of events, and everything that is made of them.

The mux does no I/O: it is handed events and gives each to its transformers in
order, whose channels and the list of events itself then have something to be
read. Who reads makes the run go on, through the pump that a run's stream binds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from towpath.errors import TowpathError, nearest
from towpath.stream._convert import now_ms
from towpath.stream._types import (
    ProtocolEvent,
    StreamTransformer,
    transformer_requires_async,
)
from towpath.stream.stream_channel import StreamChannel

TransformerFactory = Callable[[tuple[str, ...]], StreamTransformer]


class UnknownProjectionError(TowpathError, KeyError):
    """A projection was asked for that no transformer of the run has."""

    code = "TP-613"


class Projections(dict[str, Any]):
    """The projections of a run, by name."""

    def __missing__(self, name: object) -> Any:
        raise UnknownProjectionError(
            f"this run has no projection {name!r}; it has {', '.join(sorted(self))}",
            hint=nearest(name, self),
        )


class StreamMux:
    """Gives events to transformers and keeps their projections.

    `factories` make transformers for this scope and for those of subgraphs;
    `transformers` that were made already serve this scope only.

    Raises:
        TypeError: the `init()` of a transformer returned no dict.
        ValueError: two transformers have a projection of one name.
        RuntimeError: a transformer of async runs in a blocking one.
    """

    def __init__(
        self,
        transformers: list[StreamTransformer] | None = None,
        *,
        is_async: bool = False,
        factories: list[TransformerFactory] | None = None,
        scope: tuple[str, ...] = (),
        _assign_seq: bool = True,
    ) -> None:
        self.is_async = is_async
        self.scope = scope
        self.extensions: dict[str, Any] = Projections()
        self.native_keys: set[str] = set()
        self._assign_seq = _assign_seq
        self._factories = factories
        self._owners: dict[str, StreamTransformer] = {}
        self._channels: list[StreamChannel[Any]] = []
        self._seq = 0
        self._push_seq = 0
        self._pump_fn: Callable[[], bool] | None = None
        self._apump_fn: Callable[[], Awaitable[bool]] | None = None
        self._events: StreamChannel[ProtocolEvent] = StreamChannel()
        self._adopt(self._events)
        made = [*(make(scope) for make in factories or ()), *(transformers or ())]
        self._transformers = sorted(made, key=lambda each: not each.before_builtins)
        for transformer in made:
            self._register(transformer)

    def transformer_by_key(self, key: str) -> StreamTransformer | None:
        """The transformer that a projection is from."""
        return self._owners.get(key)

    # -- events -------------------------------------------------------------------

    def push(self, event: ProtocolEvent) -> None:
        """Show an event to every transformer; keep it unless one says no."""
        answers = [each.process(event) for each in self._transformers]
        if all(answers):
            self._keep(event)

    async def apush(self, event: ProtocolEvent) -> None:
        """Async twin of `push`."""
        answers = [await each.aprocess(event) for each in self._transformers]
        if all(answers):
            self._keep(event)

    def close(self) -> None:
        """The run came to its end.

        Raises:
            Exception: the first one that a transformer's `finalize` raised.
        """
        errors: list[BaseException] = []
        for each in self._open():
            attempt(each.finalize, errors)
        self._end(errors)

    async def aclose(self) -> None:
        """Async twin of `close`; waits for what transformers scheduled."""
        errors: list[BaseException] = []
        transformers = self._open()
        await settled(transformers, errors, wanted=True)
        for each in transformers:
            await aattempt(each.afinalize, errors)
        await settled(transformers, errors, wanted=True)
        self._end(errors)

    def fail(self, err: BaseException) -> None:
        """The run ended with an error, which every reader gets.

        What a transformer raises about it becomes a note of the error.
        """
        errors: list[BaseException] = []
        for each in self._open():
            attempt(partial(each.fail, err), errors)
        self._end_with(err, errors)

    async def afail(self, err: BaseException) -> None:
        """Async twin of `fail`; cancels what transformers scheduled."""
        errors: list[BaseException] = []
        transformers = self._open()
        await settled(transformers, errors, wanted=False)
        for each in transformers:
            await aattempt(partial(each.afail, err), errors)
        self._end_with(err, errors)

    def _open(self) -> Sequence[StreamTransformer]:
        """The transformers that have not been told of an end."""
        return () if self._events._closed else self._transformers

    def _end(self, errors: list[BaseException]) -> None:
        if errors:
            self._end_with(errors[0], errors[1:])
            raise errors[0]
        for channel in self._channels:
            channel.close()

    def _end_with(self, err: BaseException, others: list[BaseException]) -> None:
        for other in others:
            err.add_note(f"a stream transformer then raised {other!r}")
        for channel in self._channels:
            channel.fail(err)

    def _keep(self, event: ProtocolEvent) -> None:
        if self._assign_seq:
            self._seq += 1
            event["seq"] = self._seq
        self._events.push(event)

    def _forward(self, method: str, item: Any) -> None:
        """Make an item of a named channel an event."""
        self._keep(
            {
                "type": "event",
                "method": method,
                "params": {"namespace": [], "timestamp": now_ms(), "data": item},
            }
        )

    # -- transformers -------------------------------------------------------------

    def _register(self, transformer: StreamTransformer) -> None:
        kind = type(transformer).__name__
        if not self.is_async and transformer_requires_async(transformer):
            raise RuntimeError(
                f"{kind} requires an async run: it overrides aprocess, afinalize or "
                "afail, or sets requires_async. Use astream_events()."
            )
        projections = transformer.init()
        if not isinstance(projections, dict):
            raise TypeError(
                "StreamTransformer.init() must return a dict, got "
                f"{type(projections).__name__}"
            )
        for key in projections:
            if key in self._owners:
                owner = type(self._owners[key]).__name__
                raise ValueError(
                    f"Transformer {kind} returned projection keys that conflict with "
                    f"already-registered keys: {key!r} (owned by {owner})"
                )
        native = transformer._native
        self._bind_and_wire(projections, native=native)
        self._owners.update(dict.fromkeys(projections, transformer))
        self.extensions.update(projections)
        self.native_keys.update(projections if native else ())
        if (hook := getattr(transformer, "_on_register", None)) is not None:
            hook(self)

    def _bind_and_wire(
        self, projection: dict[str, Any], *, native: bool = False
    ) -> None:
        for channel in projection.values():
            if isinstance(channel, StreamChannel):
                self._adopt(channel)
                if (name := channel.name) is not None:
                    method = name if native else f"custom:{name}"
                    channel._wire(partial(self._forward, method))

    def _adopt(self, channel: StreamChannel[Any]) -> None:
        channel._bind(is_async=self.is_async)
        channel._stamp = self._next_push_seq
        self._channels.append(channel)

    def _next_push_seq(self) -> int:
        self._push_seq += 1
        return self._push_seq

    def _make_child(self, scope: tuple[str, ...]) -> StreamMux:
        """A mux for a subgraph: the same transformers, and the same pump.

        Raises:
            RuntimeError: transformers were given as instances.
        """
        if self._factories is None:
            raise RuntimeError(
                "a StreamMux for a subgraph needs `factories`; transformers that "
                "were made already serve one scope"
            )
        child = StreamMux(
            factories=self._factories,
            is_async=self.is_async,
            scope=scope,
            _assign_seq=False,
        )
        if self._pump_fn is not None:
            child.bind_pump(self._pump_fn)
        if self._apump_fn is not None:
            child.bind_apump(self._apump_fn)
        return child

    # -- the pump -------------------------------------------------------------------

    def bind_pump(self, fn: Callable[[], bool]) -> None:
        """Let readers make the run go on: `fn` brings events, or False at the end."""
        self._pump_fn = fn
        for channel in self._channels:
            channel._request_more = fn
        self._tell("_bind_pump", fn)

    def bind_apump(self, fn: Callable[[], Awaitable[bool]]) -> None:
        """Async twin of `bind_pump`."""
        self._apump_fn = fn
        for channel in self._channels:
            channel._arequest_more = fn
        self._tell("_bind_apump", fn)

    def _tell(self, hook: str, fn: Any) -> None:
        """Hand the pump to transformers that bind streams of their own to it."""
        for transformer in self._transformers:
            if (bind := getattr(transformer, hook, None)) is not None:
                bind(fn)


def attempt(call: Callable[[], Any], errors: list[BaseException]) -> None:
    """Call one of several that are called whatever happens to the others."""
    try:
        call()
    except Exception as error:
        errors.append(error)


async def aattempt(
    call: Callable[[], Awaitable[Any]], errors: list[BaseException]
) -> None:
    """Async twin of `attempt`."""
    try:
        await call()
    except Exception as error:
        errors.append(error)


async def settled(
    transformers: Sequence[StreamTransformer],
    errors: list[BaseException],
    *,
    wanted: bool,
) -> None:
    """Wait for the scheduled work of transformers, which may schedule more."""
    while tasks := [task for each in transformers for task in each.scheduled()]:
        if not wanted:
            for task in tasks:
                task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        if wanted:
            errors.extend(each for each in outcomes if isinstance(each, Exception))
