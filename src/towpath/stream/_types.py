"""What travels through an event stream, and what looks at it on the way."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from typing import Any, ClassVar, Final, Literal, NotRequired

from typing_extensions import TypedDict

LOGGER: Final = logging.getLogger("towpath.stream")
AWAITED: Final = ("aprocess", "afinalize", "afail")
"""The methods that a transformer of async runs only overrides."""


class _ProtocolEventParams(TypedDict):
    """Where and when something happened, and what it was.

    `timestamp` is in milliseconds since 1970; `interrupts` comes with `values`.
    """

    namespace: list[str]
    timestamp: int
    data: Any
    interrupts: NotRequired[tuple[Any, ...]]


class ProtocolEvent(TypedDict):
    """One event: `method` is the mode, `seq` counts the events of a run from 1."""

    type: Literal["event"]
    event_id: NotRequired[str]
    seq: NotRequired[int]
    method: str
    params: _ProtocolEventParams


class StreamTransformer(ABC):
    """Looks at each event of a run and makes projections of them.

    `init` returns the projections by name: a `StreamChannel`, or any object.
    `process` sees each event in place, may change it, and says whether it stays
    in the run's own list of events; projections further down see it in any case.
    At the end `finalize` is called, or `fail` with what ended the run. A class
    that awaits overrides the methods with an `a` in front instead, and then
    works in async runs only, unless it says `supports_sync`.

    Instances belong to one namespace, `scope`: a run and each subgraph of it
    that is looked at get instances of their own, made by the class or by a
    factory that takes the scope.
    """

    required_stream_modes: ClassVar[tuple[str, ...]] = ()
    """The stream modes that the run has to produce for it."""
    before_builtins: ClassVar[bool] = False
    """Whether it sees (and changes) events before the projections built in."""
    requires_async: ClassVar[bool] = False
    supports_sync: ClassVar[bool] = False
    _native: ClassVar[bool] = False
    """Whether its projections are attributes of the run's stream."""

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        self.scope = scope

    @abstractmethod
    def init(self) -> dict[str, Any]:
        """Make the projections, by name."""

    def process(self, event: ProtocolEvent) -> bool:
        """Look at an event; whether it stays in the list of events."""
        raise NotImplementedError(
            f"{type(self).__name__} must override process() or aprocess()"
        )

    async def aprocess(self, event: ProtocolEvent) -> bool:
        """Async form of `process`, which it calls unless it is overridden."""
        return self.process(event)

    def finalize(self) -> None:  # noqa: B027 - may be left
        """The run came to its end."""

    async def afinalize(self) -> None:
        """Async form of `finalize`, which it calls unless it is overridden."""
        self.finalize()

    def fail(self, err: BaseException) -> None:  # noqa: B027 - may be left
        """The run ended with an error."""

    async def afail(self, err: BaseException) -> None:
        """Async form of `fail`, which it calls unless it is overridden."""
        self.fail(err)

    def schedule(
        self,
        coro: Coroutine[Any, Any, Any],
        *,
        on_error: Literal["log", "raise"] = "log",
    ) -> asyncio.Task[Any]:
        """Let work go on beside the stream; the stream's end waits for it.

        When the run fails, what still works is cancelled. An error is logged,
        or with `on_error="raise"` ends the stream.

        Raises:
            RuntimeError: no event loop is running here.
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            if coro is not None:
                coro.close()
            raise RuntimeError(
                f"{type(self).__name__}.schedule() needs a running event loop: use "
                "astream_events(), and set requires_async=True on the class"
            ) from None
        task = loop.create_task(logged(coro) if on_error == "log" else coro)
        self.__dict__.setdefault("_scheduled", []).append(task)
        return task

    def scheduled(self) -> list[asyncio.Task[Any]]:
        """Take over the work that was scheduled and not yet waited for."""
        tasks: list[asyncio.Task[Any]] = self.__dict__.pop("_scheduled", [])
        return tasks


async def logged(coro: Coroutine[Any, Any, Any]) -> Any:
    """Await something whose failure the stream outlives."""
    try:
        return await coro
    except Exception:
        LOGGER.exception("work that a StreamTransformer scheduled failed")
        return None


def transformer_requires_async(transformer: StreamTransformer) -> bool:
    """Whether a transformer only works in async runs."""
    if transformer.requires_async:
        return True
    if transformer.supports_sync:
        return False
    kind = type(transformer)
    return any(
        getattr(kind, name) is not getattr(StreamTransformer, name) for name in AWAITED
    )
