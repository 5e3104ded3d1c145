"""A store whose async operations travel together.

Operations that are asked for while the loop is busy elsewhere, or while a batch
is under way, are run as one batch: a hundred nodes that each get an item cost
one round trip.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence

from towpath.store.base.ops import (
    NOT_PROVIDED,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    NotProvided,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)
from towpath.store.base.store import BaseStore

__all__ = (
    "NOT_PROVIDED",
    "AsyncBatchedBaseStore",
    "BaseStore",
    "GetOp",
    "Item",
    "ListNamespacesOp",
    "MatchCondition",
    "NotProvided",
    "PutOp",
    "SearchItem",
    "SearchOp",
)

_BATCH_MAX = 1000
"""How many operations travel together at most."""

_Asked = tuple[Op, "asyncio.Future[Result]"]


class Gathering:
    """What is asked of a store on one event loop, and not yet under way."""

    def __init__(
        self, abatch: Callable[[Iterable[Op]], Awaitable[list[Result]]]
    ) -> None:
        self._abatch = abatch
        self._waiting: deque[_Asked] = deque()
        self._task: asyncio.Task[None] | None = None

    async def ask(self, op: Op) -> Result:
        """Have an operation run along with those that others ask for meanwhile."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        self._waiting.append((op, future))
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._drain())
        return await future

    async def _drain(self) -> None:
        """Run what is waiting, a batch at a time, until nothing is."""
        while self._waiting:
            # Others that are about to ask get the chance to.
            await asyncio.sleep(0)
            count = min(len(self._waiting), _BATCH_MAX)
            asked = [self._waiting.popleft() for _ in range(count)]
            asked = [(op, future) for op, future in asked if not future.done()]
            if not await self._run(asked):
                # One of them is to blame: alone, it fails nobody else.
                for each in asked:
                    await self._run([each])

    async def _run(self, asked: Sequence[_Asked]) -> bool:
        """Run operations as one batch; tell whether those who asked know the end."""
        try:
            results = await self._abatch([op for op, _ in asked])
        except Exception as error:
            for _, future in asked[:1] if len(asked) == 1 else ():
                if not future.done():
                    future.set_exception(error)
            return len(asked) <= 1
        for (_, future), result in zip(asked, results, strict=True):
            if not future.done():
                future.set_result(result)
        return True


class AsyncBatchedBaseStore(BaseStore):
    """Gathers what is asked of it and hands it to `abatch`.

    Made on the event loop it serves. The blocking methods are for other
    threads: on the loop's own they would wait for themselves.
    """

    __slots__ = ("_gathering", "_loop")

    def __init__(self) -> None:
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self._gathering = Gathering(self.abatch)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations from another thread than the loop's.

        Raises:
            InvalidStateError: this is the loop's thread.
        """
        if _running_loop() is self._loop:
            raise asyncio.InvalidStateError(
                f"blocking calls to {type(self).__name__} are for other threads than "
                "its event loop's; there, use `abatch`, `aget`, `aput`"
            )
        return asyncio.run_coroutine_threadsafe(self.abatch(ops), self._loop).result()

    async def _aone(self, op: Op) -> Result:
        return await self._gathering.ask(op)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
