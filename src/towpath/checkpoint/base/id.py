"""Time-ordered identifiers of checkpoints.

A checkpoint id is the text of a version 6 UUID: its leading digits are the
time, so that sorting ids sorts checkpoints. Within one process every id is
greater than the one before it, also when the clock stands still or jumps back.
The trailing 62 bits are drawn once per process (and again after a fork): two
processes that ask in the same 100 ns still get different ids.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from datetime import UTC, datetime, timedelta

# 100 ns ticks between the Gregorian reform, where UUID time starts, and 1970.
_EPOCH_TICKS = 0x01B21DD213814000

_UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_TICKS_MAX = (1 << 60) - 1


class _Clock:
    """The last time given out, and the random part of this process's ids."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last_ticks = 0
        self.draw()

    def draw(self) -> None:
        """Draw the random part; in a child process, which must not reuse it."""
        # A lock held by another thread at the moment of the fork never opens.
        self._lock = threading.Lock()
        self.tail_bits = _tail_bits()
        self.tail = _tail(self.tail_bits)

    def next(self) -> int:
        """Return the time in ticks, later than every time returned before."""
        now = time.time_ns() // 100 + _EPOCH_TICKS
        with self._lock:
            self._last_ticks = now = max(now, self._last_ticks + 1)
        return now


def _tail_bits() -> int:
    """Draw 62 random bits, behind the variant of RFC 9562."""
    return int.from_bytes(os.urandom(8), "big") & ((1 << 62) - 1) | (0b10 << 62)


def _tail(bits: int) -> str:
    digits = f"{bits:016x}"
    return f"{digits[:4]}-{digits[4:]}"


_clock = _Clock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_clock.draw)


def _text(ticks: int, tail: str) -> str:
    return f"{ticks >> 28:08x}-{ticks >> 12 & 0xFFFF:04x}-6{ticks & 0xFFF:03x}-{tail}"


def checkpoint_id(*, after: str | None = None) -> str:
    """Return a new id, greater than every id this process made before.

    With `after`, an id that may come from a machine whose clock is ahead of
    ours, the new id is greater than that one instead.

    >>> first = checkpoint_id()
    >>> first < checkpoint_id()
    True
    """
    made = _text(_clock.next(), _clock.tail)
    if after is None or made > after:
        return made
    return _beyond(after) or made


def _beyond(after: str) -> str | None:
    """Return the next id after `after`, when that is a time-ordered id.

    The clock of this process is not moved: one id from the far future must not
    drag along every other thread. So the tail is drawn anew to be unique.
    """
    try:
        ahead = UUID(after)
    except ValueError:
        return None
    if ahead.version != 6 or ahead.time == _TICKS_MAX:
        return None
    return _text(ahead.time + 1, _tail(_tail_bits()))


def tells_time(at: str) -> bool:
    """Tell whether an id is one of these, whose order is that of time."""
    return len(at) == 36 and at[14] == "6"


def first_id_at(moment: datetime) -> str:
    """Return what the ids of a moment begin with, and sort after."""
    ticks = (moment - _UNIX_EPOCH) // timedelta(microseconds=1) * 10 + _EPOCH_TICKS
    return _text(min(max(ticks, 0), _TICKS_MAX), "")


class UUID(uuid.UUID):
    """A UUID that reads the time of version 6, which Python before 3.14 cannot."""

    @property
    def time(self) -> int:
        """The time in ticks of 100 ns since 1582-10-15."""
        if self.version != 6:
            return super().time
        bits = self.int >> 64
        return (bits >> 16) << 12 | bits & 0xFFF

    @property
    def subsec(self) -> int:
        """The part of the time below one millisecond, in ticks of 100 ns."""
        return self.time % 10_000


def uuid6(node: int | None = None, clock_seq: int | None = None) -> UUID:
    """Return a version 6 UUID, ordered as `checkpoint_id` is."""
    ticks = _clock.next()
    tail = _clock.tail_bits
    if node is not None:
        tail = tail & ~((1 << 48) - 1) | node & ((1 << 48) - 1)
    if clock_seq is not None:
        tail = tail & ~(0x3FFF << 48) | (clock_seq & 0x3FFF) << 48
    high = (ticks >> 12) << 16 | 0x6000 | ticks & 0xFFF
    return UUID(int=high << 64 | tail)
