"""Tasks that end at the same time are stored at the same time, and none is lost."""

from __future__ import annotations

import asyncio
import operator
from collections import Counter
from dataclasses import replace
from functools import partial
from threading import Event
from time import sleep
from typing import Annotated, Any, TypedDict

import pytest

from towpath import START, StateGraph
from towpath.checkpoint.memory import InMemorySaver
from towpath.checkpoint.sqlite import SqliteSaver
from towpath.errors import SerializationError
from towpath.func import task
from towpath.types import Command, RetryPolicy, interrupt

THREAD = {"configurable": {"thread_id": "together"}}
NAMES = ("a", "b", "c", "d")


class State(TypedDict):
    log: Annotated[list, operator.add]


class Noting(InMemorySaver):
    """Notes how many tasks each storage call carries."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[int] = []
        self.commits: list[int] = []
        self.recorded = asyncio.Event()

    def stage_writes(self, config: Any, writes: Any, **options: Any) -> Any:
        self.records.append(len(writes))
        self.recorded.set()
        return super().stage_writes(config, writes, **options)

    def stage_commit(
        self, config: Any, checkpoint: Any, metadata: Any, versions: Any,
        writes: Any = (), **options: Any,
    ) -> Any:  # fmt: skip
        self.commits.append(len(writes))
        return super().stage_commit(
            config, checkpoint, metadata, versions, writes, **options
        )


def meeting(**nodes: Any) -> Any:
    """A graph of nodes that are all told to go on in the same turn of the loop."""
    barrier = asyncio.Barrier(len(nodes))
    builder = StateGraph(State)
    for name, function in nodes.items():

        async def node(state: State, function: Any = function) -> State:
            if barrier.n_waiting or not barrier.broken:
                await barrier.wait()
            return await function(state)

        builder.add_node(name, node)
        builder.add_edge(START, name)
    return builder


def apart(**nodes: Any) -> Any:
    """A graph of the same nodes, none of which waits for the others."""
    builder = StateGraph(State)
    for name, function in nodes.items():
        builder.add_node(name, function)
        builder.add_edge(START, name)
    return builder


def says(name: str, calls: Counter[str]) -> Any:
    async def node(state: State) -> Any:
        calls[name] += 1
        return {"log": [name]}

    return node


async def test_tasks_that_end_the_step_together_go_with_its_commit():
    saver, calls = Noting(), Counter()
    builder = meeting(**{name: says(name, calls) for name in NAMES})
    graph = builder.compile(checkpointer=saver)
    found = await graph.ainvoke({"log": []}, THREAD, durability="sync")
    assert found["log"] == list(NAMES)
    assert saver.records == []
    assert max(saver.commits) == len(NAMES)


async def test_tasks_that_end_before_another_are_one_transaction():
    saver, calls = Noting(), Counter()

    async def last(state: State) -> Any:
        await saver.recorded.wait()
        return {"log": ["last"]}

    nodes = {name: says(name, calls) for name in NAMES}
    graph = meeting(**nodes, last=last).compile(checkpointer=saver)
    found = await graph.ainvoke({"log": []}, THREAD, durability="sync")
    assert found["log"] == [*NAMES, "last"]
    assert saver.records == [len(NAMES)]
    assert max(saver.commits) == 1


@pytest.mark.parametrize("waits", [False, True], ids=["commit", "record"])
@pytest.mark.parametrize("durability", ["sync", "async"])
async def test_what_cannot_be_stored_takes_none_of_the_others_along(
    waits, durability, tmp_path
):
    calls: Counter[str] = Counter()
    good = False
    begun = asyncio.Event()

    async def bad(state: State) -> Any:
        calls["bad"] += 1
        return {"log": ["good" if good else object()]}

    async def late(state: State) -> Any:
        if not good:
            await begun.wait()  # for ever: the run ends before
        return {"log": ["late"]}

    nodes = {name: says(name, calls) for name in NAMES[:2]}
    nodes["bad"] = bad
    nodes["z"] = says("z", calls)
    if waits:
        nodes["late"] = late
    with SqliteSaver.from_conn_string(str(tmp_path / "t.db")) as saver:
        graph = meeting(**nodes).compile(checkpointer=saver)
        with pytest.raises(SerializationError, match="log"):
            await graph.ainvoke({"log": []}, THREAD, durability=durability)
        good = True
        again = apart(**nodes).compile(checkpointer=saver)
        found = await again.ainvoke(None, THREAD)
    assert found["log"] == ["a", "b", "good", *(["late"] if waits else []), "z"]
    assert calls == {"a": 1, "b": 1, "z": 1, "bad": 2}


class Single(InMemorySaver):
    """Has a way of its own to store what one task wrote, as savers of others have."""

    def put_writes(self, *args: Any) -> None:
        super().put_writes(*args)

    async def aput_writes(self, *args: Any) -> None:
        super().put_writes(*args)


@pytest.mark.parametrize("durability", ["sync", "exit"])
@pytest.mark.parametrize("make", [InMemorySaver, Single])
async def test_what_cannot_be_stored_beside_a_failure_takes_none_along(
    make, durability
):
    calls: Counter[str] = Counter()
    good = False

    async def bad(state: State) -> Any:
        return {"log": ["good" if good else object()]}

    async def worse(state: State) -> Any:
        if not good:
            raise ValueError
        return {"log": ["better"]}

    nodes = {"bad": bad, "worse": worse, "y": says("y", calls), "z": says("z", calls)}
    saver = make()
    graph = meeting(**nodes).compile(checkpointer=saver)
    with pytest.raises((ValueError, SerializationError)):
        await graph.ainvoke({"log": []}, THREAD, durability=durability)
    good = True
    graph = apart(**nodes).compile(checkpointer=saver)
    found = await graph.ainvoke(None, THREAD)
    assert found["log"] == ["good", "better", "y", "z"]
    assert calls == {"y": 1, "z": 1}


def test_what_ends_after_a_task_that_cannot_be_stored_is_recorded():
    calls: Counter[str] = Counter()
    good, begun = False, Event()

    def bad(state: State) -> Any:
        begun.wait(5)
        return {"log": ["good" if good else object()]}

    def slow(state: State) -> Any:
        begun.set()
        calls["slow"] += 1
        sleep(0.05)
        return {"log": ["slow"]}

    graph = apart(bad=bad, slow=slow).compile(checkpointer=InMemorySaver())
    with pytest.raises(SerializationError, match="log"):
        graph.invoke({"log": []}, THREAD, durability="sync")
    good = True
    assert graph.invoke(None, THREAD)["log"] == ["good", "slow"]
    assert calls == {"slow": 1}


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
async def test_tasks_that_end_together_wait_for_what_they_have_called(durability):
    @task
    async def ask(name: str) -> None:
        answers.append(interrupt(name))

    async def node(state: State, name: str) -> Any:
        ask(name)  # and nobody waits for it
        return {"log": [name]}

    answers: list[Any] = []
    nodes = {name: partial(node, name=name) for name in NAMES}
    graph = apart(**nodes).compile(checkpointer=InMemorySaver())
    await graph.ainvoke({"log": []}, THREAD, durability=durability)
    state = await graph.aget_state(THREAD)
    assert state.next == NAMES
    assert [asked.value for asked in state.interrupts] == list(NAMES)
    resume = Command(resume={asked.id: asked.value for asked in state.interrupts})
    found = await graph.ainvoke(resume, THREAD, durability=durability)
    assert found["log"] == list(NAMES)
    assert sorted(answers) == list(NAMES)


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
async def test_a_task_is_not_recorded_whose_call_was_given_up_when_another_failed(
    durability,
):
    called = asyncio.Event()
    ran: list[str] = []
    good = False

    @task
    async def work() -> None:
        called.set()
        if not good:
            await asyncio.Event().wait()  # for ever: the run ends before
        ran.append("work")

    async def leaves(state: State) -> Any:
        work()  # and nobody waits for it
        return {"log": ["leaves"]}

    async def fails(state: State) -> Any:
        await called.wait()
        if not good:
            raise ValueError
        return {"log": ["fails"]}

    graph = apart(leaves=leaves, fails=fails).compile(checkpointer=InMemorySaver())
    with pytest.raises(ValueError):  # noqa: PT011 - it has no text
        await graph.ainvoke({"log": []}, THREAD, durability=durability)
    assert (await graph.aget_state(THREAD)).next == ("leaves", "fails")
    good = True
    found = await graph.ainvoke(None, THREAD, durability=durability)
    assert (found["log"], ran) == (["fails", "leaves"], ["work"])


class Slow(Single):
    """Takes its time to record, and says when it does."""

    capabilities = replace(InMemorySaver.capabilities, inline=False)

    def __init__(self) -> None:
        super().__init__()
        self.recording = asyncio.Event()

    async def aput_writes(self, *args: Any) -> None:
        if ("log", ["ends"]) in args[1]:
            self.recording.set()
            await asyncio.sleep(0.01)
        await super().aput_writes(*args)


async def test_a_run_ends_when_a_call_is_given_up_before_it_has_begun():
    @task
    async def work() -> None: ...

    async def calls(state: State) -> Any:
        return {"log": [await work()]}

    async def ends(state: State) -> Any:
        return {"log": ["ends"]}

    async def fails(state: State) -> Any:
        await saver.recording.wait()
        raise ValueError

    saver = Slow()
    nodes = {"calls": calls, "ends": ends, "fails": fails}
    graph = apart(**nodes).compile(checkpointer=saver)
    run = asyncio.ensure_future(graph.ainvoke({"log": []}, THREAD, durability="sync"))
    done, _ = await asyncio.wait([run], timeout=2)
    assert done, "the run hangs"
    assert isinstance(run.exception(), ValueError)


@pytest.mark.parametrize("make", [InMemorySaver, Single])
def test_so_is_what_ends_after_it_where_tasks_call_tasks(make):
    calls: Counter[str] = Counter()
    good, begun, failed = False, Event(), Event()

    @task
    def work(name: str) -> str:
        calls[f"work of {name}"] += 1
        return name

    def calling(state: State) -> Any:
        made = work("early").result()
        begun.set()
        failed.wait(5)
        sleep(0.05)  # until it has been seen to
        calls["calling"] += 1
        return {"log": [made]}

    def bad(state: State) -> Any:
        begun.wait(5)
        failed.set()
        return {"log": ["good" if good else object()]}

    def plain(state: State) -> Any:
        failed.wait(5)
        sleep(0.05)
        calls["plain"] += 1
        return {"log": ["plain"]}

    nodes = {"bad": bad, "calling": calling, "plain": plain}
    graph = apart(**nodes).compile(checkpointer=make())
    with pytest.raises(SerializationError, match="log"):
        graph.invoke({"log": []}, THREAD, durability="sync")
    good = True
    assert graph.invoke(None, THREAD)["log"] == ["good", "early", "plain"]
    assert calls == {"work of early": 1, "calling": 1, "plain": 1}


def test_who_was_told_that_a_call_could_not_be_stored_runs_again():
    """Though it went on as if the call had failed; what is beside it does not."""
    calls: Counter[str] = Counter()
    good, told = False, Event()

    @task
    def work() -> Any:
        return "made" if good else object()

    def calling(state: State) -> Any:
        try:
            return {"log": [work().result()]}
        except Exception:
            return {"log": ["lost"]}
        finally:
            told.set()

    def plain(state: State) -> Any:
        told.wait(5)
        sleep(0.05)
        calls["plain"] += 1
        return {"log": ["plain"]}

    nodes = {"calling": calling, "plain": plain}
    graph = apart(**nodes).compile(checkpointer=InMemorySaver())
    with pytest.raises(SerializationError):
        graph.invoke({"log": []}, THREAD, durability="sync")
    good = True
    assert graph.invoke(None, THREAD)["log"] == ["made", "plain"]
    assert calls == {"plain": 1}


async def test_a_task_that_is_tried_again_beside_others_is_folded_in_its_place():
    saver, calls = Noting(), Counter()

    async def shaky(state: State) -> Any:
        calls["shaky"] += 1
        if calls["shaky"] == 1:
            raise ConnectionError
        return {"log": ["shaky"]}

    builder = meeting(a=says("a", calls), b=says("b", calls))
    builder.add_node(
        "shaky", shaky, retry_policy=RetryPolicy(initial_interval=0, jitter=False)
    )
    builder.add_edge(START, "shaky")
    graph = builder.compile(checkpointer=saver)
    found = await graph.ainvoke({"log": []}, THREAD, durability="sync")
    assert found["log"] == ["a", "b", "shaky"]
    assert calls == {"a": 1, "b": 1, "shaky": 2}
