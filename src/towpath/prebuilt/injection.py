"""What a tool gets besides the arguments that a model chose.

A parameter of a tool is filled by the node when its annotation says so:
`Annotated[dict, InjectedState]`, `Annotated[str, InjectedState("field")]`,
`Annotated[BaseStore, InjectedStore()]`, or `ToolRuntime`. Models do not see
such parameters, and what one sends under their names is thrown away.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolArg
from langchain_core.tools.base import (
    _DirectlyInjectedToolArg,
    get_all_basemodel_annotations,
)
from pydantic import BaseModel, PlainSerializer
from typing_extensions import TypeVar

from towpath.checkpoint.serde.registry import register_schema
from towpath.context import ambient
from towpath.prebuilt.errors import MissingFieldError, ToolInputError
from towpath.pregel._tools import _tool_call_writer
from towpath.runtime import ExecutionInfo, ServerInfo
from towpath.store.base import BaseStore
from towpath.types import StreamWriter

StateT = TypeVar("StateT", default=dict[str, Any])
ContextT = TypeVar("ContextT", default=None)

# langchain validates the arguments of tools and dumps them, only for their names;
# the whole state need not be dumped for that, nor fit what a tool says of it.
UNDUMPED: Final = PlainSerializer(lambda _: None)

VAGUE: Final = (Any, object, inspect.Parameter.empty)


class InjectedState(InjectedToolArg):
    """Fill a tool's parameter with the state of the graph, or a field of it.

    As an annotation: `Annotated[dict, InjectedState]` for the state as the node
    got it, `Annotated[list, InjectedState("messages")]` for one field.
    """

    def __init__(self, field: str | None = None) -> None:
        self.field = field


class InjectedStore(InjectedToolArg):
    """Fill a tool's parameter with the store that the graph was compiled with."""


@dataclass
class ToolRuntime(_DirectlyInjectedToolArg, Generic[ContextT, StateT]):
    """What a run gives to a tool besides its arguments.

    A tool gets it as a parameter annotated `ToolRuntime`, whatever its name:

    >>> from langchain_core.tools import tool
    >>> @tool
    ... def whoami(runtime: ToolRuntime) -> str:
    ...     "Tell the user's name."
    ...     return runtime.state["user"]
    """

    state: Annotated[StateT, UNDUMPED]
    """The state as the node got it."""
    context: Annotated[ContextT, UNDUMPED]
    """What the caller passed as `context`."""
    config: Annotated[RunnableConfig, UNDUMPED]
    stream_writer: Annotated[StreamWriter, UNDUMPED]
    """Sends its argument to the `custom` stream."""
    tool_call_id: str | None
    store: Annotated[BaseStore | None, UNDUMPED]
    tools: Annotated[list[BaseTool], UNDUMPED] = field(default_factory=list)
    """All tools of the node."""
    execution_info: ExecutionInfo | None = None
    """Where in the run the node is running; None outside of a graph."""
    server_info: ServerInfo | None = None

    def step(
        self, name: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Any:
        """Call a function and return its result, which is recorded at once.

        As `towpath.runtime.Runtime.step`: a tool that runs again after a question
        or a crash finds what its steps came to. In an async tool it is awaited.
        """
        return ambient("runtime.step").step(name, function, args, kwargs)

    @property
    def idempotency_key(self) -> str:
        """The key of this call, or of the step in it: the same whenever it runs."""
        return ambient("runtime.idempotency_key").idempotency_key

    def emit_output_delta(self, delta: Any) -> None:
        """Send a part of the tool's output to those who stream tool calls."""
        hear = _tool_call_writer.get()
        if hear is not None:
            hear(delta)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> dict[str, Any]:
        del schema, handler
        return {"type": "object"}


@dataclass(frozen=True, slots=True)
class Wanted:
    """The parameters of one tool that are not the model's to choose."""

    states: tuple[tuple[str, str | None], ...] = ()
    """Names with the field of the state that each gets; None: the whole."""
    stores: tuple[str, ...] = ()
    runtimes: tuple[str, ...] = ()
    optional: frozenset[str] = frozenset()
    """Those of them that have a default."""
    withheld: frozenset[str] = frozenset()
    """All that models may not choose, whoever fills them."""

    @property
    def filled(self) -> frozenset[str]:
        """The names that the node fills."""
        return frozenset((*dict(self.states), *self.stores, *self.runtimes))


def wanted(tool: BaseTool) -> Wanted:
    """Look at a tool once, and say what it wants."""
    states: list[tuple[str, str | None]] = []
    stores: list[str] = []
    runtimes: list[str] = []
    withheld: set[str] = set()
    for name, annotation in annotations_of(tool).items():
        marks = tuple(marks_in(annotation))
        state = next((m for m in marks if is_kind(m, InjectedState)), None)
        if state is not None:
            states.append((name, getattr(state, "field", None)))
        elif any(is_kind(m, InjectedStore) for m in marks):
            stores.append(name)
        elif any(is_kind(m, ToolRuntime) for m in marks) or (
            name == "runtime" and annotation in VAGUE
        ):
            runtimes.append(name)
        elif not any(is_kind(m, InjectedToolArg) for m in marks):
            continue
        withheld.add(name)
    return Wanted(
        tuple(states),
        tuple(stores),
        tuple(runtimes),
        frozenset(name for name in withheld if has_default(tool, name)),
        frozenset(withheld),
    )


def function_of(tool: BaseTool) -> Any:
    """The user's function in a tool."""
    function = getattr(tool, "func", None) or getattr(tool, "coroutine", None)
    return function or tool._run  # noqa: SLF001 - what langchain lets tools define


def hints_of(tool: BaseTool) -> dict[str, Any]:
    """The annotations of a tool's function, if they can be evaluated."""
    try:
        return get_type_hints(function_of(tool), include_extras=True)
    except (TypeError, NameError, AttributeError):
        return {}


def parameters_of(tool: BaseTool) -> Mapping[str, inspect.Parameter]:
    """The parameters of a tool's function, if it tells them."""
    try:
        return inspect.signature(function_of(tool)).parameters
    except (TypeError, ValueError):
        return {}


def declare_result(tool: BaseTool) -> None:
    """Let be stored what a tool says it returns: artifacts are, with their messages."""
    hints = hints_of(tool)
    if "return" in hints:
        register_schema(hints["return"])


def annotations_of(tool: BaseTool) -> dict[str, Any]:
    """The parameters of a tool: those of its function, and of its schema."""
    found = {name: p.annotation for name, p in parameters_of(tool).items()}
    found.update(hints_of(tool))
    found.pop("return", None)
    schema = tool.args_schema or tool.get_input_schema()
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        own = get_all_basemodel_annotations(schema)
        found.update({k: v for k, v in own.items() if k not in found or v is not Any})
    return found


def marks_in(annotation: Any) -> Iterator[Any]:
    """The classes and the metadata that an annotation is made of."""
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *metadata = get_args(annotation)
        yield from metadata
        yield from marks_in(inner)
    elif origin is Union or origin is types.UnionType:
        for part in get_args(annotation):
            yield from marks_in(part)
    else:
        yield origin or annotation


def is_kind(mark: Any, kind: type) -> bool:
    """Whether a mark is a class of this kind, or an instance of it."""
    both = (kind, _DirectlyInjectedToolArg) if kind is InjectedToolArg else (kind,)
    if isinstance(mark, type):
        return issubclass(mark, both)
    return isinstance(mark, both)


def has_default(tool: BaseTool, name: str) -> bool:
    """Whether a tool can be called without this parameter."""
    parameter = parameters_of(tool).get(name)
    if parameter is not None and parameter.default is not parameter.empty:
        return True
    fields = getattr(tool.args_schema, "model_fields", {})
    return name in fields and not fields[name].is_required()


def filled(
    tool: BaseTool,
    want: Wanted,
    args: Mapping[str, Any],
    runtime: ToolRuntime[Any, Any],
    state: Any,
    messages_key: str,
) -> dict[str, Any]:
    """The arguments of a call with those added that are not the model's.

    Raises:
        ToolInputError: the state or the graph does not have what the tool wants.
    """
    complete = {k: v for k, v in args.items() if k not in want.withheld}
    for name, wished in want.states:
        if isinstance(state, list):
            state = as_state(tool, state, wished, messages_key)
        if wished is None:
            complete[name] = state
        elif has_field(state, wished):
            complete[name] = field_of(state, wished)
        elif name not in want.optional:
            raise MissingFieldError(
                f"tool `{tool.name}` wants the field `{wished}` of the state, "
                "which is not there",
                hint="pass the whole state to the tool node, or give the parameter "
                "a default",
            )
    for name in want.stores:
        if runtime.store is None and name not in want.optional:
            raise ToolInputError(
                f"tool `{tool.name}` wants a store, and the graph has none",
                hint="compile the graph with one: compile(store=InMemoryStore())",
            )
        complete[name] = runtime.store
    complete.update(dict.fromkeys(want.runtimes, runtime))
    return complete


def as_state(
    tool: BaseTool, messages: list[Any], wished: str | None, messages_key: str
) -> dict[str, Any]:
    """A bare list of messages as the state that it stands for."""
    if wished not in (None, messages_key):
        raise ToolInputError(
            f"tool `{tool.name}` wants the field `{wished}` of the state, but the "
            "tool node was given a list of messages",
            hint=f"pass a dict with `{messages_key}` and `{wished}`",
        )
    return {messages_key: messages}


def has_field(state: Any, name: str) -> bool:
    return name in state if isinstance(state, Mapping) else hasattr(state, name)


def field_of(state: Any, name: str) -> Any:
    return state[name] if isinstance(state, Mapping) else getattr(state, name)
