"""`StateGraph`: declare nodes and edges over a state, then `compile()`.

>>> from typing import Annotated, TypedDict
>>> import operator
>>> class State(TypedDict):
...     words: Annotated[list, operator.add]
>>> builder = StateGraph(State)
>>> _ = builder.add_node("greet", lambda state: {"words": ["hello"]})
>>> _ = builder.add_edge(START, "greet")
>>> builder.compile().invoke({"words": ["oh,"]})
{'words': ['oh,', 'hello']}
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Hashable, Sequence
from dataclasses import replace
from datetime import timedelta
from types import FunctionType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    Literal,
    Protocol,
    Self,
    cast,
)

from towpath.channels.base import BaseChannel
from towpath.checkpoint.serde import register_schema
from towpath.constants import END, RESERVED, START
from towpath.errors import InvalidGraphError, NoActionError, nearest
from towpath.given import (
    cache_policy_of,
    metadata_of,
    node_names,
    path_map_of,
    retry_policies,
    schema_of,
    trace_policy_of,
)
from towpath.graph.blueprint import Blueprint, Branch
from towpath.graph.builder import PlanMaker
from towpath.graph.nodes import (
    NodeDefaults,
    Said,
    StateNodeSpec,
    answers_of,
    name_of,
)
from towpath.graph.validate import edge_hint, validate
from towpath.lint import Finding, lint
from towpath.migration import Migration, Version, lineage, version_text
from towpath.plan import action_of
from towpath.pregel.main import Pregel
from towpath.schema import class_channels, merge_channels
from towpath.semantics import Semantics, default
from towpath.types import (
    All,
    CachePolicy,
    Checkpointer,
    RetryPolicy,
    TimeoutPolicy,
    TracePolicy,
)
from towpath.typing import ContextT, InputT, NodeInputT, OutputT, StateT, pad
from towpath.warnings import (
    LangGraphDeprecatedSinceV05,
    LangGraphDeprecatedSinceV10,
    warn_user,
)

Timeout = float | timedelta | TimeoutPolicy | None
Retry = RetryPolicy | Sequence[RetryPolicy] | None
Path = Callable[..., Hashable | Sequence[Hashable] | Awaitable[Any]] | Any


class Invoked(Protocol):
    """What blocks in `invoke`: another graph, a runnable of LangChain's."""

    @property
    def invoke(self) -> Callable[..., Any]:
        """Run it with the state."""


class Awaited(Protocol):
    """What is awaited by `ainvoke`."""

    @property
    def ainvoke(self) -> Callable[..., Any]:
        """Run it with the state."""


NodeAction = (
    # The first is one of the second; told both, mypy takes lambdas.
    Callable[[NodeInputT], Any]
    | Callable[Concatenate[NodeInputT, ...], Any]
    | Invoked
    | Awaited
)
"""What can be a node that takes this part of the state, and whatever is injected."""


class StateGraph(Generic[StateT, ContextT, InputT, OutputT]):
    """A graph whose nodes read a shared state and write updates to it.

    Each key of `state_schema` (a TypedDict, a dataclass, a pydantic model, or
    a plain type for a state without keys) is a channel: it keeps the last
    value, or folds all that is written to it with the reducer in its
    `Annotated`. `input_schema` and `output_schema` narrow what goes in and
    comes out; `context_schema` types `runtime.context`. Threads remember the
    `version` of the graph that made them; `migrations` bring them to this one.
    """

    def __class_getitem__(cls, parameters: Any) -> Any:
        return super().__class_getitem__(pad(parameters))  # type: ignore[misc]

    def __init__(
        self,
        state_schema: type[StateT],
        context_schema: type[ContextT] | None = None,
        *,
        input_schema: type[InputT] | None = None,
        output_schema: type[OutputT] | None = None,
        version: Version = None,
        migrations: Sequence[Migration] = (),
        **former: Any,
    ) -> None:
        names = {
            "config_schema": "context_schema",
            "input": "input_schema",
            "output": "output_schema",
        }
        given = renamed("StateGraph", former, names)
        context_schema = given.get("context_schema", context_schema)
        input_schema = given.get("input_schema", input_schema)
        output_schema = given.get("output_schema", output_schema)
        self.blueprint = Blueprint(
            schema_of("state schema", state_schema),
            schema_of("input schema", input_schema) or state_schema,
            schema_of("output schema", output_schema) or state_schema,
            schema_of("context schema", context_schema),
            version_text(version),
            lineage(version, migrations),
        )
        self.compiled = False
        self._schemas: dict[int, Any] = {}
        self._hints: dict[FunctionType, Said] = {}
        self._known: dict[str, BaseChannel[Any, Any, Any]] = {}
        for schema in self.blueprint.all_schemas():
            self._learn(schema)

    if not TYPE_CHECKING:  # checkers know that it is not there

        def __getattr__(self, name: str) -> Any:
            """Tell who runs a builder what it lacks; other names are unknown."""
            told = f"{type(self).__name__!r} object has no attribute {name!r}"
            if not name.startswith("_") and hasattr(Pregel, name):
                told += ": compile() makes the graph that has it"
            raise AttributeError(told, name=name, obj=self)

    # -- what was declared, under the names that programs look at ------------

    @property
    def state_schema(self) -> type[StateT]:
        return cast("type[StateT]", self.blueprint.state_schema)

    @property
    def input_schema(self) -> type[InputT]:
        return cast("type[InputT]", self.blueprint.input_schema)

    @property
    def output_schema(self) -> type[OutputT]:
        return cast("type[OutputT]", self.blueprint.output_schema)

    @property
    def context_schema(self) -> type[ContextT] | None:
        return cast("type[ContextT] | None", self.blueprint.context_schema)

    @property
    def nodes(self) -> dict[str, StateNodeSpec]:
        return self.blueprint.nodes

    @property
    def edges(self) -> set[tuple[str, str]]:
        return self.blueprint.edges

    @property
    def waiting_edges(self) -> set[tuple[tuple[str, ...], str]]:
        return self.blueprint.waiting_edges

    @property
    def branches(self) -> dict[str, dict[str, Branch]]:
        return self.blueprint.branches

    @property
    def schemas(self) -> dict[Any, dict[str, Any]]:
        """The channels and managed values of every schema."""
        found = {}
        for schema in self.blueprint.all_schemas():
            fields = class_channels(schema)
            found[schema] = {**fields.channels, **fields.managed}
        return found

    @property
    def channels(self) -> dict[str, BaseChannel[Any, Any, Any]]:
        merged: dict[str, BaseChannel[Any, Any, Any]] = {}
        for schema in self.blueprint.all_schemas():
            merged = merge_channels(merged, class_channels(schema).channels)
        return merged

    def _learn(self, schema: Any) -> None:
        """Take note of a schema's keys; conflicts are refused where they arise.

        Raises:
            ChannelConflictError: a key is declared in two ways (TP-103).
            InvalidReducerError: a reducer does not take two values (TP-102).
        """
        if id(schema) not in self._schemas:
            found = class_channels(schema).channels
            self._known = merge_channels(self._known, found)
            self._schemas[id(schema)] = schema

    @property
    def managed(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for schema in self.blueprint.all_schemas():
            found.update(class_channels(schema).managed)
        return found

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {', '.join(self.nodes) or 'no nodes yet'}>"

    # -- declaring ------------------------------------------------------------

    def add_node(
        self,
        node: str | NodeAction[NodeInputT],
        action: NodeAction[NodeInputT] | None = None,
        *,
        defer: bool = False,
        metadata: dict[str, Any] | None = None,
        input_schema: type[NodeInputT] | None = None,
        retry_policy: Retry = None,
        cache_policy: CachePolicy[Any] | None = None,
        error_handler: Any = None,
        destinations: dict[str, str] | tuple[str, ...] | None = None,
        timeout: Timeout = None,
        trace_policy: TracePolicy | None = None,
        **former: Any,
    ) -> Self:
        """Add a node: `add_node(fn)` or `add_node("name", fn)`.

        The action is a function, coroutine function, (async) generator,
        method, partial, callable object, anything with `invoke`/`ainvoke`, or
        another compiled graph. It takes the state and returns an update of
        it. `defer` runs the node only when nothing else is left to run.

        Raises:
            InvalidGraphError: the name is taken or not allowed, or the action
                cannot be called (TP-101).
        """
        if former:
            given = renamed(
                "add_node", former, {"retry": "retry_policy", "input": "input_schema"}
            )
            retry_policy = given.get("retry_policy", retry_policy)
            input_schema = given.get("input_schema", input_schema)
        if not isinstance(node, str):
            action, node = node, name_of(node)
        elif action is None:
            raise NoActionError(
                f"node `{node}` has no action", hint="add_node(name, function)"
            )
        self._check_name(node)
        said = self._said(action)
        inferred = schema_of("input schema", input_schema) or said.schema()
        if inferred is not None:
            self._learn(inferred)
        self.nodes[node] = StateNodeSpec(
            runnable=action,
            action=action_of(action, node),
            input_schema=inferred,
            defer=defer,
            metadata=metadata_of(f"node `{node}`", metadata),
            retry_policy=retry_policies(retry_policy),
            cache_policy=cache_policy_of(cache_policy),
            error_handler=error_handler and action_of(error_handler, f"{node} handler"),
            timeout=TimeoutPolicy.coerce(timeout),
            trace_policy=trace_policy_of(trace_policy),
            ends=said.ends if destinations is None else destinations,
        )
        return self

    def _said(self, action: Any) -> Said:
        """What the hints of an action say; the same function says the same again."""
        if not isinstance(action, FunctionType):
            return Said(action)
        said = self._hints.get(action)
        if said is None:
            said = self._hints[action] = Said(action)
        return said

    def _check_name(self, name: str) -> None:
        self._warn_if_compiled("a node")
        if name in self.nodes:
            raise InvalidGraphError(
                f"Node `{name}` already present.", hint="give it another name"
            )
        if name in (START, END) or name in RESERVED:
            raise InvalidGraphError(f"Node name `{name}` is reserved.")
        for character in ("|", ":"):
            if character in name:
                raise InvalidGraphError(
                    f"'{character}' is a reserved character and is not allowed in "
                    f"the node name `{name}`."
                )

    def _warn_if_compiled(self, what: str) -> None:
        if self.compiled:
            warn_user(
                f"Adding {what} to a graph that has already been compiled. This "
                "will not be reflected in the compiled graph.",
                UserWarning,
            )

    def set_node_defaults(
        self,
        *,
        retry_policy: Retry = None,
        cache_policy: CachePolicy[Any] | None = None,
        error_handler: Any = None,
        timeout: Timeout = None,
    ) -> Self:
        """Give policies to every node that has none of its own, also later ones."""
        old = self.blueprint.defaults
        self.blueprint.defaults = NodeDefaults(
            retry_policies(retry_policy) or old.retry_policy,
            cache_policy_of(cache_policy) or old.cache_policy,
            action_of(error_handler, "the default error handler")
            if error_handler is not None
            else old.error_handler,
            TimeoutPolicy.coerce(timeout) or old.timeout,
        )
        return self

    def add_edge(
        self,
        start_key: str | list[str] | tuple[str, ...],
        end_key: str,
        *,
        join: Literal["all", "taken", "any"] = "all",
    ) -> Self:
        """Run `end_key` after `start_key`; after all of them, if it is a list.

        `join` says when a list fires: when `"all"` sources have run, when
        those `"taken"` have (and nothing else is left to run), or after
        `"any"` of them.

        Raises:
            InvalidGraphError: an end that cannot be one (TP-101).
        """
        self._warn_if_compiled("an edge")
        start: Any = start_key
        end: Any = end_key
        if not isinstance(start, str | list | tuple) or not isinstance(end, str):
            raise InvalidGraphError(
                f"an edge goes from a name (or a list of them) to a name, not from "
                f"{start_key!r} to {end_key!r}",
                hint=edge_hint(start, end),
            )
        if isinstance(start_key, str):
            if start_key == END:
                raise InvalidGraphError("END cannot be a start node")
            if end_key == START:
                raise InvalidGraphError("START cannot be an end node")
            self.edges.add((start_key, end_key))
            return self
        sources = tuple(start_key)
        if not sources:
            raise InvalidGraphError(f"the join into `{end_key}` has no sources")
        for source in sources:
            if source == END:
                raise InvalidGraphError("END cannot be a start node")
            if source not in self.nodes and source != START:
                raise InvalidGraphError(
                    f"Need to add_node `{source}` first",
                    hint=nearest(source, self.nodes),
                )
        if end_key == START:
            raise InvalidGraphError("START cannot be an end node")
        if end_key != END and end_key not in self.nodes:
            raise InvalidGraphError(
                f"Need to add_node `{end_key}` first", hint=nearest(end_key, self.nodes)
            )
        self.waiting_edges.add((sources, end_key))
        self.blueprint.join_policies[sources, end_key] = join
        return self

    def add_conditional_edges(
        self,
        source: str,
        path: Path,
        path_map: dict[Hashable, str] | list[str] | None = None,
    ) -> Self:
        """After `source`, go where `path(state)` says.

        The path answers a node's name, END, a `Send`, or a list of them.
        `path_map` translates answers to names; a list only says which names
        there are. Without it, a `Literal` return annotation says so.

        Raises:
            InvalidGraphError: the same path was added twice, or cannot be
                called (TP-101).
        """
        self._warn_if_compiled("an edge")
        node_names("a conditional edge", [source])
        name, said = name_of(path), self._said(path)
        if name == "<lambda>" or name in self.branches[source]:
            name = self._branch_name(source, name)
        ends = path_map_of(path_map)
        if ends is None:
            ends = {answer: answer for answer in answers_of(said.hints)} or None
        schema = said.schema()
        self.branches[source][name] = Branch(name, action_of(path, name), ends, schema)
        return self

    def _branch_name(self, source: str, name: str) -> str:
        taken = self.branches[source]
        if name not in taken:
            return name
        if name != "<lambda>":
            raise InvalidGraphError(
                f"Branch with name `{name}` already exists for node `{source}`"
            )
        return next(
            f"{name}-{n}"
            for n in range(2, len(taken) + 3)
            if f"{name}-{n}" not in taken
        )

    def add_sequence(self, nodes: Sequence[Any]) -> Self:
        """Add nodes that run one after the other, in this order."""
        if not nodes:
            raise InvalidGraphError("Sequence requires at least one node.")
        previous: str | None = None
        for node in nodes:
            name, action = node if isinstance(node, tuple) else (name_of(node), node)
            self.add_node(name, action)
            if previous is not None:
                self.add_edge(previous, name)
            previous = name
        return self

    def set_entry_point(self, key: str) -> Self:
        """Start with this node: `add_edge(START, key)`."""
        return self.add_edge(START, key)

    def set_conditional_entry_point(
        self, path: Path, path_map: dict[Hashable, str] | list[str] | None = None
    ) -> Self:
        """Start where `path(input)` says."""
        return self.add_conditional_edges(START, path, path_map)

    def set_finish_point(self, key: str) -> Self:
        """End after this node: `add_edge(key, END)`."""
        return self.add_edge(key, END)

    def validate(self, interrupt: Sequence[str] | None = None) -> Self:
        """Check the wiring.

        Raises:
            InvalidGraphError: says what is wrong and where (TP-101).
        """
        validate(self.blueprint, interrupt or ())
        return self

    def lint(self, *, ignore: Collection[str] = ()) -> list[Finding]:
        """Look for mistakes that can be seen without running the graph.

        `ignore` has codes of rules to leave out; docs/lint.md lists them. What
        keeps the graph from being compiled is found as well, under its own code.
        """
        try:
            self.validate()
            plan = PlanMaker(self.blueprint, default()).make("LangGraph", {})
        except InvalidGraphError as error:
            hint = error.hint or "compile() cannot go on from here"
            return [Finding(error.code, "error", error.message, hint)]
        return lint(plan, ignore)

    def compile(
        self,
        checkpointer: Checkpointer = None,
        *,
        cache: Any = None,
        store: Any = None,
        interrupt_before: All | list[str] | None = None,
        interrupt_after: All | list[str] | None = None,
        debug: bool = False,
        name: str | None = None,
        transformers: Sequence[Callable[[tuple[str, ...]], Any]] | None = None,
        semantics: Semantics | None = None,
        store_metadata: Collection[str] | bool | None = None,
    ) -> CompiledStateGraph[StateT, ContextT, InputT, OutputT]:
        """Make a graph that runs. The builder stays as it is.

        `checkpointer` keeps threads; as a subgraph, None inherits the
        parent's, True keeps state across calls, False keeps none.
        `semantics` chooses a preset of `towpath.semantics`. `store_metadata`
        names the keys of a config's `metadata` and `configurable` that are
        stored with checkpoints; True stores all of `metadata`.

        Raises:
            InvalidGraphError: the wiring is wrong (TP-101).
            NoCheckpointerError: breakpoints without a checkpointer (TP-601).
        """
        before, after = frozen(interrupt_before), frozen(interrupt_after)
        self.validate(
            [name for names in (before, after) if names != "*" for name in names]
        )
        chosen = storing(semantics or default(), store_metadata)
        plan = PlanMaker(self.blueprint, chosen).make(
            name or "LangGraph",
            {"interrupt_before": before, "interrupt_after": after, "debug": debug},
        )
        self.compiled = True
        register_schema(*self.blueprint.all_schemas())
        return CompiledStateGraph(
            builder=self,
            plan=plan,
            checkpointer=checkpointer,
            cache=cache,
            store=store,
            debug=debug,
            name=name or "LangGraph",
            stream_mode="updates",
            stream_transformers=transformers,
        )


def storing(chosen: Semantics, asked: Collection[str] | bool | None) -> Semantics:
    """The semantics with what the caller wants to be stored of configs."""
    if asked is None:
        return chosen
    if isinstance(asked, bool):
        return replace(chosen, store_metadata="declared" if asked else ())
    names = (asked,) if isinstance(asked, str) else tuple(asked)
    return replace(chosen, store_metadata=names)


def frozen(names: All | Sequence[str] | None) -> frozenset[str] | str:
    if names == "*":
        return "*"
    return frozenset(node_names("a breakpoint", names))


def renamed(
    where: str, former: dict[str, Any], names: dict[str, str]
) -> dict[str, Any]:
    """Take arguments by names they used to have, with a warning."""
    found = {}
    for old, value in former.items():
        if old not in names:
            raise TypeError(f"{where}() got an unexpected keyword argument '{old}'")
        category = (
            LangGraphDeprecatedSinceV10
            if old == "config_schema"
            else LangGraphDeprecatedSinceV05
        )
        warn_user(
            f"`{old}` is deprecated and will be removed. "
            f"Please use `{names[old]}` instead.",
            category,
        )
        found[names[old]] = value
    return found


class CompiledStateGraph(
    Pregel[StateT, ContextT, InputT, OutputT],
    Generic[StateT, ContextT, InputT, OutputT],
):
    """A `StateGraph` that runs."""

    builder: StateGraph[StateT, ContextT, InputT, OutputT]

    def __init__(
        self,
        *,
        builder: StateGraph[StateT, ContextT, InputT, OutputT],
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.builder = builder
