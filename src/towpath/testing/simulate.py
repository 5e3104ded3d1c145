"""The third driver: one thread, virtual time, and every fault on request.

It obeys the same commands as the blocking and the asyncio driver. What those
leave to threads, loops, clocks and disks, a seed decides here: which task goes
on next, whether a lone task runs in place, how far storage lags behind the
run. Waiting costs no time. A run can be made to lose a write, to be stopped,
or to crash before its n-th command, and does so again whenever it is given
the same seed.

A node is a coroutine that is driven by hand. It can be overtaken wherever it
awaits, before it is called, and before each of its branches. A blocking node
runs to its end in one go; time that it spends in `Clock.sleep` puts off the
moment at which its result arrives, not what its siblings do meanwhile.
Subgraphs run under the same simulation and count into the same commands; tasks
that an async node calls are processes beside it. What needs a real event loop
(`asyncio.sleep` of more than nothing, `gather`) cannot be simulated: use
`Clock.asleep`.

A crash abandons the program where it stands: nothing is closed, what was left
behind the run and not stored yet is lost, and what the saver holds is what the
next run finds.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections import deque
from collections.abc import (
    AsyncGenerator,
    Callable,
    Generator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any

from towpath.call.attempt import attempt, awaiting, entered, run_blocking
from towpath.call.children import refuse
from towpath.call.scope import RunScope, TaskContext
from towpath.drive.common import limits, runs_here, staged
from towpath.errors import NodeCancelledError
from towpath.kernel.commands import (
    Alarm,
    Called,
    Cancelled,
    Closed,
    Expired,
    Fetch,
    FetchAll,
    Finish,
    Flush,
    Fork,
    Launch,
    Persist,
    Program,
    Recall,
    Record,
    Remember,
    Stop,
    Wait,
)
from towpath.kernel.request import Chunk
from towpath.pregel.finish import result
from towpath.pregel.ports import unobserved
from towpath.pregel.runs import Options, Run, connect, prepare_run
from towpath.step.children import Child
from towpath.step.tasks import Task
from towpath.testing.world import (
    PAUSE,
    Clock,
    Crash,
    Delay,
    DiskError,
    Faults,
    Journal,
    Process,
    SimulatedFuture,
    Simulation,
    SimulationError,
    Turn,
    turn,
)

__all__ = (
    "Clock",
    "Crash",
    "DiskError",
    "Faults",
    "Journal",
    "SimulationError",
    "Trace",
    "simulate",
)


class SimulatedDriver:
    """Obeys one program inside a simulation; the face of a blocking driver."""

    def __init__(self, scope: RunScope, simulation: Simulation) -> None:
        self.scope = scope
        self.simulation = simulation
        self.clock = simulation.clock
        self.random = simulation.random
        self.outbox: deque[Chunk] = deque()
        self.events: list[Any] = []
        self.processes: list[Process] = []
        self.turn_of: Process | None = None
        self.backlog = simulation.backlog
        self.cancelled: BaseException | None = None
        self.step_s = scope.req.step_timeout
        self.step_started = 0.0
        self.orders: dict[type, Callable[[Any], Any]] = {
            Stop: self.stop,
            Persist: self.persist,
            Record: self.store,
            Flush: lambda _: self.backlog.flush(),
            Finish: simulation.finish,
            Fork: simulation.fork,
            Fetch: simulation.fetch,
            FetchAll: simulation.fetch,
            Recall: lambda c: c.cache.get(c.keys),
            Remember: lambda c: c.cache.set({c.key: (c.writes, c.ttl)}),
        }

    def emit(self, chunk: Chunk) -> None:
        """Take a chunk."""
        self.outbox.append(chunk)

    def run(self, program: Program[Any]) -> Any:
        """Obey a program to its end and return what it returns."""
        steps = self.stream(program)
        try:
            while True:
                next(steps)
        except StopIteration as stop:
            return stop.value

    def stream(self, program: Program[Any]) -> Generator[Chunk, None, Any]:
        """Obey a program in place; yield chunks as they come."""
        turns = self.turns(program)
        try:
            while True:
                item = next(turns)
                if isinstance(item, tuple):
                    yield item
                elif isinstance(item, Delay):
                    self.clock.now = max(self.clock.now, item.until)
        except StopIteration as stop:
            return stop.value
        finally:
            turns.close()

    def turns(self, program: Program[Any]) -> Generator[Turn | Chunk, None, Any]:
        """Obey a program; yield chunks, and where others may go on first."""
        self.scope.begin()
        self.scope.driver = self
        try:
            command = next(program)
            while True:
                try:
                    yield from self.told()
                    yield PAUSE
                    reply = yield from self.obey(command)
                except Crash:
                    raise
                except (GeneratorExit, KeyboardInterrupt, CancelledError) as error:
                    if not self.simulation.dead:
                        self.close(program, command, error)
                    raise
                except BaseException as error:
                    command = program.throw(error)
                else:
                    command = program.send(reply)
        except StopIteration as stop:
            yield from self.told()
            return stop.value
        except Exception:
            yield from self.told()
            raise
        finally:
            self.note_left()
            self.scope.driver = None
            for event in self.events:
                if isinstance(event, Called) and not self.simulation.dead:
                    refuse(event.child)

    # -- tasks that call others ---------------------------------------------

    blocking = False

    def loop_here(self) -> Any:
        """What stands in for an event loop: itself."""
        return self

    def create_future(self) -> SimulatedFuture:
        """A future for a call of the process that has its turn."""
        process = self.turn_of

        def wake() -> None:
            if process is not None and process.wake > self.clock.now:
                process.wake = self.clock.now

        return SimulatedFuture(wake)

    def in_line(self, task: Task) -> bool:
        """Whether a call is made by a task's own code: there is no other."""
        return task is not None

    def call(self, child: Child) -> None:
        """Take a call."""
        child.parent.lent = True
        self.events.append(Called(child))

    def note_left(self) -> None:
        """What still runs when a run is over, unless nothing could stop it."""
        if not self.simulation.dead:
            left = [p.task.name for p in self.processes if not p.task.abandoned]
            self.simulation.journal.left.extend(left)

    def told(self) -> Generator[Chunk, None, None]:
        while self.outbox:
            chunk = self.outbox.popleft()
            if chunk[1] == "debug":
                chunk[2]["timestamp"] = self.clock.text()
            yield chunk

    def close(self, program: Program[Any], command: Any, error: BaseException) -> None:
        """The caller wants no more: let the program end in order."""
        reason = Closed() if isinstance(error, GeneratorExit) else error
        self.cancelled = reason
        self.scope.closed = True
        self.events.append(Cancelled(reason))
        try:
            if isinstance(command, Launch) and self.processes:
                command = program.send(())  # they are on their way
            while True:
                try:
                    reply = self.at_once(self.obey(command))
                except Exception as failure:
                    command = program.throw(failure)
                else:
                    command = program.send(reply)
        except StopIteration:
            pass
        except BaseException as raised:
            if raised is not reason:
                raise

    def at_once(self, steps: Generator[Turn | Chunk, None, Any]) -> Any:
        """Go through these turns when nobody else has any and nobody listens."""
        try:
            while True:
                item = next(steps)
                if isinstance(item, Delay):
                    self.clock.now = max(self.clock.now, item.until)
        except StopIteration as stop:
            return stop.value

    def obey(self, command: Any) -> Generator[Turn | Chunk, None, Any]:
        """Do what a command says."""
        self.simulation.count(command)
        self.backlog.advance()
        if type(command) is Wait:
            return (yield from self.wait(command))
        if type(command) is Launch:
            return (yield from self.launch(command))
        return self.orders[type(command)](command)

    # -- tasks --------------------------------------------------------------

    def launch(self, command: Launch) -> Generator[Turn | Chunk, None, Sequence[Any]]:
        """Line tasks up; a lone one may also run to its end right here."""
        if self.cancelled is None and self.scope.abandoned():
            self.cancelled = NodeCancelledError(self.scope.plan.name)
        if self.cancelled is not None:
            return (Cancelled(self.cancelled, command.tasks),)
        tasks = command.tasks
        self.step_started = self.clock.now
        self.processes.extend(map(Process, tasks))
        lone = len(tasks) == 1 and runs_here(self.scope, tasks[0])
        if not lone or self.coin():
            return ()
        while not self.events:
            done = yield from self.go_on(self.ready())
            if done is not None:
                return (done,)
        return ()  # it has called others, which begin beside it

    def wait(self, command: Wait) -> Generator[Turn | Chunk, None, Sequence[Any]]:
        """Let tasks go on, and time pass, until there is an event, or several."""
        while True:
            if self.outbox:
                yield from self.told()
            ready = self.ready()
            due = self.due(command)
            if due is not None and not (ready and self.coin()):
                return (due,)
            hurry = self.cancelled is not None or not ready
            if self.events and (hurry or self.coin()):
                events, self.events = self.events, []
                return events
            done = yield from self.go_on(ready, command)
            if done is not None and not done.abandoned:
                self.events.append(done)

    def coin(self) -> bool:
        return self.random.random() < 0.5

    def go_on(
        self, ready: Sequence[Process], command: Wait | None = None
    ) -> Generator[Turn | Chunk, None, Task | None]:
        """Let one task take a turn, or time pass; return the task if it is done."""
        if not ready:
            yield Delay(self.next_moment(command))
            return None
        process = ready[0] if len(ready) == 1 else self.random.choice(ready)
        if not process.ended:
            if process.life is None:
                self.begin(process)
            self.turn_of = process
            process.go_on(self.clock)
            self.simulation.alive()
            yield PAUSE
        if process.ended and process.wake <= self.clock.now:
            self.processes.remove(process)
            self.note_finished(process.task)
            return process.task
        return None

    def note_finished(self, task: Task) -> None:
        plain = task.error is None and not task.halted and not task.abandoned
        if plain and self.scope.req.saver is not None:
            self.simulation.journal.finished.add(task.id)

    def ready(self) -> list[Process]:
        """The tasks whose turn it could be, within the width of the run."""
        now, width = self.clock.now, self.scope.config.get("max_concurrency")
        ready, waiting, busy = [], [], 0
        for process in self.processes:
            if process.life is None:
                waiting.append(process)
            else:
                busy += not (process.task.abandoned or process.task.lent)
                if process.wake <= now:
                    ready.append(process)
        if width:
            waiting = waiting[:1] if busy < width else []
        return ready + waiting

    def next_moment(self, command: Wait | None) -> float:
        moments = [p.wake for p in self.processes if p.life is not None]
        if command is not None:
            moments += [moment for moment, _ in self.deadlines(command)]
        moments = [moment for moment in moments if moment != inf]
        if not moments:
            raise SimulationError("the run waits for what will never come")
        return min(moments)

    def due(self, command: Wait) -> Expired | Alarm | None:
        """The first deadline that has passed, as an event."""
        now, deadlines = self.clock.now, self.deadlines(command)
        passed = [entry for entry in deadlines if entry[0] <= now]
        if not passed:
            return None
        _, event = min(passed, key=lambda entry: entry[0])
        if isinstance(event, Expired) and event.task is not None:
            event.task.failed_at = now
            event.elapsed = now - event.task.started
        return event

    def deadlines(self, command: Wait) -> list[tuple[float, Expired | Alarm]]:
        found: list[tuple[float, Expired | Alarm]] = []
        if command.until is not None:
            found.append((command.until, Alarm()))
        if self.step_s is not None and command.tasks:
            moment = self.step_started + self.step_s
            found.append((moment, Expired(None, "step", self.step_s)))
        for task in command.tasks:
            if task.timeout is not None:
                found += [(at, Expired(task, kind, 0.0)) for kind, at in limits(task)]
        return found

    def begin(self, process: Process) -> None:
        task = process.task
        self.simulation.journal.ran.append((task.name, task.id))
        if task.timeout is not None or task.spec.retry:
            task.start_clock(self.clock.now)
        process.life = self.live(process)
        self.simulation.begun.append(process)

    async def live(self, process: Process) -> None:
        """One attempt of one task."""
        scope, task = self.scope, process.task
        inner = task.spec.action is not None and task.spec.action.graph is not None
        if self.random.random() < 0.25 and task.spec.simple and not inner:
            run_blocking(scope, task)  # the short way that bare functions take
        else:
            await self.general(process)
        if task.error is not None:
            task.jitter = self.random.random()

    async def general(self, process: Process) -> None:
        scope, task = self.scope, process.task
        context = TaskContext(scope, task)
        ctx = entered(scope, context)
        context.set_apart(ctx)
        steps = attempt(scope, task, context)
        try:
            call = next(steps)
            while True:
                try:
                    value = await awaiting(call, ctx, in_place)
                except BaseException as error:
                    call = steps.throw(self.told_apart(process, error))
                else:
                    call = steps.send(value)
        except StopIteration:
            pass

    def told_apart(self, process: Process, error: BaseException) -> BaseException:
        """Tell a node that cancelled itself from one that is cancelled."""
        if isinstance(error, CancelledError) and not process.cancelled:
            own = NodeCancelledError(process.task.name)
            own.__cause__ = error
            return own
        return error

    def stop(self, command: Stop) -> Sequence[Task]:
        """Take back what has not begun, and cancel the rest where it waits."""
        dropped = []
        for process in list(self.processes):
            if process.task not in command.tasks:
                continue
            if process.life is None:
                self.processes.remove(process)
                dropped.append(process.task)
            elif not process.ended:
                process.cancelled = True
                process.wake = self.clock.now
        return tuple(dropped)

    # -- storage ------------------------------------------------------------

    def persist(self, command: Persist) -> tuple[str, str]:
        reply = self.clock.stamp(command)
        if command.how != "hold":
            self.store(command)
        return reply

    def store(self, command: Persist | Record) -> None:
        if command.how == "behind":
            self.backlog.submit(command)
        else:
            self.backlog.flush()
            job = staged(command)
            self.simulation.try_fate(command)
            self.simulation.store(job, [command])


async def in_place(job: Callable[[], Any]) -> Any:
    """Make a blocking call of a node, when its turn comes."""
    await turn(PAUSE)
    return job()


class AwaitedDriver:
    """The face of an asyncio driver: a run inside a node that awaits it."""

    def __init__(self, scope: RunScope, simulation: Simulation) -> None:
        self.driver = SimulatedDriver(scope, simulation)
        self.emit = self.driver.emit

    async def stream(
        self, program: Program[Any], outcome: list[Any]
    ) -> AsyncGenerator[Chunk, None]:
        """Obey a program while the task around it takes turns with others."""
        turns = self.driver.turns(program)
        try:
            item = next(turns)
            while True:
                try:
                    if isinstance(item, tuple):
                        yield item
                    else:
                        await turn(item)
                except CancelledError as error:
                    item = turns.throw(error)
                else:
                    item = next(turns)
        except StopIteration as stop:
            outcome.append(stop.value)
        finally:
            turns.close()


@dataclass(slots=True)
class Trace:
    """How a simulated run went.

    `status` is how the run ended, or "crashed", "stopped" or "failed", with
    the `error` that came out. `chunks` are in the form that was asked for.
    """

    status: str
    value: Any
    error: BaseException | None
    chunks: list[Any]
    journal: Journal


def simulate(
    graph: Any,
    input: Any,
    config: Mapping[str, Any] | None = None,
    *,
    seed: int = 0,
    crash_at: int | None = None,
    faults: Faults | None = None,
    clock: Clock | None = None,
    until: Callable[[Any], bool] | None = None,
    **options: Any,
) -> Trace:
    """Run a graph under the simulator.

    `crash_at` is the number of the command before which the process dies,
    counted from 0 over the run and its subgraphs. The caller closes the stream
    after the first chunk that `until` is true of. `options` are those of
    `stream`; without a `stream_mode` nobody listens, as in `invoke`. Whatever
    comes out of the run is in the trace; nothing is raised.
    """
    faults = faults or Faults()
    simulation = Simulation(seed, clock or Clock(), faults, crash_at)
    trace = Trace("crashed", None, None, [], simulation.journal)
    listens = "stream_mode" in options
    chosen = Options(**{"stream_mode": "values", **options})
    try:
        with unobserved():
            made = prepare_run(graph, input, config, chosen, streams=listens)
            made.scope.drivers = Drivers(simulation)
            driver = SimulatedDriver(made.scope, simulation)
            connect(made, driver.emit)
            play(driver, made, trace, until)
    except Crash:
        pass
    except BaseException as error:
        trace.error = error
        stopped = isinstance(error, CancelledError) and faults.cancels
        trace.status = "stopped" if stopped else "failed"
    if simulation.dead:
        trace.status, trace.error = "crashed", None
    simulation.end()
    return trace


def play(
    driver: SimulatedDriver,
    made: Run,
    trace: Trace,
    until: Callable[[Any], bool] | None,
) -> None:
    """Take the turns of a whole run, or stop it in the middle."""
    faults, commands = driver.simulation.faults, driver.simulation.journal.commands
    turns = driver.turns(made.program())
    try:
        while True:
            item = next(turns)
            stops = faults.stop_at is not None and len(commands) >= faults.stop_at
            if isinstance(item, Delay):
                driver.clock.now = max(driver.clock.now, item.until)
            elif isinstance(item, tuple) and made.format.wants(item):
                trace.chunks.append(made.format.shape(item))
                stops = stops or (until is not None and until(trace.chunks[-1]))
            if stops:
                trace.status = "stopped"
                if faults.cancels:
                    turns.throw(CancelledError())
                turns.close()
                return
    except StopIteration as stop:
        outcome = stop.value
        trace.status = outcome.status
        trace.value = result(made, outcome)


class Drivers:
    """Has runs inside nodes driven by the same simulation."""

    def __init__(self, simulation: Simulation) -> None:
        self.blocking = partial(SimulatedDriver, simulation=simulation)
        self.looping = partial(AwaitedDriver, simulation=simulation)
