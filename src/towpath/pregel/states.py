"""Looking at the threads of a graph, and editing them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from towpath.call.scope import RunScope, TaskContext
from towpath.constants import CONF
from towpath.context import current
from towpath.drive.loop import LoopDriver
from towpath.drive.reading import alook, look
from towpath.drive.sync import SyncDriver
from towpath.errors import NoCheckpointerError, NoThreadError
from towpath.kernel.commands import FetchAll, Program
from towpath.kernel.edit import bulk_update
from towpath.kernel.inspect import find_subgraph, get_state, past, stored_ns
from towpath.kernel.request import Request
from towpath.plan import Plan
from towpath.pregel.claims import claim_thread
from towpath.pregel.config import merge
from towpath.pregel.ports import bump_of
from towpath.pregel.runs import check_colour
from towpath.types import StateSnapshot, StateUpdate
from towpath.warnings import TowpathWarning, warn_user

# Checkpoints read at a time: a long history is never held whole, but values that
# grew from each other are read once where they are read together.
PAGE: Final = 64
PAGE_MAX: Final = 1024
# What the engine itself puts into the metadata of checkpoints.
OWN_METADATA: Final = frozenset({"source", "step", "parents"})


@dataclass(slots=True)
class Place:
    """A thread, or a subgraph's part of one, as a config names it."""

    plan: Plan
    request: Request
    config: dict[str, Any]
    graph: Any

    def scope(self) -> RunScope:
        return RunScope(self.plan, self.request, self.config, store=self.graph.store)

    def look(self, program: Program[Any]) -> Any:
        """Obey a program that only reads."""
        check_colour(self.request)
        return look(program)

    async def alook(self, program: Program[Any]) -> Any:
        """Async twin of `look`."""
        return await alook(program)

    def drive(self, program: Program[Any]) -> Any:
        check_colour(self.request)
        return SyncDriver(self.scope()).run(program)

    async def adrive(self, program: Program[Any]) -> Any:
        return await LoopDriver(self.scope()).run(program)


def place_of(graph: Any, config: Mapping[str, Any]) -> Place:
    """Find what a config names.

    Raises:
        NoCheckpointerError: nothing keeps the graph's state, or no thread is
            named (TP-601).
        UnknownNamespaceError: no such subgraph (TP-602).
    """
    merged = merge(graph.config, config)
    conf = merged.get(CONF) or {}
    saver = conf.get("__pregel_checkpointer") or graph.checkpointer
    if not saver or saver is True:
        raise NoCheckpointerError(
            "No checkpointer set: the graph keeps no state to look at",
            hint="compile(checkpointer=...)",
        )
    if conf.get("thread_id") is None:
        raise NoThreadError(
            "the config names no thread",
            hint="pass {'configurable': {'thread_id': '...'}}",
        )
    ns = conf.get("checkpoint_ns") or ""
    inner = find_subgraph(graph.plan_of_graph, ns) if ns else graph
    above = conf.get("checkpoint_map") or {}
    parents = {key: id_ for key, id_ in above.items() if key != ns} if above else above
    request = Request(
        None,
        (),
        saver=saver,
        thread_id=str(conf["thread_id"]),
        ns=stored_ns(inner, ns) if ns else ns,
        pinned=conf.get("checkpoint_id") or above.get(ns),
        parents=parents,
        bump=bump_of(saver),
    )
    return Place(inner.plan_of_graph, request, merged, graph)


def place_to_edit(graph: Any, config: Mapping[str, Any]) -> Place:
    """Find what a config names, to write there."""
    place, task = place_of(graph, config), current.get()
    scope = task.scope if isinstance(task, TaskContext) else None
    claim_thread(place.request, scope, place.plan.semantics)
    if place.request.on_busy == "fork":
        place.request.on_busy = "wait"  # an edit is meant for this very thread
    return place


def history_page(
    place: Place, given: Mapping[str, Any] | None, options: dict[str, Any]
) -> Program[list[StateSnapshot]]:
    """The snapshots of one page of a thread's history."""
    req = place.request
    made = partial(past, place.plan, req)
    at = req.place(req.pinned)
    page = yield FetchAll(req.saver, at, given, **options, made=made)
    return page  # type: ignore[no-any-return]


def warn_unstored(plan: Plan, keys: Iterable[str]) -> None:
    """Say it when a filter asks for metadata that this graph does not store."""
    for key in keys:
        if key not in OWN_METADATA and not plan.semantics.keeps(key):
            warn_user(
                f"graph `{plan.name}` stores no metadata `{key}`, so a filter finds "
                f"none: compile(store_metadata=[{key!r}])",
                TowpathWarning,
            )


def next_page(
    before: Mapping[str, Any] | None, limit: int | None, page: Sequence[StateSnapshot]
) -> tuple[dict[str, Any], int | None]:
    """Options of the next page, and how many snapshots are still wanted."""
    most = PAGE_MAX if page else PAGE
    if page:
        before = page[-1].config
        limit = None if limit is None else limit - len(page)
    size = most if limit is None else min(most, limit)
    return {"before": before, "limit": size}, limit


class StateVerbs:
    """The verbs of a compiled graph that do not run it."""

    if TYPE_CHECKING:
        plan_of_graph: Plan
        cache: Any

    def get_state(
        self, config: Mapping[str, Any], *, subgraphs: bool = False
    ) -> StateSnapshot:
        """The newest state of a thread, or that of the checkpoint named.

        With `subgraphs`, tasks that run a subgraph carry its state. A thread
        that has never run gives an empty snapshot.

        Raises:
            NoCheckpointerError: the graph keeps no state (TP-601).
            UnknownNamespaceError: the namespace fits no subgraph (TP-602).
        """
        at = place_of(self, config)
        program = get_state(at.plan, at.request, at.config, subgraphs=subgraphs)
        return at.look(program)  # type: ignore[no-any-return]

    async def aget_state(
        self, config: Mapping[str, Any], *, subgraphs: bool = False
    ) -> StateSnapshot:
        """Async twin of `get_state`."""
        at = place_of(self, config)
        program = get_state(at.plan, at.request, at.config, subgraphs=subgraphs)
        return await at.alook(program)  # type: ignore[no-any-return]

    def get_state_history(
        self,
        config: Mapping[str, Any],
        *,
        filter: dict[str, Any] | None = None,
        before: Mapping[str, Any] | None = None,
        limit: int | None = None,
    ) -> Iterator[StateSnapshot]:
        """The checkpoints of a thread as snapshots, newest first.

        `filter` compares metadata, `before` names a checkpoint to start
        below, `limit` is how many at most. Each snapshot has lists and dicts of its
        own; what these hold, those that are read together share.
        """
        at, page = place_of(self, config), ()
        warn_unstored(at.plan, filter or ())
        options, left = next_page(before, limit, page)
        while rows := at.look(history_page(at, filter, options)):
            yield from rows
            options, left = next_page(before, left, rows)
            if len(rows) < PAGE or left == 0:
                return

    async def aget_state_history(
        self,
        config: Mapping[str, Any],
        *,
        filter: dict[str, Any] | None = None,
        before: Mapping[str, Any] | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[StateSnapshot]:
        """Async twin of `get_state_history`."""
        at, page = place_of(self, config), ()
        warn_unstored(at.plan, filter or ())
        options, left = next_page(before, limit, page)
        while rows := await at.alook(history_page(at, filter, options)):
            for row in rows:
                yield row
            options, left = next_page(before, left, rows)
            if len(rows) < PAGE or left == 0:
                return

    def update_state(
        self,
        config: Mapping[str, Any],
        values: Any,
        as_node: str | None = None,
        task_id: str | None = None,
    ) -> dict[str, Any]:
        """Write to a thread's state as if a node had just returned `values`.

        Without `as_node`, the node that wrote last is taken. On a thread that
        stopped in the middle of a step, that only changes the state: what
        finished stays finished, and what was asked stays asked.

        Raises:
            AmbiguousUpdateError: several nodes wrote last (TP-207).
            InvalidUpdateError: an update that the state cannot take (TP-201).
        """
        steps = [[StateUpdate(values, as_node, task_id)]]
        return self.bulk_update_state(config, steps)

    async def aupdate_state(
        self,
        config: Mapping[str, Any],
        values: Any,
        as_node: str | None = None,
        task_id: str | None = None,
    ) -> dict[str, Any]:
        """Async twin of `update_state`."""
        steps = [[StateUpdate(values, as_node, task_id)]]
        return await self.abulk_update_state(config, steps)

    def bulk_update_state(
        self, config: Mapping[str, Any], supersteps: Sequence[Sequence[StateUpdate]]
    ) -> dict[str, Any]:
        """Apply several updates, one checkpoint per superstep, in order."""
        at = place_to_edit(self, config)
        program = bulk_update(at.plan, at.request, supersteps)
        return at.drive(program)  # type: ignore[no-any-return]

    async def abulk_update_state(
        self, config: Mapping[str, Any], supersteps: Sequence[Sequence[StateUpdate]]
    ) -> dict[str, Any]:
        """Async twin of `bulk_update_state`."""
        at = place_to_edit(self, config)
        program = bulk_update(at.plan, at.request, supersteps)
        return await at.adrive(program)  # type: ignore[no-any-return]

    def get_subgraphs(
        self, *, namespace: str | None = None, recurse: bool = False
    ) -> Iterator[tuple[str, Any]]:
        """The compiled graphs among the nodes, by name; nested ones as `a|b`.

        `recurse` looks into them, too; a `namespace` is the only one wanted.
        """
        for name, spec in self.plan_of_graph.nodes.items():
            action = spec.action
            graph = None if action is None else action.graph
            graph = graph or self.plan_of_graph.called.get(name)
            if graph is None:
                continue
            if namespace is None or namespace == name:
                yield name, graph
            if recurse and (namespace is None or namespace.startswith(f"{name}|")):
                inner = None if namespace is None else namespace[len(name) + 1 :]
                for sub, deeper in graph.get_subgraphs(namespace=inner, recurse=True):
                    yield f"{name}|{sub}", deeper

    async def aget_subgraphs(
        self, *, namespace: str | None = None, recurse: bool = False
    ) -> AsyncIterator[tuple[str, Any]]:
        """Async twin of `get_subgraphs`."""
        for found in self.get_subgraphs(namespace=namespace, recurse=recurse):
            yield found

    def clear_cache(self, nodes: Sequence[str] | None = None) -> None:
        """Forget the cached results of these nodes, or of all."""
        self._cache().clear(cache_names(self.plan_of_graph, nodes))

    async def aclear_cache(self, nodes: Sequence[str] | None = None) -> None:
        """Async twin of `clear_cache`."""
        await self._cache().aclear(cache_names(self.plan_of_graph, nodes))

    def _cache(self) -> Any:
        if self.cache is None:
            raise NoCheckpointerError(
                "No cache is set for this graph. Cannot clear cache.",
                hint="compile(cache=InMemoryCache())",
            )
        return self.cache


def cache_names(plan: Plan, nodes: Sequence[str] | None) -> list[tuple[str, ...]]:
    """The namespaces under which nodes keep their results."""
    from towpath.kernel.settle import cache_ns

    names = plan.nodes if nodes is None else nodes
    return [cache_ns(plan.nodes[name]) for name in names if plan.nodes[name].cache]
