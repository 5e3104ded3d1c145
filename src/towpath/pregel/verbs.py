"""The verbs that run a graph, and what type checkers are told of their results.

What comes of a run depends on what is asked. `invoke` gives a plain dict for every
state with keys, be it a TypedDict, a dataclass or a model, because a question
(`__interrupt__`) may be among them; `version="v2"` gives the output as what the
schema says, and the questions apart. `stream` gives payloads, alone or in tuples
that begin with the namespace and the mode. The overloads say which.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Literal,
    Protocol,
    TypedDict,
    Unpack,
    overload,
)

from towpath.pregel.finish import arun, astream_run, run, stream_run
from towpath.pregel.runs import Options, extras, prepare_run
from towpath.runtime import RunControl
from towpath.types import All, Durability, GraphOutput, StreamMode, StreamPart
from towpath.typing import ContextT, InputT, OutputT, StateT

if TYPE_CHECKING:
    from towpath.types import Command

Config = Mapping[str, Any] | None
Keys = str | Sequence[str] | None
Modes = StreamMode | Sequence[StreamMode]
Namespace = tuple[str, ...]
Nodes = All | Sequence[str]
Several = list[StreamMode] | tuple[StreamMode, ...]
Others = Literal["updates", "checkpoints", "tasks", "debug", "messages", "custom"]
Tokens = Literal["messages"]
Values = Literal["values"]
Mappings = Literal["values", "updates", "checkpoints", "tasks", "debug"]
"""The modes whose payloads are dicts."""


class DataclassLike(Protocol):
    """A state that is a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


class ModelLike(Protocol):
    """A state that is a pydantic model."""

    model_config: ClassVar[Any]


class Keyed(Protocol):
    """A graph whose state has keys. Another's is one value, and so is its output."""

    def _state(self) -> Mapping[str, object] | DataclassLike | ModelLike: ...


class RunOptions(TypedDict, Generic[ContextT], total=False):
    """What every verb takes by keyword, and no result depends on."""

    context: ContextT | None
    print_mode: Modes
    interrupt_before: Nodes | None
    interrupt_after: Nodes | None
    durability: Durability | None
    control: RunControl | None
    debug: bool | None
    during: bool
    checkpoint_during: bool


class InvokeOptions(RunOptions[ContextT], total=False):
    """What `invoke` takes besides."""

    subgraphs: bool


class StreamOptions(RunOptions[ContextT], total=False):
    """What `stream` takes besides."""

    output_keys: Keys


class RunVerbs(Generic[StateT, ContextT, InputT, OutputT]):
    """Invoke a graph, stream it."""

    if TYPE_CHECKING:

        def _state(self) -> StateT: ...

    @overload
    def invoke(
        self,
        input: InputT | Command[Any] | None,
        config: Config = None,
        *,
        stream_mode: Values = ...,
        output_keys: None = ...,
        version: Literal["v2"],
        **options: Unpack[InvokeOptions[ContextT]],
    ) -> GraphOutput[OutputT]: ...
    @overload
    def invoke(
        self,
        input: InputT | Command[Any] | None,
        config: Config = None,
        *,
        stream_mode: Others,
        output_keys: Keys = ...,
        version: Literal["v2"],
        **options: Unpack[InvokeOptions[ContextT]],
    ) -> list[StreamPart[StateT, OutputT]]: ...
    @overload
    def invoke(
        self: Keyed,
        input: InputT | Command[Any] | None,
        config: Config = None,
        *,
        stream_mode: Values = ...,
        output_keys: None = ...,
        version: Literal["v1"] = ...,
        **options: Unpack[InvokeOptions[ContextT]],
    ) -> dict[str, Any]: ...
    @overload
    def invoke(
        self,
        input: InputT | Command[Any] | None,
        config: Config = None,
        *,
        stream_mode: Modes = ...,
        output_keys: Keys = ...,
        version: Literal["v1", "v2"] = ...,
        **options: Unpack[InvokeOptions[ContextT]],
    ) -> Any: ...
    def invoke(
        self: Any,
        input: InputT | Command[Any] | None,
        config: Config = None,
        *,
        context: ContextT | None = None,
        stream_mode: Modes = "values",
        print_mode: Modes = (),
        output_keys: str | Sequence[str] | None = None,
        interrupt_before: Nodes | None = None,
        interrupt_after: Nodes | None = None,
        durability: Durability | None = None,
        control: RunControl | None = None,
        version: Literal["v1", "v2"] = "v1",
        **kwargs: Any,
    ) -> Any:
        """Run the graph to its end and return the output.

        `input` starts the graph; `None` continues a stopped thread, and
        `Command(resume=...)` answers what it asked. When the run stops on a
        question, the output has it under `__interrupt__`. `durability` says
        when a step must be stored: "sync" before the next starts, "async"
        while it runs, "exit" when the run ends. With `version="v2"` the
        result is a `GraphOutput`; with another `stream_mode` than "values",
        the list of its chunks.

        Raises:
            GraphRecursionError: the step limit was reached (TP-401).
            NothingToResumeError: an answer, and nothing was asked (TP-302).
            UnknownInterruptError: an answer to what was not asked (TP-301).
            InvalidUpdateError: an update that the state cannot take (TP-201).
            Exception: what a node raised, with a note saying where.
        """
        options = Options(
            context, stream_mode, print_mode, output_keys, interrupt_before,
            interrupt_after, durability, control, version=version,
            **(extras("invoke", kwargs) if kwargs else kwargs),
        )  # fmt: skip
        return run(self, input, config, options)

    @overload
    async def ainvoke(
        self,
        input: InputT | Command[Any] | None,
        config: Config = None,
        *,
        stream_mode: Values = ...,
        output_keys: None = ...,
        version: Literal["v2"],
        **options: Unpack[InvokeOptions[ContextT]],
    ) -> GraphOutput[OutputT]: ...
    @overload
    async def ainvoke(
        self,
        input: InputT | Command[Any] | None,
        config: Config = None,
        *,
        stream_mode: Others,
        output_keys: Keys = ...,
        version: Literal["v2"],
        **options: Unpack[InvokeOptions[ContextT]],
    ) -> list[StreamPart[StateT, OutputT]]: ...
    @overload
    async def ainvoke(
        self: Keyed,
        input: InputT | Command[Any] | None,
        config: Config = None,
        *,
        stream_mode: Values = ...,
        output_keys: None = ...,
        version: Literal["v1"] = ...,
        **options: Unpack[InvokeOptions[ContextT]],
    ) -> dict[str, Any]: ...
    @overload
    async def ainvoke(
        self,
        input: InputT | Command[Any] | None,
        config: Config = None,
        *,
        stream_mode: Modes = ...,
        output_keys: Keys = ...,
        version: Literal["v1", "v2"] = ...,
        **options: Unpack[InvokeOptions[ContextT]],
    ) -> Any: ...
    async def ainvoke(
        self: Any,
        input: InputT | Command[Any] | None,
        config: Config = None,
        *,
        context: ContextT | None = None,
        stream_mode: Modes = "values",
        print_mode: Modes = (),
        output_keys: str | Sequence[str] | None = None,
        interrupt_before: Nodes | None = None,
        interrupt_after: Nodes | None = None,
        durability: Durability | None = None,
        control: RunControl | None = None,
        version: Literal["v1", "v2"] = "v1",
        **kwargs: Any,
    ) -> Any:
        """Async twin of `invoke`."""
        return await arun(self, input, config, Options(
            context, stream_mode, print_mode, output_keys, interrupt_before,
            interrupt_after, durability, control, version=version,
            **(extras("ainvoke", kwargs) if kwargs else kwargs),
        ))  # fmt: skip

    @overload
    def stream(
        self,
        input: InputT | Command[Any] | None,
        config: Config = None,
        *,
        stream_mode: Modes | None = ...,
        subgraphs: bool = ...,
        version: Literal["v2"],
        **options: Unpack[StreamOptions[ContextT]],
    ) -> Iterator[StreamPart[StateT, OutputT]]: ...
    @overload
    def stream(
        self: Keyed,
        input: InputT | Command[Any] | None,
        config: Config = None,
        *,
        stream_mode: Mappings | None = ...,
        subgraphs: Literal[False] = ...,
        version: Literal["v1"] = ...,
        **options: Unpack[StreamOptions[ContextT]],
    ) -> Iterator[dict[str, Any]]: ...
    @overload
    def stream(
        self,
        input: InputT | Command[Any] | None,
        config: Config = None,
        *,
        stream_mode: Tokens,
        subgraphs: Literal[False] = ...,
        version: Literal["v1"] = ...,
        **options: Unpack[StreamOptions[ContextT]],
    ) -> Iterator[tuple[Any, dict[str, Any]]]: ...
    @overload
    def stream(
        self,
        input: InputT | Command[Any] | None,
        config: Config = None,
        *,
        stream_mode: Several,
        subgraphs: Literal[False] = ...,
        version: Literal["v1"] = ...,
        **options: Unpack[StreamOptions[ContextT]],
    ) -> Iterator[tuple[str, Any]]: ...
    @overload
    def stream(
        self,
        input: InputT | Command[Any] | None,
        config: Config = None,
        *,
        stream_mode: StreamMode | None = ...,
        subgraphs: Literal[True],
        version: Literal["v1"] = ...,
        **options: Unpack[StreamOptions[ContextT]],
    ) -> Iterator[tuple[Namespace, Any]]: ...
    @overload
    def stream(
        self,
        input: InputT | Command[Any] | None,
        config: Config = None,
        *,
        stream_mode: Several,
        subgraphs: Literal[True],
        version: Literal["v1"] = ...,
        **options: Unpack[StreamOptions[ContextT]],
    ) -> Iterator[tuple[Namespace, str, Any]]: ...
    @overload
    def stream(
        self,
        input: InputT | Command[Any] | None,
        config: Config = None,
        *,
        stream_mode: Modes | None = ...,
        subgraphs: bool = ...,
        version: Literal["v1"] = ...,
        **options: Unpack[StreamOptions[ContextT]],
    ) -> Iterator[Any]: ...
    def stream(
        self: Any,
        input: InputT | Command[Any] | None,
        config: Config = None,
        *,
        context: ContextT | None = None,
        stream_mode: Modes | None = None,
        print_mode: Modes = (),
        output_keys: str | Sequence[str] | None = None,
        interrupt_before: Nodes | None = None,
        interrupt_after: Nodes | None = None,
        durability: Durability | None = None,
        control: RunControl | None = None,
        subgraphs: bool = False,
        debug: bool | None = None,
        version: Literal["v1", "v2"] = "v1",
        **kwargs: Any,
    ) -> Iterator[Any]:
        """Run the graph and yield what happens, while it happens.

        A mode, or several: "values" the state after each step, "updates" what
        each node wrote, "custom" what nodes send with a writer, "messages"
        tokens, "tasks" and "checkpoints", "debug" both of them. With several
        modes chunks are `(mode, chunk)`, with `subgraphs=True` those of
        subgraphs come too, with their namespace in front. Closing the
        iterator stops the run.

        Raises:
            As `invoke`, from the iterator.
        """
        options = Options(
            context, stream_mode, print_mode, output_keys, interrupt_before,
            interrupt_after, durability, control, subgraphs, debug, version,
            **(extras("stream", kwargs) if kwargs else kwargs),
        )  # fmt: skip
        return stream_run(prepare_run(self, input, config, options, streams=True))

    @overload
    def astream(
        self,
        input: InputT | Command[Any] | None,
        config: Config = None,
        *,
        stream_mode: Modes | None = ...,
        subgraphs: bool = ...,
        version: Literal["v2"],
        **options: Unpack[StreamOptions[ContextT]],
    ) -> AsyncIterator[StreamPart[StateT, OutputT]]: ...
    @overload
    def astream(
        self: Keyed,
        input: InputT | Command[Any] | None,
        config: Config = None,
        *,
        stream_mode: Mappings | None = ...,
        subgraphs: Literal[False] = ...,
        version: Literal["v1"] = ...,
        **options: Unpack[StreamOptions[ContextT]],
    ) -> AsyncIterator[dict[str, Any]]: ...
    @overload
    def astream(
        self,
        input: InputT | Command[Any] | None,
        config: Config = None,
        *,
        stream_mode: Tokens,
        subgraphs: Literal[False] = ...,
        version: Literal["v1"] = ...,
        **options: Unpack[StreamOptions[ContextT]],
    ) -> AsyncIterator[tuple[Any, dict[str, Any]]]: ...
    @overload
    def astream(
        self,
        input: InputT | Command[Any] | None,
        config: Config = None,
        *,
        stream_mode: Several,
        subgraphs: Literal[False] = ...,
        version: Literal["v1"] = ...,
        **options: Unpack[StreamOptions[ContextT]],
    ) -> AsyncIterator[tuple[str, Any]]: ...
    @overload
    def astream(
        self,
        input: InputT | Command[Any] | None,
        config: Config = None,
        *,
        stream_mode: StreamMode | None = ...,
        subgraphs: Literal[True],
        version: Literal["v1"] = ...,
        **options: Unpack[StreamOptions[ContextT]],
    ) -> AsyncIterator[tuple[Namespace, Any]]: ...
    @overload
    def astream(
        self,
        input: InputT | Command[Any] | None,
        config: Config = None,
        *,
        stream_mode: Several,
        subgraphs: Literal[True],
        version: Literal["v1"] = ...,
        **options: Unpack[StreamOptions[ContextT]],
    ) -> AsyncIterator[tuple[Namespace, str, Any]]: ...
    @overload
    def astream(
        self,
        input: InputT | Command[Any] | None,
        config: Config = None,
        *,
        stream_mode: Modes | None = ...,
        subgraphs: bool = ...,
        version: Literal["v1"] = ...,
        **options: Unpack[StreamOptions[ContextT]],
    ) -> AsyncIterator[Any]: ...
    def astream(
        self: Any,
        input: InputT | Command[Any] | None,
        config: Config = None,
        *,
        context: ContextT | None = None,
        stream_mode: Modes | None = None,
        print_mode: Modes = (),
        output_keys: str | Sequence[str] | None = None,
        interrupt_before: Nodes | None = None,
        interrupt_after: Nodes | None = None,
        durability: Durability | None = None,
        control: RunControl | None = None,
        subgraphs: bool = False,
        debug: bool | None = None,
        version: Literal["v1", "v2"] = "v1",
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        """Async twin of `stream`."""
        options = Options(
            context, stream_mode, print_mode, output_keys, interrupt_before,
            interrupt_after, durability, control, subgraphs, debug, version,
            **(extras("astream", kwargs) if kwargs else kwargs),
        )  # fmt: skip
        return astream_run(prepare_run(self, input, config, options, streams=True))
