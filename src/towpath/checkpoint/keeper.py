"""Renews the leases of runs while their nodes work.

One thread per saver, and only while there is a lease that lasts longer than the
time between two renewals.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final
from weakref import WeakMethod, WeakSet

from towpath.checkpoint.base.lease import TTL_S, Lease
from towpath.errors import PersistenceError

_PERIOD_S: Final = TTL_S / 3


class Keeper:
    """Has `renew` called with the leases that are held, again and again.

    It is a method of a saver, which the thread that waits does not keep alive.
    """

    def __init__(self, renew: Callable[[Sequence[Lease]], None]) -> None:
        self._renew = WeakMethod(renew)
        self._changed = threading.Condition()
        # Weak: a run that is gone without having given its lease back lets it expire.
        self._leases: WeakSet[Lease] = WeakSet()
        self._thread: threading.Thread | None = None

    def add(self, lease: Lease) -> None:
        """Renew a lease from now on."""
        with self._changed:
            self._leases.add(lease)
            if self._thread is None or not self._thread.is_alive():
                # After a fork, the thread is the parent's.
                self._thread = threading.Thread(
                    target=self._keep, name="towpath-leases", daemon=True
                )
                self._thread.start()

    def drop(self, lease: Lease) -> None:
        """Renew it no more."""
        with self._changed:
            self._leases.discard(lease)

    def _keep(self) -> None:
        while True:
            with self._changed:
                self._changed.wait(_PERIOD_S)
                held, renew = list(self._leases), self._renew()
                if not held or renew is None:
                    self._thread = None
                    return
            # What cannot be renewed now may be so the next time; if not, the run
            # learns of it when it stores something.
            with suppress(PersistenceError):
                renew(held)
            del held, renew
