"""Async operations that travel together."""

from __future__ import annotations

import asyncio

import pytest

from towpath.store.base.batch import AsyncBatchedBaseStore
from towpath.store.memory import InMemoryStore


class Remote(AsyncBatchedBaseStore):
    """A store that counts its round trips."""

    def __init__(self):
        super().__init__()
        self.inner = InMemoryStore()
        self.trips = []

    async def abatch(self, ops):
        ops = list(ops)
        self.trips.append(len(ops))
        await asyncio.sleep(0)
        if any(getattr(op, "key", "") == "broken" for op in ops):
            raise ConnectionError("gone")
        return self.inner.batch(ops)


async def test_what_is_asked_for_together_travels_together():
    store = Remote()
    await asyncio.gather(*(store.aput(("a",), str(n), {"n": n}) for n in range(50)))
    assert [50] == store.trips
    found = await asyncio.gather(*(store.aget(("a",), str(n)) for n in range(50)))
    assert [*range(50)] == [item.value["n"] for item in found]
    assert [50, 50] == store.trips


async def test_an_error_reaches_those_who_asked_and_nobody_else():
    store = Remote()
    with pytest.raises(ConnectionError):
        await store.aput(("a",), "broken", {})
    await store.aput(("a",), "k", {"x": 1})
    assert {"x": 1} == (await store.aget(("a",), "k")).value


async def test_one_who_gave_up_does_not_hold_up_the_others():
    store = Remote()
    gone = asyncio.ensure_future(store.aget(("a",), "k"))
    await asyncio.sleep(0)
    gone.cancel()
    assert await store.aget(("a",), "k") is None


async def test_blocking_calls_are_for_other_threads():
    store = Remote()
    with pytest.raises(asyncio.InvalidStateError, match="aget"):
        store.get(("a",), "k")
    await asyncio.to_thread(store.put, ("a",), "k", {"x": 1})
    assert {"x": 1} == (await asyncio.to_thread(store.get, ("a",), "k")).value
