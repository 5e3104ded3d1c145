"""The blocking driver.

It runs a program in the caller's thread. A lone task runs right here; several,
or one whose chunks or time limit cannot wait for its end, run in lanes of
threads and come back through the inbox, the only thing other threads touch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from threading import Condition, Event, Lock, get_ident
from time import monotonic, sleep
from typing import Any, Final

from towpath.call.attempt import run_blocking
from towpath.call.children import refuse
from towpath.call.scope import RunScope
from towpath.call.threads import STOCK, Lanes
from towpath.drive.common import (
    AGAIN,
    BACKLOG,
    WOKEN,
    Deadlines,
    conclusion,
    dated,
    fork_name,
    is_inline,
    pause_before_claim,
    runs_here,
    saver_call,
    staged,
    stamp,
)
from towpath.drive.reading import fetch_all
from towpath.drive.waiting import Waiting
from towpath.errors import NodeCancelledError, ThreadBusyError
from towpath.kernel.commands import (
    Called,
    Cancelled,
    Closed,
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
from towpath.step.children import Child
from towpath.step.tasks import Task

CALLING: Final = Lock()
"""Held while a task's call is taken in: several threads of one may call."""


class Backlog:
    """Saver calls that a run left behind it, made in order by one thread.

    Those that wait are made together. At most `BACKLOG` are not over; then the run
    waits too. The first failure is raised at the next call, and nothing is stored
    after it.
    """

    def __init__(self) -> None:
        self.waiting = Waiting()
        self.changed = Condition()
        self.working = False

    def submit(self, call: Any) -> None:
        waiting = self.waiting
        with self.changed:
            self.changed.wait_for(lambda: len(waiting.calls) < BACKLOG)
            waiting.check()
            waiting.calls.append(call)
            if self.working:
                return
            self.working = True
        STOCK.run(self.work)

    def work(self) -> None:
        while self.goes_on():
            try:
                with self.changed:
                    whole = self.waiting.begin()
                whole.run()
            except BaseException as error:
                self.end(error)
            else:
                self.end(None)

    def goes_on(self) -> bool:
        with self.changed:
            self.working = bool(self.waiting.calls)
            return self.working

    def end(self, error: BaseException | None) -> None:
        """What was begun is stored, or has failed."""
        with self.changed:
            if error is None:
                self.waiting.over()
            else:
                self.waiting.failed(error)
            self.changed.notify_all()

    def flush(self) -> None:
        """Wait until everything is stored."""
        with self.changed:
            self.changed.wait_for(lambda: not self.waiting.calls)
            self.waiting.check()


class SyncDriver:
    """Obeys one program in the caller's thread.

    `here` is the task that runs in place. When it calls others, whoever takes the
    `turn` obeys the program meanwhile; `pump` is set when that is over, and `left`
    what it left to obey.
    """

    # Class attributes are the defaults: tasks of most runs call no others.
    ended = False
    here: Task | None = None
    thread = 0
    pump: Event | None = None
    pumping = False
    left: Any = None
    fault: BaseException | None = None

    def __init__(self, scope: RunScope) -> None:
        self.scope = scope
        self.inbox: SimpleQueue[Any] = SimpleQueue()
        self.outbox: deque[Chunk] = deque()
        self.lanes: Lanes | None = None
        self.cancelled: BaseException | None = None
        self.deadlines = Deadlines(scope.req.step_timeout)
        self.events: list[Any] = []
        self.turn: list[Task] = []

    def emit(self, chunk: Chunk) -> None:
        """Take a chunk from any thread."""
        if self.scope.live:
            self.inbox.put(chunk)
        else:
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
        """Obey a program; yield chunks as they come, return what it returns."""
        outbox, live = self.outbox, self.scope.live
        self.program = program
        self.scope.driver = self
        self.scope.begin()
        try:
            command = next(program)
            while True:
                try:
                    if live:
                        self.collect()
                    while outbox:
                        yield dated(outbox.popleft())
                    reply = ORDERS[type(command)](self, command)
                except (GeneratorExit, KeyboardInterrupt) as error:
                    return self.close(program, command, error)
                except BaseException as error:
                    command = program.throw(error)
                else:
                    if reply is not AGAIN:
                        command = program.send(reply)
        except StopIteration as stop:
            yield from self.rest()
            return stop.value
        except Exception:
            yield from self.rest()
            raise
        finally:
            self.end()

    def rest(self) -> Generator[Chunk, None, None]:
        """The chunks that are left when the program has ended."""
        self.collect()
        while self.outbox:
            yield dated(self.outbox.popleft())

    def close(self, program: Program[Any], command: Any, error: BaseException) -> Any:
        """The caller wants no more: let the program end in order, then raise.

        A closed generator could not store anything, so the end of the run
        reaches the program as an event.
        """
        reason = Closed() if isinstance(error, GeneratorExit) else error
        self.cancelled = reason
        self.scope.closed = True
        self.events.append(Cancelled(reason))
        try:
            while True:
                self.outbox.clear()  # nobody takes chunks any more
                try:
                    reply = ORDERS[type(command)](self, command)
                except Exception as failure:
                    command = program.throw(failure)
                else:
                    if reply is not AGAIN:
                        command = program.send(reply)
        except StopIteration:
            pass
        except BaseException as raised:
            if raised is not reason:
                raise
        if isinstance(error, GeneratorExit):
            return None
        raise error

    # -- tasks --------------------------------------------------------------

    def launch(self, command: Launch) -> Any:
        """Run a lone task here; give several to the lanes."""
        tasks, scope = command.tasks, self.scope
        if self.left is not None:
            return self.resumed()
        if scope.outer is not None and scope.abandoned() and self.cancelled is None:
            self.cancelled = NodeCancelledError(scope.plan.name)
        if self.cancelled is not None:
            return (Cancelled(self.cancelled, tasks),)
        if len(tasks) == 1 and not self.pumping and runs_here(scope, tasks[0]):
            task = self.here = tasks[0]
            self.turn.append(task)
            self.thread = get_ident()  # a stream may be read by one after the other
            run_blocking(scope, task)
            self.here = None
            try:
                self.turn.pop()  # nobody can take it any more
            except IndexError:
                return self.joined(task)
            return (task,)
        if type(tasks[0]) is Task:
            self.deadlines.begin_step()
        if self.lanes is None:
            self.lanes = Lanes(scope.config.get("max_concurrency"))
        self.lanes.submit([(task, partial(self.work, task)) for task in tasks])
        return ()

    def work(self, task: Task) -> None:
        """A lane's job: run a task and hand it back."""
        if task.timeout is not None:
            task.start_clock(monotonic())
            self.inbox.put(WOKEN)
        task.line = get_ident()
        try:
            run_blocking(self.scope, task)
        except BaseException as error:  # a fault of ours must not hang the run
            task.error = error
        if self.lanes is not None:
            if task.abandoned:
                self.lanes.narrow()
            if task.lent:
                self.lanes.narrow()
                task.lent = False
        self.inbox.put(task)

    def stop(self, command: Stop) -> Sequence[Task]:
        """Take back what has not begun; a thread that runs cannot be stopped."""
        if self.lanes is None:
            return ()
        for task in command.tasks:
            if task.abandoned:
                self.lanes.widen()
        return tuple(self.lanes.drop(command.tasks))

    def collect(self) -> None:
        """Sort what is in the inbox."""
        inbox, events = self.inbox, self.events
        while not inbox.empty():  # nobody else takes from it
            item = inbox.get_nowait()
            if type(item) is Task and not item.abandoned:  # the rule
                events.append(item)
            else:
                self.sort(item)

    def sort(self, item: Any) -> None:
        """A chunk goes out, an event to the program; late results to nobody."""
        if type(item) is tuple:
            self.outbox.append(item)
        elif item is not WOKEN and not (type(item) is Task and item.abandoned):
            self.events.append(item)

    def wait(self, command: Wait) -> Any:
        """Wait for events; `AGAIN` when chunks come first."""
        seconds, due = self.deadlines.due(command.tasks, command.until)
        if due is not None:
            return (due,)
        if not self.events:
            try:
                self.sort(self.inbox.get(timeout=seconds))
            except Empty:
                return AGAIN
        self.collect()
        if (self.outbox and not self.pumping) or not self.events:
            return AGAIN
        events, self.events = self.events, []
        return events

    # -- tasks that call others ---------------------------------------------

    blocking = True

    def loop_here(self) -> None:
        """There is no loop of the driver's."""

    def in_line(self, task: Task) -> bool:
        """Whether this is the thread that runs a task's own code."""
        return get_ident() == (task.line or self.thread)

    def call(self, child: Child) -> None:
        """Take a call of a running task, from any thread.

        A task that has called others no longer counts for the run's width, or
        those that wait could keep those that they wait for from beginning.
        """
        parent = child.parent
        with CALLING:
            if not parent.lent and parent is not self.here:
                parent.lent = True
                if self.lanes is not None:
                    self.lanes.widen()
            self.inbox.put(Called(child))
            if self.ended:
                self.end()
            elif self.turn:
                self.go_aside()

    def go_aside(self) -> None:
        """Have another thread obey the program while a task runs in this one."""
        try:
            self.turn.pop().spec.calls = True
        except IndexError:  # it has just ended
            return
        self.pumping, self.pump = True, Event()
        STOCK.run(partial(self.go_on, self.pump))

    def run_here(self, child: Child) -> None:
        """Run a child to its end in this thread."""
        child.line = get_ident()
        run_blocking(self.scope, child)

    def hand_back(self, child: Child) -> None:
        """Take a child that has run, from any thread."""
        self.inbox.put(child)
        if self.ended:
            self.end()

    def give_up(self, child: Child) -> None:
        """Nothing is to be done: a thread cannot be stopped."""

    def go_on(self, done: Event) -> None:
        """Obey the program while the task that runs in place keeps its thread.

        That task has called others, so that the program has decisions to make
        meanwhile. It gets no end of a task that runs in place until it is back
        with the driver, which it is whenever it waits and `here` is empty.
        """
        program = self.program
        try:
            command = program.send(())
            while type(command) is not Wait or self.here is not None:
                try:
                    reply = ORDERS[type(command)](self, command)
                except BaseException as error:
                    command = program.throw(error)
                else:
                    if reply is not AGAIN:
                        command = program.send(reply)
        except BaseException as error:
            self.fault = error
            self.collect()
            self.end()  # before the task is back: it may wait for what it calls
        else:
            self.left = command
        done.set()

    def joined(self, task: Task) -> Any:
        """Take the program back from the thread that went on with it."""
        with CALLING:
            assert self.pump is not None
        self.inbox.put(WOKEN)
        torn: BaseException | None = None
        while not self.pump.is_set():
            try:
                self.pump.wait()
            except KeyboardInterrupt as error:
                torn = error
        self.pump, self.pumping = None, False
        self.collect()  # what it called comes before its end
        self.events.append(task)
        if self.fault is not None:
            raise self.fault
        if torn is not None:
            raise torn
        return self.resumed()

    def resumed(self) -> Any:
        """Obey the wait at which the program was left."""
        reply = self.wait(self.left)
        if reply is not AGAIN:
            self.left = None
        return reply

    def end(self) -> None:
        """The run is over: answer the calls that nobody is going to see to."""
        self.ended = True
        self.scope.driver = None
        inbox, events = self.inbox, self.events
        with suppress(Empty):
            while not inbox.empty():  # a call that comes now looks for itself
                events.append(inbox.get_nowait())
        with suppress(IndexError):
            while events:
                item = events.pop()
                if isinstance(item, Called | Child):
                    refuse(item.child if isinstance(item, Called) else item)

    # -- storage ------------------------------------------------------------

    def persist(self, command: Persist) -> tuple[str, str]:
        reply = stamp(command)
        if command.how != "hold":
            self.store(command)
        return reply

    def record(self, command: Record) -> None:
        self.store(command)

    def store(self, command: Persist | Record) -> None:
        """Store now, or behind the run; always in the order of the commands."""
        behind = command.how == "behind" and not is_inline(command.saver)
        backlog = self.backlog(make=behind)
        if behind and backlog is not None:
            backlog.submit(staged(command))
            return
        if backlog is not None:
            backlog.flush()
        staged(command).run()

    def conclude(self, command: Finish) -> None:
        if (rest := conclusion(command)) is not None:
            rest.run()

    def backlog(self, *, make: bool = False) -> Backlog | None:
        """The backlog of this run, which is that of the run around it.

        It has none in the thread of a loop that keeps one: what waits there cannot
        be stored as long as this thread waits for what is stored in another.
        """
        scope = self.scope
        outer = None if scope.outer is None else scope.outer.backlog
        if scope.backlog is None and outer is not None:
            if isinstance(outer, Backlog):
                scope.backlog = outer
            else:
                outer.flush_blocking()  # one of another colour cannot be shared
                make = make and not outer.is_here()
        if scope.backlog is None and make:
            scope.backlog = Backlog()
        backlog: Backlog | None = scope.backlog
        return backlog

    def flush(self, command: Flush) -> None:
        del command
        if (backlog := self.backlog()) is not None:
            backlog.flush()

    def ask_saver(self, command: Fetch) -> Any:
        method, args, _ = saver_call(command)
        if command.lease is not None:
            command.lease.holder = get_ident()
        attempt = 0
        while True:
            try:
                return getattr(command.saver, method)(*args)
            except ThreadBusyError as error:
                if self.cancelled is not None:
                    raise self.cancelled from None  # nobody waits for it any more
                sleep(pause_before_claim(command, error, attempt, blocks=True))
            attempt += 1

    def fork(self, command: Fork) -> str:
        target = fork_name(command)
        command.saver.copy_thread(command.thread, target)
        return target

    def ask_saver_all(self, command: FetchAll) -> list[Any]:
        return fetch_all(command)

    def recall(self, command: Recall) -> Any:
        return command.cache.get(command.keys)

    def remember(self, command: Remember) -> None:
        command.cache.set({command.key: (command.writes, command.ttl)})


# A table of functions, not of bound methods: a driver that held those would be
# a cycle, and with it everything of its run would wait for the collector.
ORDERS: Final[dict[type, Callable[[SyncDriver, Any], Any]]] = {
    Launch: SyncDriver.launch,
    Wait: SyncDriver.wait,
    Stop: SyncDriver.stop,
    Persist: SyncDriver.persist,
    Record: SyncDriver.record,
    Flush: SyncDriver.flush,
    Finish: SyncDriver.conclude,
    Fork: SyncDriver.fork,
    Fetch: SyncDriver.ask_saver,
    FetchAll: SyncDriver.ask_saver_all,
    Recall: SyncDriver.recall,
    Remember: SyncDriver.remember,
}
