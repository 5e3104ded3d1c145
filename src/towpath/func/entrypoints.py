"""`entrypoint`: a function that becomes a graph of one node.

The node is woken by the input, returns the output, and keeps a value for the
next run of the same thread, which is the output unless it says otherwise. These
are three channels; everything else is what every graph has.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Concatenate, Generic, TypeVar, overload

from towpath.channels import EphemeralValue, LastValue
from towpath.constants import END, PREVIOUS, START
from towpath.errors import InvalidGraphError
from towpath.func.functions import (
    Function,
    limit_of,
    name_of,
    refuse_generators,
    renamed,
    retries,
)
from towpath.given import cache_of, cache_policy_of, schema_of, store_of
from towpath.pregel import Pregel
from towpath.pregel.nodes import ChannelWriteEntry, PregelNode
from towpath.types import (
    CachePolicy,
    RetryPolicy,
    TimeoutPolicy,
    ensure_valid_checkpointer,
)
from towpath.typing import ContextT

R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")


class entrypoint(Generic[ContextT]):  # noqa: N801 - it is used as a decorator
    """Make a workflow of a function: a graph with all that graphs have.

    The function takes the input as its first parameter, and by name or annotation
    `config`, `runtime`, `store`, `writer` and `previous`: what it returned the
    last time on the same thread, or gave as `entrypoint.final(save=...)`. What it
    calls that must not happen twice belongs into a `task`.
    """

    @dataclass(slots=True, kw_only=True)
    class final(Generic[R, S]):  # noqa: N801 - the peer's name
        """What a workflow returns, apart from what it keeps for its next run."""

        value: R
        """What the caller gets."""
        save: S
        """What `previous` is in the next run of the thread."""

    def __init__(
        self,
        checkpointer: Any = None,
        store: Any = None,
        cache: Any = None,
        context_schema: type[ContextT] | None = None,
        cache_policy: CachePolicy[Any] | None = None,
        retry_policy: RetryPolicy | Sequence[RetryPolicy] | None = None,
        timeout: float | timedelta | TimeoutPolicy | None = None,
        **former: Any,
    ) -> None:
        named = renamed("entrypoint", former, "retry", "config_schema")
        self.checkpointer = ensure_valid_checkpointer(checkpointer)
        self.store = store_of(store)
        self.cache = cache_of(cache)
        schema = named.get("context_schema", context_schema)
        self.context_schema = schema_of("context schema", schema)
        self.cache_policy = cache_policy_of(cache_policy)
        self.retry_policy = retries(named.get("retry_policy", retry_policy))
        self.timeout = timeout

    @overload
    def __call__(
        self, func: Callable[Concatenate[T, ...], Awaitable[final[R, Any]]]
    ) -> Pregel[None, ContextT, T, R]: ...
    @overload
    def __call__(
        self, func: Callable[Concatenate[T, ...], Awaitable[R]]
    ) -> Pregel[None, ContextT, T, R]: ...
    @overload
    def __call__(
        self, func: Callable[Concatenate[T, ...], final[R, Any]]
    ) -> Pregel[None, ContextT, T, R]: ...
    @overload
    def __call__(
        self, func: Callable[Concatenate[T, ...], R]
    ) -> Pregel[None, ContextT, T, R]: ...
    def __call__(
        self, func: Callable[Concatenate[T, ...], Any]
    ) -> Pregel[None, ContextT, T, Any]:
        """Make the graph.

        Raises:
            GeneratorFunctionError: the function is a generator (TP-101).
            InvalidGraphError: it takes no input, or a parameter that nothing
                fills (TP-101).
            InvalidPolicyError: a timeout, and it is not async (TP-605).
        """
        refuse_generators(func, "entrypoint")
        name = name_of(func)
        given, returned, kept = types_of(func, name)
        node = PregelNode(
            bound=func,
            triggers=[START],
            channels=START,
            writers=[
                ChannelWriteEntry(END, mapper=value_of),
                ChannelWriteEntry(PREVIOUS, mapper=save_of),
            ],
            retry_policy=self.retry_policy,
            cache_policy=self.cache_policy,
            timeout=limit_of(self.timeout, func, "entrypoint"),
        )
        graph: Pregel[None, ContextT, T, Any] = Pregel(
            nodes={name: node},
            channels={
                START: EphemeralValue(given),
                END: LastValue(returned, END),
                PREVIOUS: LastValue(kept, PREVIOUS),
            },
            input_channels=START,
            output_channels=END,
            stream_channels=END,
            stream_mode="updates",
            stream_eager=True,
            checkpointer=self.checkpointer,
            store=self.store,
            cache=self.cache,
            cache_policy=self.cache_policy,
            retry_policy=self.retry_policy,
            context_schema=self.context_schema,
        )
        graph.plan_of_graph.nodes[name].calls = True
        return graph


def value_of(result: Any) -> Any:
    """What the caller gets of a result."""
    return result.value if isinstance(result, entrypoint.final) else result


def save_of(result: Any) -> Any:
    """What is kept of a result for the next run."""
    return result.save if isinstance(result, entrypoint.final) else result


def types_of(func: Function, name: str) -> tuple[Any, Any, Any]:
    """The types of the input, of the output and of what is kept.

    Raises:
        InvalidGraphError: the function takes no input (TP-101).
    """
    signature = inspect.signature(func)
    first = next(iter(signature.parameters.values()), None)
    if first is None:
        raise InvalidGraphError(
            f"entrypoint `{name}` must have at least one parameter: its input"
        )
    try:
        hints = typing.get_type_hints(inspect.unwrap(func))
    except Exception:  # names that only a type checker knows
        hints = {}
    given = hints.get(first.name, Any)
    result = hints.get("return", Any)
    if typing.get_origin(result) is entrypoint.final:
        return (given, *typing.get_args(result))
    if result is entrypoint.final:
        return given, Any, Any
    return given, result, result
