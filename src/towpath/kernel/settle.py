"""Launch the tasks of one superstep and settle each of them.

A task is settled when it has finished, is parked on a question, or has failed
for good. On the way it may be tried again, run into its time limit, or hand
over to its node's error handler. When one fails, nothing new is started; what
is already running may finish, and what it wrote is recorded.

A running task may call others, its children. Each is given what was recorded of
it before, or it is launched beside its parent, and its end is told to whoever
called it, once it is recorded. A child's failure is the caller's to handle.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

from towpath.constants import ERROR, ERROR_SOURCE_NODE, INTERRUPT, RETURN, TASKS
from towpath.errors import (
    EarlierError,
    GraphBubbleUp,
    GraphDrained,
    NodeError,
    NodeTimeoutError,
    ParentCommand,
    SerializationError,
    StepTimeoutError,
    refused_answer,
)
from towpath.kernel.children import Nursery, drop, keep, restore_child
from towpath.kernel.commands import (
    Alarm,
    Called,
    Cancelled,
    Expired,
    Launch,
    Program,
    Recall,
    Remember,
    Stop,
    Wait,
)
from towpath.kernel.retry import delay_s, matching
from towpath.kernel.session import Session, text_of
from towpath.plan import NodeSpec, Plan
from towpath.step.children import Child
from towpath.step.prepare import refill
from towpath.step.tasks import Task, Write, path_key
from towpath.types import CachePolicy, TimeoutPolicy

CACHE_NS = "__pregel_ns_writes"


def at_once(tasks: Sequence[Task], arrived: Sequence[Any]) -> bool:
    """Whether a lone task has finished as soon as it was launched: the rule."""
    if len(tasks) != 1 or not arrived:
        return False
    task = tasks[0]
    return arrived[0] is task and task.error is None and not task.halted


def settle(
    session: Session, tasks: Sequence[Task], arrived: Sequence[Any]
) -> Program[None]:
    """See to it that each of these tasks is settled; some may have arrived.

    Raises what stops the run: the first failure, a command for a graph
    further up, a drain, a cancellation.
    """
    if at_once(tasks, arrived):
        yield from done(session, tasks[0], last=True)
        return
    round_ = Round(session, tasks)
    try:
        yield from to_end(round_, arrived)
    except BaseException:
        round_.desert()
        raise
    if round_.over:
        yield from round_.end()


def to_end(round_: Round, arrived: Sequence[Any]) -> Program[None]:
    """See to the tasks of a round until none is left."""
    session = round_.session
    quiet = session.saver is None and not session.tells
    while True:
        round_.arrived = arrived
        if session.saver is not None and len(arrived) > 1:
            yield from round_.unbroken(round_.record_together(arrived))
        for event in arrived:
            if quiet and round_.plain(event):
                round_.running.discard(event)
                event.done = True
            else:
                yield from round_.unbroken(round_.take(event))
        if round_.due:
            arrived = yield from round_.relaunch()
        elif round_.running:
            arrived = yield Wait(round_.running, round_.alarm())
        elif round_.later:
            arrived = yield Wait((), round_.alarm())
        else:
            break


def done(session: Session, task: Task, *, last: bool) -> Program[None]:
    """A task has finished: record and tell what it wrote."""
    task.done = True
    if session.saver is not None and not task.recorded:
        yield from session.record_done((task,), last=last)
    if session.tells:
        session.tell_update(task)
        session.tell_result(task)
    yield from remember(session, task)


def remember(session: Session, task: Task) -> Program[None]:
    """Keep what a task wrote in the cache, if it asks for that."""
    if task.cache_key is not None and task.spec.cache is not None:
        key, ttl = task.cache_key, task.spec.cache.ttl
        yield Remember(session.req.cache, key, tuple(task.writes), ttl)


def recall(session: Session, tasks: Sequence[Task]) -> Program[Sequence[Task]]:
    """Take results from the cache; the tasks that must run are left."""
    keyed = {}
    for task in tasks:
        policy = task.spec.cache
        if policy is not None and task.error is None:
            task.cache_key = (cache_ns(task.spec), cache_text(policy, task.input))
            keyed[task.cache_key] = task
    if not keyed:
        return tasks
    found = yield Recall(session.req.cache, list(keyed))
    for key, writes in found.items():
        task = keyed[key]
        if not are_writes(session.plan, writes):
            continue  # whoever put it there, it is no result of this node
        task.writes = [(channel, value) for channel, value in writes]
        task.done = task.cached = True
        task.cache_key = None
        if session.saver is not None:
            yield from session.record_done((task,), last=False)
        session.tell_update(task)
    return [task for task in tasks if not task.done]


def are_writes(plan: Plan, found: object) -> bool:
    """Tell whether what a cache has are writes to channels of this graph."""
    return isinstance(found, (tuple, list)) and all(
        isinstance(write, (tuple, list))
        and len(write) == 2
        and isinstance(write[0], str)
        and (write[0] in plan.channels or write[0] == TASKS)
        for write in found
    )


def is_result(found: object) -> bool:
    """Tell whether what a cache has is what a called task returned."""
    return (
        isinstance(found, (tuple, list))
        and len(found) == 1
        and isinstance(found[0], (tuple, list))
        and len(found[0]) == 2
        and found[0][0] == RETURN
    )


def goes_on(task: Task) -> bool:
    """Let the thread that called a step try it again, if that is what it is."""
    if not (isinstance(task, Child) and task.inline):
        return False
    task.answer(task)
    return True


def cache_ns(spec: NodeSpec) -> tuple[str, ...]:
    """Where a node's results are kept: by what it is, not only by its name."""
    version = spec.cache.version if spec.cache is not None else ""
    return (CACHE_NS, spec.identity, spec.name, *([version] if version else ()))


def cache_text(policy: CachePolicy[Any], given: Any) -> str:
    """The key of one input, as text."""
    return key_text(policy.key_func(given))


def key_text(key: str | bytes) -> str:
    return key.hex() if isinstance(key, bytes) else str(key)


class Round:
    """The tasks of one superstep that are not settled yet."""

    __slots__ = (
        "arrived",
        "due",
        "later",
        "nursery",
        "over",
        "parked",
        "running",
        "session",
        "why",
    )

    def __init__(self, session: Session, tasks: Sequence[Task]) -> None:
        self.session = session
        self.arrived: Sequence[Any] = ()
        self.running = set(tasks)
        self.later: list[tuple[float, Task]] = []
        self.nursery: Nursery | None = None
        self.due: list[Task] = []
        self.over = False
        self.parked = False
        self.why: BaseException | None = None

    def alarm(self) -> float | None:
        """When the next failed task is to be tried again."""
        return min((moment for moment, _ in self.later), default=None)

    def relaunch(self) -> Program[Sequence[Any]]:
        due, self.due = self.due, []
        self.running.update(due)
        launched = [task for task in due if not goes_on(task)]
        if not launched:
            return ()
        arrived: Sequence[Any] = yield Launch(launched)
        return arrived

    def take(self, event: Any) -> Program[None]:
        """Decide what an event means for the round."""
        if isinstance(event, Task):
            if event in self.running:
                self.running.discard(event)
                yield from self.returned(event)
        elif isinstance(event, Alarm):
            moment = self.alarm()
            self.due += [task for at, task in self.later if at == moment]
            self.later = [entry for entry in self.later if entry[0] != moment]
        elif isinstance(event, Expired):
            yield from self.expired(event)
        elif isinstance(event, Called):
            yield from self.called(event.child)
        else:
            assert isinstance(event, Cancelled)
            yield from self.dropped(event.dropped)
            yield from self.close(event.error)

    def plain(self, event: Any) -> bool:
        """Whether this is a task that has simply finished: the rule."""
        if not isinstance(event, Task) or event not in self.running:
            return False
        if self.nursery is not None or event.error is not None:
            return False
        return event.cache_key is None and not event.halted

    def unbroken(self, part: Program[None]) -> Program[None]:
        """Do something; if a saver, a cache or a policy fails, the run is over.

        A value that no saver takes is the fault of what wrote it: what finishes
        beside that is recorded. A parent is not that was told its child had failed.
        """
        try:
            yield from part
        except Exception as error:
            if not isinstance(error, SerializationError):
                self.session.broken = True
            yield from self.close(error)
            yield from self.fail_strays(error)

    def record_together(self, arrived: Sequence[Any]) -> Program[None]:
        """Record what finished at the same time at once, before any of it is told.

        While a disk is waited for, others finish: the slower it is, the more of
        them share a transaction. Those that end the step go with its commit. Where
        one has called another before it returned, that comes first: it may have to
        be held back, and what the other asks be asked by it.
        """
        tasks = [event for event in arrived if self.plain(event)]
        if len(tasks) < 2 or any(isinstance(event, Called) for event in arrived):
            return
        more = len(tasks) < len(self.running) or self.due or self.later
        ends = not (more or self.parked or self.over)
        yield from self.session.record_done(tasks, last=ends)
        for task in tasks:
            task.recorded = True

    def returned(self, task: Task) -> Program[None]:
        """A task came back, but not simply finished."""
        if self.nursery is not None:
            if self.nursery.hold(task):
                if task.error is not None:
                    yield from self.stop(self.nursery.unsettled(task), task.error)
                return
            self.nursery.close(task)
        error = task.error
        if self.over and task.bereft and error is None and not task.halted:
            yield from self.dropped((task,))  # it did not get what it called
        elif isinstance(task, Child):
            yield from self.child_returned(task)
        elif task.halted:
            yield from self.park(task)
        elif error is None:
            last = not (self.running or self.later or self.parked or self.over)
            yield from done(self.session, task, last=last)
        elif isinstance(error, ParentCommand | GraphDrained):
            yield from self.close(error)
        else:
            yield from self.failed(task, error)

    def park(self, task: Task) -> Program[None]:
        """A task waits for an answer."""
        session = self.session
        self.parked = session.halted = True
        task.error = None
        session.interrupts = (*session.interrupts, *task.interrupts)
        if session.saver is not None:
            yield from session.record_parked(task)
        session.tell_parked(task)

    def failed(self, task: Task, error: BaseException) -> Program[None]:
        """An attempt failed: try again, hand over, or give up."""
        policy = None if self.over else matching(task.spec.retry, error)
        if policy is not None and task.attempt < policy.max_attempts:
            wait = delay_s(policy, task.attempt, task.jitter)
            task.error = None
            task.writes = []
            session = self.session
            refill(session.plan, session.state, task, session.stop)
            self.later.append((task.failed_at + wait, task))
            return
        handler = task.spec.error_handler
        if self.session.saver is not None:
            yield from self.session.record_failed(task)
            yield from self.session.forget(refused_answer(error))
        self.session.tell_result(task)
        if isinstance(task, Child):
            yield from self.settled(task)
            return
        if handler is not None and isinstance(error, Exception) and not self.over:
            yield from self.hand_over(task, handler, error)
            return
        self.session.failures = (*self.session.failures, task)
        yield from self.close(error)

    def hand_over(self, task: Task, handler: str, error: Exception) -> Program[None]:
        """Let the node's error handler take the failed task's place."""
        session = self.session
        stand_in = handed_over(session.plan.nodes[handler], task, error)
        session.tasks = [*session.tasks, stand_in]
        if session.saver is not None:
            yield from session.record(
                task.id, path_key(task.path), [(ERROR_SOURCE_NODE, task.name)]
            )
        self.due.append(stand_in)

    def expired(self, event: Expired) -> Program[None]:
        """A time limit passed: the task's result is no longer wanted."""
        task = event.task
        if task is None:
            seconds = self.session.req.step_timeout
            names = sorted(t.name for t in self.running)
            for late in self.running:
                late.abandoned = True
            left = tuple(self.running)
            yield Stop(left)
            self.running.clear()
            yield from self.close(
                StepTimeoutError(
                    f"step {self.session.state.step} took longer than "
                    f"{seconds} s; still running: {', '.join(names)}"
                )
            )
            yield from self.dropped(left)
        elif task in self.running:
            self.running.discard(task)
            task.abandoned = True
            yield Stop((task,))
            fresh = task.renewed()
            fresh.error = timeout_error(task, event)
            self.swap(task, fresh)
            yield from self.failed(fresh, fresh.error)

    def swap(self, old: Task, new: Task) -> None:
        """Put a new attempt's task in the place of an abandoned one."""
        if isinstance(old, Child) and isinstance(new, Child):
            assert self.nursery is not None
            self.nursery.replace(old, new)
            return
        tasks = self.session.tasks
        self.session.tasks = [new if task is old else task for task in tasks]

    def close(self, error: BaseException) -> Program[None]:
        """Start nothing more, and end the run with this once all is quiet."""
        if self.why is None:
            self.why = error
        if self.over:
            return
        self.over = True
        self.session.mute = True
        lost = [*self.due, *(task for _, task in self.later)]
        self.later.clear()
        self.due.clear()
        yield from self.dropped(lost)
        yield from self.stop(self.running, error)

    def stop(self, tasks: Collection[Task], why: BaseException) -> Program[None]:
        """Ask running tasks to stop, and see to those that come to no end."""
        running = tuple(task for task in tasks if task in self.running)
        if running:
            hurry = not isinstance(why, Exception)
            yield from self.dropped((yield Stop(running, hurry=hurry)))

    def dropped(self, tasks: Sequence[Task]) -> Program[None]:
        """These tasks come to no end; whoever called one of them is told."""
        self.running.difference_update(tasks)
        for task in tasks:
            if isinstance(task, Child):
                drop(task, "was given up, because the run ends")
                yield from self.settled(task)

    # -- children -----------------------------------------------------------

    def called(self, child: Child) -> Program[None]:
        """A running task calls another: give it what is known, or start that."""
        session = self.session
        if self.nursery is None:
            self.nursery = Nursery()  # and no end is a plain one any more
        if self.over or child.parent not in self.running:
            drop(child, "was called by a node that is over")
            child.answer(child)
            return
        if not self.nursery.take(child):
            return
        session.tell_started(child)
        if restore_child(session, child) or (yield from self.recalled(child)):
            yield from self.settled(child)
        elif child.inline:
            self.running.add(child)
            child.answer(child)
        else:
            self.due.append(child)

    def recalled(self, child: Child) -> Program[bool]:
        """Take a child's result from the cache, if it is there."""
        policy, cache = child.spec.cache, self.session.req.cache
        if policy is None or cache is None:
            return False
        args, kwargs = child.input
        try:
            text = key_text(policy.key_func(*args, **kwargs))
        except Exception as error:
            child.error = error
            return True
        key = child.cache_key = (cache_ns(child.spec), text)
        found = yield Recall(cache, [key])
        if key not in found or not is_result(found[key]):
            return False
        child.writes, child.cached, child.cache_key = list(found[key]), True, None
        yield from self.child_done(child)
        return True

    def child_returned(self, child: Child) -> Program[None]:
        """A child came back: its end is its caller's business."""
        cancelled = child.error is not None and not isinstance(child.error, Exception)
        if self.over and cancelled:
            child.parent.bereft = True
        if child.halted:
            keep(self.session, child, [(INTERRUPT, child.interrupts)])
            if self.session.saver is not None:
                yield from self.session.record_parked(child)
            yield from self.settled(child)
        elif child.error is None:
            yield from self.child_done(child)
            yield from self.settled(child)
        elif isinstance(child.error, GraphBubbleUp):
            yield from self.settled(child)
        else:
            yield from self.failed(child, child.error)

    def child_done(self, child: Child) -> Program[None]:
        """Record and tell what a child returned."""
        session = self.session
        child.done = True
        keep(session, child, child.writes)
        if session.saver is not None:
            yield from session.record_done((child,), last=False)
        session.tell_update(child)
        if not child.cached:
            session.tell_result(child)
            yield from remember(session, child)

    def settled(self, child: Child) -> Program[None]:
        """Tell the callers of a child, and go on with parents that waited for it."""
        assert self.nursery is not None
        self.running.discard(child)
        for parent in self.nursery.settle(child):
            yield from self.returned(parent)

    def fail_strays(self, error: BaseException) -> Program[None]:
        """Seeing to a child failed, which ends the run: its caller is told so."""
        if self.nursery is not None:
            for child in self.nursery.strays(self.running):
                child.error = error
                for call in (child, *child.twins):
                    call.parent.bereft = True
                yield from self.settled(child)

    def desert(self) -> None:
        """The round has no end: whoever waits for a child must not wait for ever."""
        if self.nursery is not None:
            self.nursery.desert()
        for event in self.arrived:
            if isinstance(event, Called) and not event.child.settled:
                drop(event.child, "was called by a node that is over")
                event.child.answer(event.child)

    def end(self) -> Program[None]:
        """Raise what ended the round, the other failures attached."""
        assert self.why is not None
        yield from self.session.release_late()
        if self.session.plan.semantics.attach_failures:
            attach(self.why, [t.error for t in self.session.failures if t.error])
        raise self.why


def handed_over(spec: NodeSpec, task: Task, error: BaseException) -> Task:
    """The task of an error handler; the failed one is over and wrote nothing."""
    stand_in = Task(spec, (*task.path, spec.name), (), task.origin)
    stand_in.place = task.order()
    stand_in.input = task.input
    stand_in.failure = NodeError(task.name, error)
    task.writes = []
    task.error = None
    task.done = task.handled = True
    return stand_in


def stand_in_of(plan: Plan, task: Task, recorded: Sequence[Write]) -> Task | None:
    """The error handler's task, where one took over in an earlier run."""
    said = dict(recorded)
    handler = plan.nodes.get(task.spec.error_handler or "")
    if ERROR_SOURCE_NODE not in said or handler is None:
        return None
    return handed_over(handler, task, EarlierError(str(said.get(ERROR, ""))))


def attach(first: BaseException, errors: Sequence[BaseException]) -> None:
    """Let the error that is raised carry those of other tasks of its step."""
    others = tuple(error for error in errors if error is not first)
    if not others:
        return
    with suppress(Exception):  # users' exceptions may refuse attributes
        first.also_failed = others  # type: ignore[attr-defined]
        for other in others:
            first.add_note(f"Also failed in the same step: {text_of(other)}")


def timeout_error(task: Task, event: Expired) -> NodeTimeoutError:
    policy = task.timeout or TimeoutPolicy()
    return NodeTimeoutError(
        task.name,
        event.elapsed,
        kind="idle" if event.kind == "idle" else "run",
        idle_timeout=seconds_of(policy.idle_timeout),
        run_timeout=seconds_of(policy.run_timeout),
    )


def seconds_of(value: Any) -> float | None:
    if value is None:
        return None
    return float(value.total_seconds() if hasattr(value, "total_seconds") else value)
