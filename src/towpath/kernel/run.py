"""The superstep loop, as a program.

Plan the tasks, launch them, wait until each is settled, fold their writes,
commit; again, until nothing is ready or something stops the run. The program
owns the state and runs on one thread. Nodes run elsewhere and come back as
finished `Task`s. It makes no id and reads no clock: ids and times come with
the replies of commands and on the tasks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from towpath.constants import ERROR, INTERRUPT, MISSING, RESUME
from towpath.errors import (
    GraphDrained,
    GraphRecursionError,
    StalledJoinError,
)
from towpath.kernel.children import waits
from towpath.kernel.commands import Launch, Program
from towpath.kernel.request import Request
from towpath.kernel.session import Session
from towpath.kernel.settle import at_once, recall, settle, stand_in_of
from towpath.kernel.start import begin, unclaim
from towpath.plan import Plan
from towpath.step.apply import apply
from towpath.step.interrupts import breaks, is_done, own_writes
from towpath.step.prepare import prepare
from towpath.step.project import output, touches
from towpath.step.tasks import Task, Write, in_fold_order
from towpath.step.writes import fresh_values
from towpath.step.written import Result
from towpath.types import Interrupt

Status = Literal[
    "done", "interrupt", "interrupt_before", "interrupt_after", "out_of_steps"
]


@dataclass(slots=True)
class Outcome:
    """How a run ended: its output, why it stopped, which questions are open."""

    value: Any
    status: Status
    interrupts: tuple[Interrupt[Any], ...]
    steps: int


def run(plan: Plan, req: Request) -> Program[Outcome]:
    """Advance a thread superstep by superstep until it ends or must stop.

    Raises:
        GraphRecursionError: the step limit was reached.
        GraphDrained: a drain was asked for.
        Exception: whatever a node raised, after what else ran was recorded.
    """
    session: Session | None = None
    try:
        session = yield from begin(plan, req)
        first = session.state.step - session.entered
        status = yield from loop(session)
    except GeneratorExit:
        raise
    except BaseException:
        if session is None:
            if req.claims:
                yield unclaim(req)
        elif session.saver is not None:
            yield from session.conclude(complete=False)
        raise
    if session.saver is not None:
        yield from session.conclude(complete=status == "done")
    value = told_output(session, status)
    if session.state.told is not None and req.reports:
        value = Result.of(value, session.state.told)
    if status != "done" and not req.nested:
        session.tell_lifecycle(
            "interrupt", "pending" if status == "interrupt" else status
        )
    return Outcome(value, status, tuple(session.interrupts), session.state.step - first)


def loop(session: Session) -> Program[Status]:
    """The supersteps."""
    plan, req, state = session.plan, session.req, session.state
    tells, saver, control = session.tells, session.saver, req.control
    noted = tells or saver is not None or req.cache is not None
    retold = not (session.pending or session.reruns)
    launch = Launch(())  # one for all steps
    while True:
        session.tasks = tasks = prepare(plan, state, req, req.stop)
        if tells:
            show_checkpoint(session)
        if not tasks or state.step > req.stop - req.spent:
            return over(session)
        ready = restore(session, tasks) if session.pending else tasks
        if req.before and breaks(state, tasks, req.before):
            session.tell_breakpoint()
            return "interrupt_before"
        if control is not None and control.drain_reason is not None:
            raise GraphDrained(control.drain_reason)
        if tells:
            announce(session, tasks, again=not retold)
        if req.cache is not None:
            ready = yield from recall(session, ready)
        # Where several might ask first, an early answer is for none of them.
        _ = next(req.early, None) if len(ready) > 1 else None
        launch.tasks = ready
        arrived = (yield launch) if ready else ()
        if noted or not at_once(ready, arrived):
            yield from settle(session, ready, arrived)
        if session.halted:
            # In task order, not in the order in which the tasks came to ask.
            session.interrupts = [i for t in session.tasks for i in t.interrupts]
            yield from session.release_late()
            return "interrupt"
        retold = True
        arrived = ()  # tasks of this step are not to live through the next
        advance(session)
        if saver is not None:
            yield from session.commit("loop")
        if req.after and breaks(state, session.tasks, req.after):
            session.tasks = prepare(plan, state, req, req.stop)
            session.tell_checkpoint()
            session.tell_breakpoint()
            return "interrupt_after"


def advance(session: Session) -> None:
    """Fold what the tasks wrote, and tell it."""
    state, tasks = session.state, session.tasks
    if session.pending:
        session.pending = {}
    if state.carried:
        state.carried = {}
    apply(session.plan, state, tasks)
    if session.tells or session.fading:
        session.tell_step(tasks)
    if session.saver is None:  # else the commit does
        state.step += 1


def over(session: Session) -> Status:
    """Nothing is ready, or the step limit is reached."""
    state, req = session.state, session.req
    if state.step > req.stop - req.spent:
        raise out_of_steps(session)
    check_joins(session)
    return "done"


def show_checkpoint(session: Session) -> None:
    """Tell the checkpoint the step starts from, with what is recorded of its tasks."""
    if session.saver is None or not session.metadata:
        return
    for task in session.tasks:
        recorded = session.pending.get(task.id, ())
        for channel, value in recorded:
            if channel == INTERRUPT:
                task.parked = tuple(value)
            elif channel == ERROR:
                task.failed_before = value
        if is_done(recorded):
            task.done = True
            task.writes = own_writes(recorded)
    session.tell_checkpoint()


def announce(session: Session, tasks: Sequence[Task], *, again: bool) -> None:
    """Tell which tasks start; `again`: and what was known of them before."""
    for task in tasks:
        session.tell_started(task)
    if not again:
        return
    for task in tasks:
        if task.done:
            session.tell_update(task)
        elif task.halted:
            session.tell_parked(task)


def restore(session: Session, tasks: Sequence[Task]) -> Sequence[Task]:
    """Give tasks what was recorded of them before; return those that must run.

    A task that had finished keeps its writes. One whose error handler took
    over stays with it. One that waits for an answer is left parked unless it
    gets one. One that failed runs again.
    """
    ready: list[Task] = []
    plan = session.plan
    pending = session.pending
    stand_ins = [
        stand_in
        for task in tasks
        if (stand_in := stand_in_of(plan, task, pending.get(task.id, ())))
    ]
    session.tasks = [*tasks, *stand_ins]
    for task in session.tasks:
        recorded = session.pending.get(task.id, ())
        if not task.handled and not restore_task(session, task, recorded):
            ready.append(task)
    return ready


def restore_task(session: Session, task: Task, recorded: Sequence[Write]) -> bool:
    """Give one task what was recorded of it; whether it is settled by that."""
    asked: tuple[Interrupt[Any], ...] | None = None
    for channel, value in recorded:
        if channel == RESUME:
            task.answers = tuple(value)
        elif channel == INTERRUPT:
            asked = tuple(value)
    if is_done(recorded):
        task.writes = own_writes(recorded)
        task.done = task.cached = True
        return True
    if not asked:  # never asked, or stopped at a breakpoint further down
        return False
    if not waits(session, task, asked):
        task.parked = asked
        return False
    task.interrupts = asked
    task.halted = session.halted = True
    session.interrupts = (*session.interrupts, *asked)
    return True


def told_output(session: Session, status: Status) -> Any:
    """The output of the run; what finished beside a question is shown applied."""
    req = session.req
    values: Mapping[str, Any] = session.state.values
    if status == "interrupt":
        values = values_at_stop(session)
        if values is not session.state.values:
            session.tell("values", output(values, req.keys))
    elif session.last is not MISSING:
        return session.last
    return output(values, req.keys) if known(session, values) else None


def values_at_stop(session: Session) -> Mapping[str, Any]:
    """The values with what was written beside a question, and before it.

    A branch asks after its node has written; that belongs to the state only when the
    branch is through, so where it does not fit, that is not the moment to say so.
    """
    asking = [task for task in session.tasks if task.halted and task.writes]
    done = [task for task in session.tasks if task.done]
    with suppress(Exception):  # reducers may raise anything
        if asking:
            return with_writes(session, [*done, *asking])
    return with_writes(session, done)


def with_writes(session: Session, tasks: Sequence[Task]) -> Mapping[str, Any]:
    """The values with what these tasks wrote folded in, where it can be seen."""
    state = session.state
    writes = [w for task in in_fold_order(tasks) for w in task.writes]
    if not touches(writes, session.req.keys):
        return state.values
    return fresh_values(session.plan, state, writes)


def known(session: Session, values: Any) -> bool:
    """Whether anything was ever written that the output shows."""
    keys, versions = session.req.keys, session.state.versions
    if isinstance(keys, str):
        return keys in versions or keys in values
    return values is not session.state.values or not versions.keys().isdisjoint(keys)


def out_of_steps(session: Session) -> GraphRecursionError:
    limit = session.req.limit
    names = ", ".join(f"`{task.name}`" for task in session.tasks)
    names = names or "nothing, but the last step allowed was used up"
    return GraphRecursionError(
        f"Recursion limit of {limit} reached without hitting a stop condition; "
        f"next to run: {names}",
        hint=f"raise it: config={{'recursion_limit': {limit * 4}}}, or check "
        "what ends the loop",
    )


def check_joins(session: Session) -> None:
    """A list-join that got some of its sources can never fire any more."""
    if session.plan.semantics.stalled_joins != "error":
        return
    for join in session.plan.joins:
        channel = session.state.channels[join.channel]
        seen = getattr(channel, "seen", None)
        if seen and join.policy == "all" and set(seen) != set(join.sources):
            missing = ", ".join(f"`{s}`" for s in join.sources if s not in seen)
            raise StalledJoinError(
                f"the run ended while the join into `{join.target}` still waits "
                f"for {missing}",
                hint="let the join fire on the branches taken: add_edge([...], "
                f'"{join.target}", join="taken")',
            )
