"""`Pregel`: the public verbs of a compiled graph.

Each verb comes in two colours that differ only in the driver: the run itself
is a program that knows neither.
"""

from __future__ import annotations

from collections.abc import (
    Callable,
    Collection,
    Mapping,
    Sequence,
)
from typing import Any, Generic, Self

from towpath.constants import CONF
from towpath.given import (
    cache_of,
    cache_policy_of,
    factories_of,
    retry_policies,
    seconds_of,
    store_of,
)
from towpath.lint import Finding, lint
from towpath.plan import Plan
from towpath.pregel.batches import BatchVerbs
from towpath.pregel.chain import ChainVerbs, join_runnables
from towpath.pregel.chunks import modes_of
from towpath.pregel.config import merge
from towpath.pregel.draw import DrawVerbs
from towpath.pregel.events import EventVerbs
from towpath.pregel.faces import NodeFace
from towpath.pregel.nodes import NodeBuilder, PregelNode
from towpath.pregel.protocol import PregelProtocol
from towpath.pregel.raw import RawGraph
from towpath.pregel.schemas import SchemaVerbs
from towpath.pregel.states import StateVerbs
from towpath.pregel.verbs import RunVerbs
from towpath.semantics import Semantics, default
from towpath.types import (
    All,
    CachePolicy,
    Checkpointer,
    RetryPolicy,
    StreamMode,
    ensure_valid_checkpointer,
)
from towpath.typing import ContextT, InputT, OutputT, StateT, pad

Modes = StreamMode | Sequence[StreamMode]
Nodes = All | Sequence[str]


class Pregel(
    RunVerbs[StateT, ContextT, InputT, OutputT],
    StateVerbs,
    BatchVerbs[StateT, ContextT, InputT, OutputT],
    DrawVerbs,
    SchemaVerbs,
    EventVerbs,
    ChainVerbs,
    Generic[StateT, ContextT, InputT, OutputT],
):
    """A compiled graph: invoke it, stream it, look at its threads, edit them."""

    def __class_getitem__(cls, parameters: Any) -> Any:
        return super().__class_getitem__(pad(parameters))  # type: ignore[misc]

    def __init__(
        self,
        *,
        plan: Plan | None = None,
        nodes: Mapping[str, PregelNode | NodeBuilder] | None = None,
        channels: Mapping[str, Any] | None = None,
        auto_validate: bool = True,
        stream_mode: StreamMode = "values",
        stream_eager: bool = False,
        output_channels: str | Sequence[str] = (),
        stream_channels: str | Sequence[str] | None = None,
        interrupt_after_nodes: Nodes = (),
        interrupt_before_nodes: Nodes = (),
        input_channels: str | Sequence[str] = (),
        step_timeout: float | None = None,
        debug: bool | None = None,
        checkpointer: Checkpointer = None,
        store: Any = None,
        cache: Any = None,
        retry_policy: RetryPolicy | Sequence[RetryPolicy] = (),
        cache_policy: CachePolicy[Any] | None = None,
        context_schema: type[ContextT] | None = None,
        config: Mapping[str, Any] | None = None,
        trigger_to_nodes: Mapping[str, Sequence[str]] | None = None,
        node_error_handler_map: Mapping[str, str] | None = None,
        name: str = "LangGraph",
        stream_transformers: Sequence[Callable[[tuple[str, ...]], Any]] | None = None,
        semantics: Semantics | None = None,
    ) -> None:
        """Make a graph of nodes and channels, or of a plan made elsewhere.

        Raises:
            InvalidGraphError: a name that is no channel or node (TP-101).
        """
        del trigger_to_nodes, node_error_handler_map  # they follow from the nodes
        if plan is None:
            raw = RawGraph(
                nodes or {}, channels or {}, input_channels, output_channels,
                stream_channels, interrupt_before_nodes, interrupt_after_nodes,
                retry_policy, cache_policy, context_schema, bool(debug), name,
            )  # fmt: skip
            plan = raw.plan(semantics or default(), check=auto_validate)
        self.plan_of_graph = plan
        self.checkpointer = ensure_valid_checkpointer(checkpointer)
        self.store = store_of(store)
        self.cache = cache_of(cache)
        self.name = name
        self.debug = bool(debug)
        self.config = config
        modes_of(stream_mode)
        self.stream_mode = stream_mode
        self.stream_eager = stream_eager
        self.step_timeout = seconds_of("step_timeout", step_timeout)
        self.retry_policy = retry_policies(retry_policy) or ()
        self.cache_policy = cache_policy_of(cache_policy)
        self.stream_transformers = factories_of(stream_transformers)

    # -- what it is made of ---------------------------------------------------

    @property
    def nodes(self) -> Mapping[str, NodeFace]:
        """The nodes, the entry and error handlers included."""
        plan = self.plan_of_graph
        if len(plan.faces) != len(plan.nodes):
            plan.faces.update(
                (name, NodeFace(spec)) for name, spec in plan.nodes.items()
            )
        return plan.faces

    @property
    def channels(self) -> Mapping[str, Any]:
        """The channels and managed values, by name."""
        return {**self.plan_of_graph.channels, **self.plan_of_graph.managed}

    @property
    def context_schema(self) -> Any:
        return self.plan_of_graph.context_schema

    @property
    def output_channels(self) -> str | Sequence[str]:
        return self.plan_of_graph.output_keys

    @property
    def input_channels(self) -> str | Sequence[str]:
        inlets = self.plan_of_graph.inlets
        return self.plan_of_graph.input_channel if inlets is None else inlets

    @property
    def stream_channels(self) -> str | Sequence[str]:
        return self.plan_of_graph.shown

    @property
    def stream_channels_asis(self) -> str | Sequence[str]:
        return self.plan_of_graph.shown

    @property
    def stream_channels_list(self) -> Sequence[str]:
        shown = self.plan_of_graph.shown
        return [shown] if isinstance(shown, str) else shown

    @property
    def interrupt_before_nodes(self) -> All | Sequence[str]:
        nodes = self.plan_of_graph.interrupt_before
        return "*" if nodes == "*" else sorted(nodes)

    @property
    def interrupt_after_nodes(self) -> All | Sequence[str]:
        nodes = self.plan_of_graph.interrupt_after
        return "*" if nodes == "*" else sorted(nodes)

    @property
    def trigger_to_nodes(self) -> Mapping[str, Sequence[str]]:
        return self.plan_of_graph.listeners

    @property
    def node_error_handler_map(self) -> Mapping[str, str]:
        specs = self.plan_of_graph.nodes.values()
        return {s.name: s.error_handler for s in specs if s.error_handler}

    def __repr__(self) -> str:
        nodes = [s.name for s in self.plan_of_graph.nodes.values() if not s.hidden]
        return f"<{type(self).__name__} {self.name!r}: {', '.join(nodes)}>"

    def get_name(self, suffix: str | None = None, *, name: str | None = None) -> str:
        """The graph's name, or the one given, with a suffix in the same style."""
        base = name or self.name
        if not suffix:
            return base
        return (
            base + suffix.title() if base[:1].isupper() else f"{base}_{suffix.lower()}"
        )

    def copy(self, update: Mapping[str, Any] | None = None) -> Self:
        """A graph like this one with some attributes replaced."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.__dict__.update(update or {})
        return twin

    def with_config(
        self, config: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> Self:
        """A graph like this one whose runs start from this config."""
        return self.copy({"config": {CONF: {}, **merge(self.config, config, kwargs)}})

    def lint(self, *, ignore: Collection[str] = ()) -> list[Finding]:
        """Look for mistakes that can be seen without running the graph.

        `ignore` has codes of rules to leave out; docs/lint.md lists them.
        """
        return lint(self.plan_of_graph, ignore)

    def validate(self) -> Self:
        """Nothing is left to check: compiling checks everything."""
        return self


PregelProtocol.register(Pregel)
join_runnables(PregelProtocol)
