"""Between a graph that runs elsewhere and the values used here.

Pure: what is sent to a server is made here, and what it sends is read, in the
shapes of `langgraph_sdk`. Nothing here calls a client.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final
from uuid import UUID

from towpath.constants import CONF, INTERRUPT, NS_SEP
from towpath.context import RunnableConfig
from towpath.errors import ParentCommand
from towpath.pregel.chunks import part
from towpath.pregel.diagram import Edge, Graph, Node
from towpath.types import Command, Interrupt, PregelTask, StateSnapshot

CHECKPOINT: Final = ("thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint_map")
PLAIN: Final = (str, int, float, bool, UUID)
TELLING: Final = ("updates", "values")
"""The modes in which questions are told."""
NAMES: Final = {"messages": "messages-tuple"}
"""What servers call a stream mode."""
PAGE: Final = 10
"""How many states of a history a server is asked for, unless it is said."""


class RemoteException(Exception):  # noqa: N818 - the public name
    """A graph that runs elsewhere failed; the argument is what its server said."""


# -- what is sent ------------------------------------------------------------------


def plain(value: Any) -> Any:
    """What of a value can be sent; None where nothing can."""
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, Mapping):
        sent = {k: plain(v) for k, v in value.items() if isinstance(k, str)}
        return {k: v for k, v in sent.items() if v is not None}
    if isinstance(value, list | tuple):
        return [each for each in map(plain, value) if each is not None]
    return None


def sent_config(config: Mapping[str, Any], own: frozenset[str]) -> dict[str, Any]:
    """What of a config a server gets: what it can mean there.

    Which thread and checkpoint is said apart; keys in `own` are the engine's.
    """
    sent: dict[str, Any] = {}
    if limit := config.get("recursion_limit"):
        sent["recursion_limit"] = limit
    if tags := config.get("tags"):
        sent["tags"] = [tag for tag in tags if isinstance(tag, str)]
    if metadata := config.get("metadata"):
        sent["metadata"] = plain(metadata)
    conf = config.get(CONF) or {}
    kept = {k: v for k, v in conf.items() if k not in CHECKPOINT and k not in own}
    sent[CONF] = plain(kept)
    return sent


def checkpoint_of(config: Mapping[str, Any]) -> dict[str, Any] | None:
    """The checkpoint that a config names, as servers take it."""
    conf = config.get(CONF) or {}
    named = {key: conf[key] for key in CHECKPOINT if conf.get(key) is not None}
    return named or None


def thread_of(config: Mapping[str, Any]) -> str:
    """The thread that a config names.

    Raises:
        KeyError: it names none.
    """
    thread: str = (config.get(CONF) or {})["thread_id"]
    return thread


def sent_modes(asked: Sequence[str], heard: Sequence[str]) -> list[str]:
    """The modes that a server is asked for: questions are told in `updates`."""
    names = [NAMES.get(mode, mode) for mode in (*asked, *heard)]
    return list(dict.fromkeys([*names, "updates"]))


def sent_input(given: Any) -> tuple[Any, dict[str, Any] | None]:
    """The input, and the command if it is one."""
    if not isinstance(given, Command):
        return given, None
    return None, {each.name: getattr(given, each.name) for each in fields(given)}


# -- what comes back ---------------------------------------------------------------


@dataclass(slots=True)
class Chunk:
    """A part of a stream: the mode, whose it is, what is told, and as it came."""

    mode: str
    ns: tuple[str, ...]
    payload: Any
    came: Any


def chunks_of(came: Any) -> Iterator[Chunk]:
    """The chunk that a part of a server's stream is, if it is one.

    Raises:
        RemoteException: the part tells of an error.
        ParentCommand: it is a command for the graph around this one.
    """
    mode, _, where = came.event.partition(NS_SEP)
    if mode.startswith("error"):
        raise RemoteException(came.data)
    if mode == "command":
        if came.data.get("graph") == Command.PARENT:
            raise ParentCommand(Command(**came.data))
        return
    if mode in NAMES.values():
        mode = "messages"
    payload = came.data
    if mode == "messages" and isinstance(payload, Sequence):
        payload = tuple(payload)
        came = came._replace(data=payload)
    yield Chunk(mode, tuple(where.split(NS_SEP)) if where else (), payload, came)


def questions_in(chunk: Chunk) -> tuple[Interrupt[Any], ...]:
    """What a graph elsewhere asks with this chunk."""
    if not isinstance(chunk.payload, Mapping) or chunk.mode not in TELLING:
        return ()
    return interrupts_of(chunk.payload.get(INTERRUPT))


def interrupts_of(asked: Any) -> tuple[Interrupt[Any], ...]:
    """Questions as servers tell them."""
    return tuple(Interrupt(**each) for each in asked or ())


@dataclass(slots=True)
class Look:
    """Which chunks a caller wants, and how."""

    modes: tuple[str, ...]
    single: bool
    subgraphs: bool
    typed: bool

    def shown(self, chunk: Chunk) -> Iterator[Any]:
        """The chunk as the caller gets it, or nothing."""
        own = not chunk.ns or self.subgraphs or chunk.mode == "messages"
        if not own or chunk.mode not in self.modes:
            return
        if self.typed:
            yield typed_part(chunk)
        elif self.subgraphs:
            told = (chunk.payload,) if self.single else (chunk.mode, chunk.payload)
            yield (chunk.ns, *told)
        else:
            yield chunk.payload if self.single else chunk.came


def typed_part(chunk: Chunk) -> dict[str, Any]:
    """A chunk as a part of `stream(version="v2")`."""
    made = part(chunk.ns, chunk.mode, chunk.payload)
    made["interrupts"] = questions_in(chunk) if chunk.mode == "values" else ()
    return made


# -- states and graphs -------------------------------------------------------------


def snapshot(told: Mapping[str, Any]) -> StateSnapshot:
    """A state as a server tells it."""
    tasks = tuple(map(task_of, told.get("tasks") or ()))
    parent = told.get("parent_checkpoint")
    if "interrupts" in told:
        asked = interrupts_of(told["interrupts"])
    else:
        asked = tuple(each for task in tasks for each in task.interrupts)
    return StateSnapshot(
        values=told["values"],
        next=tuple(told.get("next") or ()),
        config=config_of(told["checkpoint"]),
        metadata=told.get("metadata"),
        created_at=told.get("created_at"),
        parent_config=config_of(parent) if parent else None,
        tasks=tasks,
        interrupts=asked,
    )


def task_of(told: Mapping[str, Any]) -> PregelTask:
    state, below = told.get("state"), told.get("checkpoint")
    if state:
        shown: Any = snapshot(state)
    else:
        shown = {CONF: below} if below else None
    error = told.get("error")
    return PregelTask(
        id=told["id"],
        name=told["name"],
        path=(),
        error=Exception(error) if error else None,
        interrupts=interrupts_of(told.get("interrupts")),
        state=shown,
        result=told.get("result"),
    )


def config_of(checkpoint: Mapping[str, Any]) -> RunnableConfig:
    """The config that names a checkpoint of a server."""
    return {
        CONF: {
            "thread_id": checkpoint["thread_id"],
            "checkpoint_ns": checkpoint.get("checkpoint_ns") or "",
            "checkpoint_id": checkpoint.get("checkpoint_id"),
            "checkpoint_map": checkpoint.get("checkpoint_map") or {},
        }
    }


def drawing(told: Mapping[str, Any]) -> Graph:
    """A graph as a server tells it."""
    nodes = {str(each["id"]): node_of(each) for each in told["nodes"]}
    edges = [
        Edge(e["source"], e["target"], e.get("data"), bool(e.get("conditional")))
        for e in told["edges"]
    ]
    return Graph(nodes, edges)


def node_of(told: Mapping[str, Any]) -> Node:
    data = told.get("data")
    named = data.get("name") if isinstance(data, Mapping) else data
    key = str(told["id"])
    return Node(key, str(named or key), data, told.get("metadata"))
