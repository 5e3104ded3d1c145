"""Reading the state of a thread, as programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Final, cast

from towpath.constants import CARRIED, CONF, ERROR, INTERRUPT
from towpath.context import RunnableConfig
from towpath.errors import UnknownNamespaceError, nearest
from towpath.kernel.commands import Fetch, Program
from towpath.kernel.migrate import for_reading, name_now
from towpath.kernel.request import Request
from towpath.kernel.settle import stand_in_of
from towpath.kernel.start import (
    by_task,
    look_into,
    open_saved,
    recorded_outside,
    take_outside,
)
from towpath.plan import Plan
from towpath.step.interrupts import accepted_answers, is_done, own_writes
from towpath.step.prepare import planned
from towpath.step.project import Keys, output, result_of
from towpath.step.tasks import Task, Write, in_fold_order, lasting_ns
from towpath.step.writes import fresh_values
from towpath.types import Interrupt, PregelTask, StateSnapshot

Child = tuple[Any, dict[str, Any]]
"""A subgraph, and what its config says of where its state is."""
NOTHING: Final[Mapping[str, StateSnapshot]] = MappingProxyType({})


def get_state(
    plan: Plan, req: Request, config: Mapping[str, Any], *, subgraphs: bool
) -> Program[StateSnapshot]:
    """The snapshot of a thread, empty when it has never run."""
    saved = yield Fetch(req.saver, req.place(req.pinned))
    if saved is None:
        return empty(config)
    sight = Sight(plan, req, saved, live=req.pinned is None)
    if not subgraphs:
        return sight.snapshot()
    inside = {}
    for task in sight.tasks:
        if (child := sight.child(task)) is not None:
            inside[task.id] = yield from child_state(req, child, sight.saved)
    return sight.snapshot(inside)


def past(plan: Plan, req: Request, saved: Any) -> StateSnapshot:
    """One checkpoint of a thread's history as a snapshot."""
    return Sight(plan, req, saved, live=False).snapshot()


def empty(config: Mapping[str, Any]) -> StateSnapshot:
    """The snapshot of a thread that has never run."""
    return StateSnapshot(
        values={},
        next=(),
        config=as_config(config),
        metadata=None,
        created_at=None,
        parent_config=None,
        tasks=(),
        interrupts=(),
    )


class Sight:
    """One checkpoint as it is seen by those who look at it.

    `live` shows finished tasks' writes applied, and the tasks that come next; an
    old checkpoint is shown with the tasks it was stored with.
    """

    def __init__(self, plan: Plan, req: Request, saved: Any, *, live: bool) -> None:
        self.plan = plan
        self.req = req
        self.live = live
        self.saved = saved = for_reading(plan, req, saved)
        writes = saved.pending_writes
        self.pending = by_task(writes) if writes else {}
        outside = recorded_outside(self.pending) if writes else []
        self.state = open_saved(plan, req, saved) if outside else look_into(plan, saved)
        if live:
            take_outside(plan, req, self.state, outside)
        self.tasks = planned(plan, self.state, req)
        if not live:
            take_outside(plan, req, self.state, outside)
        elif writes:
            for task in self.tasks:
                task.done = is_done(self.pending.get(task.id, ()))

    def child(self, task: Task) -> Child | None:
        """A task's subgraph and where its state is, if it has one."""
        action = task.spec.action
        graph = None if action is None else action.graph
        if graph is None:
            graph = self.plan.called.get(task.name)
        if graph is None or graph.checkpointer is False:
            return None
        thread = self.saved.config[CONF].get("thread_id")
        return graph, {"thread_id": thread, "checkpoint_ns": task.ns}

    def snapshot(self, inside: Mapping[str, StateSnapshot] = NOTHING) -> StateSnapshot:
        """The snapshot, with the states of subgraphs by the ids of their tasks."""
        req, saved, keys = self.req, self.saved, self.plan.shown
        above = saved.parent_config
        metadata = dict(saved.metadata)
        metadata.pop(CARRIED, None)  # the engine's own
        values = self.values()
        tasks = self.shown_tasks(inside) if self.tasks else ()
        return StateSnapshot(
            output(values, keys) if values or not self.plan.root else None,
            tuple([task.name for task in self.tasks if not task.done]),
            with_map(req, saved.config),
            metadata,
            saved.checkpoint["ts"],
            with_map(req, above) if above else None,
            tuple(tasks),
            tuple([i for task in tasks for i in task.interrupts]) if tasks else (),
        )

    def values(self) -> Mapping[str, Any]:
        """The values of the state, with what finished tasks wrote if it is `live`."""
        if any(task.done for task in self.tasks):
            ended = in_fold_order([task for task in self.tasks if task.done])
            done = [w for task in ended for w in own_writes(self.pending[task.id])]
            # What could not be folded is why the thread stopped; it can be looked at.
            with suppress(Exception):
                return fresh_values(self.plan, self.state, done)
        return self.state.values

    def shown_tasks(self, inside: Mapping[str, StateSnapshot]) -> list[PregelTask]:
        plan, pending = self.plan, self.pending
        closes = self.live and plan.semantics.answered_questions == "closed"
        answered = accepted_answers(pending) if closes else {}
        shown = []
        for task in self.tasks:
            state: Any = inside.get(task.id)
            if state is None and (child := self.child(task)) is not None:
                state = {CONF: child[1]}
            recorded = pending.get(task.id, ())
            shown.append(shown_task(task, recorded, plan.shown, state, answered))
            if task.spec.error_handler is not None:
                shown.extend(shown_handler(plan, task, pending, answered))
        return shown


def shown_handler(
    plan: Plan,
    task: Task,
    pending: Mapping[str, Sequence[Write]],
    answered: Mapping[str, Any],
) -> list[PregelTask]:
    """The error handler that took over from a task, if it waits for an answer."""
    settled = task.done
    stand_in = stand_in_of(plan, task, pending.get(task.id, ()))
    task.done = settled
    if stand_in is None:
        return []
    recorded = pending.get(stand_in.id, ())
    shown = shown_task(stand_in, recorded, plan.shown, None, answered)
    return [shown] if shown.interrupts else []


def as_config(config: Mapping[str, Any]) -> RunnableConfig:
    return cast("RunnableConfig", dict(config))  # the same keys, under their type


def with_map(req: Request, config: Mapping[str, Any]) -> RunnableConfig:
    """A checkpoint's config; in a subgraph it tells of the checkpoints above."""
    conf = dict(config[CONF])
    if req.ns and req.parents:
        conf["checkpoint_map"] = {**req.parents, req.ns: conf["checkpoint_id"]}
    return cast("RunnableConfig", {CONF: conf})


def shown_task(
    task: Task,
    recorded: Sequence[Write],
    keys: Keys,
    child: Any,
    answered: Mapping[str, Any],
) -> PregelTask:
    """A planned task with what is recorded of it."""
    error: Any = None
    interrupts: tuple[Interrupt[Any], ...] = ()
    for channel, value in recorded:
        if channel == ERROR:
            error = value
        elif channel == INTERRUPT and not task.done:
            # As for a finished one, what it asked is history.
            interrupts = tuple(i for i in value if i.id not in answered)
    result = result_of(recorded, keys) if recorded and is_done(recorded) else None
    if result is not None and isinstance(keys, str):
        result = result.get(keys)  # a lone key gives its bare value
    return PregelTask(task.id, task.name, task.path, error, interrupts, child, result)


def child_state(req: Request, child: Child, saved: Any) -> Program[StateSnapshot]:
    """The snapshot of a subgraph of a task that was planned on a checkpoint."""
    graph, conf = child
    ns = stored_ns(graph, conf["checkpoint_ns"])
    inner = Request(
        None,
        (),
        saver=saver_for(graph, req.saver),
        thread_id=conf["thread_id"],
        ns=ns,
        parents={**req.parents, req.ns: saved.config[CONF]["checkpoint_id"]},
        bump=req.bump,
    )
    place = {CONF: {**conf, "checkpoint_ns": ns}}
    return (yield from get_state(graph.plan_of_graph, inner, place, subgraphs=True))


def stored_ns(graph: Any, ns: str) -> str:
    """The namespace under which a subgraph keeps its state."""
    return lasting_ns(ns) if graph.checkpointer is True else ns


def saver_for(graph: Any, outer: Any) -> Any:
    """The saver that keeps a subgraph: its own, or the one around it."""
    return outer if graph.checkpointer in (None, True) else graph.checkpointer


def find_subgraph(plan: Plan, ns: str) -> Any:
    """The compiled graph that a namespace leads to.

    Raises:
        UnknownNamespaceError: no such subgraph (TP-602).
    """
    graph: Any = None
    for part in ns.split("|"):
        name = part.split(":")[0]
        if graph is not None and name.isdigit():
            continue  # a further call of the same graph in one task
        spec = plan.nodes.get(name) or plan.nodes.get(name_now(plan, name))
        action = None if spec is None else spec.action
        graph = None if action is None else action.graph
        graph = graph or plan.called.get(name)
        if graph is None:
            raise UnknownNamespaceError(
                f"Subgraph {name} not found: the namespace `{ns}` fits no subgraph "
                f"of `{plan.name}`",
                hint=nearest(name, plan.nodes),
            )
        plan = graph.plan_of_graph
    return graph
