"""Every cache of ours passes the suite for caches; and what is each one's own."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing, contextmanager

import pytest

from towpath.cache.memory import InMemoryCache
from towpath.cache.sqlite import SqliteCache
from towpath.testing.conformance_cache import KEY, CacheConformance
from towpath.warnings import CacheWarning


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "time", lambda: now[0])
    return now


class WithClock(CacheConformance):
    """A suite for which time passes at its word."""

    @pytest.fixture(autouse=True)
    def passing(self, monkeypatch):
        ahead = [0]
        wall, steady = time.time, time.monotonic
        monkeypatch.setattr(time, "time", lambda: wall() + ahead[0])
        monkeypatch.setattr(time, "monotonic", lambda: steady() + ahead[0])

        def pass_time(seconds):
            ahead[0] += seconds

        self.pass_time = pass_time


class TestInMemoryCache(WithClock):
    @contextmanager
    def open(self):
        yield InMemoryCache()


class TestSqliteCache(WithClock):
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path):
        self.path = str(tmp_path / "cache.db")

    def open(self):
        return SqliteCache(path=self.path)


class TestRedisCache(CacheConformance):
    @pytest.fixture(autouse=True)
    def server(self, redis_server):
        self.client = client_of(redis_server)
        self.prefix = redis_server.new_prefix()
        yield
        self.client.close()

    def pass_time(self, seconds):
        """Move the times at which the server forgets."""
        for name in self.client.scan_iter(match=f"{self.prefix}*"):
            left_ms = self.client.pttl(name)
            if left_ms >= 0:
                self.client.pexpire(name, max(left_ms - seconds * 1000, 0))

    @contextmanager
    def open(self):
        from towpath.cache.redis import RedisCache

        cache = RedisCache(self.client, prefix=self.prefix)
        yield cache
        cache.clear()


def client_of(server, **options):
    import redis

    return redis.Redis.from_url(server.url, **options)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_expired_values_are_thrown_away(kind, tmp_path, clock):
    with closing(SqliteCache(path=str(tmp_path / "cache.db"))) as file:
        cache = InMemoryCache() if kind == "memory" else file
        for number in range(100):
            cache.set({(("old", str(number)), "k"): (number, 1)})
        clock[0] += 10
        for number in range(300):
            cache.set({(("new",), str(number)): (number, None)})
        if kind == "memory":
            assert [("new",)] == [*cache._kept]
        else:
            count = "SELECT count(*) FROM towpath_cache"
            assert (300,) == cache._connections.writer.execute(count).fetchone()


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
        with pytest.warns(CacheWarning, match="pickle"):
            assert {} == cache.get([KEY])
