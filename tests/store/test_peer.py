"""The same operations on the peer's store in memory and on ours."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import towpath.store.base as ours
from towpath.store.memory import InMemoryStore
from towpath.store.sqlite import SqliteStore

pytestmark = pytest.mark.differential

NAMESPACES = st.sampled_from([("a",), ("a", "b"), ("ab",), ("a", "b", "c"), ("z",)])
PREFIXES = st.sampled_from([(), ("a",), ("a", "b"), ("b",), ("z",)])
KEYS = st.sampled_from(["k", "l", "it's"])
SCALARS = st.sampled_from([0, 1, 2, 2.5, True, False, None, "x", "y"])
VALUES = st.dictionaries(
    st.sampled_from(["n", "m"]),
    SCALARS | st.dictionaries(st.just("d"), SCALARS, max_size=1),
    max_size=2,
)
# What Python cannot compare, the peer's stores decide each in its own way.
NUMBERS = st.sampled_from([0, 1, 2, 2.5])
WANTED = (
    SCALARS
    | st.builds(lambda op, x: {op: x}, st.sampled_from(["$eq", "$ne"]), SCALARS)
    | st.builds(lambda x: {"d": x}, SCALARS)
)
FILTERS = st.none() | st.dictionaries(st.sampled_from(["n", "m"]), WANTED, max_size=2)
OPERATIONS = st.lists(
    st.tuples(st.just("put"), NAMESPACES, KEYS, VALUES)
    | st.tuples(st.just("delete"), NAMESPACES, KEYS)
    | st.tuples(st.just("get"), NAMESPACES, KEYS)
    | st.tuples(
        st.just("search"), PREFIXES, FILTERS, st.integers(0, 4), st.integers(0, 3)
    )
    | st.tuples(st.just("list"), PREFIXES, st.none() | st.integers(1, 3))
    | st.tuples(st.just("batch"), NAMESPACES, KEYS, VALUES),
    max_size=25,
)


def seen(store, lib, operation, *, ordered):
    """Return what a caller sees of one operation."""
    what, namespace, *rest = operation
    if what == "put":
        return store.put(namespace, *rest)
    if what == "delete":
        return store.delete(namespace, *rest)
    if what == "get":
        item = store.get(namespace, *rest)
        return item and (item.namespace, item.key, item.value)
    if what == "search":
        wanted, limit, offset = rest
        page = store.search(namespace, filter=wanted, limit=limit, offset=offset)
        found = store.search(namespace, filter=wanted, limit=1000)
        facts = [(item.namespace, item.key, item.value) for item in found]
        # The peer remembers the places of namespaces that hold nothing any more.
        facts.sort(key=(lambda fact: fact[0]) if ordered else repr)
        return facts, len(page)
    if what == "list":
        [depth] = rest
        listed = store.list_namespaces(prefix=namespace or None, max_depth=depth)
        return inhabited(store, listed, depth)
    key, value = rest
    *results, listed = store.batch(
        [
            lib.PutOp(namespace, key, value),
            lib.GetOp(namespace, key),
            lib.PutOp(namespace, key, {"last": value}),
            lib.ListNamespacesOp(),
        ]
    )
    found = [item.value if hasattr(item, "value") else item for item in results]
    return found, inhabited(store, listed)


def inhabited(store, namespaces, depth=None):
    """Leave out namespaces that hold nothing: the peer goes on listing them."""
    used = {item.namespace[:depth] for item in store.search((), limit=1000)}
    return [namespace for namespace in namespaces if namespace in used]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(operations=OPERATIONS)
def test_a_store_answers_as_the_peer_s_in_memory_does(kind, operations):
    import langgraph.store.base as theirs
    from langgraph.store.memory import InMemoryStore as Peer

    ordered = kind == "memory"
    peer = Peer()
    with nullcontext(InMemoryStore()) if ordered else SqliteStore(":memory:") as store:
        for operation in operations:
            expected = seen(peer, theirs, operation, ordered=ordered)
            assert expected == seen(store, ours, operation, ordered=ordered), operation
