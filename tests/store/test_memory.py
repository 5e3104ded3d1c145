"""The store in memory, and what every store owes."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from towpath.errors import SerializationError
from towpath.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchItem,
    SearchOp,
    validate_op_namespace,
)
from towpath.store.memory import InMemoryStore
from towpath.testing.conformance_saver import HOSTILE


@pytest.fixture
def store():
    return InMemoryStore()


def keys(found):
    return [item.key for item in found]


def test_an_item_comes_back_as_it_was_put(store):
    store.put(("a",), "k", {"x": (1, {2})})
    item = store.get(("a",), "k")
    assert {"x": (1, {2})} == item.value
    assert ("k", ("a",)) == (item.key, item.namespace)
    assert store.get(("a",), "other") is None
    assert store.get(("b",), "k") is None


def test_an_item_put_again_keeps_when_it_was_made(store):
    store.put(("a",), "k", {"x": 1})
    first = store.get(("a",), "k")
    store.put(("a",), "k", {"x": 2})
    second = store.get(("a",), "k")
    assert first.created_at == second.created_at
    assert first.updated_at < second.updated_at
    assert {"x": 2} == second.value


def test_a_deleted_item_is_gone(store):
    store.put(("a",), "k", {"x": 1})
    store.delete(("a",), "k")
    store.delete(("a",), "never there")
    assert store.get(("a",), "k") is None
    assert [] == store.list_namespaces()


def test_values_are_apart_from_their_makers_and_readers(store):
    value = {"x": [1]}
    store.put(("a",), "k", value)
    value["x"].append(2)
    store.get(("a",), "k").value["x"].append(3)
    store.search(("a",))[0].value["x"].append(4)
    assert {"x": [1]} == store.get(("a",), "k").value


def test_a_value_without_stored_form_is_refused(store):
    with pytest.raises(SerializationError):
        store.put(("a",), "k", {"lock": threading.Lock()})
    with pytest.raises(ValueError, match="dict"):
        store.put(("a",), "k", "text")


@pytest.mark.parametrize(
    ("namespace", "why"),
    [
        ((), "empty"),
        (("",), "empty"),
        (("a.b",), "period"),
        (("a", 1), "strings"),
        (("langgraph", "x"), "Root"),
        ("abc", "tuple"),
    ],
)
def test_a_bad_namespace_is_refused(store, namespace, why):
    with pytest.raises(InvalidNamespaceError, match=why):
        store.put(namespace, "k", {})
    with pytest.raises(InvalidNamespaceError, match=why):
        validate_op_namespace(PutOp(namespace, "k", {}))


def test_a_prefix_is_compared_label_by_label(store):
    for namespace in (("acme",), ("acme", "eu"), ("acme-corp",), ("acm",)):
        store.put(namespace, "k", {})
    assert {("acme",), ("acme", "eu")} == {i.namespace for i in store.search(("acme",))}
    assert [] == store.search(("ac_e",))


def test_hostile_names_are_names_like_any_other(store):
    for name in HOSTILE:
        store.put((name.replace(".", "·"),), name, {name: name})
    for name in HOSTILE:
        [found] = store.search((name.replace(".", "·"),), filter={name: name})
        assert name == found.key
        assert 1 == len(store.search((), filter={name: name}, limit=1000))


def test_a_search_is_cut_into_pages(store):
    for number in range(25):
        store.put(("a", str(number % 2)), f"k{number}", {"n": number})
    assert 10 == len(store.search(("a",)))
    whole = keys(store.search(("a",), limit=100))
    assert whole[5:9] == keys(store.search(("a",), limit=4, offset=5))
    assert [] == store.search(("a",), limit=0)
    with pytest.raises(ValueError, match="negative"):
        store.search(("a",), limit=-1)


FILTERS = [
    ({}, "abcd"),
    ({"n": 2}, "b"),
    ({"n": {"$gt": 1, "$lte": 3}}, "bc"),
    ({"n": {"$ne": 1}}, "bcd"),
    ({"n": {"$eq": 3}}, "c"),
    ({"n": {"$gte": "2"}}, "bc"),
    ({"text": {"$lt": "y"}}, "a"),
    ({"text": {"$gt": 1}}, ""),
    ({"deep": {"x": 1}}, "a"),
    ({"deep": {"x": {"$gt": 1}}}, "b"),
    ({"list": [1, 2]}, "a"),
    ({"list": [1]}, ""),
    ({"missing": None}, "d"),
    ({"missing": {"$ne": 1}}, "abcd"),
    ({"deep": {}}, ""),
    ({"n": 1, "text": "x"}, "a"),
]


@pytest.mark.parametrize(("filter", "expected"), FILTERS, ids=repr)
def test_a_filter_says_what_is_found(store, filter, expected):
    store.put(("f",), "a", {"n": 1, "text": "x", "deep": {"x": 1}, "list": [1, 2]})
    store.put(("f",), "b", {"n": 2, "text": "y", "deep": {"x": 2}})
    store.put(("f",), "c", {"n": 3, "text": "z"})
    store.put(("f",), "d", {"missing": None})
    assert [*expected] == keys(store.search(("f",), filter=filter))


def test_an_unknown_operator_is_an_error(store):
    store.put(("f",), "a", {"n": 1})
    with pytest.raises(ValueError, match=r"\$regex"):
        store.search(("f",), filter={"n": {"$regex": "x"}})


NAMESPACES = [("a", "b", "c"), ("a", "b", "d"), ("a", "x"), ("ab",), ("b", "c")]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, NAMESPACES),
        ({"prefix": ("a",)}, NAMESPACES[:3]),
        ({"suffix": ("c",)}, [NAMESPACES[0], NAMESPACES[4]]),
        ({"prefix": ("a", "*", "c")}, NAMESPACES[:1]),
        ({"prefix": ("*", "c")}, NAMESPACES[4:]),
        ({"prefix": ("a",), "suffix": ("d",)}, NAMESPACES[1:2]),
        ({"max_depth": 1}, [("a",), ("ab",), ("b",)]),
        ({"max_depth": 2, "prefix": ("a",)}, [("a", "b"), ("a", "x")]),
        ({"limit": 2, "offset": 1}, NAMESPACES[1:3]),
        ({"prefix": ("a", "b", "c", "d")}, []),
    ],
    ids=repr,
)
def test_namespaces_are_listed(store, query, expected):
    for namespace in NAMESPACES:
        store.put(namespace, "k", {})
    assert expected == store.list_namespaces(**query)


def test_reads_of_a_batch_see_what_was_there_before_it(store):
    condition = MatchCondition("prefix", ("z",))
    results = store.batch(
        [
            PutOp(("z",), "k", {"a": 1}),
            GetOp(("z",), "k"),
            PutOp(("z",), "k", {"a": 2}),
            SearchOp(("z",)),
            ListNamespacesOp((condition,)),
        ]
    )
    assert [None, None, None, [], [("z",)]] == results
    assert {"a": 2} == store.get(("z",), "k").value


def test_what_is_no_operation_is_refused(store):
    with pytest.raises(ValueError, match="Unknown operation"):
        store.batch(["nonsense"])
    with pytest.raises(ValueError, match="match type"):
        store.put(("a",), "k", {})
        store.batch([ListNamespacesOp((MatchCondition("middle", ("a",)),))])


async def test_the_async_methods_do_the_same(store):
    await store.aput(("a",), "k", {"x": 1})
    assert {"x": 1} == (await store.aget(("a",), "k")).value
    assert ["k"] == keys(await store.asearch(("a",)))
    assert [("a",)] == await store.alist_namespaces()
    await store.adelete(("a",), "k")
    assert await store.aget(("a",), "k") is None


# Lifetimes


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_an_item_expires(clock):
    store = InMemoryStore(ttl={"default_ttl": 10, "refresh_on_read": False})
    store.put(("a",), "default", {})
    store.put(("a",), "short", {}, ttl=1)
    store.put(("a",), "for good", {}, ttl=None)
    clock[0] += 90
    assert ["default", "for good"] == keys(store.search(("a",)))
    clock[0] += 600
    assert ["for good"] == keys(store.search(("a",)))
    assert store.get(("a",), "default") is None


def test_reading_prolongs_the_life_of_an_item(clock):
    store = InMemoryStore()
    store.put(("a",), "k", {}, ttl=1)
    for _ in range(3):
        clock[0] += 50
        assert store.get(("a",), "k") is not None
    for _ in range(3):
        clock[0] += 50
        assert 1 == len(store.search(("a",)))
    clock[0] += 50
    assert store.get(("a",), "k", refresh_ttl=False) is not None
    clock[0] += 50
    assert store.get(("a",), "k") is None


def test_expired_items_are_thrown_away(clock):
    store = InMemoryStore()
    for number in range(100):
        store.put(("old", str(number)), "k", {}, ttl=1)
    clock[0] += 100
    for number in range(300):
        store.put(("new",), str(number), {})
    assert [("new",)] == store.list_namespaces()


def test_a_store_that_knows_no_lifetimes_says_so():
    class Plain(BaseStore):
        def batch(self, ops):
            return [None for _ in ops]

        async def abatch(self, ops):
            return [None for _ in ops]

    with pytest.raises(NotImplementedError, match="TTL is not supported by Plain"):
        Plain().put(("a",), "k", {}, ttl=1)


# Searching by meaning


def embed(texts):
    return [[float(text.count("a")), float(text.count("b"))] for text in texts]


async def aembed(texts):
    await asyncio.sleep(0)
    return embed(texts)


def test_the_nearest_items_come_first():
    store = InMemoryStore(
        index={"dims": 2, "embed": embed, "fields": ["text", "more[*]"]}
    )
    store.put(("d",), "b", {"text": "bbb"})
    store.put(("d",), "a", {"text": "aa"})
    store.put(("d",), "both", {"text": "b", "more": ["x", "a"]})
    store.put(("d",), "hidden", {"text": "aaa"}, index=False)
    store.put(("d",), "other", {"title": "ab"}, index=["title"])
    found = store.search(("d",), query="aaaa")
    assert ["a", "both", "other", "b", "hidden"] == keys(found)
    assert [1.0, 1.0, pytest.approx(0.7071, abs=1e-4), 0.0, None] == [
        i.score for i in found
    ]
    assert ["both", "other"] == keys(store.search(("d",), query="a", limit=2, offset=1))
    assert [None] * 5 == [item.score for item in store.search(("d",))]


async def test_an_async_embedding_serves_the_async_methods():
    store = InMemoryStore(index={"dims": 2, "embed": aembed})
    await store.aput(("d",), "a", {"x": "aaa"})
    await store.aput(("d",), "b", {"x": "bbb"})
    assert ["b", "a"] == keys(await store.asearch(("d",), query="b"))
    with pytest.raises(ValueError, match="async"):
        store.search(("d",), query="b")


def test_a_text_is_embedded_once_per_batch():
    asked = []

    def counting(texts):
        asked.append(list(texts))
        return embed(texts)

    store = InMemoryStore(index={"dims": 2, "embed": counting, "fields": ["t"]})
    store.batch([PutOp(("d",), str(n), {"t": "same"}) for n in range(3)])
    assert [["same"]] == asked


def test_without_an_index_a_query_changes_nothing(store):
    store.put(("d",), "k", {"x": 1})
    [found] = store.search(("d",), query="anything")
    assert found.score is None


# Items


def test_an_item_reads_as_json_has_it():
    item = Item(
        value={"x": 1},
        key="k",
        namespace=["a", "b"],
        created_at="2024-01-01T00:00:00+00:00",
        updated_at="2024-01-02T00:00:00+00:00",
    )
    assert ("a", "b") == item.namespace
    assert item == Item(**item.dict())
    assert hash(item) == hash(Item(**item.dict()))
    found = SearchItem(
        item.namespace, "k", {"x": 1}, item.created_at, item.updated_at, 0.5
    )
    assert 0.5 == found.dict()["score"]
    assert repr(found).startswith("Item(namespace=['a', 'b'], key='k', value={'x': 1}")


def test_threads_share_a_store(store):
    def work(name):
        for number in range(200):
            store.put((name,), str(number), {"n": number})
            store.search((name,), limit=1)

    threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1200 == len(store.search((), limit=10_000))
