"""What everything that can be run like a graph has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, Self

from towpath.pregel.diagram import Graph
from towpath.types import StateSnapshot, StateUpdate, StreamMode
from towpath.typing import ContextT, InputT, OutputT, StateT, pad

__all__ = ("PregelProtocol", "StreamProtocol")

Config = Mapping[str, Any]
StreamChunk = tuple[tuple[str, ...], str, Any]


class PregelProtocol(ABC, Generic[StateT, ContextT, InputT, OutputT]):
    """A graph: one compiled here, or one that runs elsewhere."""

    def __class_getitem__(cls, parameters: Any) -> Any:
        return super().__class_getitem__(pad(parameters))  # type: ignore[misc] # Generic's own

    @abstractmethod
    def with_config(self, config: Config | None = None, **kwargs: Any) -> Self:
        """The same with a config that every run starts from."""

    @abstractmethod
    def get_graph(
        self, config: Config | None = None, *, xray: int | bool = False
    ) -> Graph:
        """The graph as nodes and edges."""

    @abstractmethod
    async def aget_graph(
        self, config: Config | None = None, *, xray: int | bool = False
    ) -> Graph:
        """Async twin of `get_graph`."""

    @abstractmethod
    def get_state(self, config: Config, *, subgraphs: bool = False) -> StateSnapshot:
        """The state of a thread."""

    @abstractmethod
    async def aget_state(
        self, config: Config, *, subgraphs: bool = False
    ) -> StateSnapshot:
        """Async twin of `get_state`."""

    @abstractmethod
    def get_state_history(
        self,
        config: Config,
        *,
        filter: dict[str, Any] | None = None,
        before: Config | None = None,
        limit: int | None = None,
    ) -> Iterator[StateSnapshot]:
        """The states of a thread, newest first."""

    @abstractmethod
    def aget_state_history(
        self,
        config: Config,
        *,
        filter: dict[str, Any] | None = None,
        before: Config | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[StateSnapshot]:
        """Async twin of `get_state_history`."""

    @abstractmethod
    def update_state(
        self, config: Config, values: Any, as_node: str | None = None
    ) -> Config:
        """Change the state of a thread."""

    @abstractmethod
    async def aupdate_state(
        self, config: Config, values: Any, as_node: str | None = None
    ) -> Config:
        """Async twin of `update_state`."""

    @abstractmethod
    def bulk_update_state(
        self, config: Config, updates: Sequence[Sequence[StateUpdate]]
    ) -> Config:
        """Change the state in several steps."""

    @abstractmethod
    async def abulk_update_state(
        self, config: Config, updates: Sequence[Sequence[StateUpdate]]
    ) -> Config:
        """Async twin of `bulk_update_state`."""

    @abstractmethod
    def stream(
        self, input: Any, config: Config | None = None, **kwargs: Any
    ) -> Iterator[Any]:
        """Run, and yield what happens."""

    @abstractmethod
    def astream(
        self, input: Any, config: Config | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        """Async twin of `stream`."""

    @abstractmethod
    def invoke(self, input: Any, config: Config | None = None, **kwargs: Any) -> Any:
        """Run to the end."""

    @abstractmethod
    async def ainvoke(
        self, input: Any, config: Config | None = None, **kwargs: Any
    ) -> Any:
        """Async twin of `invoke`."""


class StreamProtocol:
    """Takes the chunks of these modes: a function that knows what it is for."""

    __slots__ = ("modes", "tell")

    def __init__(
        self, __call__: Callable[[StreamChunk], None], modes: set[StreamMode]
    ) -> None:
        self.tell = __call__
        self.modes = modes

    def __call__(self, chunk: StreamChunk) -> None:
        self.tell(chunk)
