"""What waits in an event loop: for the driver, and for the saver."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from towpath.drive.common import BACKLOG


class Backlog:
    """Saver calls left behind a run, awaited in order by one asyncio task."""

    def __init__(self) -> None:
        self.calls: asyncio.Queue[Callable[[], Awaitable[Any]]] = asyncio.Queue(BACKLOG)
        self.error: BaseException | None = None
        self.loop = asyncio.get_running_loop()
        self.task = self.loop.create_task(self.work())

    async def submit(self, call: Callable[[], Awaitable[Any]]) -> None:
        self.check()
        await self.calls.put(call)

    async def work(self) -> None:
        while True:
            call = await self.calls.get()
            try:
                if self.error is None:
                    await call()
            except BaseException as error:
                self.error = error
            self.calls.task_done()

    async def flush(self) -> None:
        await self.calls.join()
        self.check()

    def flush_from_thread(self) -> None:
        """Wait in another thread until everything is stored."""
        asyncio.run_coroutine_threadsafe(self.flush(), self.loop).result()

    def check(self) -> None:
        # Kept: what comes after a checkpoint that is not there has no ground.
        if self.error is not None:
            raise self.error


class Inbox:
    """What came in; an `asyncio.Queue` costs more than the rest of a short task."""

    __slots__ = ("items", "reader")

    def __init__(self) -> None:
        self.items: deque[Any] = deque()
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
