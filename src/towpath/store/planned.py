"""Batches that are planned before anything is stored or read.

A plan checks every operation, encodes what is put, and knows the texts whose
vectors are needed. So a bad operation stops its batch before anything happened, a
value is stored as it was when it was put, and no lock or transaction is held while
a model embeds. What remains, `_run` and `_arun`, is a store's own.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from math import isnan
from numbers import Real
from typing import Any, Final, NoReturn

from towpath.checkpoint.serde.jsonplus import JsonPlusSerializer
from towpath.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchOp,
    TTLConfig,
    ensure_embeddings,
    get_text_at_path,
    validate_op_namespace,
)
from towpath.store.base.ops import MatchCondition, check_page
from towpath.store.facts import Fact

Vector = Sequence[float]
Namespace = tuple[str, ...]
Cell = tuple[str, bytes]

_WHOLE: Final = ["$"]
_SERDE: Final = JsonPlusSerializer()


_LIFETIME_S_MAX: Final = 1e11
"""Some 3000 years; what is longer has no end, in a calendar or a column."""


def seconds_of(ttl: object) -> float | None:
    """Return a lifetime that was given in minutes; None if it has no end.

    Raises:
        TypeError: it is no number.
        ValueError: it is not a number that says how long.
    """
    if not isinstance(ttl, Real):
        raise TypeError(f"`ttl` must be a number of minutes, not {ttl!r}")
    seconds = float(ttl) * 60
    if isnan(seconds):
        raise ValueError(f"`ttl` must be a number of minutes, not {ttl!r}")
    return None if seconds > _LIFETIME_S_MAX else max(seconds, -_LIFETIME_S_MAX)


@dataclass(slots=True)
class Put:
    """What a batch leaves under a key: an item, or none."""

    namespace: Namespace
    key: str
    cell: Cell | None
    lifetime_s: float | None
    facts: AbstractSet[Fact]
    texts: list[str]
    vectors: list[Vector] = field(default_factory=list)


@dataclass(slots=True)
class Plan:
    """A batch that may be run once it has its vectors."""

    ops: list[Op]
    puts: list[Put]
    """One for each key, as the last operation on it says."""
    texts: list[str]
    queries: list[str]
    near: dict[str, Vector] = field(default_factory=dict)
    """The vectors of the queries."""

    def take(self, texts: Sequence[Vector], queries: Sequence[Vector]) -> None:
        """Give the batch its vectors."""
        of = dict(zip(self.texts, texts, strict=True))
        self.near = dict(zip(self.queries, queries, strict=True))
        for put in self.puts:
            put.vectors = [of[text] for text in put.texts]


class PlannedStore(BaseStore):
    """A store that says how a planned batch is run."""

    supports_ttl = True

    __slots__ = ("_fields", "embeddings", "index_config", "ttl_config")

    def __init__(
        self, *, index: IndexConfig | None = None, ttl: TTLConfig | None = None
    ) -> None:
        self.ttl_config = ttl
        self.index_config = index
        self.embeddings = ensure_embeddings(index.get("embed")) if index else None
        self._fields = (index or {}).get("fields") or _WHOLE

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations; reads see what was there before the batch."""
        plan = self._plan([*ops])
        if self.embeddings and (plan.texts or plan.queries):
            texts = self.embeddings.embed_documents(plan.texts) if plan.texts else []
            self._take(plan, texts, [*map(self.embeddings.embed_query, plan.queries)])
        return self._run(plan)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Async twin of `batch`."""
        plan = self._plan([*ops])
        if model := self.embeddings:
            texts = await model.aembed_documents(plan.texts) if plan.texts else []
            queries = [await model.aembed_query(query) for query in plan.queries]
            self._take(plan, texts, queries)
        return await self._arun(plan)

    @abstractmethod
    def _run(self, plan: Plan) -> list[Result]:
        """Run a planned batch: reads, then puts, then listings of namespaces."""

    @abstractmethod
    async def _arun(self, plan: Plan) -> list[Result]:
        """Async twin of `_run`."""

    def _plan(self, ops: list[Op]) -> Plan:
        for op in ops:
            _check(op)
        last = {(tuple(op.namespace), op.key): op for op in ops if type(op) is PutOp}
        puts = [self._put(*place, op) for place, op in last.items()]
        texts = dict.fromkeys(text for put in puts for text in put.texts)
        queries = dict.fromkeys(
            op.query
            for op in ops
            if self.embeddings and isinstance(op, SearchOp) and op.query
        )
        return Plan(ops, puts, [*texts], [*queries])

    def _put(self, namespace: Namespace, key: str, op: PutOp) -> Put:
        cell = None if op.value is None else _SERDE.dumps_typed(dict(op.value))
        lifetime_s = None if op.ttl is None else seconds_of(op.ttl)
        facts = self._facts(op)
        return Put(namespace, key, cell, lifetime_s, facts, self._texts(op))

    def _facts(self, op: PutOp) -> AbstractSet[Fact]:  # noqa: ARG002 - for stores that index
        """Return what an index is to know of a value. This one has none."""
        return frozenset()

    def _texts(self, op: PutOp) -> list[str]:
        """Return the texts of a value that are searched by meaning."""
        if self.embeddings is None or op.value is None or op.index is False:
            return []
        paths = self._fields if op.index is None else op.index
        return [text for path in paths for text in get_text_at_path(op.value, path)]

    def _take(
        self, plan: Plan, texts: Sequence[Vector], queries: Sequence[Vector]
    ) -> None:
        dims = (self.index_config or {}).get("dims")
        for vector in (*texts, *queries):
            if dims is not None and len(vector) != dims:
                raise ValueError(
                    f"the embedding has {len(vector)} dimensions, but the index of "
                    f"the store says `dims={dims}`"
                )
        plan.take(texts, queries)


def load(cell: Cell) -> dict[str, Any]:
    """Decode a stored value."""
    value: dict[str, Any] = _SERDE.loads_typed(cell)
    return value


def _check(op: Op) -> None:
    if not isinstance(op, (GetOp, SearchOp, PutOp, ListNamespacesOp)):
        _refuse(op)
    validate_op_namespace(op)
    if isinstance(op, (SearchOp, ListNamespacesOp)):
        check_page(op.limit, op.offset)
    if isinstance(op, ListNamespacesOp):
        for condition in op.match_conditions or ():
            MatchCondition.holds(condition, ())
    value: object = op.value if isinstance(op, PutOp) else None
    if not (value is None or isinstance(value, Mapping)):
        kind = type(value).__name__
        raise ValueError(f"a stored value must be a dict, not {kind}")


def _refuse(op: object) -> NoReturn:
    raise ValueError(f"Unknown operation type: {type(op)}")
