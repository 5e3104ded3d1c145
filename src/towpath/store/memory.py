"""A store in the memory of this process.

Values are kept encoded, as a store on disk keeps them: what is put is what it
was at that moment, and every read makes fresh objects.
"""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from towpath.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    ensure_embeddings,
    get_text_at_path,
    tokenize_path,
)
from towpath.store.base.ops import fits
from towpath.store.nearness import COSINE, nearest
from towpath.store.planned import Cell, Namespace, Plan, PlannedStore, Put, Vector, load

__all__ = (
    "BaseStore",
    "GetOp",
    "InMemoryStore",
    "IndexConfig",
    "Item",
    "ListNamespacesOp",
    "MatchCondition",
    "PutOp",
    "SearchItem",
    "SearchOp",
    "ensure_embeddings",
    "get_text_at_path",
    "tokenize_path",
)

_SWEEP_EVERY: Final = 256
"""After how many puts the expired items are thrown away."""


@dataclass(slots=True)
class _Kept:
    """One item, encoded."""

    cell: Cell
    created_at: datetime
    updated_at: datetime
    vectors: list[Vector]
    lifetime_s: float | None
    expires_at_s: float


class InMemoryStore(PlannedStore):
    """Keeps items until the process ends. Safe to share between threads.

    With an `index`, items are found by meaning: `embed` makes the vectors, and
    `fields` are the paths to the texts, the whole value when left out. The
    search compares with every item.

    >>> store = InMemoryStore()
    >>> store.put(("users", "ann"), "food", {"likes": "plums"})
    >>> [item.value for item in store.search(("users",))]
    [{'likes': 'plums'}]
    """

    __slots__ = ("_items", "_lock", "_puts")

    def __init__(
        self, *, index: IndexConfig | None = None, ttl: TTLConfig | None = None
    ) -> None:
        super().__init__(index=index, ttl=ttl)
        self._lock = threading.Lock()
        self._items: dict[Namespace, dict[str, _Kept]] = {}
        self._puts = 0

    async def _arun(self, plan: Plan) -> list[Result]:
        return self._run(plan)

    def _run(self, plan: Plan) -> list[Result]:
        with self._lock:
            results = [self._read(op, plan) for op in plan.ops]
            for put in plan.puts:
                self._place(put.namespace, put.key, _kept(put))
            for place, op in enumerate(plan.ops):
                if isinstance(op, ListNamespacesOp):
                    results[place] = self._namespaces(op)
        return results

    def _place(self, namespace: Namespace, key: str, item: _Kept | None) -> None:
        items = self._items.get(namespace, {})
        if item is None:
            items.pop(key, None)
            if not items:
                self._items.pop(namespace, None)
            return
        former = items.get(key)
        if former is not None and _alive(former, refresh=False):
            item.created_at = former.created_at
        items[key] = item
        self._items[namespace] = items
        self._puts += 1
        if self._puts % _SWEEP_EVERY == 0:
            self._sweep()

    def _sweep(self) -> int:
        now = now_s()
        gone = [
            (namespace, key)
            for namespace, items in self._items.items()
            for key, item in items.items()
            if item.expires_at_s <= now
        ]
        for namespace, key in gone:
            self._place(namespace, key, None)
        return len(gone)

    def sweep_ttl(self) -> int:
        """Throw away what has expired; return how many items that were."""
        with self._lock:
            return self._sweep()

    # Reading

    def _read(self, op: Op, plan: Plan) -> Result:
        if isinstance(op, GetOp):
            return self._get(op)
        if isinstance(op, SearchOp):
            return self._search(op, plan.near.get(op.query or ""))
        return None

    def _get(self, op: GetOp) -> Item | None:
        namespace = tuple(op.namespace)
        item = self._items.get(namespace, {}).get(op.key)
        if item is None or not _alive(item, op.refresh_ttl):
            return None
        return Item(
            value=load(item.cell),
            key=op.key,
            namespace=namespace,
            created_at=item.created_at,
            updated_at=item.updated_at,
        )

    def _search(self, op: SearchOp, query: Vector | None) -> list[SearchItem]:
        prefix = tuple(op.namespace_prefix)
        found = [
            (item, SearchItem(namespace, key, value, item.created_at, item.updated_at))
            for namespace, items in self._items.items()
            if namespace[: len(prefix)] == prefix
            for key, item in items.items()
            if _alive(item, refresh=False) and fits(value := load(item.cell), op.filter)
        ]
        if query is not None:
            # Items that have no vector come last, in the order they were put.
            ranked = nearest(COSINE, query, [item.vectors for item, _ in found])
            found = [found[place] for place, _ in ranked]
            for (_, hit), (_, score) in zip(found, ranked, strict=True):
                hit.score = score
        chosen = found[op.offset : op.offset + op.limit]
        for item, _ in chosen:
            _alive(item, op.refresh_ttl)
        return [hit for _, hit in chosen]

    def _namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        return op.select(
            namespace
            for namespace, items in self._items.items()
            if any(_alive(item, refresh=False) for item in items.values())
        )


def _kept(put: Put) -> _Kept | None:
    if put.cell is None:
        return None
    now = datetime.now(UTC)
    expires_at_s = _expiry(put.lifetime_s)
    return _Kept(put.cell, now, now, put.vectors, put.lifetime_s, expires_at_s)


def now_s() -> float:
    """Return the time that passes for the items of this process, in seconds."""
    return time.monotonic()


def _expiry(lifetime_s: float | None) -> float:
    return math.inf if lifetime_s is None else now_s() + lifetime_s


def _alive(item: _Kept, refresh: bool) -> bool:
    """Tell whether an item has not expired, and prolong its life if asked to."""
    if item.expires_at_s <= now_s():
        return False
    if refresh:
        item.expires_at_s = _expiry(item.lifetime_s)
    return True
