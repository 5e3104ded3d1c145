"""The right to write to a thread, which one run has at a time.

A run takes the lease of its thread when it reads where it goes on from, and gives
it back when it ends. Every store in between names the lease, and nothing is
stored under one that another run holds by now: its `epoch`, which rises with each
owner, is a fencing token (Kleppmann, "How to do distributed locking"). A lease
that is not renewed expires, and one whose owner is known to have died is free at
once.
"""

from __future__ import annotations

import os
import socket
import threading
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from typing import Final
from weakref import WeakValueDictionary

TTL_S: Final = 30.0
"""How long a lease lasts that is not renewed."""
PAUSE_S_MAX: Final = 0.25

_serial: Final = count(1)
_granted: WeakValueDictionary[int, Lease] = WeakValueDictionary()
"""The leases that runs of this process hold, by their serial numbers."""

# Who a process is: where its number means something, its number, when it began.
_names: dict[int, str] = {}


def _process() -> str:
    pid = os.getpid()
    name = _names.get(pid)
    if name is None:  # once per process, and again in one that was forked
        name = _names[pid] = f"{_place()}:{pid}:{_begin_of(pid)}"
    return name


@dataclass(slots=True, weakref_slot=True, eq=False)
class Lease:
    """A claim to a thread; granted when it has an epoch."""

    thread: str
    process: str = field(default_factory=_process)
    serial: int = field(default_factory=lambda: next(_serial))
    epoch: int = 0
    holder: int | None = None
    """The OS thread of a blocking run, or of the loop of an asynchronous one."""
    looped: bool = False
    """Whether the run is asynchronous."""

    def grant(self, epoch: int) -> None:
        """Note that the claim was granted."""
        self.epoch = epoch
        _granted[self.serial] = self

    def end(self) -> None:
        """Note that it was given back, or that its owner is no more."""
        _granted.pop(self.serial, None)

    @property
    def owner(self) -> str:
        """The run, by a name that no other has."""
        return f"{self.process}/{self.serial}"


def is_dead(owner: str) -> bool:
    """Tell whether an owner is known to be gone, so that nobody waits for it."""
    process, _, serial = owner.rpartition("/")
    if process == _process():
        return int(serial) not in _granted
    place, pid, begun = process.rsplit(":", 2)
    return place == _place() and _begin_of(int(pid)) != begun


def is_here(owner: str, *, blocks: bool) -> bool:
    """Tell whether an owner cannot go on before its caller does.

    That is a stream that the calling thread has begun and not finished; or, for
    a caller that blocks the thread, a run of the event loop in it.
    """
    process, _, serial = owner.rpartition("/")
    lease = _granted.get(int(serial)) if process == _process() else None
    if lease is None or lease.holder != threading.get_ident():
        return False
    return blocks or not lease.looped


def pause_s(attempt: int) -> float:
    """Return how many seconds to wait before a claim is made again."""
    # Without a bound on the power, it is too large for a float after some minutes.
    return float(min(0.002 * 1.5 ** min(attempt, 20), PAUSE_S_MAX))


@cache
def _place() -> str:
    parts = [socket.gethostname()]
    for path in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
        try:
            link = Path(path)
            parts.append(str(link.readlink()) if link.is_symlink() else _text(path))
        except OSError:
            parts.append("")
    return "|".join(parts)


def _begin_of(pid: int) -> str:
    """Return what tells a process from later ones of its number; "" if it is gone."""
    try:
        # The name of a program may hold spaces and brackets.
        state = _text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    except OSError:
        pass
    else:
        return "" if state[0] in "ZX" else state[19]
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except OSError:
        pass
    return "?"


def _text(path: str) -> str:
    return Path(path).read_text("utf-8", "replace").strip()
