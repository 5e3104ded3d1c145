"""Threads to run nodes in.

A run borrows threads from a process-wide stock, up to a width of its own, and
gives each of them task after task until none is waiting. The stock has no
upper bound of its own, because a node may run a graph that needs threads in
turn: a bounded stock would dead-lock. Threads that stay idle end.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Collection, Sequence
from queue import Empty, SimpleQueue
from typing import Any, Final

Job = Callable[[], None]
IDLE_S: Final = 10.0
DEFAULT_WIDTH: Final = min(32, (os.cpu_count() or 1) + 4)


class Server(threading.Thread):
    """A thread of the stock; it serves one run after the other."""

    serves_many = True

    def __init__(self, stock: Stock, box: SimpleQueue[Job]) -> None:
        super().__init__(name="towpath-node", daemon=True)
        self.stock = stock
        self.box = box

    def run(self) -> None:
        self.stock.serve(self.box)


class Stock:
    """Idle threads of the process, the most recently used on top."""

    def __init__(self) -> None:
        self.idle: deque[SimpleQueue[Job]] = deque()

    def run(self, job: Job) -> None:
        """Run a job in an idle thread, or in a new one."""
        try:
            box = self.idle.pop()
        except IndexError:
            box = SimpleQueue()
            box.put(job)
            Server(self, box).start()
        else:
            box.put(job)

    def serve(self, box: SimpleQueue[Job]) -> None:
        while True:
            try:
                job = box.get(timeout=IDLE_S)
            except Empty:
                if self.retire(box):
                    return
                continue
            job()
            del job  # a waiting thread must not keep a finished run alive
            self.idle.append(box)

    def retire(self, box: SimpleQueue[Job]) -> bool:
        """Leave the stock, unless a job is already on its way."""
        try:
            self.idle.remove(box)
        except ValueError:
            return False
        return True


STOCK: Final = Stock()

if hasattr(os, "register_at_fork"):
    # The threads do not follow into a forked process, whose jobs would wait for
    # ever in their boxes.
    os.register_at_fork(after_in_child=STOCK.idle.clear)


class Lanes:
    """The threads of one run: at most `width` jobs at once, in order of arrival.

    Where idle threads are enough, one lane is called for new jobs, and each lane
    that wakes up calls one more while jobs wait. So jobs that block soon have
    lanes enough, and short ones are done by the first lanes before many threads
    are awake. Where threads must be started first, they are started here: a lane
    that did it would be overtaken by the lane it calls.
    """

    def __init__(self, width: int | None = None) -> None:
        self.width = width or DEFAULT_WIDTH
        self.waiting: deque[tuple[Any, Job]] = deque()
        self.busy = 0
        self.called = 0  # of the busy ones, those that are not awake yet
        self.lock = threading.Lock()

    def submit(self, jobs: Sequence[tuple[Any, Job]]) -> None:
        """Run jobs as soon as lanes are free; each has a key for `drop`."""
        with self.lock:
            self.waiting.extend(jobs)
            new = max(0, min(len(self.waiting), self.width - self.busy))
            if new <= len(STOCK.idle):
                new = min(new, 1)
            self.busy += new
            self.called += new
        for _ in range(new):
            STOCK.run(self.work)

    def call_one(self) -> None:
        """Have one more thread work, if jobs wait and the width allows it."""
        with self.lock:
            if len(self.waiting) <= self.called or self.busy >= self.width:
                return
            self.busy += 1
            self.called += 1
        STOCK.run(self.work)

    def work(self) -> None:
        """What a thread does for this run: job after job, while any waits."""
        job = self.take(woken=1)
        if job is not None:
            self.call_one()
        while job is not None:
            job()
            job = self.take()

    def take(self, woken: int = 0) -> Job | None:
        """The next job; None, and the lane is free, when there is none for it."""
        with self.lock:
            self.called -= woken
            if self.waiting and self.busy <= self.width:
                return self.waiting.popleft()[1]
            self.busy -= 1
            return None

    def drop(self, keys: Collection[Any]) -> set[Any]:
        """Take back jobs that have not begun, and return their keys."""
        with self.lock:
            dropped = {key for key, _ in self.waiting if key in keys}
            left = [entry for entry in self.waiting if entry[0] not in dropped]
            self.waiting = deque(left)
        return dropped

    def widen(self) -> None:
        """Make up for a lane that is lost to an abandoned job."""
        with self.lock:
            self.width += 1
        self.call_one()

    def narrow(self) -> None:
        """Take that back when the job has ended after all."""
        with self.lock:
            self.width -= 1
