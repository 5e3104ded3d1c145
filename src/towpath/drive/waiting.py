"""Saver calls that a run left behind it, in order, and which of them are made next.

Those that can be stored together are. If that fails, each of them is made by itself:
what is wrong may be wrong with one of them only. This does no I/O; at most one call is
being made at any time.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from towpath.checkpoint.base.saver import Staged


class Waiting:
    """The calls that are not over, the ones that have begun first.

    The first failure is kept, and nothing is stored after it: what comes after a
    checkpoint that is not there has no ground.
    """

    def __init__(self) -> None:
        self.calls: deque[Any] = deque()
        self.begun = 0
        """How many of them are being made, together."""
        self.apart = 0
        """How many failed together, and are made one by one."""
        self.error: BaseException | None = None

    def begin(self) -> Any:
        """Return what makes the first of them, and what goes along with it."""
        whole, self.begun = self.calls[0], 1
        for call in [*self.calls][1:] if self.apart == 0 else ():
            both = whole.along(call) if isinstance(whole, Staged) else None
            if both is None:
                break
            whole = both
            self.begun += 1
        return whole

    def over(self) -> None:
        """What was begun is stored."""
        for _ in range(self.begun):
            self.calls.popleft()
        self.apart = max(0, self.apart - self.begun)
        self.begun = 0

    def failed(self, error: BaseException) -> None:
        """What was begun is not stored."""
        if self.begun > 1 and isinstance(error, Exception):
            self.apart, self.begun = self.begun, 0
        else:
            self.close(error)

    def close(self, error: BaseException) -> None:
        """Store nothing more."""
        self.error, self.begun = error, 0
        self.calls.clear()

    def check(self) -> None:
        """Raise what went wrong before."""
        if self.error is not None:
            raise self.error
