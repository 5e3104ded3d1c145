"""`Runtime`: what a run gives to its nodes besides the state.

A node gets it as a parameter annotated `Runtime[Context]`, or by
`get_runtime()`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import (
    Any,
    Generic,
    ParamSpec,
    Protocol,
    TypedDict,
    TypeVar,
    Unpack,
    overload,
    runtime_checkable,
)

from towpath.context import ambient
from towpath.errors import TowpathError
from towpath.given import retry_policies
from towpath.policies import RetryPolicy
from towpath.store.base import BaseStore

__all__ = (
    "BaseUser",
    "ExecutionInfo",
    "RunControl",
    "Runtime",
    "ServerInfo",
    "get_runtime",
)

ContextT = TypeVar("ContextT", bound=Any)
P = ParamSpec("P")
T = TypeVar("T")


class UnsetExecutionInfoError(TowpathError, RuntimeError):
    """The execution info of a runtime was patched before there was one."""

    code = "TP-607"


@runtime_checkable
class BaseUser(Protocol):
    """The user on whose behalf a server runs the graph."""

    @property
    def is_authenticated(self) -> bool:
        """Whether the user proved who it is."""

    @property
    def display_name(self) -> str:
        """A name to show."""

    @property
    def identity(self) -> str:
        """The unique name of the user."""

    @property
    def permissions(self) -> Any:
        """What the user may do: a sequence of names."""

    def __getitem__(self, key: str) -> Any:
        """Return a further attribute."""

    def __contains__(self, key: str) -> bool:
        """Tell whether there is a further attribute."""

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the further attributes."""


@dataclass(frozen=True, slots=True)
class ExecutionInfo:
    """Where in a run a node is running."""

    checkpoint_id: str
    """The checkpoint the step started from."""
    checkpoint_ns: str
    """The namespace of the task: its path through nested graphs."""
    task_id: str
    thread_id: str | None = None
    """None without a checkpointer."""
    run_id: str | None = None
    node_attempt: int = 1
    """1 for the first attempt, then one more per retry."""
    node_first_attempt_time: float | None = None
    """When the first attempt began, in seconds since the epoch."""

    def patch(self, **overrides: Any) -> ExecutionInfo:
        """Return a copy with some fields replaced."""
        return replace(self, **overrides)


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """Which server deployment runs the graph, and for whom."""

    assistant_id: str
    graph_id: str
    user: BaseUser | None = None


class RunControl:
    """A handle by which another thread asks a run to stop.

    The run finishes its step, saves, and raises `GraphDrained`; it can be
    resumed later.
    """

    __slots__ = ("drain_reason", "thread_id")

    drain_reason: str | None
    """Why the run was asked to stop, if it was."""
    thread_id: str | None
    """The thread that the run went to, when its own was busy (`on_busy="fork"`)."""

    def __init__(self) -> None:
        # One reference, written and read whole: no lock is needed.
        self.drain_reason = None
        self.thread_id = None

    def request_drain(self, reason: str = "shutdown") -> None:
        """Ask the run to stop after the step it is in."""
        self.drain_reason = reason

    @property
    def drain_requested(self) -> bool:
        """Whether the run was asked to stop."""
        return self.drain_reason is not None


def _no_op_stream_writer(_chunk: Any) -> None:
    """Stream nothing: nobody listens to `custom`."""


def _no_op_heartbeat() -> None:
    """Refresh nothing: there is no idle timeout."""


class _Overrides(TypedDict, Generic[ContextT], total=False):
    context: ContextT
    store: BaseStore | None
    stream_writer: Callable[[Any], None]
    heartbeat: Callable[[], None]
    previous: Any
    execution_info: ExecutionInfo | None
    server_info: ServerInfo | None
    control: RunControl | None


# No slots: a slotted frozen class cannot be called as `Runtime[Context]()`.
@dataclass(frozen=True, kw_only=True)
class Runtime(Generic[ContextT]):
    """What a run gives to its nodes besides the state."""

    context: ContextT = None  # type: ignore[assignment]  # None is the default context
    """What the caller passed as `context`."""
    store: BaseStore | None = None
    """The store that the graph was compiled with."""
    stream_writer: Callable[[Any], None] = _no_op_stream_writer
    """Sends its argument to the `custom` stream."""
    heartbeat: Callable[[], None] = _no_op_heartbeat
    """Tells that the node is making progress, for its idle timeout."""
    previous: Any = None
    """What an entrypoint returned the last time, on the same thread."""
    execution_info: ExecutionInfo | None = None
    """Where in the run the node is running."""
    server_info: ServerInfo | None = None
    """Which deployment runs the graph; None outside of a server."""
    control: RunControl | None = None
    """The handle by which the run can be asked to stop."""

    @overload
    def step(
        self,
        name: str,
        function: Callable[..., Any],
        /,
        *args: Any,
        retry_policy: RetryPolicy | Sequence[RetryPolicy] | None,
        **kwargs: Any,
    ) -> Any: ...
    @overload
    def step(
        self,
        name: str,
        function: Callable[P, Awaitable[T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Awaitable[T]: ...
    # In an async node, what another function returns must be awaited, too.
    @overload
    def step(
        self,
        name: str,
        function: Callable[P, Any],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Any: ...
    def step(
        self,
        name: str,
        function: Callable[..., Any],
        /,
        *args: Any,
        retry_policy: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Call a function and return its result, which is recorded at once.

        When the node runs again, after a question, in another attempt or another
        process, the recorded result is returned and nothing is called. Steps are
        told apart by name, those of one name by their order. In an async node the
        result must be awaited, whatever the function is. Without a checkpointer
        the function is only called.

        What crashes while it runs is run again: `idempotency_key` tells whoever it
        talks to that it is the same. One that fails is tried again as `retry_policy`
        says, before the node hears of it. (Steps of this kind are those of DBOS and
        Restate.)

        Raises:
            OutsideNodeError: no node is running here (TP-604).
            AsyncTaskError: the function is async, and the run blocking (TP-603).
            InvalidPolicyError: the retry policy is none (TP-605).
            TypeError: the name is no text.
            Exception: what the function raised.
        """
        policies = retry_policies(retry_policy) or ()
        return ambient("runtime.step").step(name, function, args, kwargs, policies)

    @property
    def idempotency_key(self) -> str:
        """The key of the step, task or node that runs here.

        It is the same whenever that runs again, and no other has it: hand it to
        services that take one, so that what is repeated has no effect twice.

        Raises:
            OutsideNodeError: no node is running here (TP-604).
        """
        return ambient("runtime.idempotency_key").idempotency_key

    @property
    def drain_requested(self) -> bool:
        """Whether the run was asked to stop."""
        return self.control is not None and self.control.drain_requested

    @property
    def drain_reason(self) -> str | None:
        """Why the run was asked to stop, if it was."""
        return None if self.control is None else self.control.drain_reason

    def merge(self, other: Runtime[ContextT]) -> Runtime[ContextT]:
        """Return the runtime in which `other` wins where it says something."""
        writer, beat = other.stream_writer, other.heartbeat
        return Runtime(
            context=other.context or self.context,
            store=other.store or self.store,
            stream_writer=(
                self.stream_writer if writer is _no_op_stream_writer else writer
            ),
            heartbeat=self.heartbeat if beat is _no_op_heartbeat else beat,
            previous=self.previous if other.previous is None else other.previous,
            execution_info=other.execution_info or self.execution_info,
            server_info=other.server_info or self.server_info,
            control=other.control or self.control,
        )

    def override(self, **overrides: Unpack[_Overrides[ContextT]]) -> Runtime[ContextT]:
        """Return a copy with some fields replaced."""
        return replace(self, **overrides)

    def patch_execution_info(self, **overrides: Any) -> Runtime[ContextT]:
        """Return a copy with some fields of `execution_info` replaced.

        Raises:
            UnsetExecutionInfoError: there is none yet (TP-607).
        """
        if self.execution_info is None:
            raise UnsetExecutionInfoError(
                "Cannot patch execution_info before it has been set"
            )
        return replace(self, execution_info=self.execution_info.patch(**overrides))


DEFAULT_RUNTIME: Runtime[Any] = Runtime()
"""The runtime of a run that was given nothing."""


def get_runtime(context_schema: type[ContextT] | None = None) -> Runtime[ContextT]:  # noqa: ARG001
    """Return the runtime of the running task.

    `context_schema` is for type checkers only.

    Raises:
        OutsideNodeError: no node is running here (TP-604).
    """
    runtime: Runtime[ContextT] = ambient("get_runtime").runtime
    return runtime
