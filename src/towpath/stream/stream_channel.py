"""A line of items that one reader takes, and that makes the run go on when empty.

Nothing is kept for a channel that nobody reads. What a reader has not taken
waits for it: that grows by as much as other readers of the same run are ahead,
for the run itself goes on only when a reader has nothing left to take.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")
Line = deque[tuple[int, Any]]
"""Items with the number of their arrival in the whole stream."""


class StreamChannel(Generic[T]):
    """Items pushed by a transformer, read by `for` or `async for`.

    With a `name`, each item is also an event of the run, `custom:<name>`.
    `maxlen` is how many items its author expects a reader to be behind; none
    is dropped.

    Raises:
        ValueError: `maxlen` is not positive.
    """

    def __init__(self, name: str | None = None, *, maxlen: int | None = None) -> None:
        if maxlen is not None and maxlen < 1:
            raise ValueError("StreamChannel maxlen must be a positive int or None")
        self.name = name
        self._maxlen = maxlen
        self._items: Line = deque()
        self._lines: list[Line] = []
        self._closed = False
        self._error: BaseException | None = None
        self._is_async: bool | None = None
        self._subscribed = False
        self._request_more: Callable[[], bool] | None = None
        self._arequest_more: Callable[[], Awaitable[bool]] | None = None
        self._wire_fn: Callable[[Any], None] | None = None
        self._stamp: Callable[[], int] = int

    # -- what transformers call -------------------------------------------------

    def push(self, item: T) -> None:
        """Give an item to whoever reads.

        Raises:
            RuntimeError: the channel was closed.
        """
        if self._closed:
            raise RuntimeError("Cannot push to a closed StreamChannel")
        if self._wire_fn is not None:
            self._wire_fn(item)
        if self._lines:
            stamped = (self._stamp(), item)
            for line in self._lines:
                line.append(stamped)

    def close(self) -> None:
        """End the channel once its items are taken."""
        self._closed = True

    def fail(self, err: BaseException) -> None:
        """End the channel with an error, raised once its items are taken."""
        if not self._closed:
            self._closed, self._error = True, err

    # -- what readers call --------------------------------------------------------

    def __iter__(self) -> Iterator[T]:
        self._check_colour(wants_async=False)
        return self._sync_cursor(*self._subscribe(1))

    def __aiter__(self) -> AsyncIterator[T]:
        self._check_colour(wants_async=True)
        return self._async_cursor(*self._subscribe(1))

    def tee(self, n: int = 2) -> tuple[Iterator[T], ...]:
        """Several readers; each gets all items, and the error if there is one."""
        self._check_colour(wants_async=False)
        return tuple(self._sync_cursor(line) for line in self._subscribe(n))

    def atee(self, n: int = 2) -> tuple[AsyncIterator[T], ...]:
        """Async twin of `tee`."""
        self._check_colour(wants_async=True)
        return tuple(self._async_cursor(line) for line in self._subscribe(n))

    def _sync_cursor(self, line: Line) -> Iterator[T]:
        while True:
            while line:
                yield cast("T", line.popleft()[1])
            more = self._request_more
            if self._ended() or more is None or not (more() or line or self._closed):
                return

    async def _async_cursor(self, line: Line) -> AsyncIterator[T]:
        while True:
            while line:
                yield cast("T", line.popleft()[1])
            more = self._arequest_more
            if self._ended() or more is None:
                return
            if not (await more() or line or self._closed):
                return

    def _ended(self) -> bool:
        """Whether nothing comes any more; raises what ended the channel."""
        if self._error is not None:
            raise self._error
        return self._closed

    def _check_colour(self, *, wants_async: bool) -> None:
        if self._is_async is None:
            raise TypeError(
                "StreamChannel has not been bound yet: return it from the init() of "
                "a transformer that a run uses"
            )
        if self._is_async is not wants_async:
            bound, loop = ("async", "async for") if self._is_async else ("sync", "for")
            raise TypeError(
                f"This StreamChannel is bound to {bound} mode: use '{loop}' instead."
            )

    def _subscribe(self, n: int) -> list[Line]:
        if n < 1:
            raise ValueError("tee() requires n >= 1")
        if self._subscribed:
            name = "StreamChannel" if self.name is None else f"channel {self.name!r}"
            raise RuntimeError(
                f"{name} already has a subscriber; use .tee(n) for fan-out."
            )
        self._subscribed = True
        self._lines = [self._items, *(deque() for _ in range(n - 1))]
        return self._lines

    # -- what the mux calls -------------------------------------------------------

    def _bind(self, *, is_async: bool) -> None:
        if self._is_async is not None:
            raise RuntimeError("StreamChannel is already bound")
        self._is_async = is_async

    def _wire(self, forward: Callable[[Any], None]) -> None:
        self._wire_fn = forward
