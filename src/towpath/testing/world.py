"""What a simulation is made of besides the driver: time, faults, storage, tasks.

Nothing here depends on anything but the seed: the clock moves when somebody
waits, ids follow the clock, and storage behind a run advances by chance.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import inf
from random import Random
from types import coroutine
from typing import Any, Final

from towpath.checkpoint.base.lease import Lease
from towpath.checkpoint.base.saver import Staged
from towpath.constants import CONF, NULL_TASK_ID
from towpath.drive.common import BACKLOG, conclusion, saver_call, staged
from towpath.kernel.commands import Fetch, FetchAll, Finish, Fork, Persist, Record
from towpath.step.interrupts import is_done
from towpath.step.tasks import Task

EPOCH: Final = datetime(2024, 1, 1, tzinfo=UTC)
Address = tuple[str | None, str, str | None]


class Crash(BaseException):
    """The process has died; nothing of this run may do anything any more."""


class DiskError(OSError):
    """A storage call that a simulation made fail."""


class SimulationError(RuntimeError):
    """The program under test does what cannot be simulated, or waits for ever."""


class Delay:
    """Yielded by what goes on at a moment and not before."""

    __slots__ = ("until",)

    def __init__(self, until: float) -> None:
        self.until = until


class Pause:
    """Yielded by what goes on at once, when its turn comes."""


PAUSE: Final = Pause()
Turn = Pause | Delay


@coroutine
def turn(what: Turn) -> Generator[Turn, None, None]:
    """Let others go on first."""
    yield what


class SimulatedFuture:
    """What an async node awaits of a task that it called."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self.wake = wake
        self.awaited = False
        self.outcome: tuple[Any, BaseException | None] | None = None

    def done(self) -> bool:
        return self.outcome is not None

    def cancelled(self) -> bool:
        return False

    def set_result(self, value: Any) -> None:
        self.settle(value, None)

    def set_exception(self, error: BaseException) -> None:
        self.settle(None, error)

    def settle(self, value: Any, error: BaseException | None) -> None:
        """Let whoever awaits it go on."""
        self.outcome = value, error
        if self.awaited:
            self.wake()

    def exception(self) -> BaseException | None:
        return self.outcome[1] if self.outcome else None

    def add_done_callback(self, call: Any) -> None:
        """Nobody gives up what is simulated, so there is nothing to be told."""

    def __await__(self) -> Generator[Turn, None, Any]:
        self.awaited = True
        while self.outcome is None:
            yield Delay(inf)
        self.awaited = False
        value, error = self.outcome
        if error is not None:
            raise error
        return value

    def result(self) -> Any:
        """Refuse to block the only thread."""
        raise SimulationError(
            "a blocking node waits for a task, which needs threads; in a simulation "
            "call tasks from async nodes"
        )


class Clock:
    """Virtual time, and ids that follow it.

    Share one clock between runs on the same thread of state, so that ids of a
    run that crashed are never given out again.
    """

    def __init__(self, now: float = 1.0) -> None:
        self.now = now
        self.ids = 0

    def sleep(self, seconds: float) -> None:
        """Spend time in a blocking node."""
        self.now += seconds

    async def asleep(self, seconds: float) -> None:
        """Spend time in an async node, while others go on."""
        await turn(Delay(self.now + seconds))

    def text(self) -> str:
        return (EPOCH + timedelta(seconds=self.now)).isoformat()

    def stamp(self, command: Persist) -> tuple[str, str]:
        """Give a checkpoint an id, greater than all before, and a time."""
        checkpoint = command.checkpoint
        if "id" not in checkpoint:
            self.ids += 1
            digits = f"{self.ids:012x}"
            checkpoint["id"] = f"{digits[:8]}-{digits[8:]}-6000-8000-000000000000"
            checkpoint["ts"] = self.text()
        return checkpoint["id"], checkpoint["ts"]


@dataclass(frozen=True, slots=True)
class Faults:
    """What goes wrong in a run, by the number of the effect, from 0.

    `stores` are storage calls that fail and `fetches` reads that fail; `lag`
    is the chance, at every command, that what is left behind the run stays
    there; before command `stop_at` the caller closes the stream, or cancels
    with `CancelledError` if `cancels`. Before each of `thefts`, which are
    storage calls, the lease is taken by another run, as it may be once it has
    expired. A storage call takes `disk_s` seconds of the clock.
    """

    stores: frozenset[int] = frozenset()
    fetches: frozenset[int] = frozenset()
    thefts: frozenset[int] = frozenset()
    lag: float = 0.5
    disk_s: float = 0.0
    stop_at: int | None = None
    cancels: bool = False


@dataclass(slots=True)
class Journal:
    """What a simulation did, for laws to be checked on.

    `ran` are names and ids of tasks in the order they began, `finished` the
    ids of those that came to a result, `saved` of those whose result is
    stored. `stored` are the checkpoints known to be stored, and `orphans`
    writes and checkpoints stored under one that is not. `left` are the tasks
    that were still running when their run was over. `trespasses` tells what was
    stored by a run that had lost its lease.
    """

    commands: list[str] = field(default_factory=list)
    ran: list[tuple[str, str]] = field(default_factory=list)
    finished: set[str] = field(default_factory=set)
    saved: set[str] = field(default_factory=set)
    stored: set[Address] = field(default_factory=set)
    orphans: list[tuple[str, Address]] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    trespasses: list[str] = field(default_factory=list)
    stores: int = 0
    fetches: int = 0

    def note(self, command: Persist | Record) -> None:
        """A storage call has succeeded."""
        place = address(command.config)
        if place[2] is not None and place not in self.stored:
            self.orphans.append((type(command).__name__, place))
        if isinstance(command, Persist):
            self.stored.add((*place[:2], command.checkpoint["id"]))
            results = command.writes
        else:
            results = command.tasks
        for task, _, writes in results:
            if task != NULL_TASK_ID and is_done(writes):
                self.saved.add(task)


def address(config: Mapping[str, Any]) -> Address:
    conf = config[CONF]
    return conf["thread_id"], conf.get("checkpoint_ns", ""), conf.get("checkpoint_id")


class Simulation:
    """What all runs of one simulation share: seed, clock, faults, commands."""

    def __init__(
        self, seed: int, clock: Clock, faults: Faults, crash_at: int | None
    ) -> None:
        self.random = Random(seed)  # noqa: S311 - reproducible is the point
        self.clock = clock
        self.faults = faults
        self.crash_at = crash_at
        self.journal = Journal()
        self.backlog = Backlog(self)
        self.begun: list[Process] = []
        self.leases: list[Lease] = []
        self.taken: Callable[[], list[Any]] | None = None
        self.found: list[Any] = []
        self.dead = False

    def alive(self) -> None:
        if self.dead:
            raise Crash

    def end(self) -> None:
        """Let go of coroutines that were left in the middle.

        Now, and not whenever memory is cleared; whatever they do when they
        are closed, nothing of it reaches the saver.
        """
        self.dead = True
        self.check_taken()
        for lease in self.leases:
            lease.end()  # as that of a process that is gone
        for process in self.begun:
            if process.life is not None and not process.ended:
                with suppress(BaseException):
                    process.life.close()

    def count(self, command: object) -> None:
        """Note that a command is about to be obeyed; crash if it is its turn."""
        self.alive()
        commands = self.journal.commands
        if len(commands) == self.crash_at:
            self.dead = True
            raise Crash
        commands.append(type(command).__name__)

    def store(self, job: Any, commands: Sequence[Persist | Record]) -> None:
        """Make the storage call that is all of these commands."""
        job.run()
        for command in commands:
            self.journal.note(command)

    def fork(self, command: Fork) -> str:
        """Copy a thread to one of its own."""
        self.clock.ids += 1
        target = f"{command.thread}/{self.clock.ids}"
        command.saver.copy_thread(command.thread, target)
        return target

    def finish(self, command: Finish) -> None:
        """Store what is left at the end of a run, unless that fails."""
        if (rest := conclusion(command)) is not None:
            self.try_fate(command)
            rest.run()

    def try_fate(self, command: Persist | Record | Finish) -> None:
        """Have befall a storage call what is to befall it."""
        number = self.journal.stores
        self.journal.stores += 1
        self.clock.now += self.faults.disk_s
        if number in self.faults.stores:
            raise DiskError("the disk is full")
        if number in self.faults.thefts and command.lease is not None:
            self.steal(command.saver, command.lease)

    def steal(self, saver: Any, lease: Lease) -> None:
        """Have another run take the thread over."""
        lease.end()
        thief = Lease(lease.thread)
        self.leases.append(thief)
        thread = {CONF: {"thread_id": lease.thread}}
        saver.begin_run({CONF: {"checkpoint_ns": "", **thread[CONF]}}, thief)
        self.taken = lambda: list(saver.list(thread))
        self.found = self.taken()

    def check_taken(self) -> None:
        """See that a thread that was taken over is as it was found then."""
        if self.taken is not None:
            there = self.taken()
            if there != self.found:
                self.journal.trespasses.append(f"{there!r}, found {self.found!r}")

    def fetch(self, command: Fetch | FetchAll) -> Any:
        """Read from a saver, unless it is a read that fails."""
        journal = self.journal
        journal.fetches += 1
        if journal.fetches - 1 in self.faults.fetches:
            raise DiskError("the disk cannot be read")
        if isinstance(command, Fetch) and command.lease is not None:
            self.leases.append(command.lease)
        method, args, kwargs = saver_call(command)
        found = getattr(command.saver, method)(*args, **kwargs)
        if isinstance(command, FetchAll):
            found = list(found)
        for saved in found if isinstance(found, list) else [found]:
            if saved is not None:
                journal.stored.add(address(saved.config))
        if isinstance(command, FetchAll) and command.made is not None:
            found = list(map(command.made, found))
        return found


class Backlog:
    """Storage calls left behind a run. They are made in order, at any time.

    After one has failed nothing is stored any more, so that what is stored is
    always the beginning of what was said to be.
    """

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.calls: deque[tuple[Persist | Record, Any]] = deque()
        self.error: BaseException | None = None

    def submit(self, command: Persist | Record) -> None:
        while len(self.calls) >= BACKLOG:
            self.store_next()
        self.check()
        self.calls.append((command, staged(command)))

    def store_next(self) -> None:
        """Store what comes first, and along with it what chance would have."""
        first = self.calls.popleft()
        if self.error is None:
            try:
                self.store_along(*first)
            except BaseException as error:
                self.error = error

    def store_along(self, command: Persist | Record, job: Any) -> None:
        simulation, commands, late = self.simulation, [command], None
        simulation.try_fate(command)
        while self.calls and simulation.random.random() < 0.5:
            both = job.along(self.calls[0][1]) if isinstance(job, Staged) else None
            if both is None:
                break
            command, _ = self.calls.popleft()
            try:
                simulation.try_fate(command)
            except BaseException as error:
                late = error  # what comes before it is stored all the same
                break
            job = both
            commands.append(command)
        simulation.store(job, commands)
        if late is not None:
            raise late

    def advance(self) -> None:
        """Let some of it be stored, as chance has it."""
        simulation = self.simulation
        while self.calls and simulation.random.random() >= simulation.faults.lag:
            self.store_next()

    def flush(self) -> None:
        while self.calls:
            self.store_next()
        self.check()

    def check(self) -> None:
        if self.error is not None:
            raise self.error


class Process:
    """A task on its way: its coroutine, and when it can go on."""

    __slots__ = ("cancelled", "ended", "life", "refusal", "task", "wake")

    def __init__(self, task: Task) -> None:
        self.task = task
        self.life: Coroutine[Any, None, None] | None = None
        self.wake = 0.0
        self.ended = False
        self.cancelled = False
        self.refusal: SimulationError | None = None

    def go_on(self, clock: Clock) -> None:
        """Run up to the next point where others may overtake.

        Time that passes in it is this task's own: it goes on later, and the
        clock of the others has not moved.
        """
        began = clock.now
        wake = None
        try:
            what = self.step()
            if isinstance(what, Delay):
                wake = what.until
            elif what is not None and what is not PAUSE:
                self.refusal = SimulationError(
                    f"node `{self.task.name}` waits for {what!r}, which needs an "
                    "event loop; in a simulation await `Clock.asleep`"
                )
        except StopIteration:
            self.ended = True
        task, now = self.task, clock.now
        if task.beat != task.started:
            task.beat = now
        if task.error is not None:
            task.failed_at = now
        self.wake = now if wake is None else wake
        clock.now = began

    def step(self) -> Any:
        """One step of the coroutine; what it yields is what it waits for."""
        assert self.life is not None
        if self.refusal is not None:
            error, self.refusal = self.refusal, None
            return self.life.throw(error)
        if self.cancelled:
            return self.life.throw(CancelledError())
        return self.life.send(None)
