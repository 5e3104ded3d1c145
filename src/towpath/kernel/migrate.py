"""A thread that an older graph has made goes on in this one.

A stored checkpoint is brought to the graph's version as a value: names, values,
versions, what nodes have seen, and what is recorded of the step's tasks. Reading
a thread shows the result and stores nothing; going on stores it as a checkpoint
of its own. The step's tasks keep their ids, as after an edit, so that questions,
finished work and the states of subgraphs are found again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from towpath.constants import (
    CARRIED,
    ERROR_SOURCE_NODE,
    GRAPH,
    HANDLER,
    PULL,
    PUSH,
    START,
    TASKS,
)
from towpath.errors import (
    MigrationError,
    UnknownVersionError,
    nearest,
)
from towpath.kernel.commands import Program
from towpath.kernel.fit import check_keys, is_key, refuse
from towpath.kernel.request import Request
from towpath.kernel.session import Session
from towpath.kernel.settle import stand_in_of
from towpath.migration import Migration, path_from
from towpath.plan import Plan
from towpath.plan.fingerprint import Description, fingerprint, read
from towpath.step.isolate import isolate
from towpath.step.prepare import prepare
from towpath.step.state import Version
from towpath.step.tasks import Origin, Path, kept_ids, named_id, path_key
from towpath.step.writes import JOIN, TO
from towpath.types import Send

Moved = Mapping[str, Version]


def adapted(plan: Plan, req: Request, saved: Any) -> tuple[Any, Moved]:
    """A stored checkpoint for this graph, and the channels that changed for it.

    Raises:
        UnknownVersionError: no migration starts from its version (TP-308).
        MigrationError: a migration returned no state of this graph (TP-309).
        ChangedKeyError: a key now means something else (TP-307).
    """
    old = made_by(plan, saved)
    if old is None:
        return saved, {}
    path = route(plan, old)
    if path:
        return migrated(plan, req, saved, path)
    check_keys(plan, saved.checkpoint["channel_values"], old)
    return saved, {}


def for_reading(plan: Plan, req: Request, saved: Any) -> Any:
    """The same for those who only look; what cannot be adapted is shown as it is."""
    with suppress(Exception):  # migrations are user code
        return adapted(plan, req, saved)[0]
    return saved


def made_by(plan: Plan, saved: Any) -> Description | None:
    """The graph that made a checkpoint; None if it was this one.

    One that does not say is taken for a graph without a version.
    """
    text = saved.checkpoint["channel_values"].get(GRAPH)
    return None if text == fingerprint(plan) else read(text) or Description()


def route(plan: Plan, old: Description) -> Sequence[Migration]:
    """The migrations to go through; a thread without a version may need none."""
    if old.version == plan.version:
        return ()
    path = path_from(old.version, plan.version, plan.migrations)
    if path is None and old.version is not None:
        refuse(
            plan,
            UnknownVersionError(
                f"the thread was made by version {old.version} of graph "
                f"`{plan.name}`, which is now {told_version(plan)} and has no "
                "migration from there",
                hint=f"migrations=[Migration({old.version!r}, {plan.version!r}, ...)]",
            ),
        )
    return path or ()


def told_version(plan: Plan) -> str:
    return "without a version" if plan.version is None else f"version {plan.version}"


@dataclass(frozen=True, slots=True)
class Names:
    """New names of nodes and keys, wherever a checkpoint has the old ones."""

    nodes: Mapping[str, str]
    keys: Mapping[str, str]

    def node(self, name: str) -> str:
        bare = name.removeprefix(HANDLER)
        return f"{name[: len(name) - len(bare)]}{self.nodes.get(bare, bare)}"

    def channel(self, name: str) -> str:
        if name.startswith(TO):
            return TO + self.node(name.removeprefix(TO))
        if name.startswith(JOIN):
            sources, _, target = name.removeprefix(JOIN).rpartition(":")
            joined = "+".join(map(self.node, sources.split("+")))
            return f"{JOIN}{joined}:{self.node(target)}"
        return self.keys.get(name, name)

    def value(self, channel: str, value: Any) -> Any:
        """What is stored in, or written to, a channel of the engine's own."""
        if isinstance(value, Send) and channel == TASKS:
            return Send(self.node(value.node), value.arg, timeout=value.timeout)
        if channel == START and isinstance(value, dict):
            return {self.keys.get(key, key): one for key, one in value.items()}
        if isinstance(value, str):
            named = channel.startswith(JOIN) or channel == ERROR_SOURCE_NODE
            return self.node(value) if named else value
        own = channel == TASKS or channel.startswith(JOIN)
        if own and type(value) in (list, tuple, set):
            return type(value)(self.value(channel, one) for one in value)
        return value


def renamed_keys(old: Description | None, names: Names) -> Description:
    """What a graph was, told with the new names of its keys."""
    was = old or Description()
    keys = {names.channel(key): text for key, text in was.keys.items()}
    return Description(was.version, keys, was.nodes)


def composed(maps: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Renaming after renaming, as one."""
    names: dict[str, str] = {}
    for renamed in maps:
        for old, name in names.items():
            names[old] = renamed.get(name, name)
        for old, name in renamed.items():
            names.setdefault(old, name)
    return names


def name_now(plan: Plan, name: str) -> str:
    """What a node of an older version of the graph is called today."""
    for old in plan.migrations:
        path = path_from(old, plan.version, plan.migrations) or ()
        now = composed([step.nodes for step in path]).get(name, "")
        if now in plan.nodes:
            return now
    return name


def migrated(
    plan: Plan, req: Request, saved: Any, path: Sequence[Migration]
) -> tuple[Any, Moved]:
    """A checkpoint of an older version as one of this version."""
    names = Names(composed([m.nodes for m in path]), composed([m.keys for m in path]))
    checkpoint = dict(saved.checkpoint)
    stored = checkpoint["channel_values"]
    # A copy, whatever a migration does to it.
    given = dict(isolate({key: value for key, value in stored.items() if is_key(key)}))
    values = new_values(plan, given, path)
    check_values(plan, saved, names, given, values)
    rest = {
        names.channel(name): names.value(name, value)
        for name, value in stored.items()
        if name not in given
    }
    remade = {name for name, value in rest.items() if stored.get(name) is not value}
    if any(migration.state for migration in path):
        remade.update(values)
    versions, moved = new_versions(req, names, checkpoint, values, remade)
    checkpoint["channel_values"] = {**rest, **values}
    checkpoint["channel_versions"] = versions
    checkpoint["versions_seen"] = {
        names.node(name): {names.channel(c): v for c, v in seen.items()}
        for name, seen in checkpoint["versions_seen"].items()
    }
    writes = [
        (task, names.channel(channel), names.value(channel, value))
        for task, channel, value in saved.pending_writes or ()
    ]
    metadata = {**saved.metadata, CARRIED: old_ids(saved, req, names)}
    saved = saved._replace(
        checkpoint=checkpoint, metadata=metadata, pending_writes=writes
    )
    return saved, moved


def check_values(
    plan: Plan,
    saved: Any,
    names: Names,
    given: Mapping[str, Any],
    values: Mapping[str, Any],
) -> None:
    """Refuse values that the keys cannot take up, old ones and those just made."""
    known = {names.channel(key): value for key, value in given.items()}
    fresh = {key for key, value in values.items() if known.get(key) is not value}
    check_keys(plan, values, renamed_keys(made_by(plan, saved), names), fresh)


def new_versions(
    req: Request,
    names: Names,
    checkpoint: Mapping[str, Any],
    values: Mapping[str, Any],
    remade: Collection[str],
) -> tuple[dict[str, Version], Moved]:
    """The versions of all channels, and of those that must be stored anew.

    A channel that only has another name keeps its version, which says what its
    nodes have seen; another value under the same name needs another one.
    """
    versions: dict[str, Version] = {}
    moved: dict[str, Version] = {}
    old = checkpoint["channel_versions"]
    later = req.bump(max(old.values(), default=None), None)
    for name, version in old.items():
        new = names.channel(name)
        if is_key(new) and new not in values:
            continue
        versions[new] = later if new in remade and new == name else version
        if new != name or new in remade:
            moved[new] = versions[new]
    for key in values:
        if key not in versions:
            versions[key] = moved[key] = later
    return versions, moved


def new_values(
    plan: Plan, before: Mapping[str, Any], path: Sequence[Migration]
) -> dict[str, Any]:
    """The values by key, after each migration."""
    values = dict(before)
    for step in path:
        values = {step.keys.get(key, key): value for key, value in values.items()}
        if step.state is None or not values:
            continue  # a thread that only has its input yet
        known = {*values, *plan.key_set}
        try:
            given = step.state(values)
        except Exception as error:
            with suppress(Exception):  # users' exceptions may refuse notes
                error.add_note(f"While migrating a thread {from_to(step)}")
            raise
        if not isinstance(given, Mapping):
            raise MigrationError(
                f"the migration {from_to(step)} returned {type(given).__name__}, "
                "not a dict of values by key",
                hint="return the whole state: {**state, 'key': value}",
            )
        values = dict(given)
        strange = [key for key in values if key not in known]
        if strange and step is path[-1]:
            raise MigrationError(
                f"the migration {from_to(step)} returned key `{strange[0]}`, which "
                f"graph `{plan.name}` does not declare",
                hint=nearest(strange[0], plan.keys),
            )
    return {key: value for key, value in values.items() if key in plan.key_set}


def from_to(step: Migration) -> str:
    return f"from version {step.old} to {step.new}"


def old_ids(saved: Any, req: Request, names: Names) -> dict[str, str]:
    """What carries the ids of tasks over to nodes that have new names."""
    kept: dict[str, str] = dict(saved.metadata.get(CARRIED) or {})
    step = saved.metadata.get("step", -1) + 1
    origin = Origin(saved.checkpoint["id"], req, step, dict(kept))
    old: list[Path] = []
    new: list[Path] = []
    for name, other in names.nodes.items():
        old += [(PULL, name), (PULL, name, HANDLER + name)]
        new += [(PULL, other), (PULL, other, HANDLER + other)]
    ids = [named_id(origin, path[-1], path) for path in old]
    for path in old:
        kept.pop(path_key(path), None)
    kept.update(zip(map(path_key, new), ids, strict=True))
    for index, send in enumerate(saved.checkpoint["channel_values"].get(TASKS) or ()):
        path = (PUSH, index, False)
        if send.node in names.nodes:
            kept[path_key(path)] = named_id(origin, send.node, path)
    return kept


def sign(session: Session, saved: Any = None, moved: Moved | None = None) -> None:
    """Have what is stored from now on say by which graph, and what changed for it."""
    plan, state = session.plan, session.state
    if session.saver is None:
        return
    session.unsaved.update(moved or {})
    former = None if saved is None else saved.checkpoint["channel_values"].get(GRAPH)
    if plan.semantics.bare_checkpoints and former is None and plan.version is None:
        return
    text = state.stored[GRAPH] = fingerprint(plan)
    if former != text:
        version = session.req.bump(state.versions.get(GRAPH), None)
        state.versions[GRAPH] = session.unsaved[GRAPH] = version


def keep(session: Session) -> Program[None]:
    """Store a migrated checkpoint, with all that is recorded of the step's tasks."""
    state, pending = session.state, session.pending
    tasks = prepare(session.plan, state, session.req, session.req.limit)
    handlers = [
        stand_in
        for task in tasks
        if (stand_in := stand_in_of(session.plan, task, pending.get(task.id, ())))
    ]
    state.carried = kept_ids([*tasks, *handlers])
    yield from session.take_over("update", pending)
