"""The rest of the kit: virtual time, scripts, replays, snapshots."""

from __future__ import annotations

import asyncio
import json
import operator
import time
import uuid
from datetime import UTC, datetime
from typing import Annotated, TypedDict

import pytest

from towpath import (
    START,
    Command,
    InMemorySaver,
    RetryPolicy,
    SqliteSaver,
    StateGraph,
    TimeoutPolicy,
    interrupt,
)
from towpath.errors import NodeTimeoutError
from towpath.testing import (
    FrozenClock,
    ScriptOverError,
    normal_form,
    outline,
    replay,
    scripted,
)

THREAD = {"configurable": {"thread_id": "t"}}


class State(TypedDict, total=False):
    topic: str
    log: Annotated[list[str], operator.add]


def chain(**nodes):
    builder = StateGraph(State)
    above = START
    for name, node in nodes.items():
        builder.add_node(name, node)
        builder.add_edge(above, name)
        above = name
    return builder


# -- the clock ------------------------------------------------------------------


def test_a_retry_waits_in_virtual_time():
    node = scripted(ConnectionError(), ConnectionError(), {"log": ["there"]})
    builder = StateGraph(State)
    policy = RetryPolicy(
        initial_interval=600, backoff_factor=2, max_interval=9999, jitter=False
    )
    builder.add_node("fetch", node, retry_policy=policy)
    builder.add_edge(START, "fetch")
    clock, began = FrozenClock(), time.monotonic()
    assert clock.invoke(builder.compile(), {"topic": ""})["log"] == ["there"]
    assert clock.elapsed_s == 1800
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("limit_s", [3599, 3601])
def test_a_timeout_passes_in_virtual_time(limit_s):
    async def slow(state: State) -> State:
        return {"log": [await asyncio.sleep(3600, "awake")]}

    builder = StateGraph(State)
    builder.add_node("slow", slow, timeout=TimeoutPolicy(run_timeout=limit_s))
    builder.add_edge(START, "slow")
    clock, graph = FrozenClock(), builder.compile()
    if limit_s < 3600:
        with pytest.raises(NodeTimeoutError):
            clock.invoke(graph, {"topic": ""})
    else:
        assert clock.invoke(graph, {"topic": ""})["log"] == ["awake"]
    assert clock.elapsed_s == min(limit_s, 3600)


def test_a_blocking_node_sleeps_in_virtual_time_and_the_process_does_not():
    before = time.sleep, asyncio.sleep
    graph = chain(nap=lambda s: time.sleep(7200) or {"log": ["x"]}).compile()
    clock = FrozenClock()
    clock.invoke(graph, {"topic": ""})
    assert clock.elapsed_s == 7200
    assert (time.sleep, asyncio.sleep) == before


def test_a_clock_goes_on_over_several_runs_of_a_thread():
    graph = chain(ask=lambda s: {"log": [interrupt("?")]}).compile(InMemorySaver())
    clock = FrozenClock()
    assert "__interrupt__" in clock.invoke(graph, {"topic": ""}, THREAD)
    clock.sleep(86400)
    done = clock.invoke(graph, Command(resume="yes"), THREAD)
    assert done["log"] == ["yes"]
    assert clock.elapsed_s == 86400


def test_a_node_that_needs_an_event_loop_is_told_that_there_is_none():
    async def needs(state: State) -> State:
        asyncio.get_running_loop()
        return {}

    with pytest.raises(RuntimeError, match="event loop") as caught:
        FrozenClock().invoke(chain(needs=needs).compile(), {"topic": ""})
    assert any("virtual time" in note for note in caught.value.__notes__)


# -- scripts --------------------------------------------------------------------


def test_a_script_has_updates_errors_and_functions():
    node = scripted({"log": ["a"]}, ValueError("b"), lambda s: {"log": [s["topic"]]})
    assert node({"topic": "x"}) == {"log": ["a"]}
    with pytest.raises(ValueError, match="b"):
        node({"topic": "x"})
    assert node({"topic": "c"}) == {"log": ["c"]}
    assert [call["topic"] for call in node.calls] == ["x", "x", "c"]
    with pytest.raises(ScriptOverError, match="turn 4.*has 3"):
        node({})
    node.rewind()
    assert node({}) == {"log": ["a"]}


def test_nobody_changes_the_script():
    node = scripted({"log": ["a"]})
    node({})["log"].append("b")
    node.rewind()
    assert node({}) == {"log": ["a"]}


# -- replays --------------------------------------------------------------------


def draft(state: State) -> State:
    return {"log": [f"draft of {state['topic']}"]}


def ask(state: State) -> State:
    return {"log": [interrupt("publish?")]}


def last(state: State) -> State:
    return {"log": [f"{len(state['log'])} lines"]}


async def alast(state: State) -> State:
    return last(state)


@pytest.fixture(params=[InMemorySaver, lambda: SqliteSaver(":memory:")])
def saver(request):
    saver = request.param()
    yield saver
    if hasattr(saver, "close"):
        saver.close()


@pytest.fixture
def told(saver):
    """A saver with a thread in which a question was answered."""
    graph = chain(draft=draft, ask=ask, last=last).compile(saver)
    graph.invoke({"topic": "locks"}, THREAD)
    graph.invoke(Command(resume="yes"), THREAD)
    return saver


def everything(saver):
    return [(s.config, s.checkpoint, s.pending_writes) for s in saver.list(None)]


def test_the_same_code_does_what_it_did_and_nothing_is_stored(told):
    before = everything(told)
    report = replay(chain(draft=draft, ask=ask, last=last).compile(), told, "t")
    assert report.changed == []
    assert [step.nodes for step in report.steps] == [
        ("__start__",),
        ("draft",),
        ("ask",),
        ("last",),
    ]
    assert report.check() is report
    assert everything(told) == before


def test_a_changed_node_is_told_by_its_step_and_key(told):
    changed = chain(draft=lambda s: {"log": ["other"]}, ask=ask, last=alast)
    report = replay(changed.compile(), told, "t")
    (step,) = report.changed
    assert (step.step, step.nodes) == (1, ("draft",))
    assert step.differences == {"log": (["draft of locks"], ["other"])}
    with pytest.raises(AssertionError, match=r"1 of 4 steps.*\n.*step 1 \(draft\)"):
        report.check()


def test_a_node_that_raises_now_is_told(told):
    def broken(state: State) -> State:
        raise KeyError("topic")

    report = replay(chain(draft=broken, ask=ask, last=last).compile(), told, "t")
    (step,) = report.changed
    assert isinstance(step.error, KeyError)
    assert "raises KeyError('topic')" in str(step)


def test_another_question_is_told(told):
    def asks_twice(state: State) -> State:
        return {"log": [interrupt("publish?") + interrupt("sure?")]}

    report = replay(chain(draft=draft, ask=asks_twice, last=last).compile(), told, "t")
    (step,) = report.changed
    assert step.differences == {"__interrupt__": (None, ["sure?"])}


def test_another_route_is_told(saver):
    def graph(to):
        builder = StateGraph(State)
        builder.add_node("draft", draft)
        builder.add_node("last", last)
        builder.add_node("other", last)
        builder.add_conditional_edges(START, lambda s: "draft", ["draft"])
        builder.add_conditional_edges("draft", lambda s: to, ["last", "other"])
        return builder.compile(saver)

    graph("last").invoke({"topic": ""}, THREAD)
    assert replay(graph("last"), saver, "t").changed == []
    (step,) = replay(graph("other"), saver, "t").changed
    assert step.differences == {"next": (("last",), ("other",))}


def test_subgraphs_are_done_again_as_a_step(saver):
    def graph(inner):
        return chain(draft=draft, inner=inner.compile(), last=last).compile(saver)

    graph(chain(one=draft, two=ask)).invoke({"topic": "x"}, THREAD)
    graph(chain(one=draft, two=ask)).invoke(Command(resume="yes"), THREAD)
    assert replay(graph(chain(one=draft, two=ask)), saver, "t").changed == []
    (step,) = replay(graph(chain(one=draft, two=last)), saver, "t").changed
    assert step.nodes == ("inner",)


# -- snapshots ------------------------------------------------------------------


def test_ids_and_times_become_placeholders():
    one, two = str(uuid.uuid4()), uuid.uuid4()
    value = {
        "ids": [one, two, f"again {one}"],
        "at": datetime.now(UTC),
        "text": f"at {datetime.now(UTC).isoformat()}",
        "set": {2, 1},
        3: object(),
    }
    assert normal_form(value) == {
        "ids": ["#0", "#1", "again #0"],
        "at": "<time>",
        "text": "at <time>",
        "set": [1, 2],
        "3": "<object object>",
    }


def test_messages_are_plain_data():
    from langchain_core.messages import AIMessage

    found = normal_form([AIMessage("hi", id=str(uuid.uuid4()))])
    assert found[0]["is"] == "AIMessage"
    assert found[0]["id"] == "#0"
    assert json.loads(json.dumps(found)) == found


@pytest.mark.parametrize("end", [last, alast], ids=["sync", "async"])
def test_the_outline_of_a_run_is_the_same_every_time(end):
    def graph():
        stamp = lambda s: {"log": [str(uuid.uuid4())]}  # noqa: E731
        inner = chain(stamp=stamp).compile()
        return chain(draft=draft, inner=inner, ask=ask, end=end).compile(
            InMemorySaver()
        )

    one, two = (outline(graph(), {"topic": "locks"}, THREAD) for _ in range(2))
    assert one == two
    assert json.loads(json.dumps(one)) == one
    assert one.keys() == {"", "inner"}
    assert {"updates": {"draft": {"log": ["draft of locks"]}}} in one[""]
    told = [chunk["updates"] for chunk in one[""] if "updates" in chunk]
    assert told[-1]["__interrupt__"][0]["value"] == "publish?"
