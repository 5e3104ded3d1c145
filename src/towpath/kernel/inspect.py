"""Reading the state of a thread, as programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from towpath.constants import CARRIED, CONF, ERROR, INTERRUPT
from towpath.context import RunnableConfig
from towpath.errors import UnknownNamespaceError, nearest
from towpath.kernel.commands import Fetch, Program
from towpath.kernel.migrate import for_reading, name_now
from towpath.kernel.request import Request
from towpath.kernel.settle import stand_in_of
from towpath.kernel.start import by_task, open_saved, recorded_outside, take_outside
from towpath.plan import Plan
from towpath.step.interrupts import accepted_answers, is_done, own_writes
from towpath.step.prepare import prepare
from towpath.step.project import Keys, child_config, output, result_of
from towpath.step.state import State
from towpath.step.tasks import Task, Write, in_fold_order, lasting_ns
from towpath.step.writes import fresh_values
from towpath.types import Interrupt, PregelTask, StateSnapshot


def get_state(
    plan: Plan, req: Request, config: Mapping[str, Any], *, subgraphs: bool
) -> Program[StateSnapshot]:
    """The snapshot of a thread, empty when it has never run."""
    saved = yield Fetch(req.saver, req.place(req.pinned))
    live = req.pinned is None
    return (yield from snapshot(plan, req, saved, config, subgraphs, live=live))


def snapshot(
    plan: Plan,
    req: Request,
    saved: Any,
    config: Mapping[str, Any],
    subgraphs: bool,
    *,
    live: bool,
) -> Program[StateSnapshot]:
    """One checkpoint as a snapshot; `live` shows finished tasks' writes applied."""
    if saved is None:
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
    saved = for_reading(plan, req, saved)
    state, pending = opened(plan, req, saved)
    # An old checkpoint is shown with the tasks it was stored with, a thread's
    # newest one with those that come next.
    tasks = [] if live else prepare(plan, state, req, state.step)
    take_outside(plan, req, state, recorded_outside(pending))
    if live:
        tasks = prepare(plan, state, req, state.step)
    keys: Keys = plan.shown
    answered = accepted_answers(pending) if live else {}
    shown: list[PregelTask] = []
    for task in tasks:
        recorded = pending.get(task.id, ())
        task.done = live and is_done(recorded)
        own = own_place(saved)
        child = yield from child_state(plan, req, task, own, subgraphs)
        shown.append(shown_task(task, recorded, keys, child, answered))
        shown.extend(shown_handler(plan, task, pending, answered))
    values: Mapping[str, Any] = state.values
    if live:
        ended = in_fold_order([task for task in tasks if task.done])
        done = [w for task in ended for w in own_writes(pending[task.id])]
        # What could not be folded is why the thread stopped; it can be looked at.
        with suppress(Exception):
            values = fresh_values(plan, state, done)
    above = saved.parent_config
    return StateSnapshot(
        values=output(values, keys) if values or not plan.root else None,
        next=tuple(task.name for task in tasks if not task.done),
        config=as_config(with_map(req, saved.config)),
        metadata=shown_metadata(saved.metadata),
        created_at=saved.checkpoint["ts"],
        parent_config=as_config(with_map(req, above)) if above else None,
        tasks=tuple(shown),
        interrupts=tuple(i for task in shown for i in task.interrupts),
    )


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


def opened(
    plan: Plan, req: Request, saved: Any
) -> tuple[State, dict[str, list[Write]]]:
    """The state at a checkpoint, and what is recorded under it."""
    state = open_saved(plan, req, saved)
    pending = by_task(saved.pending_writes or ())
    state.updated = None
    return state, pending


def own_place(saved: Any) -> dict[str, Any]:
    return {CONF: dict(saved.config[CONF])}


def shown_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """A checkpoint's metadata without what is the engine's own."""
    return {key: value for key, value in metadata.items() if key != CARRIED}


def as_config(config: Mapping[str, Any]) -> RunnableConfig:
    return cast("RunnableConfig", dict(config))  # the same keys, under their type


def with_map(req: Request, config: Mapping[str, Any]) -> dict[str, Any]:
    """A checkpoint's config; in a subgraph it tells of the checkpoints above."""
    conf = dict(config[CONF])
    if req.ns and req.parents:
        conf["checkpoint_map"] = {**req.parents, req.ns: conf["checkpoint_id"]}
    return {CONF: conf}


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
        elif channel == INTERRUPT:
            interrupts = tuple(i for i in value if i.id not in answered)
    done = is_done(recorded)
    if task.done:
        interrupts = ()  # shown as finished: what it asked is history
    result = result_of(own_writes(recorded), keys) if done else None
    if result is not None and isinstance(keys, str):
        result = result.get(keys)  # a lone key gives its bare value
    return PregelTask(
        id=task.id,
        name=task.name,
        path=task.path,
        error=error,
        interrupts=interrupts,
        state=child,
        result=result,
    )


def child_state(
    plan: Plan,
    req: Request,
    task: Task,
    own: Mapping[str, Any],
    subgraphs: bool,
) -> Program[Any]:
    """The state of a task's subgraph: a snapshot, the config to it, or None."""
    config = child_config(task, own)
    graph = None if task.spec.action is None else task.spec.action.graph
    if config is None and graph is None:
        graph = plan.called.get(task.name)
        if graph is not None and graph.checkpointer is not False:
            thread = own[CONF].get("thread_id")
            config = {CONF: {"thread_id": thread, "checkpoint_ns": task.ns}}
    if config is None or graph is None or not subgraphs:
        return config
    conf = config[CONF]
    place = {CONF: {**conf, "checkpoint_ns": stored_ns(graph, conf["checkpoint_ns"])}}
    inner = Request(
        None,
        (),
        saver=saver_for(graph, req.saver),
        thread_id=conf["thread_id"],
        ns=stored_ns(graph, conf["checkpoint_ns"]),
        parents={**req.parents, req.ns: own[CONF]["checkpoint_id"]},
        bump=req.bump,
    )
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
