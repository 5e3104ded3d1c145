"""How the code of a node calls a task, and waits for what it returns.

A call is an event for the driver, which hands it to the kernel; the future is
filled when the kernel says that the child is settled. In the driver's own loop
that is an `asyncio` future; anywhere else it is one that a thread can wait for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial
from hashlib import blake2b
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

from towpath.errors import ColourError, GraphInterrupt, NodeCancelledError
from towpath.plan import NodeSpec
from towpath.policies import default_cache_key
from towpath.step.children import Child
from towpath.step.tasks import Task

T = TypeVar("T")


class AsyncTaskError(ColourError, RuntimeError):
    """An async task was called in a blocking run."""


class TaskFuture(Future[T]):
    """What a task is going to return: wait with `result()`, or await it."""

    def __await__(self) -> Generator[Any, None, T]:
        return asyncio.wrap_future(self).__await__()


class Caller(Protocol):
    """The context of a running task that calls others."""

    scope: Any
    task: Task


class Driver(Protocol):
    """What a run's driver offers to the code of its nodes."""

    blocking: bool
    """Whether it cannot await anything."""

    def loop_here(self) -> asyncio.AbstractEventLoop | None:
        """The driver's loop, if that is what runs this thread."""

    def in_line(self, task: Task) -> bool:
        """Whether this is the thread or asyncio task that runs a task's own code."""

    def call(self, child: Child) -> None:
        """Take a call, from any thread."""

    def run_here(self, child: Child) -> None:
        """Run a child to its end in this thread."""

    def hand_back(self, child: Child) -> None:
        """Take a child that has run, from any thread."""

    def give_up(self, child: Child) -> None:
        """Nobody waits for this child any more."""


Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def in_line(caller: Caller) -> bool:
    """Whether a call is made by a task's own line of code."""
    driver: Driver | None = caller.scope.driver
    return driver is None or driver.in_line(caller.task)


def digest_of(given: Arguments) -> str:
    """What tells these arguments from others; "?" of what cannot be written down."""
    args, kwargs = given
    try:
        key = default_cache_key(*args, **kwargs)
    except Exception:  # users' objects may refuse
        return "?"
    assert isinstance(key, bytes)
    return blake2b(key, digest_size=12).hexdigest()


def check_name(what: str, name: object) -> None:
    """Refuse a name that is no text: it becomes part of ids.

    Raises:
        TypeError: what it is instead.
    """
    if not isinstance(name, str):
        raise TypeError(
            f"the name of a {what} must be a str, not {type(name).__name__}"
        )


def child_of(caller: Caller, spec: NodeSpec, mark: Any, given: Arguments) -> Child:
    """A call of a task by the task that runs here."""
    child = Child(spec, caller.task, mark)
    child.input = given
    child.ctx, child.caller = copy_context(), caller
    return child


def start(caller: Caller, spec: NodeSpec, mark: Any, given: Arguments) -> Any:
    """Start a task beside the one that runs here; return its future.

    Raises:
        NodeCancelledError: the run of this node is over (TP-404).
        AsyncTaskError: the task is async, and the run blocking (TP-603).
    """
    driver = driver_of(caller, spec.name)
    assert spec.action is not None
    if driver.blocking and spec.action.call is None:
        raise AsyncTaskError(
            f"task `{spec.name}` is async, and this is a blocking run",
            hint="use ainvoke or astream, with an async entrypoint",
        )
    child = child_of(caller, spec, mark, given)
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


def step(caller: Caller, spec: NodeSpec, mark: str, given: Arguments) -> Any:
    """Have a step's result recorded: in a thread, run it here and return that.

    In the driver's loop, and where only that can run it, it is started as a task.

    Raises:
        NodeCancelledError: the run of this node is over (TP-404).
        AsyncTaskError: the function is async, and the run blocking (TP-603).
    """
    driver = driver_of(caller, spec.name)
    assert spec.action is not None
    if driver.loop_here() is not None:
        return start(caller, spec, mark, given)
    if spec.action.call is None:
        return start(caller, spec, mark, given).result()
    child = child_of(caller, spec, mark, given)
    child.inline = child.lent = True
    repeats = spec.retry or caller.task.spec.retry
    if caller.scope.req.saver is None and not repeats:
        driver.run_here(child)  # nothing would be found again
        child.done = child.error is None and not child.halted
    else:
        answers: SimpleQueue[Child] = SimpleQueue()
        child.answer = answers.put
        driver.call(child)
        answers.get()
        while not child.settled:  # it may begin, the first time or again
            driver.run_here(child)
            driver.hand_back(child)
            answers.get()
    if (error := failure(child)) is not None:
        raise error
    return child.value


def driver_of(caller: Caller, name: str) -> Driver:
    """Who drives the run of this node."""
    driver: Driver | None = caller.scope.driver
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
    # A question is asked by the parent, and what was given up is no news to whoever
    # gave up the run: asyncio must not complain that nobody looked.
    expected = isinstance(error, GraphInterrupt | asyncio.CancelledError)
    if (expected or child.stopped) and not future.cancelled():
        future.exception()


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
