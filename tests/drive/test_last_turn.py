"""What a thread brings to a loop after its last turn is answered all the same."""

from __future__ import annotations

import asyncio
from contextlib import closing, suppress
from queue import SimpleQueue
from threading import Event

import pytest

from towpath import START, InMemorySaver, Runtime, StateGraph, entrypoint, task
from towpath.call import children
from towpath.errors import NodeCancelledError

WAIT_S = 10.0


def stopped_when(reached, graph):
    """Cancel a run in mid-task, and give its loop no further turn."""

    async def main():
        run = asyncio.ensure_future(
            graph.ainvoke(2, {"configurable": {"thread_id": "1"}})
        )
        await asyncio.to_thread(reached.wait, WAIT_S)
        run.cancel()
        with suppress(asyncio.CancelledError):
            await run

    loop = asyncio.new_event_loop()
    loop.run_until_complete(main())
    return loop


@pytest.mark.slow
def test_a_call_that_was_on_its_way_is_refused(monkeypatch):
    reached, goes_on, told = Event(), Event(), SimpleQueue()
    make = children.child_of

    def late(*args):
        reached.set()
        goes_on.wait(WAIT_S)
        return make(*args)

    @task
    def square(n: int) -> int:
        return n * n

    @entrypoint()
    def flow(n: int) -> int:
        try:
            return square(n).result()
        except NodeCancelledError as error:
            told.put(error)
            raise

    monkeypatch.setattr(children, "child_of", late)
    with closing(stopped_when(reached, flow)):
        goes_on.set()
        assert "square" in str(told.get(timeout=WAIT_S))


@pytest.mark.slow
def test_a_step_that_ends_then_is_refused():
    reached, goes_on, told = Event(), Event(), SimpleQueue()

    def halve(n: int) -> int:
        reached.set()
        goes_on.wait(WAIT_S)
        return n // 2

    @entrypoint(InMemorySaver())
    def flow(n: int, runtime: Runtime[None]) -> int:
        try:
            return runtime.step("halve", halve, n)
        except NodeCancelledError as error:
            told.put(error)
            raise

    with closing(stopped_when(reached, flow)):
        goes_on.set()
        assert "halve" in str(told.get(timeout=WAIT_S))


def blocked_node(work):
    return lambda n, runtime: work(n)


def blocked_task(work):
    called = task(work)
    return lambda n, runtime: called(n).result()


def blocked_step(work):
    return lambda n, runtime: runtime.step("work", work, n)


@pytest.mark.parametrize("saver", [None, InMemorySaver])
@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("kind", [blocked_node, blocked_task, blocked_step])
def test_a_cancellation_does_not_wait_for_threads(kind, beside, saver):
    """What they do comes to nothing, and runs again when the thread is resumed."""
    reached, goes_on, ended = Event(), Event(), SimpleQueue()

    def work(n: int) -> int:
        reached.set()
        goes_on.wait(WAIT_S)
        ended.put(n)
        return n

    called = kind(work)

    def node(state: dict[str, int], runtime: Runtime[None]) -> dict[str, int]:
        return {"n": called(state["n"], runtime)}

    builder = StateGraph(dict)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    if beside:
        builder.add_node("beside", lambda state: None)
        builder.add_edge(START, "beside")
    graph = builder.compile(checkpointer=saver and saver())

    async def main():
        config = {"configurable": {"thread_id": "1"}}
        run = asyncio.ensure_future(graph.ainvoke({"n": 2}, config))
        await asyncio.to_thread(reached.wait, WAIT_S)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert ended.empty()
        goes_on.set()
        assert 2 == ended.get(timeout=WAIT_S)
        if saver is not None:
            assert ("node",) == (await graph.aget_state(config)).next
            assert {"n": 2} == await graph.ainvoke(None, config)

    asyncio.run(main())
