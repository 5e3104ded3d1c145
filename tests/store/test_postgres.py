"""What a store in Postgres does beyond what every store does."""

from __future__ import annotations

import asyncio
import threading

import pytest

pytest.importorskip("psycopg")

import psycopg
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from towpath.errors import PersistenceError
from towpath.store.base import PutOp
from towpath.store.postgres import AsyncPostgresStore, PostgresStore
from towpath.testing.conformance_store import INDEX


def test_items_are_there_for_the_next_process(postgres):
    with PostgresStore(postgres, index=INDEX) as store:
        store.put(("a",), "k", {"x": (1, {2}), "t": "a"})
    with PostgresStore.from_conn_string(postgres, index=INDEX) as store:
        [item] = store.search((), query="a")
        assert {"x": (1, {2}), "t": "a"} == item.value


def test_pgvector_compares_where_it_is_there(postgres):
    with PostgresStore(postgres, index=INDEX) as store:
        with psycopg.connect(postgres) as connection:
            there = connection.execute(
                "SELECT 1 FROM pg_extension WHERE extname = 'vector'"
            ).fetchall()
        assert bool(there) == (store._measuring.score is not None)


@pytest.mark.parametrize("distance", ["l2", "inner_product"])
def test_distances_mean_the_same_with_and_without_pgvector(postgres, distance):
    with PostgresStore(postgres, index={**INDEX, "distance_type": distance}) as store:
        store.batch([PutOp(("d",), str(n), {"t": "a" * n + "b"}) for n in range(9)])
        found = store.search((), query="aab", limit=20)
        by_extension = [(item.key, pytest.approx(item.score)) for item in found]
        store._schema = None
        found = store.search((), query="aab", limit=20)
        assert by_extension == [(item.key, item.score) for item in found]
        assert ("2" if distance == "l2" else "8") == found[0].key


def test_an_unknown_distance_is_refused():
    with pytest.raises(ValueError, match="manhattan"):
        PostgresStore("dbname=x", index={**INDEX, "distance_type": "manhattan"})


def test_batches_of_the_same_keys_do_not_block_each_other(postgres):
    with PostgresStore(postgres, index=INDEX) as store:
        store.setup()

        def work(order):
            for _ in range(10):
                puts = [
                    PutOp(("a",), str(n), {"t": "a", "by": order}) for n in range(20)
                ]
                store.batch(puts[::order])

        threads = [
            threading.Thread(target=work, args=(step,)) for step in (1, -1, 1, -1)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert 20 == len(store.search((), limit=100))
        with psycopg.connect(postgres) as connection:
            [(count,)] = connection.execute("SELECT count(*) FROM towpath_vectors")
        assert 20 == count, "each item has the vector of its newest text only"


async def test_pools_of_the_caller_s_serve_both_colours(postgres):
    async with AsyncConnectionPool(postgres, open=False) as pool:
        store = AsyncPostgresStore(pool)
        await store.setup()
        await asyncio.gather(*(store.aput(("a",), str(n), {"n": n}) for n in range(20)))
        assert 20 == len(await store.asearch(("a",), limit=50))
        await store.aclose()
    with ConnectionPool(postgres, open=True) as pool:
        store = PostgresStore(pool)
        assert 20 == len(await asyncio.to_thread(store.search, ("a",), limit=50))


async def test_the_async_store_reads_as_the_peer_s(postgres):
    pool = {"min_size": 1, "max_size": 3}
    opened = AsyncPostgresStore.from_conn_string(postgres, pool_config=pool)
    async with opened as store:
        await store.setup()
        await store.aput(("a",), "k", {"x": 1}, ttl=1e-9)
        assert 1 == await store.sweep_ttl()
        task = await store.start_ttl_sweeper(60)
    assert task.done()


def test_a_server_that_is_not_there_is_an_error():
    with pytest.raises(PersistenceError, match="Postgres"):
        PostgresStore("host=127.0.0.1 port=1 dbname=x").get(("a",), "k")


def test_a_lost_connection_is_replaced(postgres, postgres_server):
    with PostgresStore(postgres) as store:
        store.put(("a",), "k", {"x": 1})
        postgres_server.end_sessions(postgres)
        assert {"x": 1} == store.get(("a",), "k").value
