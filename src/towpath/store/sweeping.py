"""Deleting what has expired, every so often, while the program does other things."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, Final

from towpath.errors import PersistenceError
from towpath.store.base import TTLConfig
from towpath.warnings import TowpathWarning

_INTERVAL_MINUTES: Final = 5


def interval_s(config: TTLConfig | None, minutes: float | None) -> float:
    """Return how long a sweeper waits between two sweeps."""
    known = minutes or (config or {}).get("sweep_interval_minutes")
    return float(known or _INTERVAL_MINUTES) * 60


class Sweeper:
    """A thread that sweeps."""

    def __init__(self, sweep: Callable[[], int], pause_s: float) -> None:
        self.ended: Future[None] = Future()
        self._sweep = sweep
        self._pause_s = pause_s
        self._told = threading.Event()
        threading.Thread(target=self._run, name="towpath-sweeper", daemon=True).start()

    def _run(self) -> None:
        self.ended.set_running_or_notify_cancel()
        try:
            while not self._told.wait(self._pause_s):
                try:
                    self._sweep()
                except PersistenceError as error:
                    warn(error)
        except BaseException as error:
            self.ended.set_exception(error)
        else:
            self.ended.set_result(None)

    def stop(self, timeout_s: float | None) -> bool:
        """Have it end; tell whether it has, within that time."""
        self._told.set()
        try:
            self.ended.exception(timeout_s)
        except FutureTimeoutError:
            return False
        return True


async def sweep_for_ever(
    asweep: Callable[[], Coroutine[Any, Any, int]], pause_s: float
) -> None:
    """Sweep every so often, until the task is cancelled."""
    # Importing asyncio takes 30 ms that a blocking program need not pay.
    import asyncio

    while True:
        await asyncio.sleep(pause_s)
        try:
            await asweep()
        except PersistenceError as error:
            warn(error)


def warn(error: Exception) -> None:
    """Say that a sweep failed: the next one may do better."""
    warnings.warn(
        f"expired items could not be deleted: {error}", TowpathWarning, stacklevel=2
    )
