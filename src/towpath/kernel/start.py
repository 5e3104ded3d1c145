"""Input, a command or nothing -> the state from which a run goes on.

New input starts from the entry node; `None` and `Command(resume=...)` go on
where the thread stopped; a checkpoint named by id is run again from there, on
a branch of its own when the thread has moved on since. All that is wrong with
an input or an answer is found before anything is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from towpath.constants import (
    CARRIED,
    CONF,
    ERROR,
    INPUT,
    INTERRUPT,
    NULL_TASK_ID,
    PULL,
    RESUME,
    START,
)
from towpath.errors import (
    EmptyInputError,
    NothingToResumeError,
    ThreadBusyError,
    UnknownCheckpointError,
)
from towpath.kernel.commands import Fetch, FetchAll, Finish, Fork, Program
from towpath.kernel.fit import check_work
from towpath.kernel.migrate import adapted, keep, made_by, sign
from towpath.kernel.request import Request
from towpath.kernel.session import Session
from towpath.plan import NOTHING, NodeSpec, Plan
from towpath.schema import as_update
from towpath.step.apply import apply
from towpath.step.interrupts import (
    SPECIAL,
    accepted_answers,
    bind,
    is_done,
    mark_stop,
    open_questions,
)
from towpath.step.isolate import isolate
from towpath.step.prepare import prepare
from towpath.step.state import State, open_state, open_to_look, tell_from_here
from towpath.step.tasks import Origin, Task, Write, kept_ids, question_of
from towpath.step.writes import command_writes, fresh_values, updates_of
from towpath.types import Command, Interrupt

OUTSIDE = NodeSpec(INPUT, None, (), NOTHING, hidden=True)


def begin(plan: Plan, req: Request) -> Program[Session]:
    """Load the thread and bring it to where the first superstep starts."""
    saved, rewound = (yield from load(req)) if req.saver else (None, False)
    if req.root is not None:
        req.root.used |= {req.ns}
    if saved is None:
        state = open_state(plan, bump=req.bump)
        req.state = state
        session = Session(plan, req, state)
        sign(session)
        return (yield from fresh(session))
    old = made_by(plan, saved)
    saved, moved = adapted(plan, req, saved)
    state = open_saved(plan, req, saved)
    req.state = state
    session = Session(plan, req, state)
    sign(session, saved, moved)
    session.metadata = saved.metadata
    session.stand_at(state.id, parent_id(saved))
    session.pending = by_task(saved.pending_writes or ())
    if req.nested and req.pinned is not None:
        req.resuming = True
    elif req.nested and not req.resuming:
        # A nested run that already began under this very step goes on.
        req.resuming = began_here(req, saved)
    goes_on = req.input is None or isinstance(req.input, Command) or req.resuming
    if goes_on and old is not None:
        check_work(plan, saved, old)
    if moved and not rewound:
        refuse_stray(session)
        yield from keep(session)
    if goes_on:
        yield from go_on(session, rewound=rewound)
    else:
        yield from new_input(session, rewound=rewound)
    return session


def refuse_stray(session: Session) -> None:
    """Refuse a wrong answer before the thread is stored in its new form."""
    given = session.req.input
    if isinstance(given, Command) and given.has_resume and not session.req.resuming:
        resolve(session, given.resume, open_questions(session.pending))


def began_here(req: Request, saved: Any) -> bool:
    """Whether a nested run's checkpoint was made under the very step around it.

    That step may have been carried to a later checkpoint since, by an edit.
    Ids sort in time order.
    """
    stored = dict(saved.metadata.get("parents") or {})
    return stored.keys() == req.parents.keys() and all(
        req.planned.get(ns, id_) <= stored[ns] <= id_ for ns, id_ in req.parents.items()
    )


def open_saved(plan: Plan, req: Request, saved: Any) -> State:
    """The state at a stored checkpoint, before its next step."""
    step = saved.metadata.get("step", -1) + 1
    state = open_state(plan, saved.checkpoint, step=step, bump=req.bump)
    state.carried = saved.metadata.get(CARRIED) or {}
    return state


def look_into(plan: Plan, saved: Any) -> State:
    """The same for those who change nothing in it."""
    metadata = saved.metadata
    state = open_to_look(plan, saved.checkpoint, metadata.get("step", -1) + 1)
    state.carried = metadata.get(CARRIED) or {}
    return state


def parent_id(saved: Any) -> str | None:
    """The id of the checkpoint that a stored one came from."""
    config: Mapping[str, Any] = saved.parent_config or {}
    id_: str | None = config.get(CONF, {}).get("checkpoint_id")
    return id_


def outside_task(req: Request, state: State, writes: Sequence[Write]) -> Task:
    """What the outside writes to the state, in the form of a task."""
    task = Task(OUTSIDE, (INPUT,), (), Origin(state.id, req, state.step))
    task.writes = list(writes)
    return task


def recorded_outside(pending: Mapping[str, Sequence[Write]]) -> list[Write]:
    """What commands that were a run's input wrote to a checkpoint."""
    return [w for w in pending.get(NULL_TASK_ID, ()) if w[0] not in SPECIAL]


def take_outside(
    plan: Plan, req: Request, state: State, writes: Sequence[Write]
) -> None:
    """Take writes from outside into the state, in no step of their own."""
    if writes:
        apply(plan, state, [outside_task(req, state, writes)])
        state.updated = None


def load(req: Request) -> Program[tuple[Any, bool]]:
    """The checkpoint to go on from, and whether its thread has passed it."""
    try:
        saved = yield claim(req)
    except ThreadBusyError:
        if req.on_busy != "fork" or not req.claims:
            raise
        saved = yield from fork(req)
    if saved is None:
        refuse_unknown(req)
        return None, False
    rewound = False
    if req.pinned or (req.rewound and req.answers):
        saved, rewound = yield from rewind(req, saved)
        req.rewound = rewound or req.rewound
    if req.nested and req.fork_id and not rewound:
        saved = yield from as_of_then(req, saved)
    elif req.root is not None:
        saved = yield from led_to(req.root, req, saved)
    else:
        req.base = saved.checkpoint["id"]
    return saved, rewound


def claim(req: Request) -> Fetch:
    """The command that reads where a run goes on, and claims its thread."""
    lease = req.lease if req.claims else None
    place = req.place(req.pinned)
    return Fetch(
        req.saver, place, goes_on=True, lease=lease, patient=req.on_busy == "wait"
    )


def fork(req: Request) -> Program[Any]:
    """Go on from a copy of the thread, which nobody else has."""
    assert req.thread_id is not None
    req.thread_id = yield Fork(req.saver, req.thread_id)
    req.lease.thread = req.thread_id
    if req.control is not None:
        req.control.thread_id = req.thread_id
    return (yield claim(req))


def unclaim(req: Request) -> Finish:
    """The command that ends a run of which there is no session."""
    place = req.place(req.pinned)
    return Finish(req.saver, place, None, req.lease, release=req.claims)


def refuse_unknown(req: Request) -> None:
    """A thread does not begin anew because its checkpoint is not found.

    Raises:
        UnknownCheckpointError: names the thread and the checkpoint (TP-306).
    """
    if req.pinned is not None and not req.nested:
        raise UnknownCheckpointError(
            f"thread `{req.thread_id}` has no checkpoint `{req.pinned}`",
            hint="leave checkpoint_id out to go on from the newest one",
        )


def as_of_then(req: Request, head: Any) -> Program[Any]:
    """The state of a subgraph when the checkpoint was made that is run again.

    A subgraph that keeps its state across calls has moved on since, unless
    this run has already called it. Ids sort in time order.
    """
    if head.checkpoint["id"] > req.fork_id:
        return head
    older = yield FetchAll(req.saver, req.place(None))
    return next((t for t in older if t.checkpoint["id"] < req.fork_base), None)


def led_to(root: Request, req: Request, head: Any) -> Program[Any]:
    """The newest checkpoint of a subgraph that the thread around it leads to.

    With durability "exit" a subgraph is stored before the run around it. What a run
    left that died in between belongs to nothing that is stored: who runs it again
    would give the subgraph its input twice.
    """

    def is_lost(saved: Any) -> bool:
        above = (saved.metadata.get("parents") or {}).get("")
        return above is not None and above > root.base

    if req.pinned or root.rewound or req.ns in root.used or not is_lost(head):
        return head
    older = yield FetchAll(req.saver, req.place(None))
    return next((t for t in older if not is_lost(t)), None)


def rewind(req: Request, saved: Any) -> Program[tuple[Any, bool]]:
    """Find the checkpoint to go on from, and whether the thread has passed it.

    A nested run that gets an answer goes on from the checkpoint at which the
    question was asked, which is an old one when its parent is run again from
    an old checkpoint.
    """
    head = saved
    if req.pinned:
        head = yield Fetch(req.saver, req.place(None))
    elif not asks(saved, req.answers):
        older = yield FetchAll(req.saver, req.place(None))
        saved = next((t for t in older if asks(t, req.answers)), saved)
    passed = head is not None and head.checkpoint["id"] != saved.checkpoint["id"]
    return saved, passed or runs_again(req, saved)


def runs_again(req: Request, saved: Any) -> bool:
    """Whether naming the newest checkpoint and giving nothing means a replay.

    It does not for one that an edit has just made, nor where it would repeat
    tasks of its step that have finished.
    """
    if req.pinned is None or req.input is not None or worked(saved):
        return False
    return saved.metadata.get("source") not in ("update", "fork")


def worked(saved: Any) -> bool:
    """Whether any task of the step after a checkpoint has finished."""
    by_id = by_task(saved.pending_writes or ())
    return any(is_done(w) for task, w in by_id.items() if task != NULL_TASK_ID)


def asks(saved: Any, answers: Mapping[str, Any]) -> bool:
    """Whether one of the answers is to a question asked at this checkpoint."""
    return any(
        channel == INTERRUPT and any(question.id in answers for question in value)
        for _, channel, value in saved.pending_writes or ()
    )


def by_task(writes: Sequence[tuple[str, str, Any]]) -> dict[str, list[Write]]:
    found: dict[str, list[Write]] = {}
    for task, channel, value in writes:
        if task in found:
            found[task].append((channel, value))
        else:
            found[task] = [(channel, value)]
    return found


def fresh(session: Session) -> Program[Session]:
    """The first run of a thread, or a run without a saver."""
    given = session.req.input
    if isinstance(given, Command) and given.has_resume:
        if session.plan.semantics.idle_resume == "error":
            raise NothingToResumeError(
                "there is nothing to resume: the thread has never run",
                hint="check the thread_id, or give input to start the thread",
            )
        session.req.input = given.update if given.update is not None else {}
    session.stop = session.state.step + session.req.limit + 1
    yield from take_input(session)
    return session


def take_input(session: Session, discarded: Sequence[Task] = ()) -> Program[None]:
    """Write the input to the channel of the entry node, and commit that."""
    req, plan, state = session.req, session.plan, session.state
    if req.input is None:
        raise EmptyInputError(
            f"graph `{plan.name}` got no input to start from",
            hint="give input; None only continues a thread that was stopped",
        )
    given = projected(plan, req.input) if req.nested else req.input
    given = isolate(given) if plan.semantics.isolate_state else given
    if not discarded and enter(session, given):
        if req.reports:
            tell_from_here(state)
        return
    outside = outside_task(req, state, input_writes(plan, given))
    if session.saver is not None and plan.semantics.undeclared_keys == "error":
        check_input(plan, state, given)
    state.told = None
    apply(plan, state, [*discarded, outside])
    if req.reports:
        tell_from_here(state)
    if session.saver is not None:
        yield from session.commit("input")
    else:
        state.step += 1


def enter(session: Session, given: Any) -> bool:
    """Take the input and the step of a bare entry node at once; whether that went.

    Nothing can be seen of the two separately: nothing is stored or told of them,
    no code of the user's runs between. Whatever is not the rule, and an input that
    the state refuses, takes the two steps.
    """
    req, plan, state = session.req, session.plan, session.state
    entry = plan.entry
    if entry is None or session.saver is not None or session.tells or req.watched:
        return False
    if req.before or req.after or req.control.drain_reason is not None:
        return False
    state.step += 1
    task = Task(entry, (PULL, START), entry.triggers, Origin(state.id, req, 0))
    try:
        task.writes = updates_of(plan, entry, given)
    except Exception:
        state.step -= 1
        return False
    task.writes.extend(entry.edges)
    session.tasks = (task,)
    apply(plan, state, session.tasks)
    state.step += 1
    session.entered = 1
    return True


def check_input(plan: Plan, state: State, given: Any) -> None:
    """Refuse input that the state cannot take before anything of it is stored.

    The entry node would find it out a moment later; then the thread would
    already have the input in its history.
    """
    entry = plan.nodes.get(START)
    if entry is not None and plan.take is None:
        writes = updates_of(plan, entry, given)
        try:
            fresh_values(plan, state, [w for w in writes if w[0] in plan.key_set])
        except Exception as error:
            with suppress(Exception):  # users' exceptions may refuse notes
                keys = ", ".join(f"`{key}`" for key, _ in writes)
                error.add_note(f"While folding the input into {keys}")
            raise


def input_writes(plan: Plan, given: Any) -> list[Write]:
    """Where input goes: to the entry node, or to a raw graph's own channels."""
    if plan.take is None:
        return [(plan.input_channel, given)]
    return list(plan.take(given))


def folds(plan: Plan, state: State, writes: Sequence[Write]) -> bool:
    """Whether the channels can take these writes; tried on copies."""
    try:
        fresh_values(plan, state, writes)
    except Exception:
        return False
    return True


def projected(plan: Plan, given: Any) -> Any:
    """What a nested graph takes of the state around it: the keys it declares."""
    if plan.root or plan.take is not None or isinstance(given, Command):
        return given
    pairs = as_update(given, plan.input_keys)
    if pairs is None:
        return given
    return {key: value for key, value in pairs if key in plan.input_keys}


def new_input(session: Session, *, rewound: bool) -> Program[None]:
    """New input to a thread that has run: unfinished work is given up.

    What finished tasks of an incomplete step wrote stays; what it would have
    triggered does not run.
    """
    plan, state, req = session.plan, session.state, session.req
    session.stop = state.step + req.limit + 1
    discarded = prepare(plan, state, req, session.stop)
    for task in discarded:
        task.error = None
        if not rewound and task.name != START:
            writes = session.pending.get(task.id, ())
            task.writes = [w for w in writes if w[0] in plan.key_set]
    if not folds(plan, state, [w for task in discarded for w in task.writes]):
        for task in discarded:
            task.writes = []
    session.pending = {}
    state.carried = {}
    yield from take_input(session, discarded)


def go_on(session: Session, *, rewound: bool) -> Program[None]:
    """Continue a stopped thread, with answers, a command or nothing."""
    req, plan, state = session.req, session.plan, session.state
    given = None if req.resuming else req.input
    writes = outside_writes(session, given)
    answers = dict(req.answers)
    session.stop = state.step + req.limit + 1
    null = recorded_outside(session.pending)
    asked = asked_ever if rewound else open_questions
    questions = asked(session.pending)
    early: Command[Any] | None = None
    if isinstance(given, Command) and given.has_resume and not hollow(plan, given):
        bound = resolve(session, given.resume, questions)
        early = None if bound or rewound or req.nested else given
        if bound and not rewound and plan.semantics.idle_resume == "error":
            refuse_second_answers(session, bound)
        answers.update(bound)
    if rewound:
        yield from branch_off(session, answers)
    elif not req.nested:
        answers = {**accepted_answers(session.pending), **answers}
    req.answers = answers
    if answers and session.saver is not None and not req.nested:
        yield from session.record(NULL_TASK_ID, "", [(RESUME, dict(answers))])
    if writes:
        if session.saver is not None:
            # All of them, because the first record under an index stays.
            yield from session.record(NULL_TASK_ID, "", [*null, *writes])
        null.extend(writes)
    take_outside(plan, req, state, null)
    if early is not None:
        yield from answer_ahead(session, early.resume)
    mark_stop(state)
    session.reruns = rewound and not answers
    session.tell_lifecycle("resume", "pending")
    session.tell_values()


def hollow(plan: Plan, given: Command[Any]) -> bool:
    """Whether this is a map of no answers: under LANGGRAPH that answers nothing."""
    lets_pass = plan.semantics.idle_resume != "error"
    return lets_pass and isinstance(given.resume, Mapping) and not given.resume


def refuse_second_answers(session: Session, bound: Mapping[str, Any]) -> None:
    """Refuse another answer to a question of which a task has used the first.

    The task failed afterwards, and runs again with what it was given. The same
    answer once more is how a program tries again.

    Raises:
        NothingToResumeError: names the node.
    """
    failed = {task for task, writes in session.pending.items() if has_failed(writes)}
    if not failed:
        return
    for task in prepare(session.plan, session.state, session.req, session.stop):
        if task.id not in failed:
            continue
        used = dict(session.pending[task.id]).get(RESUME, ())
        for index, answer in enumerate(used):
            if differ(answer, bound.get(question_of(task, index), answer)):
                raise NothingToResumeError(
                    f"node `{task.name}` was given an answer already, and failed "
                    "after it",
                    hint="invoke with None to run it again with that answer; to be "
                    "asked anew, invoke with None and the config of get_state(...)",
                )


def has_failed(writes: Sequence[Write]) -> bool:
    """Whether these recorded writes say that their task has failed."""
    return any(channel == ERROR for channel, _ in writes)


def differ(one: Any, other: Any) -> bool:
    """Whether two answers are surely not the same."""
    try:
        return bool(one != other)
    except Exception:  # arrays, for one, do not say
        return False


def answer_ahead(session: Session, answer: Any) -> Program[None]:
    """Give an answer that nobody asked for to the only task that comes next.

    The preset LANGGRAPH lets it pass, and there the next question takes it, the
    task's own or one of a graph inside it: an edit of a thread that waits makes its
    question unasked.
    """
    req = session.req
    tasks = prepare(session.plan, session.state, req, session.stop)
    if len(tasks) != 1:
        return
    req.early = iter([answer])  # taken once, by whichever thread asks first
    action = tasks[0].spec.action
    if session.saver is None or (action is not None and action.graph is not None):
        return
    answers = {**req.answers, question_of(tasks[0], 0): answer}
    yield from session.record(NULL_TASK_ID, "", [(RESUME, answers)])


def outside_writes(session: Session, given: Any) -> list[Write]:
    """What a command given as input writes by itself: update and goto."""
    if not isinstance(given, Command):
        return []
    spec = session.plan.nodes.get(START, OUTSIDE)
    bare = Command(update=given.update, goto=given.goto)
    return command_writes(session.plan, spec, bare)


def resolve(
    session: Session, answer: Any, questions: Mapping[str, Sequence[Interrupt[Any]]]
) -> dict[str, Any]:
    """Bind an answer to the open questions; under LANGGRAPH a stray one passes."""
    try:
        return bind(answer, questions)
    except NothingToResumeError:
        if session.plan.semantics.idle_resume == "error":
            raise
        return {}


def branch_off(session: Session, answers: Mapping[str, Any]) -> Program[None]:
    """Run again from a checkpoint that the thread has passed: on a new branch.

    The branch gets a checkpoint of its own, so that nothing recorded on the
    old one is found. Where an answer is given, the tasks keep their ids, with
    which their questions and the states of their subgraphs are found again.
    """
    state, req = session.state, session.req
    kept: dict[str, list[Write]] = {}
    if answers or req.forks:
        tasks = prepare(session.plan, state, req, session.stop)
        state.carried = kept_ids(tasks)
        for task_id_, asked in asked_ever(session.pending).items():
            kept[task_id_] = [(INTERRUPT, list(asked))]
    else:
        state.carried = {}
    session.pending = kept
    state.changed = set()
    req.fork_base = req.fork_base or state.id
    yield from session.take_over("fork", kept)
    req.fork_id = req.fork_id or state.id


def asked_ever(
    pending: Mapping[str, Sequence[Write]],
) -> dict[str, tuple[Interrupt[Any], ...]]:
    """The questions asked at a checkpoint, whether answered since or not."""
    return {
        task: tuple(value)
        for task, writes in pending.items()
        for channel, value in writes
        if channel == INTERRUPT
    }
