"""Editing the state of a thread from outside, as programs.

An update acts as if a node had just run: its edges and branches fire. Editing
a thread in the middle of a step loses nothing: without `as_node` only the
state changes and every task of the step stays as it is, asked questions and
finished work included; with `as_node` that node's result and those of the
tasks that had finished end the step together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from towpath.constants import (
    END,
    INPUT,
    INTERRUPT,
    NULL_TASK_ID,
    PULL,
    START,
    TASKS,
)
from towpath.errors import (
    AmbiguousUpdateError,
    InvalidUpdateError,
    NoUpdatesError,
    UnknownNodeError,
    nearest,
)
from towpath.kernel.commands import (
    Fetch,
    Flush,
    Launch,
    Persist,
    Program,
    Record,
    Wait,
)
from towpath.kernel.migrate import adapted, sign
from towpath.kernel.request import Request
from towpath.kernel.session import Session
from towpath.kernel.start import (
    OUTSIDE,
    by_task,
    claim,
    input_writes,
    open_saved,
    parent_id,
    recorded_outside,
    refuse_unknown,
    take_outside,
    unclaim,
)
from towpath.plan import Plan
from towpath.step.apply import apply
from towpath.step.interrupts import SPECIAL, is_done, open_questions, own_writes
from towpath.step.isolate import isolate
from towpath.step.prepare import prepare
from towpath.step.project import kept_writes
from towpath.step.state import State, open_state, to_checkpoint
from towpath.step.tasks import Origin, Task, Write, kept_ids, path_key, pull_path
from towpath.step.writes import updates_of
from towpath.types import Interrupt, StateUpdate

COPY = "__copy__"


def bulk_update(
    plan: Plan, req: Request, supersteps: Sequence[Sequence[StateUpdate]]
) -> Program[dict[str, Any]]:
    """Apply several updates, one checkpoint per superstep; return the last config."""
    if not supersteps:
        raise NoUpdatesError("No supersteps provided")
    try:
        config = yield from update_all(plan, req, supersteps)
        yield Flush()
    except Exception:
        yield unclaim(req)
        raise
    yield unclaim(req)
    return config


def update_all(
    plan: Plan, req: Request, supersteps: Sequence[Sequence[StateUpdate]]
) -> Program[dict[str, Any]]:
    """Apply the updates of several supersteps."""
    config: dict[str, Any] = {}
    for given in supersteps:
        updates = [StateUpdate(*update) for update in given]
        if not updates:
            raise NoUpdatesError("No updates provided")
        config = yield from update(plan, req, updates)
        req.pinned = config["configurable"]["checkpoint_id"]
    return config


def update(
    plan: Plan, req: Request, updates: Sequence[StateUpdate]
) -> Program[dict[str, Any]]:
    """Apply the updates of one superstep."""
    saved = yield claim(req)
    if saved is None:
        refuse_unknown(req)
    saved, moved = adapted(plan, req, saved) if saved is not None else (None, {})
    session = opened(plan, req, saved)
    sign(session, saved, moved)
    first = updates[0]
    special = {u.as_node for u in updates} & {END, COPY, INPUT}
    if special and len(updates) > 1:
        raise InvalidUpdateError(
            f"Cannot apply multiple updates when one is as_node={special.pop()!r}"
        )
    if first.as_node == COPY:
        return (yield from copy(session, saved))
    pending = by_task(saved.pending_writes or ()) if saved is not None else {}
    tasks = prepare(plan, session.state, req, session.state.step)
    session.state.carried = {}  # by what ends the step; `edit_only` does not
    if first.as_node == END:
        if first.values is not None:
            raise InvalidUpdateError("Cannot apply updates when clearing state")
        apply(plan, session.state, finished(tasks, pending, keep=True))
        return (yield from committed(session, "update"))
    if first.as_node == INPUT:
        if saved is None:
            session.state.step = -1
        outside = Task(OUTSIDE, (INPUT,), (), tasks[0].origin if tasks else NOWHERE)
        outside.writes = input_writes(plan, first.values)
        apply(plan, session.state, [*finished(tasks, pending, keep=False), outside])
        return (yield from committed(session, "input"))
    at_head = yield from is_head(req, saved)
    unfinished = at_head and any(pending.get(task.id) for task in tasks)
    if unfinished and all(u.as_node is None for u in updates):
        return (yield from edit_only(session, updates, tasks, pending))
    acting = [acting_task(plan, req, session.state, u) for u in updates]
    yield from run_writers(acting)
    names = {task.name for task in acting}
    for task in acting:
        names.update(*(plan.listeners.get(channel, ()) for channel, _ in task.writes))
    done = finished(tasks, pending, keep=True) if unfinished else []
    done = [task for task in done if task.writes and task.name not in names]
    if at_head:  # of a checkpoint that the thread has passed, nothing is changed
        yield from record_stand_ins(session, acting, tasks, pending)
    apply(plan, session.state, [*done, *acting])
    config = yield from committed(session, "update")
    if req.ns and saved is not None:
        yield from close_above(req, saved, open_questions(pending))
    return config


NOWHERE = Origin("", Request(None, ()), 0)


def opened(plan: Plan, req: Request, saved: Any) -> Session:
    """A session at the checkpoint to edit, or at the start of a new thread."""
    req.durability = "sync"
    if saved is None:
        state = open_state(plan, step=0, bump=req.bump)
        session = Session(plan, req, state)
    else:
        state = open_saved(plan, req, saved)
        session = Session(plan, req, state)
        session.config = req.shown(state.id)
        state.updated = None
        pending = by_task(saved.pending_writes or ())
        take_outside(plan, req, state, recorded_outside(pending))
    req.state = state
    return session


def is_head(req: Request, saved: Any) -> Program[bool]:
    """Whether the checkpoint to edit is the newest of its thread."""
    if saved is None:
        return False
    if req.pinned is None:
        return True
    head = yield Fetch(req.saver, req.place(None))
    return head is not None and head.checkpoint["id"] == saved.checkpoint["id"]


def finished(
    tasks: Sequence[Task], pending: Mapping[str, Sequence[Write]], *, keep: bool
) -> list[Task]:
    """The tasks of a step that is given up, those that finished with their writes."""
    for task in tasks:
        task.error = None
        recorded = pending.get(task.id, ())
        if keep and is_done(recorded):
            task.writes = own_writes(recorded)
    return list(tasks)


def edit_only(
    session: Session,
    updates: Sequence[StateUpdate],
    tasks: Sequence[Task],
    pending: Mapping[str, Sequence[Write]],
) -> Program[dict[str, Any]]:
    """Change the state and nothing else: the step's tasks stay as they are."""
    plan, state = session.plan, session.state
    outside = Task(OUTSIDE, (INPUT,), (), NOWHERE)
    outside.writes = [
        write
        for each in updates
        for write in updates_of(plan, OUTSIDE, isolate(each.values))
    ]
    carried = kept_ids(tasks)
    apply(plan, state, [outside])
    state.carried = carried
    recorded = {  # of the tasks, and of what they called
        task_id: [w for w in writes if task_id != NULL_TASK_ID or w[0] in SPECIAL]
        for task_id, writes in pending.items()
    }
    kept = {task_id: writes for task_id, writes in recorded.items() if writes}
    yield from session.take_over("update", kept)
    return here(session)


def acting_task(plan: Plan, req: Request, state: State, update: StateUpdate) -> Task:
    """The node that the update acts for, with the values as its result."""
    name = update.as_node or infer_node(plan, state)
    spec = plan.nodes.get(name)
    if spec is None:
        raise UnknownNodeError(
            f"Node {name} does not exist", hint=nearest(name, plan.nodes)
        )
    origin = Origin(state.id, req, state.step)
    task = Task(spec, pull_path(name), (INTERRUPT,), origin)
    if update.task_id is not None:
        task.id_ = update.task_id
    task.output = isolate(update.values)
    return task


def infer_node(plan: Plan, state: State) -> str:
    """The node that wrote last; the entry on a new thread.

    Raises:
        AmbiguousUpdateError: several wrote last, or tasks that were sent (TP-207).
    """
    seen = [
        (version, name)
        for name, versions in state.seen.items()
        if name in plan.nodes
        for version in versions.values()
    ]
    if not seen:
        return START
    latest = max(version for version, _ in seen)
    names = sorted({name for version, name in seen if version == latest})
    if len(names) > 1:
        raise AmbiguousUpdateError(
            "Ambiguous update, specify as_node: "
            f"{', '.join(f'`{n}`' for n in names)} ran last together",
            hint=f"pass as_node='{names[0]}', for example",
        )
    if plan.semantics.edits_after_sends == "error" and sent_ran_since(state, latest):
        raise AmbiguousUpdateError(
            "Ambiguous update, specify as_node: tasks that were sent ran last",
            hint="pass as_node with the node that they ran; "
            f"as_node='{names[0]}' sends anew",
        )
    return names[0]


def sent_ran_since(state: State, latest: Any) -> bool:
    """Whether sends were taken after the newest version that a node has seen.

    A task that was sent sees no channel, so it is not among those that ran.
    """
    taken = TASKS in state.versions and TASKS not in state.live
    return taken and bool(state.versions[TASKS] > latest)


def run_writers(tasks: Sequence[Task]) -> Program[None]:
    """Turn each result into writes; branches are user code, so they are launched."""
    for task in tasks:
        arrived = yield Launch((task,))
        while not arrived:
            arrived = [event for event in (yield Wait((task,))) if event is task]
        if task.error is not None:
            raise task.error


def close_above(
    req: Request, saved: Any, questions: Mapping[str, Sequence[Interrupt[Any]]]
) -> Program[None]:
    """Take back, from the graphs around, questions that an edit has settled.

    A subgraph's question parks the task around it, too; that one must run
    again when the thread goes on.
    """
    closed = {question.id for several in questions.values() for question in several}
    for ns, checkpoint_id in (saved.metadata.get("parents") or {}).items():
        place = {"thread_id": req.thread_id, "checkpoint_ns": ns}
        config = {"configurable": {**place, "checkpoint_id": checkpoint_id}}
        above = yield Fetch(req.saver, config)
        for task_id, channel, value in (above.pending_writes or ()) if above else ():
            if channel == INTERRUPT and any(q.id in closed for q in value):
                left = [q for q in value if q.id not in closed]
                tasks = [(task_id, "", [(INTERRUPT, left)])]
                yield Record(req.saver, config, tasks, "wait", req.lease)


def record_stand_ins(
    session: Session,
    acting: Sequence[Task],
    tasks: Sequence[Task],
    pending: Mapping[str, Sequence[Write]],
) -> Program[None]:
    """Record an update as the result of the planned task that it stands for."""
    planned = {task.name: task for task in tasks if task.path[0] == PULL}
    for task in acting:
        stood_for = planned.get(task.name)
        if stood_for is not None and not is_done(pending.get(stood_for.id, ())):
            path = path_key(stood_for.path)
            yield from session.record(stood_for.id, path, kept_writes(task.writes))


def committed(session: Session, source: str) -> Program[dict[str, Any]]:
    yield from session.commit(source)
    return here(session)


def here(session: Session) -> dict[str, Any]:
    """The config that names the checkpoint of a session."""
    return session.req.place(session.state.id)


def copy(session: Session, saved: Any) -> Program[dict[str, Any]]:
    """A copy of a checkpoint beside it, to go another way from."""
    if saved is None:
        raise InvalidUpdateError("there is no checkpoint to copy: the thread is new")
    state, req = session.state, session.req
    session.metadata = session.metadata_of("fork")
    command = Persist(
        session.saver,
        req.place(parent_id(saved)),
        to_checkpoint(state),
        dict(session.metadata),
        dict(state.versions),
        (),
        "wait",
        lease=req.lease,
    )
    id_, _ = yield command
    return {"configurable": req.place(id_)["configurable"]}
