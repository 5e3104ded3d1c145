"""(plan, state) -> the tasks of the next superstep.

The pending sends come first, in the order sent, then every node with a
trigger channel that is available and newer than what the node has seen, by
name. Only nodes that listen to a channel the last step changed are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from operator import attrgetter
from typing import Any

from towpath.constants import PULL, PUSH, ROOT, TASKS
from towpath.errors import UnknownNodeError, nearest
from towpath.plan import NodeSpec, Plan, Scratchpad, View
from towpath.step.isolate import isolate
from towpath.step.state import State
from towpath.step.tasks import SENT, Origin, Place, Task


def prepare(plan: Plan, state: State, place: Place, stop: int) -> list[Task]:
    """Plan the next superstep; an empty list means that nothing is ready."""
    origin = Origin(state.id, place, state.step, state.carried)
    tasks = pushed(plan, state, origin) if TASKS in state.live else []
    pad = Scratchpad(state.step, stop) if plan.managed else None
    for spec in ready(plan, state):
        task = Task(spec, (PULL, spec.name), spec.triggers, origin)
        fill(plan, state, task, pad)
        tasks.append(task)
    return tasks


def planned(plan: Plan, state: State, place: Place) -> list[Task]:
    """The same tasks for those who only look: they are not given anything.

    Nodes of a stored step are shown as they were added, and run by name: so the peer.
    """
    origin = Origin(state.id, place, state.step, state.carried)
    tasks = pushed(plan, state, origin) if TASKS in state.live else []
    stored = state.updated is None
    for spec in ready_anew(plan, state) if stored else ready(plan, state):
        tasks.append(Task(spec, (PULL, spec.name), spec.triggers, origin))
    return tasks


def ready(plan: Plan, state: State) -> Sequence[NodeSpec]:
    """The nodes that a trigger makes due, by name."""
    updated, nodes = state.updated, plan.nodes
    if updated is None:
        return sorted(ready_anew(plan, state), key=attrgetter("name"))
    # A signal that was just written is on, and newer than its node has seen.
    found = [*map(plan.wakes.__getitem__, state.on)]
    if not plan.openers.isdisjoint(updated):
        for channel in plan.openers.intersection(updated):
            for name in plan.listeners[channel]:
                if nodes[name] not in found and due(plan, state, nodes[name]):
                    found.append(nodes[name])
    if len(found) > 1:
        found.sort(key=attrgetter("name"))
    return found


def ready_anew(plan: Plan, state: State) -> Sequence[NodeSpec]:
    """The nodes that are due, as they were added, whatever the last step changed."""
    nodes = plan.nodes
    names = {plan.wakes[signal].name for signal in state.on}
    stored, channels = state.channels.stored, state.channels
    for name in plan.openers:
        if name in stored or name in channels or name in state.values:
            names.update(plan.listeners[name])
    if plan.early:  # it may be open without having been written
        for name in plan.openers.intersection(plan.early):
            names.update(plan.listeners[name])
    ordered = names if len(names) < 2 else [name for name in nodes if name in names]
    return [nodes[name] for name in ordered if due(plan, state, nodes[name])]


def due(plan: Plan, state: State, spec: NodeSpec) -> bool:
    """Whether one of a node's triggers is available and newer than it has seen."""
    seen = state.seen.get(spec.name, {})
    for trigger in spec.triggers:
        version = state.versions.get(trigger)
        if version is None or (trigger in seen and not version > seen[trigger]):
            continue
        if trigger in plan.signals:
            if trigger in state.on:
                return True
        elif trigger in plan.plain:
            if trigger in state.values:
                return True
        elif state.channels[trigger].is_available():
            return True
    return False


def pushed(plan: Plan, state: State, origin: Origin) -> list[Task]:
    """One task per pending send, in the order sent."""
    tasks = []
    nodes, copied = plan.nodes, plan.copied
    for index, send in enumerate(state.channels[TASKS].get()):
        spec = nodes.get(send.node)
        if spec is None:
            if plan.semantics.unknown_nodes == "error":
                msg = f"a stored Send goes to node `{send.node}`, which does not exist"
                hint = nearest(send.node, plan.nodes)
                raise UnknownNodeError(msg, hint=hint)
            continue
        task = Task(spec, (PUSH, index, False), SENT, origin)
        task.input = isolate(send.arg) if copied else send.arg
        if send.timeout is not None:
            task.timeout = send.timeout
        tasks.append(task)
    return tasks


def refill(plan: Plan, state: State, task: Task, stop: int) -> None:
    """Read a task's input again for another attempt.

    What the failed attempt changed in place in its own copies is not seen.
    """
    if task.path[0] == PULL and len(task.path) == 2:
        pad = Scratchpad(state.step, stop) if plan.managed else None
        fill(plan, state, task, pad)
    elif task.path[0] == PUSH and plan.copied and len(task.path) == 3:
        task.input = isolate(state.channels[TASKS].get()[task.path[1]].arg)


def fill(plan: Plan, state: State, task: Task, pad: Scratchpad | None) -> None:
    """Read the task's input; what goes wrong is the task's failure."""
    spec = task.spec
    try:
        if spec.read is not None:
            task.input = spec.read(state.values)
        elif spec.action is None:
            task.input = state.channels[plan.input_channel].get()
        else:
            task.input = read(plan, state.values, spec.view, pad, state.containers)
    except Exception as error:
        task.error = error


def read(
    plan: Plan,
    values: dict[str, Any],
    view: View,
    pad: Scratchpad | None,
    containers: AbstractSet[str],
    *,
    mine: bool = False,
) -> Any:
    """What a node or branch with this schema sees of the values, its own if `mine`.

    Those named in `containers` are copied, so that a reader that changes one in
    place changes nobody else's: what it does not return does not count. What
    containers hold is shared.
    """
    if view.whole and not containers:  # the rule
        return values if mine else values.copy()
    if view.root:
        value: Any = values.get(ROOT)
        return value.copy() if ROOT in containers else value
    if view.keys is plan.keys:
        data = values if mine else values.copy()
    else:
        data = {key: values[key] for key in view.keys if key in values}
    for key in containers:
        if key in data:
            data[key] = data[key].copy()
    for key in view.managed:
        data[key] = plan.managed[key].get(pad)
    return data if view.make is None else view.make(data)
