"""The running task, as the code inside a node sees it.

The engine sets `current` around every node call; `interrupt()`,
`get_runtime()`, `get_config()` and their kind read it. This module knows
nothing of the engine: `Ambient` says what the engine must offer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

from towpath.errors import OutsideNodeError

if TYPE_CHECKING:
    from uuid import UUID  # at run time it takes long to import

__all__ = ("Ambient", "RunnableConfig", "ambient", "current")


class RunnableConfig(TypedDict, total=False):
    """What a caller may say about a run. Every key is optional."""

    tags: list[str]
    """Labels for traces and callbacks."""
    metadata: dict[str, Any]
    """Facts about the run, for traces and checkpoints."""
    callbacks: Any
    """langchain callback handlers, or a manager of them."""
    run_name: str
    """The name of the run in traces."""
    max_concurrency: int | None
    """How many tasks may run at once; `None`: no limit."""
    recursion_limit: int
    """How many supersteps the run may take."""
    configurable: dict[str, Any]
    """`thread_id`, `checkpoint_id`, and whatever the nodes read."""
    run_id: UUID | None
    """The id of the run in traces."""


class Ambient(Protocol):
    """What the running task offers to the code it calls."""

    def ask(self, value: Any, response_schema: Any, key: str | None = None) -> Any:
        """Return the answer to the task's next question, or park the task.

        With a `key`, to the question of that name, whichever is the next.

        Raises:
            GraphInterrupt: no answer has come yet.
        """

    def step(
        self,
        name: str,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        retry: Any = (),
    ) -> Any:
        """Call a function whose result is recorded at once; return that.

        `retry` has the retry policies of the call.
        """

    @property
    def idempotency_key(self) -> str:
        """What stays the same when this runs again, and differs for all else."""

    @property
    def config(self) -> RunnableConfig:
        """The task's config."""

    @property
    def runtime(self) -> Any:
        """The task's `towpath.runtime.Runtime`."""

    @property
    def store(self) -> Any:
        """The graph's store, or None."""

    @property
    def writer(self) -> Any:
        """A callable that sends its argument to the `custom` stream."""

    def tell_message(self, part: Any) -> None:
        """Send a part of a message to listeners of the `messages` stream."""


current: ContextVar[Ambient | None] = ContextVar("towpath_task", default=None)
"""The task that runs in this thread or asyncio task; None outside of one."""


def ambient(caller: str = "this") -> Ambient:
    """Return the running task, on behalf of the function named `caller`.

    Raises:
        OutsideNodeError: no node is running here (TP-604).
    """
    task = current.get()
    if task is None:
        raise OutsideNodeError(caller)
    return task
