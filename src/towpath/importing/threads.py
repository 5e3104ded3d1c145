"""Copying threads from saver to saver."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from towpath.checkpoint.serde.types import _DeltaReplay
from towpath.constants import CARRIED, CONF, INTERRUPT, NS_END, NULL_TASK_ID
from towpath.errors import TowpathError
from towpath.importing.failure import ThreadImportError
from towpath.importing.peer import Ids, task_ids
from towpath.importing.values import of_peer, ours, versions


@dataclass(slots=True)
class Imported:
    """What was imported of one thread; numbers of what was not there before.

    `unbound` are finished tasks of a paused step that no node was found for:
    they will run again.
    """

    thread_id: str
    checkpoints: int = 0
    writes: int = 0
    questions: int = 0
    unbound: list[str] = field(default_factory=list)


def import_threads(
    source: Any,
    target: Any,
    threads: Sequence[str] | None = None,
    *,
    dry_run: bool = False,
) -> list[Imported]:
    """Copy threads from one saver to another, and say what was copied.

    `threads` are ids; without them it is every thread of the source. A thread is
    copied whole: all namespaces, the history with its parents, values, metadata
    and pending writes. What the target has already is left alone, so importing
    again is safe and brings what is new. With `dry_run` nothing is stored.

    From savers of LangGraph, a paused step goes on where it stopped: its tasks
    keep their ids, so that answers reach their questions, by id too, and what had
    finished does not run again. For that `langgraph` must be installed.

    Raises:
        ThreadImportError: a value that cannot be stored, by thread, checkpoint
            and channel; a thread that went on in both places; a paused step, and
            `langgraph` is missing (TP-511).
    """
    return [
        copy_thread(source, target, each, dry_run=dry_run)
        for each in threads or thread_ids(source)
    ]


def thread_ids(source: Any) -> list[str]:
    """Every thread of a saver, in the order of their newest checkpoints."""
    found = (each.config[CONF]["thread_id"] for each in source.list(None))
    return list(dict.fromkeys(map(str, found)))


def copy_thread(source: Any, target: Any, thread: str, *, dry_run: bool) -> Imported:
    """Copy one thread, from its oldest checkpoint on, one checkpoint at a time."""
    config = {CONF: {"thread_id": thread}}
    done = Imported(thread)
    newest, places = survey(source.list(config))
    if not places:
        raise ThreadImportError(
            f"the source has no thread {thread!r}",
            hint="leave the ids out to import every thread",
        )
    known = {place(each): tasks_of(each) for each in target.list(config)}
    refuse_parting(thread, places, known.keys())
    ids = carried_ids(source, thread, newest)
    before: dict[Place, dict[str, Any]] = {}
    for at in places:
        each = source.get_tuple(place_config(thread, at))
        took = copied(each, before.get(parent_of(each), {}))
        took.checkpoint["channel_values"].update(deltas(source, each))
        if newest[at[0]].checkpoint["id"] == at[1] and at[0] in ids:
            took.metadata[CARRIED] = ids[at[0]]
        before[at] = took.checkpoint["channel_versions"]
        missing = new_writes(each, known.get(at, frozenset()))
        if not dry_run:
            store(target, took, missing, stored=at in known)
        done.checkpoints += at not in known
        done.writes += sum(len(writes) for _, writes in missing)
    done.questions = open_questions(newest.get(""))
    done.unbound = unbound(newest, ids) if of_peer(source) else []
    return done


DELTAS: Final = "counters_since_delta_snapshot"
"""Where the metadata of a checkpoint of LangGraph names its delta channels."""
Place = tuple[str, str]
"""Namespace and id of a checkpoint."""


def place(saved: Any) -> Place:
    return saved.config[CONF].get("checkpoint_ns") or "", saved.checkpoint["id"]


def place_config(thread: str, at: Place) -> dict[str, Any]:
    ns, id_ = at
    return {CONF: {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": id_}}


def parent_of(saved: Any) -> Place:
    conf = (saved.parent_config or {}).get(CONF, {})
    return place(saved)[0], conf.get("checkpoint_id", "")


def survey(saved: Iterable[Any]) -> tuple[dict[str, Any], list[Place]]:
    """The newest checkpoint of each namespace, and where all are, oldest first."""
    newest: dict[str, Any] = {}
    places = []
    for each in saved:
        ns, id_ = place(each)
        places.append((ns, id_))
        if ns not in newest or newest[ns].checkpoint["id"] < id_:
            newest[ns] = each
    return newest, sorted(places, key=lambda at: at[1])


def refuse_parting(
    thread: str, here: Sequence[Place], there: Collection[Place]
) -> None:
    """A thread that went on in both places has two ends, and no newest state.

    Raises:
        ThreadImportError: the source has news, and so has the target (TP-511).
    """
    if there and set(here) - set(there) and set(there) - set(here):
        raise ThreadImportError(
            f"thread {thread!r} went on in both places since it was imported",
            hint="delete one of the two, or import into another database",
        )


def carried_ids(source: Any, thread: str, newest: Mapping[str, Any]) -> Ids:
    """The task ids of a thread's paused steps, where its engine is another.

    Raises:
        ThreadImportError: they are needed, and `langgraph` is missing (TP-511).
    """
    if not of_peer(source) or not any(map(tasks_of, newest.values())):
        return {}
    try:
        return task_ids(source, newest)
    except ImportError as error:
        raise ThreadImportError(
            f"thread {thread!r} is in the middle of a step, and only langgraph "
            "knows which of its tasks have finished",
            hint="pip install langgraph, beside the package of its saver",
        ) from error


@dataclass(slots=True)
class Copy:
    """A checkpoint as it is stored: where, what, about it, and what is new in it."""

    config: dict[str, Any]
    checkpoint: dict[str, Any]
    metadata: dict[str, Any]
    changed: dict[str, Any]


def copied(saved: Any, old: Mapping[str, Any]) -> Copy:
    """A checkpoint in our words; `old` are the channel versions of its parent."""
    theirs, conf = saved.checkpoint, saved.config[CONF]
    new = versions(theirs["channel_versions"])
    checkpoint = {
        **theirs,
        "channel_values": {k: ours(v) for k, v in theirs["channel_values"].items()},
        "channel_versions": new,
        "versions_seen": {k: versions(v) for k, v in theirs["versions_seen"].items()},
    }
    where = {"thread_id": conf["thread_id"], "checkpoint_ns": place(saved)[0]}
    if saved.parent_config:
        where["checkpoint_id"] = saved.parent_config[CONF]["checkpoint_id"]
    changed = {k: v for k, v in new.items() if old.get(k) != v}
    return Copy({CONF: where}, checkpoint, ours(dict(saved.metadata)), changed)


Writes = tuple[str, list[tuple[str, Any]]]
"""A task's id, and what it wrote."""


def deltas(source: Any, saved: Any) -> dict[str, Any]:
    """The values of delta channels, which LangGraph stores as writes here and there.

    How writes fold is known to the graph only, so it is given all of them.
    """
    checkpoint, told = saved.checkpoint, saved.metadata.get(DELTAS) or {}
    held = checkpoint["channel_values"]
    bare = [k for k in told if k in checkpoint["channel_versions"] and k not in held]
    if not bare or not of_peer(source):
        return {}
    found = source.get_delta_channel_history(config=saved.config, channels=bare)
    return {key: replay(history) for key, history in found.items()}


def replay(history: Mapping[str, Any]) -> list[Any]:
    """What a delta channel makes its value of."""
    seed: Any = history.get("seed")
    if type(seed).__name__ == "_DeltaSnapshot":
        seed = seed.value
    start = _DeltaReplay("seed" in history, ours(seed))
    return [start, *(ours(value) for _, _, value in history["writes"])]


def tasks_of(saved: Any) -> frozenset[str]:
    """The tasks that pending writes of a checkpoint are from."""
    return frozenset(task for task, _, _ in saved.pending_writes or ())


def new_writes(saved: Any, known: Collection[str]) -> list[Writes]:
    """The pending writes of a checkpoint by task, except those of known tasks."""
    found: dict[str, list[tuple[str, Any]]] = {}
    for task, channel, value in saved.pending_writes or ():
        if task not in known:
            found.setdefault(task, []).append((channel, ours(value)))
    return list(found.items())


def store(target: Any, took: Copy, writes: Iterable[Writes], *, stored: bool) -> None:
    """Put a checkpoint and its writes into the target.

    Raises:
        ThreadImportError: something in it cannot be stored (TP-511).
    """
    conf, own = took.config[CONF], took.checkpoint["id"]
    where = f"thread {conf['thread_id']!r}, checkpoint {own}"
    at = {CONF: {**conf, "checkpoint_id": own}}
    try:
        if not stored:
            target.put(took.config, took.checkpoint, took.metadata, took.changed)
        for task, several in writes:
            where = f"{where}, task {task}"
            target.put_writes(at, several, task)
    except (TowpathError, TypeError, ValueError) as error:
        raise ThreadImportError(
            f"{where} cannot be stored: {error}",
            hint="register the class with the target's codec, or see docs/values.md",
        ) from error


def open_questions(root: Any) -> int:
    """How many questions wait for an answer."""
    pending = (root.pending_writes or ()) if root else ()
    return sum(len(value) for _, channel, value in pending if channel == INTERRUPT)


def unbound(newest: Mapping[str, Any], ids: Ids) -> list[str]:
    """The tasks of paused steps that no node was found for."""
    bound = {
        name.rpartition(NS_END)[2] for kept in ids.values() for name in kept.values()
    }
    wrote = {task for each in newest.values() for task in tasks_of(each)}
    return sorted(wrote - bound - {NULL_TASK_ID})
