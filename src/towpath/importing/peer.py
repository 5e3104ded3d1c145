"""What ties the pending writes of a thread of LangGraph to its tasks.

Writes are recorded under task ids, which are not stored with the names of their
nodes, and which each engine derives in a way of its own. LangGraph is therefore
asked: a graph is compiled with it that has the nodes and joins which the names
of a checkpoint's channels tell of, subgraphs by namespaces, and `get_state`
tells the tasks that would run next. Nothing of it runs. Their ids go on in the
imported checkpoint as those of tasks that were planned before, with which
answers, results and subgraphs are found.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Annotated, Any, Final, TypedDict

from towpath.constants import INTERRUPT, NS_END, NS_SEP, RESUME, TASKS
from towpath.step.tasks import ASKED, SINCE, path_key

BRANCH: Final = "branch:to:"
JOIN: Final = re.compile(r"join:(.+):([^:]+)")
Ids = dict[str, dict[str, str]]
"""By namespace, what carries the tasks of its newest checkpoint over."""


def task_ids(saver: Any, newest: Mapping[str, Any]) -> Ids:
    """The ids of the tasks that a thread's newest checkpoints would run next.

    `newest` are those checkpoints, by namespace.

    Raises:
        ImportError: LangGraph is not installed.
    """
    if "" not in newest or not nodes_of(newest[""]):
        return {}  # of an entrypoint, whose tasks no channel tells of
    graph = import_module("langgraph.graph")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        app = shape(graph, newest, "").compile(checkpointer=saver)
        state = app.get_state(newest[""].config, subgraphs=True)
    found: Ids = {}
    collect(state, newest, found)
    return found


def collect(state: Any, newest: Mapping[str, Any], found: Ids) -> None:
    """Note the tasks of a state and of the states of its subgraphs."""
    conf = state.config["configurable"]
    ns, tasks = conf.get("checkpoint_ns", ""), state.tasks
    if tasks:
        kept = {path_key(t.path): f"{t.name}{NS_END}{t.id}" for t in tasks}
        asked = asked_under(newest, ns, tasks)
        found[ns] = {SINCE: conf["checkpoint_id"], **kept, **asked}
    for task in tasks:
        if hasattr(task.state, "tasks") and below(ns, task) in newest:
            collect(task.state, newest, found)


def asked_under(
    newest: Mapping[str, Any], ns: str, tasks: Iterable[Any]
) -> dict[str, str]:
    """The ids of open questions, by the path of the task and how many came before.

    What a subgraph asked is recorded with its own tasks too, and theirs.
    """
    pending = recorded(newest[ns])
    found = {}
    for task in tasks:
        front = below(ns, task)
        inside = [saved for each, saved in newest.items() if each.startswith(front)]
        theirs = {
            question.id
            for saved in inside
            for (_, channel), asked in recorded(saved).items()
            if channel == INTERRUPT
            for question in asked
        }
        for question in pending.get((task.id, INTERRUPT), ()):
            if question.id not in theirs:
                count = len(pending.get((task.id, RESUME), ()))
                found[f"{path_key(task.path)}{ASKED}{count}"] = question.id
    return found


def recorded(saved: Any) -> dict[tuple[str, str], Any]:
    """The last pending write of each task to each channel."""
    return {(task, channel): v for task, channel, v in saved.pending_writes or ()}


def below(ns: str, task: Any) -> str:
    own = f"{task.name}{NS_END}{task.id}"
    return f"{ns}{NS_SEP}{own}" if ns else own


def shape(graph: Any, newest: Mapping[str, Any], ns: str) -> Any:
    """A builder of LangGraph with the nodes that a checkpoint tells of."""
    nodes, channels = nodes_of(newest[ns]), channels_of(newest[ns])
    state: Any = TypedDict("state", dict.fromkeys(keys(channels), KEPT), total=False)  # type: ignore[misc] # the keys are known here only
    builder = graph.StateGraph(state)
    for name in nodes:
        inner = children(newest, ns, name)
        told = inner is not None and nodes_of(newest[inner])
        child = shape(graph, newest, inner).compile() if inner and told else unused
        builder.add_node(name, child)
    for sources, target in joins_in(channels):
        builder.add_edge(sources.split("+"), target)
    builder.add_edge(graph.START, nodes[0])
    return builder


def channels_of(saved: Any) -> list[str]:
    checkpoint = saved.checkpoint
    return [*checkpoint["channel_versions"], *checkpoint["channel_values"]]


def joins_in(channels: Iterable[str]) -> list[tuple[str, str]]:
    """The sources and the target of each join that channels tell of."""
    fits = (match for match in map(JOIN.fullmatch, channels) if match)
    return list(dict.fromkeys((match[1], match[2]) for match in fits))


def nodes_of(saved: Any) -> list[str]:
    """The nodes that a checkpoint's channels and pending sends tell of."""
    channels = channels_of(saved)
    found = {c.removeprefix(BRANCH) for c in channels if c.startswith(BRANCH)}
    for sources, target in joins_in(channels):
        found.update((*sources.split("+"), target))
    sends = saved.checkpoint["channel_values"].get(TASKS) or ()
    found.update(send.node for send in sends if hasattr(send, "node"))
    return sorted(found)


def keys(channels: Iterable[str]) -> list[str]:
    """The keys of the state among a checkpoint's channels."""
    return sorted({c for c in channels if ":" not in c and not c.startswith("__")})


def children(newest: Mapping[str, Any], ns: str, name: str) -> str | None:
    """The namespace of the subgraph that a node runs or ran, if it has one."""
    front = f"{ns}{NS_SEP}{name}" if ns else name
    fits = [
        each
        for each in newest
        if each.partition(front)[1]
        and each[len(front) :][:1] in (NS_END, "")
        and each.startswith(front)
        and NS_SEP not in each[len(front) :]
    ]
    return max(fits, key=lambda each: newest[each].checkpoint["id"], default=None)


def unused(state: Any) -> Any:
    """A node that is never run."""
    return state


def later(_: Any, after: Any) -> Any:
    return after


KEPT: Final = Annotated[Any, later]
"""A key that takes whatever finished tasks wrote to it."""
