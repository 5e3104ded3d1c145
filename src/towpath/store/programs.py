"""The SQL of a store, written once for SQLite and Postgres.

See `towpath.checkpoint.programs` for what a program is. The tables:

- `items`: one row per item. A namespace is one text, see `pack`: those below it
  are a range of the index, in the order of tuples.
- `facts`: which items have which values, see `towpath.store.facts`.
- `vectors`: what items are found by. A vector belongs to an item as it was put at
  one moment (`stamp`), so none outlives the text it was made of.

Which items a filter fits is decided by `fits`, in Python, for every store: the
databases compare numbers, booleans and nulls each in its own way, and quoting is
not needed where nothing is quoted. Facts narrow down where it has to look, and
items come decoded one page after the other, until there are as many as were asked
for.

Times are microseconds since 1970, of the clock of the program that stores; each
item of a batch has one of its own, so the newest is always known.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import starmap, takewhile
from typing import Any, Final, NamedTuple

from towpath.checkpoint.nul import escape, unescape
from towpath.checkpoint.programs import Migrations, Program, Query, Row
from towpath.store.base import (
    GetOp,
    Item,
    ListNamespacesOp,
    Result,
    SearchItem,
    SearchOp,
)
from towpath.store.base.ops import fits
from towpath.store.facts import facts_wanted
from towpath.store.nearness import Nearness, Vector, nearest
from towpath.store.planned import Namespace, Plan, Put, load

VERSIONS: Final = "towpath_store_migrations"
MIGRATIONS: Final[Migrations] = (
    (
        """CREATE TABLE towpath_items (
            id INTEGER PRIMARY KEY,
            ns TEXT NOT NULL,
            key TEXT NOT NULL,
            tag TEXT NOT NULL,
            data BLOB NOT NULL,
            created INTEGER NOT NULL,
            updated INTEGER NOT NULL,
            lifetime INTEGER,
            expires INTEGER,
            UNIQUE (ns, key))""",
        # All that a search without a query reads before it knows what to fetch.
        "CREATE INDEX towpath_items_newest ON towpath_items (ns, updated, expires)",
        """CREATE INDEX towpath_items_expires ON towpath_items (expires)
            WHERE expires IS NOT NULL""",
        """CREATE TABLE towpath_facts (
            fact INTEGER NOT NULL,
            number REAL NOT NULL,
            item INTEGER NOT NULL,
            PRIMARY KEY (fact, number, item)) WITHOUT ROWID""",
        "CREATE INDEX towpath_facts_item ON towpath_facts (item)",
        """CREATE TABLE towpath_vectors (
            item INTEGER NOT NULL,
            stamp INTEGER NOT NULL,
            number INTEGER NOT NULL,
            dims INTEGER NOT NULL,
            data VECTOR NOT NULL,
            UNIQUE (item, stamp, number))""",
    ),
)
"""What each version of the schema adds. A released entry never changes."""
TABLES: Final = "towpath_items, towpath_facts, towpath_vectors"

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TOGETHER: Final = (1, 8, 64, 256)
"""How many items are asked for at once: few numbers, so few statements."""
_PAGE_FIRST: Final = 64
_PAGE_MAX: Final = 1024
_COUNT_MAX: Final = 2**63 - 1
"""How many items are decoded at once for a filter: ever more."""

_ALIVE: Final = "(i.expires IS NULL OR i.expires > ?)"
_NEWEST: Final = "i.updated DESC, i.id DESC"
_ITEM: Final = "i.id, i.ns, i.key, i.tag, i.data, i.created, i.updated, i.lifetime"
"""The fields of `Stored`."""
_HAS_FACT: Final = (
    "i.id IN (SELECT f.item FROM towpath_facts f"
    " WHERE f.fact = ? AND f.number >= ? AND f.number <= ? OR f.fact IN (?, ?))"
)
_VECTORS: Final = (
    "FROM towpath_items i LEFT JOIN towpath_vectors v"
    " ON v.item = i.id AND v.stamp = i.updated AND v.dims = ?"
)


class Measuring(NamedTuple):
    """How a database keeps vectors, and how near two are."""

    measure: Nearness
    bind: Callable[[Vector], Any]
    """A vector as an argument of a statement."""
    read: Callable[[Any], Vector]
    """A vector as it is in a row."""
    score: str | None
    """The nearness of `v.data` and an argument, in SQL; None: Python finds it."""


Ranked = list[tuple[int, float | None]]
"""Numbers of items, in order, with their scores."""


class Stored(NamedTuple):
    """The row of an item."""

    id: int
    ns: str
    key: str
    tag: str
    data: bytes
    created: int
    updated: int
    lifetime: int | None

    @property
    def value(self) -> dict[str, Any]:
        """The value, decoded: anew each time."""
        return load((self.tag, self.data))

    def place(self) -> dict[str, Any]:
        """Return where the item is and when it was put."""
        return {
            "key": self.key,
            "namespace": unpack(self.ns),
            "created_at": _EPOCH + timedelta(microseconds=self.created),
            "updated_at": _EPOCH + timedelta(microseconds=self.updated),
        }


@dataclass(slots=True)
class Done:
    """What came of a batch."""

    results: list[Result]
    read: list[int] = field(default_factory=list)
    """Items whose life is to be prolonged, because they were read."""

    def note_read(self, stored: Stored, refresh: bool) -> None:
        """Have an item live longer, if it can expire and that was asked for."""
        if refresh and stored.lifetime is not None:
            self.read.append(stored.id)


# Namespaces


def pack(namespace: Namespace) -> str:
    """Write a namespace as a text.

    Each label ends with a NUL, and NULs in labels are written otherwise: no
    namespace is the start of another one's text unless it is above it, and texts
    sort as tuples do.
    """
    return "".join(f"{escape(label)}\0" for label in namespace)


def unpack(text: str) -> Namespace:
    """Undo `pack`."""
    return tuple(unescape(label) for label in text.split("\0")[:-1])


def _below(prefix: Namespace) -> tuple[str, list[Any]]:
    """Return the condition on items below a namespace, and its arguments."""
    if not prefix:
        return "", []
    text = pack(prefix)
    return "i.ns >= ? AND i.ns < ? AND ", [text, f"{text[:-1]}\1"]


# A batch


def run(plan: Plan, now: int, measuring: Measuring) -> Program[Done]:
    """Run a batch: reads, then puts, then listings of namespaces."""
    done = Done([None] * len(plan.ops))
    yield from _gets(plan, now, done)
    for place, op in enumerate(plan.ops):
        if isinstance(op, SearchOp):
            query = plan.near.get(op.query or "")
            search = _Search(op, query, now, measuring)
            found = yield from search.found()
            done.results[place] = [hit for _, hit in found]
            for stored, _ in found:
                done.note_read(stored, op.refresh_ttl)
    if plan.puts:
        yield from put(plan.puts, now, measuring)
    for place, op in enumerate(plan.ops):
        if isinstance(op, ListNamespacesOp):
            done.results[place] = yield from _namespaces(op, now)
    return done


def prolong(items: Sequence[int], now: int) -> Program[None]:
    """Have items that were read live as long again as they were put for."""
    yield Query(
        "UPDATE towpath_items SET expires = lifetime + ?"
        " WHERE id IN (SELECT value FROM json_each(?)) AND lifetime IS NOT NULL",
        (now, json.dumps(sorted(items))),
    )


def sweep(now: int) -> Program[int]:
    """Delete what has expired; return how many items that were."""
    rows = yield from Query(
        "DELETE FROM towpath_items WHERE expires <= ? RETURNING id", (now,)
    )
    yield from _forget([id for (id,) in rows])
    return len(rows)


# Getting


def _gets(plan: Plan, now: int, done: Done) -> Program[None]:
    wanted = [(place, op) for place, op in enumerate(plan.ops) if isinstance(op, GetOp)]
    keys = [*dict.fromkeys((pack(tuple(op.namespace)), op.key) for _, op in wanted)]
    found: dict[tuple[str, str], Stored] = {}
    for some in _together(keys):
        pairs = ", ".join(["(?, ?)"] * len(some))
        rows = yield from Query(
            f"SELECT {_ITEM} FROM towpath_items i"
            f" WHERE (i.ns, i.key) IN (VALUES {pairs}) AND {_ALIVE}",
            [*(word for pair in some for word in pair), now],
        )
        found.update(((each.ns, each.key), each) for each in starmap(Stored, rows))
    for place, op in wanted:
        stored = found.get((pack(tuple(op.namespace)), op.key))
        if stored is not None:
            done.results[place] = Item(value=stored.value, **stored.place())
            done.note_read(stored, op.refresh_ttl)


def _together(keys: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Cut keys into parts of few different lengths, the last one filled up."""
    most = _TOGETHER[-1]
    for start in range(0, len(keys), most):
        some = keys[start : start + most]
        count = next(count for count in _TOGETHER if count >= len(some))
        yield [*some, *[some[-1]] * (count - len(some))]


# Searching


class _Search(NamedTuple):
    """One search."""

    op: SearchOp
    query: Vector | None
    now: int
    measuring: Measuring

    def found(self) -> Program[list[tuple[Stored, SearchItem]]]:
        """Return what was asked for."""
        ranked = yield from self._ranked()
        if not self.op.filter:
            return (yield from self._fetch(ranked))
        found: list[tuple[Stored, SearchItem]] = []
        wanted, place, size = self.op.offset + self.op.limit, 0, _PAGE_FIRST
        while place < len(ranked) and len(found) < wanted:
            found += yield from self._fetch(ranked[place : place + size])
            place, size = place + size, min(2 * size, _PAGE_MAX)
        return found[self.op.offset : wanted]

    def _fetch(self, ranked: Ranked) -> Program[list[tuple[Stored, SearchItem]]]:
        """Fetch items, and return those that the filter fits."""
        rows = yield from Query(
            f"SELECT {_ITEM} FROM towpath_items i"
            " WHERE i.id IN (SELECT value FROM json_each(?))",
            (json.dumps([id for id, _ in ranked]),),
        )
        by_id = {stored.id: stored for stored in starmap(Stored, rows)}
        found = []
        for id, score in ranked:
            stored = by_id.get(id)
            if stored is None:
                continue  # deleted by another transaction since it was ranked
            value = stored.value
            if fits(value, self.op.filter):
                item = SearchItem(value=value, score=score, **stored.place())
                found.append((stored, item))
        return found

    def _ranked(self) -> Program[Ranked]:
        """Return the numbers of items below the namespace, in order.

        Only those that were asked for, unless a filter has yet to choose.
        """
        below, args = _below(tuple(self.op.namespace_prefix))
        where, args = f"WHERE {below}{_ALIVE}", [*args, self.now]
        for wanted in facts_wanted(self.op.filter):
            where, args = f"{where} AND {_HAS_FACT}", [*args, *wanted]
        page, paging = "", []
        if not self.op.filter:
            asked = self.op.limit, self.op.offset
            page, paging = " LIMIT ? OFFSET ?", [min(n, _COUNT_MAX) for n in asked]
        if self.query is None:
            rows = yield from Query(
                f"SELECT i.id FROM towpath_items i {where} ORDER BY {_NEWEST}{page}",
                [*args, *paging],
            )
            return [(id, None) for (id,) in rows]
        if self.measuring.score is None:
            return (yield from self._compared(where, args))
        rows = yield from Query(
            f"SELECT i.id, max({self.measuring.score}) AS score {_VECTORS} {where}"
            " GROUP BY i.id, i.updated"
            f" ORDER BY score DESC NULLS LAST, {_NEWEST}{page}",
            [self.measuring.bind(self.query), len(self.query), *args, *paging],
        )
        return [(id, score) for id, score in rows]

    def _compared(self, where: str, args: list[Any]) -> Program[Ranked]:
        """Return all of them by their nearness to the query, found in Python."""
        assert self.query is not None
        rows = yield from Query(
            f"SELECT i.id, v.data {_VECTORS} {where} ORDER BY {_NEWEST}",
            [len(self.query), *args],
        )
        vectors: dict[int, list[Vector]] = {}
        for id, data in rows:
            own = vectors.setdefault(id, [])
            if data is not None:
                own.append(self.measuring.read(data))
        ids = [*vectors]
        found = nearest(self.measuring.measure, self.query, [*vectors.values()])
        ranked = [(ids[place], score) for place, score in found]
        if self.op.filter:
            return ranked
        return ranked[self.op.offset : self.op.offset + self.op.limit]


def _namespaces(op: ListNamespacesOp, now: int) -> Program[list[Namespace]]:
    below, args = _below(_literal_prefix(op))
    rows = yield from Query(
        f"SELECT DISTINCT i.ns FROM towpath_items i WHERE {below}{_ALIVE}",
        (*args, now),
    )
    return op.select(unpack(ns) for (ns,) in rows)


def _literal_prefix(op: ListNamespacesOp) -> Namespace:
    """Return the labels that every namespace asked for begins with."""
    paths = (
        each.path for each in op.match_conditions or () if each.match_type == "prefix"
    )
    known = (tuple(takewhile(lambda label: label != "*", path)) for path in paths)
    return max(known, key=len, default=())


# Putting


def put(puts: Sequence[Put], now: int, measuring: Measuring) -> Program[None]:
    """Put items in place of those that are there, and delete others."""
    # In one order for everybody: two batches cannot wait for each other.
    ordered = sorted(puts, key=lambda put: (pack(put.namespace), put.key))
    stamps = {id(put): now + place for place, put in enumerate(puts)}
    gone = [(pack(put.namespace), put.key) for put in ordered if put.cell is None]
    if gone:
        yield from _delete(gone)
    kept = [put for put in ordered if put.cell is not None]
    if not kept:
        return
    yield Query(_PUT, [_row(put, stamps[id(put)]) for put in kept], many=True)
    vectors = [row for put in kept for row in _vectors(put, measuring)]
    places = [(pack(put.namespace), put.key) for put in kept]
    yield from _forget_of(places)
    facts = [
        (*fact, *place)
        for put, place in zip(kept, places, strict=True)
        for fact in put.facts
    ]
    if facts:
        yield Query(_NOTE, facts, many=True)
    if vectors:
        yield Query(_KEEP, vectors, many=True)


_PUT: Final = (
    "INSERT INTO towpath_items"
    " (ns, key, tag, data, created, updated, lifetime, expires)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (ns, key) DO UPDATE SET"
    " tag = excluded.tag, data = excluded.data, updated = excluded.updated,"
    " lifetime = excluded.lifetime, expires = excluded.expires,"
    # What had expired is not there any more.
    " created = CASE WHEN towpath_items.expires <= excluded.updated"
    " THEN excluded.created ELSE towpath_items.created END"
)
_FORGET: Final = tuple(
    f"DELETE FROM towpath_{table}"
    " WHERE item IN (SELECT id FROM towpath_items WHERE ns = ? AND key = ?)"
    for table in ("facts", "vectors")
)
_NOTE: Final = (
    "INSERT INTO towpath_facts (fact, number, item)"
    " SELECT ?, ?, id FROM towpath_items WHERE ns = ? AND key = ?"
)
_KEEP: Final = (
    "INSERT INTO towpath_vectors (item, stamp, number, dims, data)"
    " SELECT id, updated, ?, ?, ? FROM towpath_items WHERE ns = ? AND key = ?"
)


def _row(put: Put, stamp: int) -> Row:
    assert put.cell is not None
    lifetime = None if put.lifetime_s is None else int(put.lifetime_s * 1_000_000)
    expires = None if lifetime is None else stamp + lifetime
    place = pack(put.namespace), put.key
    return (*place, *put.cell, stamp, stamp, lifetime, expires)


def _vectors(put: Put, measuring: Measuring) -> Iterator[Row]:
    for number, vector in enumerate(put.vectors):
        data = measuring.bind(vector)
        yield number, len(vector), data, pack(put.namespace), put.key


def _delete(places: Sequence[tuple[str, str]]) -> Program[None]:
    yield from _forget_of(places)
    yield Query("DELETE FROM towpath_items WHERE ns = ? AND key = ?", places, many=True)


def _forget_of(places: Sequence[tuple[str, str]]) -> Program[None]:
    """Forget what is known of items by their places."""
    for statement in _FORGET:
        yield Query(statement, places, many=True)


def _forget(items: Sequence[int]) -> Program[None]:
    """Forget what is known of items by their numbers."""
    for table in ("facts", "vectors") if items else ():
        yield Query(
            f"DELETE FROM towpath_{table}"
            " WHERE item IN (SELECT value FROM json_each(?))",
            (json.dumps(items),),
        )
