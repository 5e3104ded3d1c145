"""A run read in an event loop, by one task or several."""

from __future__ import annotations

import asyncio

import pytest
from tests.programs.both import on_both

from towpath.testing.api import Api, load

from .programs import Count, add, chain, fail, told


def run_of(graph, *kinds):
    return graph.astream_events({"n": 1}, version="v3", transformers=kinds)


async def read(run):
    found = []
    try:
        async for each in run:
            found.append(told(each))
    except Exception as error:
        found.append(error)
    return found


async def tried(coroutine):
    try:
        return await coroutine
    except Exception as error:
        return type(error).__name__


@on_both
async def test_every_event_is_told_once_with_its_number(lib: Api) -> object:
    run = await run_of(chain(lib, add, chain(lib, add), add))
    return await read(run), await run.output(), await run.interrupted()


@on_both
async def test_several_tasks_read_one_run(lib: Api) -> object:
    run = await run_of(chain(lib, add, chain(lib, add), add))
    left, right = run.lifecycle.atee(2)
    return await asyncio.gather(
        read(run.values), read(left), read(right), read(run), run.output()
    )


@on_both
async def test_a_subgraph_is_read_while_it_runs(lib: Api) -> object:
    run = await run_of(chain(lib, add, chain(lib, add, add), add))
    found = []
    async for handle in run.subgraphs:
        found.append((handle.path, handle.status, await read(handle.values)))
        found.append((await handle.output(), handle.status, handle.error))
    return found, await run.output()


@on_both
async def test_every_reader_gets_what_a_node_raised(lib: Api) -> object:
    run = await run_of(chain(lib, add, chain(lib, fail)))
    events, handles = await asyncio.gather(read(run), read(run.subgraphs))
    ends = [await tried(each) for each in (run.output(), run.interrupts())]
    return events, ends, handles[0].status, handles[0].error, handles[1:]


@on_both
async def test_leaving_a_block_closes_the_run(lib: Api) -> object:
    async with await run_of(chain(lib, add, add)) as run:
        first = await anext(aiter(run))
    return told(first), await run.output(), await read(run.values)


@on_both
async def test_transformers_may_await(lib: Api) -> object:
    notes = []

    class Awaiting(lib.StreamTransformer):
        requires_async = True

        def init(self):
            self.channel = lib.StreamChannel("seen")
            return {"seen": self.channel}

        async def aprocess(self, event):
            await asyncio.sleep(0)
            self.channel.push(event["method"])
            return True

        async def afinalize(self):
            notes.append("finalized")

        async def afail(self, err):
            notes.append(repr(err))

    found = []
    for nodes in ((add, add), (add, fail)):
        run = await run_of(chain(lib, *nodes), Awaiting)
        found.append(await read(run))
        run = await run_of(chain(lib, *nodes), Awaiting)
        found.append(await read(run.extensions["seen"]))
    return found, notes


@on_both
async def test_the_end_waits_for_scheduled_work_and_a_failure_does_not(
    lib: Api,
) -> object:
    notes = []

    class Scheduling(lib.StreamTransformer):
        def init(self):
            self.channel = lib.StreamChannel("late")
            return {"late": self.channel}

        def process(self, event):
            if event["method"] == "values":
                self.schedule(self.later())
            return True

        async def later(self):
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                notes.append("cancelled")
                raise
            self.channel.push("done")

        def finalize(self):
            notes.append("finalized")

    events = await read(await run_of(chain(lib, add), Scheduling))
    failed = await read(await run_of(chain(lib, add, fail), Scheduling))
    return [each["method"] for each in events], failed[-1], notes


@pytest.mark.parametrize("how", ["log", "raise"])
async def test_an_error_of_scheduled_work_is_logged_or_ends_the_stream(how, caplog):
    lib = load("towpath")

    class Broken(lib.StreamTransformer):
        def init(self):
            return {}

        def process(self, event):
            self.schedule(self.broken(), on_error=how)
            return True

        async def broken(self):
            raise ValueError("of the work")

    run = await run_of(chain(lib, add), Broken)
    found = await tried(run.output())
    assert ({"n": 2} if how == "log" else "ValueError") == found
    assert (how == "log") == ("scheduled" in caplog.text)


@on_both
async def test_cancelling_the_only_reader_ends_the_run(lib: Api) -> object:
    started, calls = asyncio.Event(), []

    async def wait(state: Count):
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            calls.append("cancelled")
            raise

    run = await run_of(chain(lib, add, chain(lib, wait)))
    reading = asyncio.create_task(run.output())
    await started.wait()
    reading.cancel()
    await asyncio.wait({reading})
    return reading.cancelled(), calls, await run.output()


@on_both
async def test_closing_while_somebody_reads_ends_the_run(lib: Api) -> object:
    started, calls = asyncio.Event(), []

    async def wait(state: Count):
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            calls.append("cancelled")
            raise

    run = await run_of(chain(lib, add, chain(lib, wait)))
    reading = asyncio.create_task(run.output())
    await started.wait()
    await run.abort()
    return calls, await reading, await run.output()


async def test_a_reader_that_is_cancelled_leaves_the_run_to_the_others():
    lib = load("towpath")
    started, go_on = asyncio.Event(), asyncio.Event()

    async def wait(state: Count):
        started.set()
        await go_on.wait()
        return {"n": 7}

    run = await run_of(chain(lib, wait))
    impatient = asyncio.create_task(read(run.values))
    patient = asyncio.create_task(run.output())
    await started.wait()
    impatient.cancel()
    await asyncio.wait({impatient})
    go_on.set()
    assert {"n": 7} == await patient
