"""A store in a file reaches the nodes, in both colours."""

from __future__ import annotations

import asyncio
from typing import TypedDict

import pytest

from towpath import START, StateGraph, get_store
from towpath.runtime import Runtime
from towpath.store.base import BaseStore
from towpath.store.sqlite import AsyncSqliteStore, SqliteStore
from towpath.testing.conformance_store import INDEX


class State(TypedDict, total=False):
    text: str
    found: list[str]


def remember(state: State, *, store: BaseStore) -> State:
    store.put(("notes",), state["text"], {"t": state["text"]})
    return {}


def recall(state: State, runtime: Runtime) -> State:
    found = runtime.store.search(("notes",), query=state["text"])
    return {"found": [item.key for item in found]}


async def aremember(state: State) -> State:
    await get_store().aput(("notes",), state["text"], {"t": state["text"]})
    return {}


async def arecall(state: State, runtime: Runtime) -> State:
    found = await runtime.store.asearch(("notes",), query=state["text"])
    return {"found": [item.key for item in found]}


def graph(store, first, second):
    builder = StateGraph(State)
    builder.add_node("first", first)
    builder.add_node("second", second)
    builder.add_edge(START, "first")
    builder.add_edge("first", "second")
    return builder.compile(store=store)


def test_blocking_nodes_keep_and_find_notes(tmp_path):
    with SqliteStore(str(tmp_path / "s.db"), index=INDEX) as store:
        app = graph(store, remember, recall)
        app.invoke({"text": "aab"})
        assert ["ab", "aab"] == app.invoke({"text": "ab"})["found"]


async def test_async_nodes_keep_and_find_notes(tmp_path):
    async with AsyncSqliteStore(str(tmp_path / "s.db"), index=INDEX) as store:
        app = graph(store, aremember, arecall)
        await asyncio.gather(*(app.ainvoke({"text": "a" * n + "b"}) for n in range(9)))
        found = (await app.ainvoke({"text": "ab"}))["found"]
        assert "ab" == found[0]
        assert 9 == len(found)


@pytest.mark.parametrize("first", [remember, aremember])
async def test_an_async_run_may_have_nodes_of_either_colour(tmp_path, first):
    async with AsyncSqliteStore(str(tmp_path / "s.db"), index=INDEX) as store:
        app = graph(store, first, recall)
        assert ["ab"] == (await app.ainvoke({"text": "ab"}))["found"]
