"""`langgraph.stream`, declared only: what other packages derive from.

Agents of other packages define transformers for `stream_events(version="v3")`
when they are imported. They can be defined, registered and passed on here;
nothing runs them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypedDict, TypeVar

__path__: list[str] = []

T = TypeVar("T")
SubgraphStatus: TypeAlias = Literal[
    "started", "completed", "failed", "interrupted", "drained"
]


def unsupported(what: object) -> NotImplementedError:
    return NotImplementedError(
        f"`{type(what).__name__}` belongs to event streams of version 3, which are "
        "only declared; stream(stream_mode=...) and astream_events(version='v2') "
        "tell the same"
    )


class ProtocolEvent(TypedDict):
    """One event of a stream of version 3."""

    type: Literal["event"]
    method: str
    params: Any


class StreamTransformer(ABC):
    """Makes something else of a run's events."""

    before_builtins: ClassVar[bool] = False
    required_stream_modes: ClassVar[tuple[str, ...]] = ()
    requires_async: ClassVar[bool] = False
    supports_sync: ClassVar[bool] = False

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        self.scope = scope

    @abstractmethod
    def init(self) -> dict[str, Any]:
        """Return the projections by name."""


class TasksLifecycleBase(StreamTransformer):
    """Follows the subgraphs of a run by their tasks."""

    required_stream_modes: ClassVar[tuple[str, ...]] = ("tasks",)


class StreamChannel(Generic[T]):
    """A stream of one kind of items."""

    def __init__(self, name: str | None = None, *, maxlen: int | None = None) -> None:
        del name, maxlen
        raise unsupported(self)


class StreamMux:
    """Passes events to transformers."""

    def __init__(self, *args: Any, **options: Any) -> None:
        del args, options
        raise unsupported(self)


class SubgraphRunStream:
    """The events of one subgraph."""

    def __init__(self, mux: StreamMux, **options: Any) -> None:
        del mux, options
        raise unsupported(self)


class AsyncSubgraphRunStream(SubgraphRunStream):
    """Async twin of `SubgraphRunStream`."""
