"""What users write or receive: commands, policies, snapshots, stream parts.

Values only. Nothing here runs a graph, reads a clock or imports a third
party's package; `interrupt` asks the running task through `towpath.context`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import InitVar, dataclass
from datetime import timedelta
from inspect import get_annotations
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Literal,
    NamedTuple,
    Protocol,
    TypeAlias,
    TypeVar,
    get_origin,
    overload,
)
from weakref import WeakKeyDictionary

from towpath.constants import MISSING, ROOT
from towpath.context import RunnableConfig, ambient
from towpath.errors import (
    InvalidCheckpointerError,
    InvalidPolicyError,
    NotAPolicyError,
)
from towpath.interrupts import Interrupt
from towpath.parts import (
    CheckpointPayload,
    CheckpointStreamPart,
    CheckpointTask,
    CustomStreamPart,
    DebugPayload,
    DebugStreamPart,
    GraphOutput,
    MessagesStreamPart,
    PregelTask,
    StateSnapshot,
    StreamPart,
    TaskPayload,
    TaskResultPayload,
    TasksStreamPart,
    UpdatesStreamPart,
    ValuesStreamPart,
)
from towpath.policies import (
    CacheKey,
    CachePolicy,
    RetryPolicy,
    TracePolicy,
    default_cache_key,
    default_retry_on,
    omit_payload,
)

__all__ = (
    "All",
    "CacheKey",
    "CachePolicy",
    "CheckpointPayload",
    "CheckpointStreamPart",
    "CheckpointTask",
    "Checkpointer",
    "Command",
    "CustomStreamPart",
    "DebugPayload",
    "DebugStreamPart",
    "Durability",
    "GraphOutput",
    "Interrupt",
    "MessagesStreamPart",
    "Overwrite",
    "PregelExecutableTask",
    "PregelTask",
    "RetryPolicy",
    "RunnableConfig",
    "Send",
    "StateSnapshot",
    "StateUpdate",
    "StreamMode",
    "StreamPart",
    "StreamWriter",
    "TaskPayload",
    "TaskResultPayload",
    "TasksStreamPart",
    "TimeoutPolicy",
    "TracePolicy",
    "UpdatesStreamPart",
    "ValuesStreamPart",
    "default_cache_key",
    "default_retry_on",
    "ensure_valid_checkpointer",
    "interrupt",
    "omit_payload",
)

N = TypeVar("N", bound=Hashable)
A = TypeVar("A")

Durability: TypeAlias = Literal["sync", "async", "exit"]
"""When a step must be on disk: before the next, while it runs, or at the end."""

All: TypeAlias = Literal["*"]
"""Every node."""

StreamMode: TypeAlias = Literal[
    "values", "updates", "checkpoints", "tasks", "debug", "messages", "custom"
]
"""What `stream` yields; several may be asked for at once."""

StreamWriter: TypeAlias = Callable[[Any], None]
"""Sends its argument to the `custom` stream."""


# -- values a node returns or a caller sends ----------------------------------


class Send:
    """Run `node` in the next step with `arg` as its state.

    Returned from a branch or in `Command(goto=...)`. Several to one node are
    several tasks.
    """

    __slots__ = ("arg", "node", "timeout")

    node: str
    arg: Any
    timeout: TimeoutPolicy | None

    def __init__(
        self,
        /,
        node: str,
        arg: Any,
        *,
        timeout: float | timedelta | TimeoutPolicy | None = None,
    ) -> None:
        self.node = node
        self.arg = arg
        self.timeout = None if timeout is None else TimeoutPolicy.coerce(timeout)

    def __hash__(self) -> int:
        return hash((self.node, self.arg, self.timeout))

    def __repr__(self) -> str:
        timeout = "" if self.timeout is None else f", timeout={self.timeout!r}"
        return f"Send(node={self.node!r}, arg={self.arg!r}{timeout})"

    def __eq__(self, value: object) -> bool:
        return (
            isinstance(value, Send)
            and self.node == value.node
            and self.arg == value.arg
            and self.timeout == value.timeout
        )


class _Returnable:
    """An empty base of `Command`.

    langchain tells what a tool may return by a base class of its own. Its
    adapter adds that base to `Command` at run time, which Python allows only
    where the instances have a `__dict__` already.
    """


# No slots: a slotted frozen class cannot be called as `Command[str](...)`.
@dataclass(frozen=True, init=False, repr=False)
class Command(_Returnable, Generic[N]):
    """Update the state, answer questions, and choose what runs next, in one.

    `resume=None` is a legal answer: `has_resume` tells it from no answer.
    """

    graph: str | None = None
    """Which graph it is for: None for this one, or `Command.PARENT`."""
    update: Any | None = None
    """The update of the state."""
    resume: dict[str, Any] | Any | None = None
    """The answer to the open question, or a map of answers by question id."""
    goto: Send | Sequence[Send | N] | N = ()
    """What runs next: the name of a node, a `Send`, or several of them."""

    PARENT: ClassVar[Literal["__parent__"]] = "__parent__"

    if TYPE_CHECKING:

        @property
        def has_resume(self) -> bool:
            """Whether there is an answer, None included."""

    else:
        # An `InitVar` is no field, so `fields` and `asdict` know four, as the
        # peer's; but `replace` reads it and hands it on.
        has_resume: InitVar[bool] = property(lambda self: self.__dict__["answers"])

    def __init__(
        self,
        *,
        graph: str | None = None,
        update: Any | None = None,
        resume: dict[str, Any] | Any | None = MISSING,
        goto: Send | Sequence[Send | N] | N = (),
        has_resume: bool | None = None,
    ) -> None:
        given = resume is not MISSING
        fields = self.__dict__  # the class is frozen
        fields["graph"] = graph
        fields["update"] = update
        fields["resume"] = resume if given else None
        fields["goto"] = goto
        # An answer put in by `replace` is one, whatever there was before.
        said = resume is not None or has_resume is None
        fields["answers"] = given if said else has_resume

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{name}={value!r}"
            for name in ("graph", "update", "resume", "goto")
            if (value := getattr(self, name)) or (name == "resume" and self.has_resume)
        )
        return f"Command({shown})"

    def __reduce__(self) -> tuple[Any, ...]:
        resume = self.resume if self.has_resume else MISSING
        return _command, (type(self), self.graph, self.update, resume, self.goto)

    def _update_as_tuples(self) -> Sequence[tuple[str, Any]]:
        """Return the update as (key, value) writes."""
        return update_as_tuples(self.update)


def _command(cls: type[Command[Any]], *fields: Any) -> Command[Any]:
    graph, update, resume, goto = fields
    return cls(graph=graph, update=update, resume=resume, goto=goto)


@dataclass(slots=True)
class Overwrite:
    """Put `value` in place of what a reducer holds, instead of folding it in.

    One per key and step: a second one is an `InvalidUpdateError`.
    """

    value: Any
    type: Literal["__overwrite__"] = "__overwrite__"


@overload
def interrupt(value: Any, *, response_schema: type[A], key: str | None = None) -> A: ...
@overload
def interrupt(
    value: Any, *, response_schema: Any = None, key: str | None = None
) -> Any: ...
def interrupt(
    value: Any, *, response_schema: Any = None, key: str | None = None
) -> Any:
    """Ask a person: stop the run, and return the answer once it is resumed.

    The first time, the task is parked with `value` as its question, and the
    run ends when the other tasks of the step are done. Resumed by
    `Command(resume=answer)`, the node runs again from its start, and this
    call returns the answer. Several calls in a node are told apart by their
    order, or by their `key`: an answer to a question with a key reaches that
    question and no other, whatever is asked before it when the node runs again.
    It can be given by key, too: `Command(resume={"budget": 100})`. The same key
    asked twice in a task is one question.

    Raises:
        GraphInterrupt: to park the task; let it pass.
        OutsideNodeError: no node is running here (TP-604).
        NoCheckpointerError: nothing could be kept until the answer (TP-601).
    """
    return ambient("interrupt").ask(value, response_schema, key)


class StateUpdate(NamedTuple):
    """One update of `bulk_update_state`, as if the node had made it."""

    values: dict[str, Any] | None
    as_node: str | None = None
    task_id: str | None = None


# -- what an object writes ----------------------------------------------------


_KEYS: WeakKeyDictionary[type, tuple[str, ...]] = WeakKeyDictionary()


def annotated_keys(cls: type) -> tuple[str, ...]:
    """Return the names that a class and its bases annotate, bases first.

    Those are the names that its instances can write; class variables are not.
    """
    keys = _KEYS.get(cls)
    if keys is None:
        found: dict[str, None] = {}
        for base in reversed(cls.__mro__):
            own = get_annotations(base)
            found.update((k, None) for k in own if not _is_class_variable(own[k]))
        keys = _KEYS[cls] = tuple(found)
    return keys


def _is_class_variable(annotation: Any) -> bool:
    if isinstance(annotation, str):
        return annotation.partition("[")[0].rpartition(".")[2] == "ClassVar"
    return annotation is ClassVar or get_origin(annotation) is ClassVar


def attributes_of(value: Any) -> list[tuple[str, Any]]:
    """Return what an object with annotated attributes writes: those it has.

    Of a pydantic model, a field that is None because nobody set it is left
    out: it says nothing about the state.
    """
    cls = type(value)
    chosen = getattr(value, "model_fields_set", None)
    if chosen is None:
        return [
            (key, getattr(value, key))
            for key in annotated_keys(cls)
            if hasattr(value, key)
        ]
    pairs = [
        (key, getattr(value, key)) for key in cls.model_fields if hasattr(value, key)
    ]
    return [(k, v) for k, v in pairs if v is not None or k in chosen]


def update_as_tuples(update: Any) -> Sequence[tuple[str, Any]]:
    """Return the (key, value) writes of an update of any form."""
    if isinstance(update, dict):
        return list(update.items())
    if isinstance(update, (list, tuple)) and all(
        isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str)
        for pair in update
    ):
        return update
    if update is None:
        return []
    if not isinstance(update, type) and annotated_keys(type(update)):
        return attributes_of(update)
    return [(ROOT, update)]


# -- policies -----------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeoutPolicy:
    """How long one attempt of a node may take. Seconds, or a timedelta."""

    run_timeout: float | timedelta | None = None
    """From start to end."""
    idle_timeout: float | timedelta | None = None
    """Between two signs of progress."""
    refresh_on: Literal["auto", "heartbeat"] = "auto"
    """What is progress: any write or chunk, or only `runtime.heartbeat()`."""

    @classmethod
    def coerce(
        cls, value: float | timedelta | TimeoutPolicy | None
    ) -> TimeoutPolicy | None:
        """Make a policy in seconds; None when there is no limit.

        Raises:
            InvalidPolicyError: a limit is not above zero (TP-605).
        """
        if value is None:
            return None
        policy = value if isinstance(value, TimeoutPolicy) else cls(run_timeout=value)
        if policy.refresh_on not in ("auto", "heartbeat"):
            raise InvalidPolicyError("refresh_on must be 'auto' or 'heartbeat'")
        run = _seconds("run_timeout", policy.run_timeout)
        idle = _seconds("idle_timeout", policy.idle_timeout)
        if run is None and idle is None:
            return None
        return cls(run_timeout=run, idle_timeout=idle, refresh_on=policy.refresh_on)


def _seconds(name: str, value: float | timedelta | None) -> float | None:
    if value is None:
        return None
    try:
        seconds = (
            value.total_seconds() if isinstance(value, timedelta) else float(value)
        )
    except (TypeError, ValueError) as error:
        raise NotAPolicyError(f"{name} is no number: {value!r}") from error
    if seconds <= 0:
        raise InvalidPolicyError(f"{name} must be greater than 0")
    return seconds


# -- checkpointers ------------------------------------------------------------


class Saver(Protocol):
    """The part of a checkpointer by which one is recognised."""

    def get_tuple(self, config: RunnableConfig) -> Any:
        """Return a checkpoint with its metadata, or None."""

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Keep the writes of a finished task."""


Checkpointer: TypeAlias = bool | Saver | Any | None
"""A saver; None: the parent's; True: the parent's, across calls; False: none."""


def ensure_valid_checkpointer(checkpointer: Checkpointer) -> Checkpointer:
    """Return a checkpointer that is one.

    Raises:
        InvalidCheckpointerError: it is none (TP-606).
    """
    if checkpointer is None or isinstance(checkpointer, bool):
        return checkpointer
    usable = hasattr(checkpointer, "get_tuple") and hasattr(checkpointer, "put_writes")
    if usable and not isinstance(checkpointer, type):
        return checkpointer
    raise InvalidCheckpointerError(
        "Invalid checkpointer provided. Expected an instance of "
        "`BaseCheckpointSaver`, `True`, `False`, or `None`. "
        f"Received {getattr(checkpointer, '__name__', type(checkpointer).__name__)}.",
        hint="pass a saver such as InMemorySaver()",
    )


@dataclass(frozen=True, slots=True)
class PregelExecutableTask:
    """A task as a runner of the peer's kind gets it."""

    name: str
    input: Any
    proc: Any
    writes: deque[tuple[str, Any]]
    config: RunnableConfig
    triggers: Sequence[str]
    retry_policy: Sequence[RetryPolicy]
    cache_key: CacheKey | None
    id: str
    path: tuple[str | int | tuple[Any, ...], ...]
    writers: Sequence[Any] = ()
    subgraphs: Sequence[Any] = ()
    timeout: TimeoutPolicy | None = None
