"""Every error Towpath raises.

A `TowpathError` has a stable `code`, a message with the user's own names in
it, and, where something can be done, a `hint`. Codes are never reused: 1xx
building and wiring, 2xx state and updates, 3xx control and resuming, 4xx
limits, 5xx persistence, 6xx usage. `CODES` maps each code to its class.

Control flow keeps the peer's class tree: `GraphBubbleUp` and what derives
from it are not errors and carry no code. They are `Exception`s, so the engine
can notice when the code of a node swallowed one.
"""

from __future__ import annotations

import enum
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from towpath.interrupts import UNASKED, Interrupt
from towpath.warnings import LangGraphDeprecatedSinceV10

CODES: dict[str, type[TowpathError]] = {}
"""Every code and the class that raises it."""


def nearest(name: object, known: Iterable[str]) -> str:
    """Return " Did you mean `x`?" for the known name nearest to `name`, or ""."""
    from difflib import get_close_matches

    matches = get_close_matches(str(name), list(known), n=1)
    return f" Did you mean `{matches[0]}`?" if matches else ""


def names(several: Iterable[object]) -> str:
    """Quote names for a message: `a`, `b`."""
    return ", ".join(f"`{name}`" for name in several)


def _revive(cls: type[Exception], args: tuple[Any, ...], state: Any) -> Exception:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class _Portable(Exception):  # noqa: N818 - a base, not an error
    """Pickles by its state: `__init__` of a subclass takes other arguments."""

    def __reduce__(self) -> tuple[Callable[..., Exception], tuple[Any, ...]]:
        return _revive, (type(self), self.args, self.__dict__)


class TowpathError(_Portable):
    """The root of all errors that Towpath raises."""

    code: ClassVar[str] = "TP-000"
    """Stable and unique; each has a page in the documentation."""
    hint: str | None = None
    """What to do about it."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # A class of the user's that inherits a code does not take it over.
        if "code" in cls.__dict__:
            assert CODES.setdefault(cls.code, cls) is cls, f"{cls.code} is taken"

    def __init__(self, *args: object, hint: str | None = None) -> None:
        super().__init__(*args)
        if hint is not None:
            self.hint = hint.strip() or None

    @property
    def message(self) -> str:
        """What happened, without the code and the hint."""
        return str(self.args[0]) if self.args else ""

    def __str__(self) -> str:
        text = f"[{self.code}] {self.message}".rstrip()
        return f"{text}\n  hint: {self.hint}" if self.hint else text


CODES[TowpathError.code] = TowpathError


class ErrorCode(enum.Enum):
    """The peer's names of common errors; they appear in messages."""

    GRAPH_RECURSION_LIMIT = "GRAPH_RECURSION_LIMIT"
    INVALID_CONCURRENT_GRAPH_UPDATE = "INVALID_CONCURRENT_GRAPH_UPDATE"
    INVALID_GRAPH_NODE_RETURN_VALUE = "INVALID_GRAPH_NODE_RETURN_VALUE"
    MULTIPLE_SUBGRAPHS = "MULTIPLE_SUBGRAPHS"
    INVALID_CHAT_HISTORY = "INVALID_CHAT_HISTORY"


def create_error_message(*, message: str, error_code: ErrorCode) -> str:
    """Add the peer's name of an error to its message."""
    return f"{message}\nFor troubleshooting, look up {error_code.value}."


# -- 1xx: building and wiring -------------------------------------------------


class InvalidGraphError(TowpathError, ValueError):
    """The graph cannot be built: a wrong node, edge, schema or reducer."""

    code = "TP-101"


class NotAGraphPartError(InvalidGraphError, TypeError):
    """Something of the wrong kind was given for a part of the graph."""


class NoActionError(InvalidGraphError, RuntimeError):
    """A node was added by its name alone."""


class InvalidReducerError(InvalidGraphError):
    """A field's reducer does not take exactly two values."""

    code = "TP-102"


class ChannelConflictError(InvalidGraphError):
    """Two schemas declare one key with different channels."""

    code = "TP-103"


# -- 2xx: state and updates ---------------------------------------------------


class InvalidUpdateError(TowpathError):
    """A node, the input or `update_state` wrote what the state cannot take."""

    code = "TP-201"


class UndeclaredKeyError(InvalidUpdateError):
    """A key was written that no schema of the graph declares."""

    code = "TP-202"


class ConcurrentUpdateError(InvalidUpdateError):
    """Several tasks of one step wrote a channel that keeps a single value.

    `channel` and `tasks` say which; a channel does not know who wrote, so the
    engine adds the tasks with `blame`.
    """

    code = "TP-203"
    hint = "give the key a reducer: Annotated[list, operator.add]"

    channel: str = ""
    tasks: tuple[str, ...] = ()

    @classmethod
    def at(
        cls, channel: str, count: int, *, hint: str | None = None
    ) -> ConcurrentUpdateError:
        """Make the error for `count` writes of a channel that takes one."""
        error = cls(
            _concurrent(channel, f"Can receive only one value per step, got {count}."),
            hint=hint,
        )
        error.channel = channel
        return error

    @classmethod
    def overwrites(cls, channel: str) -> ConcurrentUpdateError:
        """Make the error for a second `Overwrite` in one step."""
        error = cls(
            _concurrent(
                channel, "Can receive only one Overwrite value per super-step."
            ),
            hint="let one task of the step replace the value, or none",
        )
        error.channel = channel
        return error

    def blame(self, tasks: Sequence[str]) -> ConcurrentUpdateError:
        """Make the same error that also names the tasks that wrote."""
        first, _, rest = self.message.partition("\n")
        error = type(self)(
            f"{first} Written by {names(tasks)}.\n{rest}", hint=self.hint
        )
        error.channel, error.tasks = self.channel, tuple(tasks)
        return error


def _concurrent(channel: str, why: str) -> str:
    return create_error_message(
        message=f"At key '{channel}': {why}",
        error_code=ErrorCode.INVALID_CONCURRENT_GRAPH_UPDATE,
    )


class EmptyChannelError(TowpathError):
    """A channel was read that holds nothing."""

    code = "TP-204"


class EmptyInputError(TowpathError):
    """The run has no input to start from."""

    code = "TP-205"


class UnknownNodeError(InvalidUpdateError):
    """A `goto`, a `Send` or a branch names a node that does not exist."""

    code = "TP-206"


class NoDestinationError(UnknownNodeError, ValueError):
    """A branch answered what can be no destination: None, or the start."""


class UnmappedAnswerError(UnknownNodeError, KeyError):
    """A branch answered what its path map does not hold."""


class AmbiguousUpdateError(InvalidUpdateError):
    """`update_state` cannot tell which node the update comes from."""

    code = "TP-207"


class NoUpdatesError(InvalidUpdateError, ValueError):
    """No update was given to `bulk_update_state`, or none for one of its steps."""


class MutatedStateError(InvalidUpdateError):
    """A node changed a state value in place and did not return it."""

    code = "TP-208"


class InvalidReturnError(InvalidUpdateError):
    """A node returned something that is no update of the state."""

    code = "TP-209"


class InvalidValueError(InvalidUpdateError, ValueError):
    """A written value does not pass the validation of its field."""

    code = "TP-210"


# -- 3xx: control and resuming ------------------------------------------------


class GraphBubbleUp(_Portable):
    """Control flow on its way from a node to the engine; never an error."""


class GraphInterrupt(GraphBubbleUp):
    """A task is parked until its questions are answered."""

    def __init__(self, interrupts: Sequence[Interrupt[Any]] = ()) -> None:
        super().__init__(interrupts)


class NodeInterrupt(GraphInterrupt):
    """Deprecated: raise a question from a node. Call `interrupt()` instead."""

    def __init__(self, value: Any, id: str | None = None) -> None:
        warnings.warn(
            "NodeInterrupt is deprecated. "
            "Please use `towpath.types.interrupt` instead.",
            LangGraphDeprecatedSinceV10,
            stacklevel=2,
        )
        super().__init__([Interrupt(value, UNASKED if id is None else id)])


class GraphDrained(GraphBubbleUp):
    """The run stopped between two steps, because it was asked to."""

    def __init__(self, reason: str = "shutdown") -> None:
        super().__init__(f"Graph drained: {reason}")
        self.reason = reason


class ParentCommand(GraphBubbleUp):
    """A command for the parent graph."""

    args: tuple[Any]

    def __init__(self, command: Any) -> None:
        super().__init__(command)


class UnknownInterruptError(TowpathError, RuntimeError):
    """An answer names a question that is not open, or names none of several.

    Programs written for LangGraph catch a `RuntimeError` where it names none.
    """

    code = "TP-301"

    reason: Literal["not_pending", "empty_map", "ambiguous"]
    interrupt_ids: tuple[str, ...]
    pending_ids: tuple[str, ...]

    def __init__(
        self,
        message: str,
        *,
        reason: Literal["not_pending", "empty_map", "ambiguous"],
        interrupt_ids: Sequence[str] = (),
        pending_ids: Sequence[str] = (),
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.reason = reason
        self.interrupt_ids = tuple(interrupt_ids)
        self.pending_ids = tuple(pending_ids)


class NothingToResumeError(TowpathError):
    """An answer came for a thread on which no question is open."""

    code = "TP-302"


class TaskNotFound(TowpathError):  # noqa: N818 - the peer's name
    """A distributed runner asked for a task that the thread does not have."""

    code = "TP-303"


class StalledJoinError(TowpathError):
    """The run ended while a join still waits for a branch nobody took."""

    code = "TP-304"


_INVALID_RESUME = "_towpath_invalid_resume"
_REFUSED = "_towpath_refused"


class UnknownCheckpointError(TowpathError, ValueError):
    """A config names a checkpoint that its thread does not have."""

    code = "TP-306"


class VanishedNodeError(TowpathError):
    """A stopped thread waits for a node that the graph no longer has."""

    code = "TP-305"


class ChangedKeyError(TowpathError):
    """A thread holds a value under a key that now means something else."""

    code = "TP-307"


class UnknownVersionError(TowpathError):
    """A thread was made by a version of the graph that no migration starts from."""

    code = "TP-308"


class MigrationError(TowpathError):
    """A migration returned what cannot be the state of a thread."""

    code = "TP-309"


def mark_invalid_resume(error: BaseException) -> None:
    """Note on an error that it refuses an answer given to `interrupt()`."""
    setattr(error, _INVALID_RESUME, True)


def refuse_answer(error: BaseException, question: str) -> None:
    """Note on an error which question it was that got an answer it refuses."""
    if is_invalid_resume(error):
        setattr(error, _REFUSED, question)


def refused_answer(error: BaseException) -> str | None:
    """The id of the question whose answer an error refuses, if it does."""
    return getattr(error, _REFUSED, None)


def is_invalid_resume(error: BaseException) -> bool:
    """Tell whether an error refuses an answer given to `interrupt()`.

    Code that turns errors into results should let these pass: the question
    stays open, and the caller may answer again.
    """
    return getattr(error, _INVALID_RESUME, False) is True


# -- 4xx: limits, time, cancellation ------------------------------------------


class GraphRecursionError(TowpathError, RecursionError):
    """The run took more supersteps than `recursion_limit` allows."""

    code = "TP-401"


class NodeTimeoutError(TowpathError, TimeoutError):
    """A node ran, or made no progress, for longer than its timeout."""

    code = "TP-402"

    node: str
    elapsed: float
    kind: Literal["idle", "run"]
    idle_timeout: float | None
    run_timeout: float | None
    timeout: float

    def __init__(
        self,
        node: str,
        elapsed: float,
        *,
        kind: Literal["idle", "run"],
        idle_timeout: float | None = None,
        run_timeout: float | None = None,
    ) -> None:
        timeout = idle_timeout if kind == "idle" else run_timeout
        if timeout is None:
            raise ValueError(f"{kind}_timeout is required when kind='{kind}'")
        idly = " without making progress" if kind == "idle" else ""
        super().__init__(
            f"Node '{node}' exceeded its {kind} timeout of "
            f"{timeout:.3f}s{idly} (elapsed: {elapsed:.3f}s)."
        )
        self.node, self.elapsed, self.kind = node, elapsed, kind
        self.idle_timeout, self.run_timeout = idle_timeout, run_timeout
        self.timeout = timeout


class StepTimeoutError(TowpathError, TimeoutError):
    """A superstep took longer than `step_timeout`."""

    code = "TP-403"


class EarlierError(TowpathError):
    """A failure that an earlier run recorded; only its text is left of it."""

    code = "TP-405"


class NodeCancelledError(TowpathError):
    """The code of a node raised `asyncio.CancelledError` by itself."""

    code = "TP-404"

    node: str

    def __init__(
        self, node: str, message: str | None = None, *, hint: str | None = None
    ) -> None:
        what = f"Node '{node}' raised asyncio.CancelledError"
        super().__init__(what if message is None else message, hint=hint)
        self.node = node


@dataclass(frozen=True, slots=True)
class NodeError:
    """What an error handler gets: which node failed, and how."""

    node: str
    error: BaseException


# -- 5xx: persistence ---------------------------------------------------------


class PersistenceError(TowpathError):
    """A checkpoint, a write or a stored item could not be read or kept."""

    code = "TP-501"


class ThreadBusyError(PersistenceError):
    """Another run holds the thread, and this one was told not to wait."""

    code = "TP-502"
    owner: str = ""
    """Which run that is."""


class SerializationError(PersistenceError, TypeError):
    """A value has no exact stored form."""

    code = "TP-503"
    channel: str | None = None
    """The channel it was written to, where that is known."""


class DeserializationError(PersistenceError, ValueError):
    """Stored bytes cannot be read back, or name a class nobody registered."""

    code = "TP-504"


class LeaseLostError(PersistenceError):
    """Another run took the thread over; this one may commit nothing more."""

    code = "TP-505"


class MissingExtraError(PersistenceError, ImportError):
    """A saver, a store or an integration needs packages that are not installed."""

    code = "TP-506"


# -- 6xx: usage and configuration ---------------------------------------------


class NoCheckpointerError(TowpathError, ValueError):
    """The graph has no checkpointer, and this needs one."""

    code = "TP-601"
    hint = "compile the graph with one: builder.compile(checkpointer=...)"


class NoThreadError(NoCheckpointerError, KeyError):
    """The config names no thread whose state could be looked at or edited."""


class UnsavedResumeError(NoCheckpointerError, RuntimeError):
    """An answer was given to a graph that keeps no questions."""


class UnknownNamespaceError(TowpathError, ValueError):
    """A checkpoint namespace fits no subgraph of the graph."""

    code = "TP-602"


class ColourError(TowpathError, TypeError):
    """Something async met a blocking run, or the reverse."""

    code = "TP-603"


class OutsideNodeError(TowpathError, RuntimeError):
    """A function that needs a running node was called outside of one."""

    code = "TP-604"

    def __init__(self, caller: str, *, hint: str | None = None) -> None:
        super().__init__(f"`{caller}` was called outside of a running node", hint=hint)


class InvalidPolicyError(TowpathError, ValueError):
    """A timeout, retry or cache policy makes no sense."""

    code = "TP-605"


class NotAPolicyError(InvalidPolicyError, TypeError):
    """Something of the wrong kind was given for a policy, or in one."""


class InvalidCheckpointerError(TowpathError, TypeError):
    """What was given as a checkpointer is none."""

    code = "TP-606"


class InvalidStoreError(TowpathError, TypeError):
    """What was given as a store is none."""

    code = "TP-608"


class InvalidCacheError(TowpathError, TypeError):
    """What was given as a cache is none."""

    code = "TP-609"


class InvalidTransformerError(TowpathError, TypeError):
    """What was given as a transformer of a run's stream cannot make one."""

    code = "TP-614"
