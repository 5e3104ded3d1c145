"""The asyncio driver.

It runs a program in the running loop. A lone async task is awaited in place;
several become asyncio tasks; blocking nodes run in threads. A cancellation
reaches the program as an event, so that it can record what is done, and is
raised again when it has.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from threading import get_ident
from time import monotonic
from typing import Any, Final

from towpath.call.attempt import (
    direct_attempt,
    entered,
    is_direct,
    run_async,
    run_blocking,
)
from towpath.call.children import refuse
from towpath.call.scope import RunScope, TaskContext
from towpath.call.threads import Lanes
from towpath.drive.common import (
    AGAIN,
    WOKEN,
    Deadlines,
    cancel,
    conclusion,
    dated,
    fork_name,
    given_up,
    is_inline,
    pause_before_claim,
    runs_here,
    saver_call,
    staged,
    stamp,
)
from towpath.drive.queues import NONE, UNHEARD, Backlog, Inbox, bring, serve, turn_away
from towpath.drive.reading import afetch_all
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


class LoopDriver:
    """Obeys one program in the running event loop.

    `in_place` is the task that is awaited in place, whose calls `pump` sees to
    while it is; `left` is what that leaves to obey.
    """

    # Class attributes are the defaults: tasks of most runs call no others, and of
    # many runs that wait at once each holds no more than it needs.
    ended = False
    cancelled: BaseException | None = None
    gate: asyncio.Semaphore | None = None
    lanes: Lanes | None = None
    own_backlog = False
    storing: asyncio.Future[Any] | None = None
    in_place: Task | None = None
    own: asyncio.Task[Any] | None = None
    pump: asyncio.Task[None] | None = None
    pumping = False
    left: Any = None
    fault: BaseException | None = None
    widened: frozenset[Task] = NONE
    deadlines = Deadlines(None)

    def __init__(self, scope: RunScope) -> None:
        self.scope = scope
        self.loop = asyncio.get_running_loop()
        self.inbox = Inbox()
        self.outbox: deque[Chunk] = deque() if scope.heard else UNHEARD
        self.running: dict[Task, asyncio.Task[Any]] = {}
        self.hopping: set[Task] | frozenset[Task] = NONE
        self.events: list[Any] = []
        if scope.req.step_timeout is not None:
            self.deadlines = Deadlines(scope.req.step_timeout)

    def emit(self, chunk: Chunk) -> None:
        """Take a chunk from the loop or from any thread."""
        if not self.scope.live:
            self.outbox.append(chunk)
            return
        if self.loop_here() is not None:
            self.inbox.put(chunk)
        else:
            self.from_thread(self.inbox.put, chunk)

    async def run(self, program: Program[Any]) -> Any:
        """Obey a program to its end and return what it returns."""
        outcome: list[Any] = []
        async for _ in self.stream(program, outcome):
            pass
        return outcome[0]

    async def stream(
        self, program: Program[Any], outcome: list[Any]
    ) -> AsyncGenerator[Chunk, None]:
        """Obey a program; yield chunks as they come; leave the end in `outcome`."""
        outbox = self.outbox
        self.program = program
        self.scope.driver = self
        self.scope.begin()
        try:
            command = next(program)
            while True:
                try:
                    self.collect()
                    while outbox:
                        yield dated(outbox.popleft())
                    # What was replied before is not to live as long as this takes.
                    reply = None
                    reply = await ORDERS[type(command)](self, command)
                except (GeneratorExit, asyncio.CancelledError) as error:
                    await self.close(program, command, error)
                    raise
                except BaseException as error:
                    command = program.throw(error)
                else:
                    if reply is not AGAIN:
                        command = program.send(reply)
        except StopIteration as stop:
            outcome.append(stop.value)
            for chunk in self.rest():
                yield chunk
        except Exception:
            for chunk in self.rest():
                yield chunk
            raise
        finally:
            self.end()
            if self.own_backlog:
                self.scope.backlog.end()

    def rest(self) -> list[Chunk]:
        """The chunks that are left when the program has ended."""
        self.collect()
        rest = [dated(chunk) for chunk in self.outbox]
        self.outbox.clear()
        return rest

    async def close(
        self, program: Program[Any], command: Any, error: BaseException
    ) -> None:
        """The caller wants no more: let the program end in order.

        That is done in a task of its own, which further cancellations of the
        caller do not reach: what has finished is recorded before it is over.
        """
        reason = Closed() if isinstance(error, GeneratorExit) else error
        self.cancelled = reason
        self.scope.closed = True
        self.events.append(Cancelled(reason))
        ending = self.loop.create_task(self.finish(program, command, reason))
        while not ending.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([ending])
        ending.result()

    async def finish(
        self, program: Program[Any], command: Any, reason: BaseException
    ) -> None:
        """Obey what is left of a program that has been told to end."""
        try:
            while True:
                self.outbox.clear()  # nobody takes chunks any more
                try:
                    reply = await ORDERS[type(command)](self, command)
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

    # -- tasks --------------------------------------------------------------

    async def launch(self, command: Launch) -> Any:
        """Await a lone task here; make asyncio tasks of several."""
        tasks = command.tasks
        if self.left is not None:
            return await self.resumed()
        if self.scope.outer is not None:
            if self.scope.heard:
                # Whoever listens further up gets what was told before more happens.
                await asyncio.sleep(0)
            if self.cancelled is None and self.scope.abandoned():
                self.cancelled = NodeCancelledError(self.scope.plan.name)
        if self.cancelled is not None:
            return (Cancelled(self.cancelled, tasks),)
        task = tasks[0]
        lone = len(tasks) == 1 and not (self.pumping or task.spec.apart)
        if lone and runs_here(self.scope, task):
            self.in_place = task
            self.own = asyncio.current_task()  # a stream may be read by several
            await self.here(task)
            self.in_place = None
            if self.pump is None:
                return (task,)
            return await self.joined(task)
        self.own = self.own if self.pumping else asyncio.current_task()
        if type(task) is Task:
            self.deadlines.begin_step()
        width = self.scope.config.get("max_concurrency")
        if width and self.gate is None:
            self.gate = asyncio.Semaphore(width)
        for task in tasks:
            self.running[task] = self.start(task)
        return ()

    def here(self, task: Task) -> Awaitable[Task]:
        """A lone task's attempt, to be awaited in place."""
        scope = self.scope
        if is_direct(scope, task):
            context = TaskContext(scope, task)
            return direct_attempt(scope, task, context, entered(scope, context))
        return run_async(scope, task, partial(self.hop, task))

    def start(self, task: Task) -> asyncio.Task[None]:
        """An asyncio task for one of several, in the attempt's context if it can be."""
        scope = self.scope
        if self.gate is not None or task.timeout or not is_direct(scope, task):
            return self.loop.create_task(self.work(task))
        context = TaskContext(scope, task)
        return self.loop.create_task(
            self.work_direct(task, context), context=entered(scope, context)
        )

    async def work_direct(self, task: Task, context: TaskContext) -> None:
        """An asyncio task's job, where nothing but the node has to be awaited."""
        try:
            await direct_attempt(self.scope, task, context)
        finally:
            self.hand_back(task)

    async def work(self, task: Task) -> None:
        """An asyncio task's job: run a task and hand it back."""
        try:
            if self.gate is None:
                await self.attempt(task)
            else:
                await self.gate.acquire()
                try:
                    await self.attempt(task)
                finally:
                    if not task.lent:
                        self.gate.release()
                    task.lent = False
        except asyncio.CancelledError as error:
            task.error = task.error or error
        finally:
            self.hand_back(task)

    async def attempt(self, task: Task) -> None:
        if task.timeout is not None:
            task.start_clock(monotonic())
            self.inbox.put(WOKEN)
        await run_async(self.scope, task, partial(self.hop, task))

    async def hop(self, task: Task, job: Callable[[], Any]) -> Any:
        """Make a blocking call in a lane and await its result."""
        if self.lanes is None:
            self.lanes = Lanes(self.scope.config.get("max_concurrency"))
            self.hopping = set()
        future: asyncio.Future[Any] = self.loop.create_future()
        self.lanes.submit(((future, partial(serve, self, future, task, job)),))
        self.hopping |= {task}
        try:
            return await future
        finally:
            self.hopping -= {task}
            if task in self.widened:
                self.widened -= {task}
                self.lanes.narrow()

    def from_thread(self, call: Callable[..., None], *args: Any) -> None:
        """Have the loop make a call; a loop that has ended wants no result."""
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(call, *args)

    async def stop(self, command: Stop) -> Sequence[Task]:
        """Cancel tasks; they hand themselves back, but for those not begun."""
        # A thread cannot be stopped, so beside a failure it may finish; its
        # result would be lost and its work repeated.
        hurry = command.hurry or self.cancelled is not None
        spared = set() if hurry else self.hopping
        stopped = [t for t in command.tasks if t.abandoned or t not in spared]
        over = cancel(stopped, self.running)
        return [*over, *given_up(command.tasks, self.running)] if hurry else over

    def collect(self) -> None:
        """Sort what is in the inbox."""
        items = self.inbox.items
        if not items:
            return
        for item in items:
            if type(item) is Task and not item.abandoned:  # the rule
                self.events.append(item)
            else:
                self.sort(item)
        items.clear()

    def sort(self, item: Any) -> None:
        """A chunk goes out, an event to the program; late results to nobody."""
        if type(item) is tuple:
            self.outbox.append(item)
        elif item is not WOKEN and not (type(item) is Task and item.abandoned):
            self.events.append(item)

    async def wait(self, command: Wait) -> Any:
        """Wait for events; `AGAIN` when chunks come first."""
        seconds, due = self.deadlines.due(command.tasks, command.until)
        if due is not None:
            return (due,)
        if not self.events:
            if seconds is None:
                await self.inbox.filled()
            else:
                with suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await self.inbox.filled()
        self.collect()
        if (self.outbox and not self.pumping) or not self.events:
            return AGAIN
        events, self.events = self.events, []
        return events

    # -- tasks that call others ---------------------------------------------

    blocking = False

    def loop_here(self) -> asyncio.AbstractEventLoop | None:
        """The loop, if that is what runs this thread."""
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            return None
        return here if here is self.loop else None

    def in_line(self, task: Task) -> bool:
        """Whether this is the thread or asyncio task that runs a task's own code."""
        if self.loop_here() is None:
            return get_ident() == task.line
        return asyncio.current_task() is self.running.get(task, self.own)

    def call(self, child: Child) -> None:
        """Take a call of a running task, from the loop or from any thread."""
        if self.loop_here() is not None:
            self.called(child)
        else:
            bring(self, Called(child))

    def called(self, child: Child) -> None:
        """Take a call, in the loop.

        A task that has called others no longer counts for the run's width, or
        those that wait could keep those that they wait for from beginning.
        """
        if self.ended:
            refuse(child)
            return
        parent = child.parent
        if not parent.lent and parent in self.running and self.gate is not None:
            parent.lent = True
            self.gate.release()
        if parent in self.hopping and parent not in self.widened:
            assert self.lanes is not None
            self.widened |= {parent}
            self.lanes.widen()
        self.inbox.put(Called(child))
        if self.in_place is not None and not self.pumping:
            self.in_place.spec.calls = self.pumping = True
            self.pump = self.loop.create_task(self.go_on())

    def run_here(self, child: Child) -> None:
        """Run a child to its end in this thread, which is not the loop's."""
        child.line = get_ident()
        run_blocking(self.scope, child)

    def hand_back(self, task: Task) -> None:
        """Take a task that has run, from any thread; nobody wants an abandoned one."""
        if self.loop_here() is None:
            bring(self, task)
            return
        self.running.pop(task, None)
        if self.ended and isinstance(task, Child):
            refuse(task)
        elif not task.abandoned:
            self.inbox.put(task)

    def give_up(self, child: Child) -> None:
        """Nobody awaits this child any more."""
        if child in self.hopping:
            return
        for unbegun in cancel((child,), self.running):
            unbegun.error = asyncio.CancelledError()
            self.hand_back(unbegun)

    async def go_on(self) -> None:
        """Obey the program until the task that is awaited in place has returned."""
        program = self.program
        try:
            command = program.send(())
            while type(command) is not Wait or self.in_place is not None:
                try:
                    reply = await ORDERS[type(command)](self, command)
                except BaseException as error:
                    command = program.throw(error)
                else:
                    if reply is not AGAIN:
                        command = program.send(reply)
        except BaseException as error:
            self.fault = error
            self.end()  # before the task is back: it may wait for what it calls
        else:
            self.left = command

    async def joined(self, task: Task) -> Any:
        """Take the program back from the asyncio task that went on with it."""
        assert self.pump is not None
        self.inbox.put(WOKEN)
        torn: BaseException | None = None
        while not self.pump.done():
            try:
                await asyncio.wait([self.pump])
            except asyncio.CancelledError as error:
                torn = error
        self.pump, self.pumping = None, False
        self.collect()  # what it called comes before its end
        self.events.append(task)
        if self.fault is not None:
            raise self.fault
        if torn is not None:
            raise torn
        return await self.resumed()

    async def resumed(self) -> Any:
        """Obey the wait at which the program was left."""
        reply = await self.wait(self.left)
        if reply is not AGAIN:
            self.left = None
        return reply

    def end(self) -> None:
        """The run is over: answer the calls that nobody is going to see to."""
        self.ended = True
        self.scope.driver = None
        turn_away(self)
        self.collect()
        while self.events:
            if type(item := self.events.pop()) is Called:
                refuse(item.child)

    # -- storage ------------------------------------------------------------

    async def persist(self, command: Persist) -> tuple[str, str]:
        reply = stamp(command)
        if command.how != "hold":
            await self.store(command)
        return reply

    async def conclude(self, command: Finish) -> None:
        if (rest := conclusion(command)) is not None:
            await rest.arun()

    async def flush(self, command: Flush) -> None:
        del command
        if (backlog := self.backlog()) is not None:
            await backlog.flush()

    async def store(self, command: Persist | Record) -> None:
        """Store now, or behind the run; always in the order of the commands."""
        if is_inline(command.saver):
            staged(command).run()
            return
        if command.how == "behind":
            backlog = self.backlog(make=True)
            assert backlog is not None
            await backlog.submit(staged(command))
            return
        if (backlog := self.backlog()) is not None:
            await backlog.flush()
        await self.untorn(lambda: staged(command).arun())

    async def untorn(self, call: Callable[[], Awaitable[Any]]) -> Any:
        """Make a saver call, and let no cancellation tear it.

        When one comes, the command is obeyed again while the run is closed, and finds
        the call still going on. A loop that ends cancels that too; then it is made
        again, for what is stored already may be stored once more.
        """
        while True:
            job = self.storing or asyncio.ensure_future(call())
            self.storing = job
            try:
                return await asyncio.shield(job)
            except asyncio.CancelledError:
                if self.cancelled is None or not job.cancelled():
                    raise
            finally:
                if job.done():
                    self.storing = None

    def backlog(self, *, make: bool = False) -> Backlog | None:
        """The backlog of this run, which is that of the run around it."""
        scope = self.scope
        outer = None if scope.outer is None else scope.outer.backlog
        if scope.backlog is None and outer is not None:
            if isinstance(outer, Backlog) and outer.loop is self.loop:
                scope.backlog = outer
            elif not isinstance(outer, Backlog):
                outer.flush()  # one of another colour cannot be shared
        if scope.backlog is None and make:
            scope.backlog = Backlog()
            self.own_backlog = True
        backlog: Backlog | None = scope.backlog
        return backlog

    async def ask_saver(self, command: Fetch) -> Any:
        method, args, _ = saver_call(command)
        if command.lease is not None:
            command.lease.holder, command.lease.looped = get_ident(), True
        attempt = 0
        while True:
            try:
                if is_inline(command.saver):
                    return getattr(command.saver, method)(*args)
                call = partial(getattr(command.saver, f"a{method}"), *args)
                # What claims a thread and is torn might claim it for nobody.
                return await (call() if command.lease is None else self.untorn(call))
            except ThreadBusyError as error:
                if self.cancelled is not None:
                    raise self.cancelled from None  # nobody waits for it any more
                pause_s = pause_before_claim(command, error, attempt, blocks=False)
                await asyncio.sleep(pause_s)
            attempt += 1

    async def recall(self, command: Recall) -> Any:
        return await command.cache.aget(command.keys)

    async def remember(self, command: Remember) -> None:
        await command.cache.aset({command.key: (command.writes, command.ttl)})

    async def fork(self, command: Fork) -> str:
        target = fork_name(command)
        await command.saver.acopy_thread(command.thread, target)
        return target

    async def ask_saver_all(self, command: FetchAll) -> list[Any]:
        return await afetch_all(command)


# As in the blocking driver, a table of functions: bound methods would be a cycle.
ORDERS: Final[dict[type, Callable[[LoopDriver, Any], Awaitable[Any]]]] = {
    Launch: LoopDriver.launch,
    Wait: LoopDriver.wait,
    Stop: LoopDriver.stop,
    Persist: LoopDriver.persist,
    Record: LoopDriver.store,
    Flush: LoopDriver.flush,
    Finish: LoopDriver.conclude,
    Fork: LoopDriver.fork,
    Fetch: LoopDriver.ask_saver,
    FetchAll: LoopDriver.ask_saver_all,
    Recall: LoopDriver.recall,
    Remember: LoopDriver.remember,
}
