"""What a thread brings to a loop after its last turn is answered all the same."""

from __future__ import annotations

import asyncio
from contextlib import closing, suppress
from queue import SimpleQueue
from threading import Event

import pytest

from towpath import InMemorySaver, Runtime, entrypoint, task
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
def test_a_step_that_ends_then_returns():
    reached, goes_on, told = Event(), Event(), SimpleQueue()

    def halve(n: int) -> int:
        reached.set()
        goes_on.wait(WAIT_S)
        return n // 2

    @entrypoint(InMemorySaver())
    def flow(n: int, runtime: Runtime[None]) -> int:
        told.put(runtime.step("halve", halve, n))
        return 0

    with closing(stopped_when(reached, flow)):
        goes_on.set()
        assert 1 == told.get(timeout=WAIT_S)
