"""What waits in an event loop: for the driver, and for the saver."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from threading import get_ident
from typing import Any, Final, Protocol, TypeVar

from towpath.call.children import refuse, settle_error, settle_value
from towpath.drive.common import BACKLOG, bundled
from towpath.kernel.commands import Called
from towpath.kernel.request import Chunk
from towpath.step.children import Child
from towpath.step.tasks import Task

T = TypeVar("T")

# What a driver has for what it has none of: many of them may wait at once.
NONE: Final[frozenset[Task]] = frozenset()
UNHEARD: Final[deque[Chunk]] = deque(maxlen=0)
"""Where chunks go that nobody hears: it keeps none."""


class Stored(Protocol):
    """A saver call that can be made in either colour."""

    def run(self) -> Any:
        """Make it, and wait."""

    async def arun(self) -> Any:
        """Async twin of `run`."""


class Backlog:
    """Saver calls left behind a run, awaited in order by one asyncio task.

    Those that wait are made together. At most `BACKLOG` are not over; then the run
    waits too.
    """

    def __init__(self) -> None:
        self.calls: deque[Stored] = deque()
        self.begun = 0
        self.changed = asyncio.Condition()
        self.error: BaseException | None = None
        self.loop = asyncio.get_running_loop()
        self.task = self.loop.create_task(self.work())

    async def submit(self, call: Stored) -> None:
        async with self.changed:
            await self.changed.wait_for(lambda: len(self.calls) < BACKLOG)
            self.check()
            self.calls.append(call)
            self.changed.notify_all()

    async def work(self) -> None:
        while True:
            async with self.changed:
                await self.changed.wait_for(lambda: self.calls)
                calls = tuple(self.calls)
                self.begun = len(calls)
            try:
                for whole, parts in bundled(calls) if self.error is None else ():
                    await store(whole, parts)
            except BaseException as error:
                self.error = error
            async with self.changed:
                self.begun = 0
                for _ in calls:
                    self.calls.popleft()
                self.changed.notify_all()

    async def flush(self) -> None:
        async with self.changed:
            await self.changed.wait_for(lambda: not self.calls)
            self.check()

    def is_here(self) -> bool:
        """Whether the loop is the one that runs this thread, and waits for it."""
        try:
            return asyncio.get_running_loop() is self.loop
        except RuntimeError:
            return False

    def flush_blocking(self) -> None:
        """Wait in a blocking run until everything is stored.

        In the loop's own thread nothing would happen meanwhile, so what has not
        begun is stored here. What has is before it in the saver's own order.
        """
        if not self.is_here():
            asyncio.run_coroutine_threadsafe(self.flush(), self.loop).result()
            return
        while len(self.calls) > self.begun:
            call = self.calls[self.begun]
            try:
                if self.error is None:
                    call.run()
            except BaseException as error:
                self.error = error
            del self.calls[self.begun]
        self.check()

    def check(self) -> None:
        # Kept: what comes after a checkpoint that is not there has no ground.
        if self.error is not None:
            raise self.error


async def store(whole: Stored, parts: Sequence[Stored]) -> None:
    """Make calls together, or one by one if that fails."""
    try:
        await whole.arun()
    except Exception:
        if len(parts) == 1:
            raise
        for part in parts:
            await part.arun()


class Inbox:
    """What came in; an `asyncio.Queue` costs more than the rest of a short task."""

    __slots__ = ("items", "reader")

    def __init__(self) -> None:
        self.items: list[Any] = []
        self.reader: asyncio.Future[None] | None = None

    def put(self, item: Any) -> None:
        """Take an item, in the loop."""
        self.items.append(item)
        if self.reader is not None and not self.reader.done():
            self.reader.set_result(None)

    async def filled(self) -> None:
        """Wait until there is an item; the driver is the only one who waits."""
        if not self.items:
            self.reader = asyncio.get_running_loop().create_future()
            try:
                await self.reader
            finally:
                self.reader = None


class Host(Protocol):
    """A driver in a loop, to which threads bring things."""

    loop: asyncio.AbstractEventLoop
    ended: bool

    def called(self, child: Child) -> None:
        """Take a call, in the loop."""

    def hand_back(self, task: Task) -> None:
        """Take a task that has run."""


def serve(
    driver: Host, future: asyncio.Future[Any], task: Task, job: Callable[[], Any]
) -> None:
    """Make a call of a task's, in a thread, and settle a future of the loop."""
    task.line = get_ident()
    outcome: Any
    settle: Callable[..., None]
    try:
        outcome, settle = job(), settle_value
    except BaseException as error:
        outcome, settle = error, settle_error
    with suppress(RuntimeError):  # the loop is closed
        driver.loop.call_soon_threadsafe(settle, future, outcome)


def bring(driver: Host, item: Called | Task) -> None:
    """Bring a call, or a task that has run, to the loop from a thread.

    Whoever brings it may wait for an answer, and the loop may be over before its
    next turn. So it lies where the end of the run finds it; and who comes after
    that looks for itself.
    """
    brought(driver).append(item)
    if not driver.ended:
        with suppress(RuntimeError):  # the loop is closed
            driver.loop.call_soon_threadsafe(take, driver)
            return
    turn_away(driver)


def take(driver: Host) -> None:
    """Take what threads have brought, in the loop."""
    for item in drained(brought(driver)):
        if isinstance(item, Called):
            driver.called(item.child)
        else:
            driver.hand_back(item)


def brought(driver: Host) -> deque[Called | Task]:
    """What threads have brought; made for those to which any does, by any thread."""
    there: deque[Called | Task] = vars(driver).setdefault("brought", deque())
    return there


def turn_away(driver: Host) -> None:
    """Answer those for whom it is too late."""
    for item in drained(brought(driver)) if hasattr(driver, "brought") else ():
        child = item.child if isinstance(item, Called) else item
        if isinstance(child, Child):
            refuse(child)


def drained(items: deque[T]) -> Iterator[T]:
    """Take what is there; others may take of it at the same time."""
    while True:
        try:
            yield items.popleft()
        except IndexError:
            return
