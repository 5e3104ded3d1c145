"""`stream_events`: a run as a stream of events with projections.

The room `towpath.stream` is imported by the first call, so a program that
never makes one pays nothing for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from towpath.given import factories_of
from towpath.pregel.finish import astream_run, stream_run
from towpath.pregel.runs import Options, Run, extras, prepare_run

if TYPE_CHECKING:
    from towpath.plan import Plan
    from towpath.stream._mux import StreamMux
    from towpath.stream.run_stream import AsyncGraphRunStream, GraphRunStream

OWNED: Final = ("stream_mode", "subgraphs")
KNOWN: Final = (
    "context", "print_mode", "output_keys", "interrupt_before", "interrupt_after",
    "durability", "control", "debug",
)  # fmt: skip
AWAITED: Final = (
    "stream_events(version={!r}) is not supported: it is version='v3'; of v1 and v2 "
    "there is astream_events()"
)
FOREIGN: Final = (
    "astream_events(version={!r}) is langchain's, and this graph is not one of its "
    "runnables; version='v3' is ours"
)
Factories = Sequence[Callable[[tuple[str, ...]], Any]]


class EventVerbs:
    """The verb of a graph whose run is read through projections."""

    if TYPE_CHECKING:
        # What the class that inherits these verbs has.
        plan_of_graph: Plan
        name: str
        checkpointer: Any
        store: Any
        cache: Any
        config: Any
        stream_mode: Any
        step_timeout: float | None
        stream_transformers: Factories | None

        @property
        def context_schema(self) -> Any: ...

    def stream_events(
        self,
        input: Any,
        config: Mapping[str, Any] | None = None,
        *,
        version: Literal["v1", "v2", "v3"] = "v2",
        transformers: Factories | None = None,
        **kwargs: Any,
    ) -> GraphRunStream:
        """Return a stream of the run; nothing runs until it is read.

        `transformers` are classes, or functions of a namespace, that make
        `StreamTransformer`s; they follow those of `compile(transformers=...)`.
        Other keywords are those of `stream`.

        Raises:
            NotImplementedError: `version` is not "v3", the only one that is
                not awaited.
            TypeError: a keyword that the transformers decide, or a transformer
                that was made already.
            ValueError: two projections of one name.
        """
        if version != "v3":
            raise NotImplementedError(AWAITED.format(version))
        from towpath.stream.run_stream import GraphRunStream

        mux, made = self._event_run(input, config, transformers, kwargs, loop=False)
        return GraphRunStream(stream_run(made), mux)

    def astream_events(
        self,
        input: Any,
        config: Mapping[str, Any] | None = None,
        *,
        version: Literal["v1", "v2", "v3"] = "v2",
        transformers: Factories | None = None,
        **kwargs: Any,
    ) -> Any:
        """Async twin of `stream_events`, to be awaited.

        With version "v1" or "v2" it is langchain's iterator of events.
        """
        if version == "v3":
            return self._astream_v3(input, config, transformers, kwargs)
        langchain = getattr(super(), "astream_events", None)
        if langchain is None:
            raise NotImplementedError(FOREIGN.format(version))
        return langchain(input, config, version=version, **kwargs)

    async def _astream_v3(
        self,
        input: Any,
        config: Mapping[str, Any] | None,
        transformers: Factories | None,
        kwargs: dict[str, Any],
    ) -> AsyncGraphRunStream:
        from towpath.stream.run_stream import AsyncGraphRunStream

        mux, made = self._event_run(input, config, transformers, kwargs, loop=True)
        return AsyncGraphRunStream(astream_run(made), mux)

    def _event_run(
        self,
        input: Any,
        config: Mapping[str, Any] | None,
        transformers: Factories | None,
        kwargs: dict[str, Any],
        *,
        loop: bool,
    ) -> tuple[StreamMux, Run]:
        """The mux of a run, and the run, ready to be driven."""
        where = "astream_events" if loop else "stream_events"
        from towpath.stream.builtin import modes_of, mux_of

        for name in OWNED:
            if name in kwargs:
                raise TypeError(
                    f"{where}(version='v3') does not accept {name}: the transformers "
                    "say which modes are needed, and subgraphs are always told"
                )
        factories = [
            *(self.stream_transformers or ()),
            *(factories_of(transformers) or ()),
        ]
        mux = mux_of(factories, is_async=loop)
        known = {key: kwargs.pop(key) for key in KNOWN if key in kwargs}
        options = Options(
            stream_mode=modes_of(mux),
            subgraphs=True,
            version="v2",
            message_events=True,
            **known,
            **extras(where, kwargs),
        )
        run = prepare_run(self, input, config, options, streams=True)
        return mux, run
