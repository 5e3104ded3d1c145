"""A store in the memory of this process.

Values are kept encoded, as a store on disk keeps them: what is put is what it
was at that moment, and every read makes fresh objects. A batch is a program, a
generator that yields the texts it wants vectors for; so the blocking and the
async colour are the same code, and no lock is held while a model embeds.
"""

from __future__ import annotations

import math
import operator
import threading
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from towpath.checkpoint.serde.jsonplus import JsonPlusSerializer
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
    validate_op_namespace,
)
from towpath.store.base.ops import fits, page

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

Vector = Sequence[float]
Namespace = tuple[str, ...]
Program = Generator[list[str], list[list[float]], list[Result]]

_WHOLE: Final = ["$"]
_SWEEP_EVERY: Final = 256
"""After how many puts the expired items are thrown away."""

_serde: Final = JsonPlusSerializer()


@dataclass(slots=True)
class _Kept:
    """One item, encoded."""

    data: tuple[str, bytes]
    created_at: datetime
    updated_at: datetime
    vectors: list[Vector]
    lifetime_s: float | None
    expires_at_s: float


class InMemoryStore(BaseStore):
    """Keeps items until the process ends. Safe to share between threads.

    With an `index`, items are found by meaning: `embed` makes the vectors, and
    `fields` are the paths to the texts, the whole value when left out. The
    search compares with every item, in pure Python.

    >>> store = InMemoryStore()
    >>> store.put(("users", "ann"), "food", {"likes": "plums"})
    >>> [item.value for item in store.search(("users",))]
    [{'likes': 'plums'}]
    """

    supports_ttl = True

    __slots__ = (
        "_fields",
        "_items",
        "_lock",
        "_puts",
        "embeddings",
        "index_config",
        "ttl_config",
    )

    def __init__(
        self, *, index: IndexConfig | None = None, ttl: TTLConfig | None = None
    ) -> None:
        self._lock = threading.Lock()
        self._items: dict[Namespace, dict[str, _Kept]] = {}
        self._puts = 0
        self.ttl_config = ttl
        self.index_config = index
        self.embeddings = ensure_embeddings(index.get("embed")) if index else None
        self._fields = (index or {}).get("fields") or _WHOLE

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations; reads see what was there before the batch."""
        run = _Run(self._batch([*ops]))
        while run.texts and self.embeddings:
            run.take(self.embeddings.embed_documents(run.texts))
        return run.results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Async twin of `batch`."""
        run = _Run(self._batch([*ops]))
        while run.texts and self.embeddings:
            run.take(await self.embeddings.aembed_documents(run.texts))
        return run.results

    def _batch(self, ops: list[Op]) -> Program:
        puts = {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}
        for op in ops:
            _check(op)
        kept = [self._encoded(op) for op in puts.values()]
        texts = [self._texts(op) for op in puts.values()]
        queries = [op.query for op in ops if isinstance(op, SearchOp) and op.query]
        vectors = yield from self._embedded(
            [*(text for found in texts for text in found), *queries]
        )
        for item, found in zip(kept, texts, strict=True):
            if item is not None:
                item.vectors = [vectors[text] for text in found] if vectors else []
        with self._lock:
            results = [self._read(op, vectors) for op in ops]
            for (namespace, key), item in zip(puts, kept, strict=True):
                self._place(tuple(namespace), key, item)
            for place, op in enumerate(ops):
                if isinstance(op, ListNamespacesOp):
                    results[place] = self._namespaces(op)
        return results

    def _embedded(
        self, texts: list[str]
    ) -> Generator[list[str], list[list[float]], dict[str, Vector]]:
        """Return the vector of each text, asking for each only once."""
        wanted = [*dict.fromkeys(texts)]
        if self.embeddings is None or not wanted:
            return {}
        vectors = yield wanted
        return dict(zip(wanted, vectors, strict=True))

    # Putting

    def _encoded(self, op: PutOp) -> _Kept | None:
        if op.value is None:
            return None
        lifetime_s = None if op.ttl is None else op.ttl * 60
        now = datetime.now(UTC)
        data = _serde.dumps_typed(dict(op.value))
        return _Kept(data, now, now, [], lifetime_s, _expiry(lifetime_s))

    def _texts(self, op: PutOp) -> list[str]:
        """Return the texts of a value that are searched by meaning."""
        if self.embeddings is None or op.value is None or op.index is False:
            return []
        paths = self._fields if op.index is None else op.index
        return [text for path in paths for text in get_text_at_path(op.value, path)]

    def _place(self, namespace: Namespace, key: str, item: _Kept | None) -> None:
        items = self._items.get(namespace, {})
        if item is None:
            items.pop(key, None)
            if not items:
                self._items.pop(namespace, None)
            return
        former = items.get(key)
        if former is not None:
            item.created_at = former.created_at
        items[key] = item
        self._items[namespace] = items
        self._puts += 1
        if self._puts % _SWEEP_EVERY == 0:
            self._sweep()

    def _sweep(self) -> None:
        now_s = time.monotonic()
        for namespace, items in list(self._items.items()):
            for key in [
                key for key, item in items.items() if item.expires_at_s <= now_s
            ]:
                self._place(namespace, key, None)

    # Reading

    def _read(self, op: Op, vectors: Mapping[str, Vector]) -> Result:
        if isinstance(op, GetOp):
            return self._get(op)
        if isinstance(op, SearchOp):
            return self._search(op, vectors.get(op.query or ""))
        if isinstance(op, (PutOp, ListNamespacesOp)):
            return None
        raise ValueError(f"Unknown operation type: {type(op)}")

    def _get(self, op: GetOp) -> Item | None:
        namespace = tuple(op.namespace)
        item = self._items.get(namespace, {}).get(op.key)
        if item is None or not _alive(item, op.refresh_ttl):
            return None
        return Item(
            value=_serde.loads_typed(item.data),
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
            if _alive(item, refresh=False)
            and fits(value := _serde.loads_typed(item.data), op.filter)
        ]
        if query is not None:
            for item, hit in found:
                scores = [_cosine(query, vector) for vector in item.vectors]
                hit.score = max(scores, default=None)
            # Items that have no vector come last, in the order they were put.
            found.sort(
                key=lambda pair: -math.inf if pair[1].score is None else pair[1].score,
                reverse=True,
            )
        chosen = page(found, op.limit, op.offset)
        for item, _ in chosen:
            _alive(item, op.refresh_ttl)
        return [hit for _, hit in chosen]

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        found = {
            namespace[: op.max_depth]
            for namespace in self._items
            if all(
                condition.holds(namespace) for condition in op.match_conditions or ()
            )
        }
        return page(sorted(found), op.limit, op.offset)


class _Run:
    """A batch under way: the texts it waits for, and its results at the end."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.texts: list[str] = []
        self.results: list[Result] = []
        self._go_on(None)

    def take(self, vectors: list[list[float]]) -> None:
        """Give the batch the vectors of its texts."""
        self._go_on(vectors)

    def _go_on(self, vectors: list[list[float]] | None) -> None:
        try:
            # To send None is to start.
            self.texts = self._program.send(vectors)  # type: ignore[arg-type]
        except StopIteration as stop:
            self.texts, self.results = [], stop.value


def _check(op: Op) -> None:
    validate_op_namespace(op)
    value: object = op.value if isinstance(op, PutOp) else None
    if not (value is None or isinstance(value, Mapping)):
        kind = type(value).__name__
        raise ValueError(f"a stored value must be a dict, not {kind}")


def _expiry(lifetime_s: float | None) -> float:
    return math.inf if lifetime_s is None else time.monotonic() + lifetime_s


def _alive(item: _Kept, refresh: bool) -> bool:
    """Tell whether an item has not expired, and prolong its life if asked to."""
    if item.expires_at_s <= time.monotonic():
        return False
    if refresh:
        item.expires_at_s = _expiry(item.lifetime_s)
    return True


def _cosine(a: Vector, b: Vector) -> float:
    dot = sum(map(operator.mul, a, b))
    norms = math.hypot(*a) * math.hypot(*b)
    return dot / norms if norms else 0.0
