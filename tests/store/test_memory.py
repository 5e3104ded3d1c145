"""The store in memory, and what every store owes."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from towpath.errors import SerializationError
from towpath.store.base import (
    BaseStore,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchItem,
    validate_op_namespace,
)
from towpath.store.memory import InMemoryStore


@pytest.fixture
def store():
    return InMemoryStore()


def keys(found):
    return [item.key for item in found]


def test_values_keep_their_types_and_pages_their_sense(store):
    store.put(("a",), "k", {"x": (1, {2})})
    assert {"x": (1, {2})} == store.get(("a",), "k").value
    with pytest.raises(ValueError, match="negative"):
        store.search(("a",), limit=-1)


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


def test_what_is_no_operation_is_refused(store):
    with pytest.raises(ValueError, match="Unknown operation"):
        store.batch(["nonsense"])
    with pytest.raises(ValueError, match="match type"):
        store.put(("a",), "k", {})
        store.batch([ListNamespacesOp((MatchCondition("middle", ("a",)),))])


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


def test_expired_items_are_thrown_away(clock):
    store = InMemoryStore()
    for number in range(100):
        store.put(("old", str(number)), "k", {}, ttl=1)
    clock[0] += 100
    for number in range(300):
        store.put(("new",), str(number), {})
    assert [("new",)] == store.list_namespaces()
    assert 0 == store.sweep_ttl(), "nothing was left to throw away"


def test_sweeping_throws_away_what_has_expired(clock):
    store = InMemoryStore()
    store.put(("a",), "short", {}, ttl=1)
    store.put(("a",), "long", {}, ttl=10)
    clock[0] += 100
    assert [1, 0] == [store.sweep_ttl(), store.sweep_ttl()]
    assert ["long"] == keys(store.search(("a",)))


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


def test_texts_and_queries_may_be_embedded_differently():
    class Model:
        def embed_documents(self, texts):
            return [[1.0, 0.0] if text == "doc" else [0.0, 1.0] for text in texts]

        def embed_query(self, text):
            return [1.0, 0.0]

        async def aembed_documents(self, texts):
            return self.embed_documents(texts)

        async def aembed_query(self, text):
            return self.embed_query(text)

    store = InMemoryStore(index={"dims": 2, "embed": Model(), "fields": ["t"]})
    store.put(("d",), "other", {"t": "what"})
    store.put(("d",), "right", {"t": "doc"})
    assert ["right", "other"] == keys(store.search(("d",), query="what"))


def test_vectors_of_another_length_are_an_error():
    store = InMemoryStore(index={"dims": 3, "embed": embed})
    with pytest.raises(ValueError, match="2 dimensions.*dims=3"):
        store.put(("d",), "k", {"x": "a"})


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
