"""How the code of a node calls a task, and waits for what it returns.

A call is an event for the driver, which hands it to the kernel; the future is
filled when the kernel says that the child is settled. In the driver's own loop
that is an `asyncio` future; anywhere else it is one that a thread can wait for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial
from typing import Any, Protocol, TypeVar

from towpath.call.scope import TaskContext
from towpath.errors import ColourError, GraphInterrupt, NodeCancelledError
from towpath.plan import NodeSpec
from towpath.step.children import Child

T = TypeVar("T")


class AsyncTaskError(ColourError, RuntimeError):
    """An async task was called in a blocking run."""


class TaskFuture(Future[T]):
    """What a task is going to return: wait with `result()`, or await it."""

    def __await__(self) -> Generator[Any, None, T]:
        return asyncio.wrap_future(self).__await__()


class Driver(Protocol):
    """What a run's driver offers to the code of its nodes."""

    blocking: bool
    """Whether it cannot await anything."""

    def loop_here(self) -> asyncio.AbstractEventLoop | None:
        """The driver's loop, if that is what runs this thread."""

    def call(self, child: Child) -> None:
        """Take a call, from any thread."""

    def give_up(self, child: Child) -> None:
        """Nobody waits for this child any more."""


def call(
    context: TaskContext,
    spec: NodeSpec,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Any:
    """Start a task beside the one that runs here; return its future.

    Raises:
        NodeCancelledError: the run of this node is over (TP-404).
        AsyncTaskError: the task is async, and the run blocking (TP-603).
    """
    driver = driver_of(context, spec.name)
    assert spec.action is not None
    if driver.blocking and spec.action.call is None:
        raise AsyncTaskError(
            f"task `{spec.name}` is async, and this is a blocking run",
            hint="use ainvoke or astream, with an async entrypoint",
        )
    child = Child(spec, context.task, context.next_mark())
    child.input = (tuple(args), dict(kwargs))
    child.ctx, child.caller = copy_context(), context
    loop = driver.loop_here()
    future: Any = TaskFuture() if loop is None else loop.create_future()
    if loop is None:
        future.set_running_or_notify_cancel()  # a thread cannot be stopped
        child.answer = partial(fill, future)
    else:
        child.answer = partial(fill_in_loop, future)
        future.add_done_callback(partial(forsaken, driver, child))
    driver.call(child)
    return future


def driver_of(context: TaskContext, name: str) -> Driver:
    """Who drives the run of this node."""
    driver: Driver | None = context.scope.driver
    if driver is None:
        raise NodeCancelledError(name, f"`{name}` was called by a node that is over")
    return driver


def fill(future: Future[Any], child: Child) -> None:
    """Tell a waiting thread how a task ended."""
    if (error := failure(child)) is not None:
        future.set_exception(error)
    else:
        future.set_result(child.value)


def fill_in_loop(future: asyncio.Future[Any], child: Child) -> None:
    """Tell who awaits it, unless nobody does any more."""
    error = failure(child)
    if error is None:
        settle_value(future, child.value)
        return
    settle_error(future, error)
    if isinstance(error, GraphInterrupt) and not future.cancelled():
        future.exception()  # it is asked for by the parent, whoever looks at it


def failure(child: Child) -> BaseException | None:
    """What the caller of a task is raised, if anything."""
    if child.halted:
        return GraphInterrupt(child.interrupts)
    return child.error


def forsaken(driver: Driver, child: Child, future: asyncio.Future[Any]) -> None:
    """Whoever awaited a task was cancelled, and with it the task."""
    if future.cancelled():
        driver.give_up(child)


def settle_value(future: asyncio.Future[Any], value: Any) -> None:
    if not future.done():
        future.set_result(value)


def settle_error(future: asyncio.Future[Any], error: BaseException) -> None:
    if future.done():
        return
    if isinstance(error, StopIteration):
        # A future refuses StopIteration; say what happened instead.
        wrapped = RuntimeError("a node raised StopIteration")
        wrapped.__cause__ = error
        error = wrapped
    future.set_exception(error)


def refuse(child: Child) -> None:
    """Answer a call for which it is too late."""
    what = f"task `{child.name}` was called by a node that is over"
    child.error = NodeCancelledError(child.name, what)
    child.answer(child)
