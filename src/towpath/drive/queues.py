"""What waits in an event loop: for the driver, and for the saver."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import get_ident
from typing import Any, Final, Protocol, TypeVar

from towpath.call.children import refuse, settle_error, settle_value
from towpath.drive.common import BACKLOG
from towpath.drive.waiting import Waiting
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
    waits too. The task is there as long as there are any. One that is cancelled, as
    all are when a loop is to end, leaves its calls to the next: to store what is
    stored already changes nothing.
    """

    def __init__(self) -> None:
        self.waiting = Waiting()
        self.readers: list[asyncio.Future[None]] = []
        self.loop = asyncio.get_running_loop()
        self.task: asyncio.Task[None] | None = None

    async def submit(self, call: Stored) -> None:
        while len(self.waiting.calls) >= BACKLOG:
            await self.change()
        self.waiting.check()
        self.waiting.calls.append(call)
        self.begin()

    async def flush(self) -> None:
        while self.waiting.calls:
            await self.change()
        self.waiting.check()

    def begin(self) -> None:
        """See to it that what waits is stored."""
        if self.task is None or self.task.done():
            self.task = self.loop.create_task(self.work())

    def end(self) -> None:
        """Store nothing more: the run is over."""
        if self.task is not None:
            self.task.cancel()

    async def change(self) -> None:
        """Wait until less is to be stored."""
        self.begin()
        future = self.loop.create_future()
        self.readers.append(future)
        await future

    def tell(self) -> None:
        readers, self.readers = self.readers, []
        for future in readers:
            settle_value(future, None)

    async def work(self) -> None:
        waiting = self.waiting
        try:
            while waiting.calls:
                try:
                    await waiting.begin().arun()
                except Exception as error:
                    waiting.failed(error)
                else:
                    waiting.over()
                self.tell()
        except asyncio.CancelledError:
            self.tell()  # whoever waits has another task do it
            raise
        finally:
            waiting.begun = 0

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
        waiting = self.waiting
        while len(waiting.calls) > waiting.begun:
            try:
                waiting.calls[waiting.begun].run()
            except BaseException as error:
                waiting.close(error)
                break
            del waiting.calls[waiting.begun]
        waiting.check()


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

    def from_thread(self, call: Callable[..., None], *args: Any) -> None:
        """Have the loop make a call; a loop that has ended wants no result."""


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
    driver.from_thread(settle, future, outcome)


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
