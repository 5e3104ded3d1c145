"""What every cache of ours does."""

from __future__ import annotations

import sqlite3
import threading
import time

import pytest

from towpath.cache.memory import InMemoryCache
from towpath.cache.sqlite import SqliteCache
from towpath.errors import DeserializationError, SerializationError
from towpath.testing.conformance_saver import HOSTILE


@pytest.fixture(params=["memory", "sqlite"])
def cache(request, tmp_path):
    if request.param == "memory":
        yield InMemoryCache()
        return
    with SqliteCache(path=str(tmp_path / "cache.db")) as opened:
        yield opened


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "time", lambda: now[0])
    return now


KEY = (("node", "v1"), "k")


def test_a_value_comes_back_with_its_type(cache):
    cache.set({KEY: ([("channel", (1, {2}))], None)})
    assert {KEY: [("channel", (1, {2}))]} == cache.get([KEY, (("node", "v1"), "other")])
    assert {} == cache.get([])


def test_none_is_a_value(cache):
    cache.set({KEY: (None, None)})
    assert {KEY: None} == cache.get([KEY])


def test_a_value_is_replaced(cache):
    cache.set({KEY: (1, None)})
    cache.set({KEY: (2, None)})
    assert {KEY: 2} == cache.get([KEY])


def test_a_value_expires(cache, clock):
    other = (("node", "v1"), "for good")
    cache.set({KEY: (1, 10), other: (2, None), (("n",), "never"): (3, 0)})
    clock[0] += 9
    assert {KEY: 1, other: 2} == cache.get([KEY, other, (("n",), "never")])
    clock[0] += 2
    assert {other: 2} == cache.get([KEY, other])


def test_expired_values_are_thrown_away(cache, clock):
    for number in range(100):
        cache.set({(("old", str(number)), "k"): (number, 1)})
    clock[0] += 10
    for number in range(300):
        cache.set({(("new",), str(number)): (number, None)})
    if isinstance(cache, InMemoryCache):
        assert [("new",)] == [*cache._kept]
    else:
        count = "SELECT count(*) FROM towpath_cache"
        assert (300,) == cache._connections.writer.execute(count).fetchone()


def test_a_namespace_is_cleared_and_no_other(cache):
    keys = [
        ((label,) if label != "ab" else ("a", "b"), "k") for label in ("a", "ab", "abc")
    ]
    cache.set(dict.fromkeys(keys, (1, None)))
    cache.clear([("a",)])
    assert [*keys[1:]] == [*cache.get(keys)]
    cache.clear([])
    assert 2 == len(cache.get(keys))
    cache.clear()
    assert {} == cache.get(keys)


def test_hostile_names_are_names_like_any_other(cache):
    keys = [((name, "x"), name) for name in HOSTILE]
    cache.set({key: (key[1], None) for key in keys})
    assert {key: key[1] for key in keys} == cache.get(keys)
    # Joined by any separator, these two would be one.
    one, two = (("a", "b,c"), "k"), (("a,b", "c"), "k")
    cache.set({one: (1, None), two: (2, None)})
    assert {one: 1, two: 2} == cache.get([one, two])


def test_values_are_apart_from_their_makers_and_readers(cache):
    value = [1]
    cache.set({KEY: (value, None)})
    value.append(2)
    cache.get([KEY])[KEY].append(3)
    assert {KEY: [1]} == cache.get([KEY])


def test_a_value_without_stored_form_is_refused(cache):
    with pytest.raises(SerializationError):
        cache.set({KEY: (threading.Lock(), None)})


async def test_the_async_methods_do_the_same(cache):
    await cache.aset({KEY: ({"x": 1}, None)})
    assert {KEY: {"x": 1}} == await cache.aget([KEY])
    await cache.aclear([KEY[0]])
    assert {} == await cache.aget([KEY])
    await cache.aclear()


def test_processes_share_a_file(tmp_path):
    path = str(tmp_path / "cache.db")
    with SqliteCache(path=path) as one, SqliteCache(path=path) as other:
        one.set({KEY: (1, None)})
        assert {KEY: 1} == other.get([KEY])


def test_a_pickle_put_in_the_file_is_not_loaded(tmp_path):
    path = str(tmp_path / "cache.db")
    with SqliteCache(path=path) as cache:
        cache.set({KEY: (1, None)})
        connection = sqlite3.connect(path)
        with connection:
            connection.execute("UPDATE towpath_cache SET tag = 'pickle', data = x'80'")
        connection.close()
        with pytest.raises(DeserializationError):
            cache.get([KEY])
