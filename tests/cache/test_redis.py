"""What a cache on Redis does beyond what every cache does."""

from __future__ import annotations

from contextlib import closing

import pytest

pytest.importorskip("redis")

import redis
import redis.asyncio

from towpath.cache.redis import RedisCache
from towpath.testing.conformance_cache import KEY, OTHER
from towpath.testing.redis_server import OwnServer
from towpath.testing.servers import NoServerError
from towpath.warnings import CacheWarning


@pytest.fixture
def client(redis_server):
    with closing(redis.Redis.from_url(redis_server.url)) as client:
        yield client


@pytest.fixture
def cache(client, redis_server):
    cache = RedisCache(client, prefix=redis_server.new_prefix())
    yield cache
    cache.clear()


def names(cache):
    return sorted(cache.redis.scan_iter(match=f"{cache.prefix}*"))


def test_the_server_forgets_what_has_had_its_time(cache):
    cache.set({KEY: (1, 60), OTHER: (2, None)})
    times = {cache.redis.ttl(name) for name in names(cache)}
    assert -1 in times
    assert any(50 < seconds <= 60 for seconds in times)


def test_caches_of_other_prefixes_are_left_alone(client, redis_server):
    prefix = redis_server.new_prefix()
    one, other = (
        RedisCache(client, prefix=f"{prefix}[a]"),
        RedisCache(client, prefix=prefix),
    )
    one.set({KEY: (1, None)})
    other.set({KEY: (2, None)})
    one.clear()
    assert {} == one.get([KEY])
    assert {KEY: 2} == other.get([KEY])
    other.clear()


def test_many_values_are_cleared(cache):
    cache.set({(("n",), str(number)): (number, None) for number in range(1200)})
    cache.clear([("n",)])
    assert [] == names(cache)


@pytest.mark.parametrize(
    "data", [b"", b":", b"pickle:cos\nsystem\n", b"tp1:\xc1", b"\xff"]
)
def test_hostile_bytes_are_a_miss(cache, data):
    cache.set({KEY: (1, None), OTHER: (2, None)})
    cache.redis.set(cache._name(KEY), data)
    with pytest.warns(CacheWarning, match="passed over"):
        assert {OTHER: 2} == cache.get([KEY, OTHER])


async def test_an_async_client_has_the_async_methods(redis_server):
    async with redis.asyncio.Redis.from_url(redis_server.url) as client:
        cache = RedisCache(client, prefix=redis_server.new_prefix())
        await cache.aset({KEY: ([1], 60), OTHER: (2, 0)})
        assert {KEY: [1]} == await cache.aget([KEY, OTHER])
        await cache.aset({(("n",), str(n)): (n, None) for n in range(1200)})
        await cache.aclear([("n",)])
        assert {KEY: [1]} == await cache.aget([KEY, (("n",), "7")])
        await cache.aclear()
        assert {} == await cache.aget([KEY])
        with pytest.raises(TypeError, match="aget"):
            cache.get([KEY])


def test_a_client_that_decodes_is_refused(redis_server):
    with closing(
        redis.Redis.from_url(redis_server.url, decode_responses=True)
    ) as client:
        with pytest.raises(ValueError, match="decode_responses"):
            RedisCache(client)


async def test_a_server_that_went_away_is_a_miss_and_told():
    try:
        with (
            OwnServer.opened() as server,
            closing(redis.Redis.from_url(server.url)) as client,
        ):
            cache = RedisCache(client)
            cache.set({KEY: (1, None)})
            server.stop()
            with pytest.warns(CacheWarning, match="could not be used"):
                assert {} == cache.get([KEY])
            with pytest.warns(CacheWarning, match="could not be used"):
                cache.set({KEY: (1, None)})
            with pytest.warns(CacheWarning, match="could not be used"):
                assert {} == await cache.aget([KEY])
            with pytest.warns(CacheWarning, match="could not be used"):
                await cache.aclear()
    except NoServerError as none:
        pytest.skip(str(none))
