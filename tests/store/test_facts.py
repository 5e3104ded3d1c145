"""An index that narrows a search down leaves nothing out."""

from __future__ import annotations

import enum
import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towpath.store.base import PutOp
from towpath.store.base.ops import fits
from towpath.store.facts import facts_of, facts_wanted
from towpath.store.sqlite import SqliteStore


class Colour(str, enum.Enum):
    RED = "red"


KEYS = st.sampled_from(["a", "b", "", "1:a"])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.0, -0.0, 1.0, 2.5, 2**61, float(2**61), float("nan")])
    | st.sampled_from([10**400, -(10**400), 2**53 + 1, float("inf")])
    | st.sampled_from(["", "red", "1", " 2.5 ", "nan", "1e999", "s"])
    | st.sampled_from([Decimal(1), Decimal("2.5"), Colour.RED, 1 + 0j, b"red"])
)
VALUES = st.dictionaries(
    KEYS, SCALARS | st.lists(SCALARS, max_size=2) | st.dictionaries(KEYS, SCALARS)
)
OPERATORS = st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"])
WANTED = SCALARS | st.dictionaries(OPERATORS, SCALARS, min_size=1, max_size=2)
FILTERS = st.dictionaries(KEYS, WANTED, max_size=2)


@given(value=VALUES, filter=FILTERS)
def test_what_a_filter_fits_has_the_facts_that_are_wanted(value, filter):
    if fits(value, filter):
        assert are_known(value, filter)


def are_known(value, filter):
    facts = facts_of(value)
    return all(any(map(each.holds, facts)) for each in facts_wanted(filter))


@pytest.mark.parametrize(
    "value",
    [{f"key {n}": n for n in range(100)}, {"key 3": 3, 5: "no text"}],
    ids=["many keys", "keys of other kinds"],
)
def test_values_that_facts_do_not_cover_are_found(value):
    assert are_known(value, {"key 3": 3})


def test_a_search_for_few_items_looks_at_few():
    with SqliteStore(":memory:") as store:
        store.batch([PutOp(("a",), str(n), {"n": n, "kind": "x"}) for n in range(500)])
        seen = []
        store.conn.set_trace_callback(seen.append)
        [found] = store.search((), filter={"n": 7, "kind": "x"})
        assert {"n": 7, "kind": "x"} == found.value
        [fetched] = [text for text in seen if "i.data" in text]
        assert re.search(r"'\[\d+\]'", fetched), "only that one was decoded"


def test_a_range_is_looked_up_too():
    with SqliteStore(":memory:") as store:
        store.batch([PutOp(("a",), str(n), {"n": n - 50}) for n in range(500)])
        seen = []
        store.conn.set_trace_callback(seen.append)
        found = store.search((), filter={"n": {"$gt": -3, "$lte": 2}})
        assert [2, 1, 0, -1, -2] == [item.value["n"] for item in found]
        [fetched] = [text for text in seen if "i.data" in text]
        assert fetched.count(",") < 7 + 7, "few more than those were decoded"


def test_facts_go_with_their_items():
    with SqliteStore(":memory:") as store:
        store.put(("a",), "k", {"n": 1, "m": 1})
        store.put(("a",), "k", {"n": 2})
        store.put(("a",), "gone", {"n": 2})
        store.delete(("a",), "gone")
        store.put(("a",), "expired", {"n": 2}, ttl=1e-9)
        store.sweep_ttl()
        assert [] == store.search((), filter={"n": 1})
        assert [(1,)] == store.conn.execute(
            "SELECT count(*) FROM towpath_facts"
        ).fetchall()
