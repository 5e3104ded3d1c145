"""A blocking run in the thread of an event loop, inside of a run of that loop.

What the outer run stores behind itself cannot be awaited there, and the loop would
do nothing until the inner one has ended.
"""

from __future__ import annotations

import operator
from contextlib import closing
from typing import Annotated, TypedDict

import pytest

from towpath import START, InMemorySaver, StateGraph
from towpath.checkpoint.base.lease import Lease
from towpath.checkpoint.sqlite import SqliteSaver
from towpath.errors import PersistenceError
from towpath.testing.conformance_saver import Blocking, Branch, at

THREAD = {"configurable": {"thread_id": "1"}}


class State(TypedDict):
    notes: Annotated[list[str], operator.add]


def inner():
    builder = StateGraph(State)
    builder.add_node("a", lambda state: {"notes": ["a"]})
    builder.add_node("b", lambda state: {"notes": ["b"]})
    return builder.add_edge(START, "a").add_edge("a", "b").compile()


def outer(saver):
    nested = inner()
    builder = StateGraph(State)

    async def first(state: State) -> State:
        return {"notes": ["first"]}

    async def blocks(state: State) -> State:
        return nested.invoke({"notes": ["x"]})

    async def last(state: State) -> State:
        return {"notes": ["last"]}

    builder.add_sequence([first, blocks, last]).add_edge(START, "first")
    return builder.compile(checkpointer=saver)


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def saver(request, tmp_path):
    if request.param == "memory":
        yield InMemorySaver()
        return
    if request.param == "sqlite":
        made = SqliteSaver(str(tmp_path / "threads.db"))
    else:
        pytest.importorskip("psycopg")
        from towpath.checkpoint.postgres import PostgresSaver

        made = PostgresSaver(request.getfixturevalue("postgres"))
    with closing(made):
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
async def test_it_ends_and_everything_is_stored(saver, durability):
    graph = outer(saver)
    expected = ["first", "x", "a", "b", "last"]
    result = await graph.ainvoke({"notes": []}, THREAD, durability=durability)
    assert expected == result["notes"]
    state = await graph.aget_state(THREAD)
    assert expected == state.values["notes"]
    steps = [s.metadata["step"] async for s in graph.aget_state_history(THREAD)]
    assert steps == ([3] if durability == "exit" else [3, 2, 1, 0, -1])
    if hasattr(saver, "aclose"):
        await saver.aclose()


@pytest.mark.slow
async def test_what_only_the_loop_could_finish_is_waited_for_no_longer_than_told(
    postgres,
):
    """A transaction of the loop has the thread's lock: a run's, in mid-commit."""
    psycopg = pytest.importorskip("psycopg")
    from towpath.checkpoint.postgres import PostgresSaver
    from towpath.checkpoint.postgres.dialect import lock_number

    with PostgresSaver(postgres, timeout_s=0.2) as saver:
        branch = Branch(Blocking(saver), at("1"))
        branch.put({"a": 1})
        calls = [
            lambda: branch.put({"a": 2}),
            lambda: saver.begin_run(THREAD, Lease("1")),
            lambda: saver.delete_thread("1"),
            lambda: outer(saver).update_state(THREAD, {"notes": []}),
        ]
        async with await psycopg.AsyncConnection.connect(postgres) as busy:
            await busy.execute("SELECT pg_advisory_xact_lock(%s)", [lock_number("1")])
            for call in calls:
                with pytest.raises(PersistenceError, match="lock timeout") as caught:
                    call()
                assert "await" in caught.value.hint
        branch.put({"a": 3})
