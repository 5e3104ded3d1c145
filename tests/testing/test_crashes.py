"""`crash_everywhere` as users call it: on their graph, in three lines."""

from __future__ import annotations

import asyncio
import operator
import threading
from typing import Annotated, TypedDict

import pytest

from towpath import (
    START,
    Command,
    InMemorySaver,
    RetryPolicy,
    Runtime,
    Send,
    StateGraph,
    interrupt,
)
from towpath.func import entrypoint, task
from towpath.testing import crash_everywhere, crashes, scripted


class State(TypedDict, total=False):
    topic: str
    log: Annotated[list[str], operator.add]


def first(state: State) -> State:
    return {"log": ["first"]}


async def awaits(state: State) -> State:
    both = await asyncio.gather(asyncio.sleep(0, "a"), asyncio.to_thread(str, "b"))
    return {"log": both}


def chain(*nodes):
    builder = StateGraph(State)
    above = START
    for node in nodes:
        builder.add_node(node.__name__, node)
        builder.add_edge(above, node.__name__)
        above = node.__name__
    return builder


def fan() -> StateGraph:
    builder = chain(first)
    builder.add_node("count", lambda n: {"log": [f"count {n}"]})
    builder.add_node("last", lambda s: {"log": [f"last {len(s['log'])}"]})
    builder.add_conditional_edges(
        "first", lambda s: [Send("count", n) for n in range(3)], ["count"]
    )
    builder.add_edge("count", "last")
    return builder


@pytest.mark.parametrize("nodes", [(first,), (first, awaits)], ids=["sync", "async"])
def test_a_graph_is_killed_before_each_commit(nodes):
    report = crash_everywhere(chain(*nodes).compile(), {"topic": "locks"})
    assert report.ok
    assert report.commits >= len(nodes) + 1
    assert "first" in report.values["log"]
    assert report.repeated.keys() == {node.__name__ for node in nodes}


def test_a_fan_out_is_killed_between_its_tasks():
    report = crash_everywhere(fan().compile(), {"topic": "locks"})
    assert report.commits >= 6
    assert report.values["log"][-1] == "last 4"


async def test_it_may_be_called_where_a_loop_runs():
    assert crash_everywhere(chain(first, awaits).compile(), {"topic": ""}).ok


def test_questions_are_answered_in_order_or_by_a_function():
    def approve(state: State) -> State:
        one, two = interrupt("one?"), interrupt("two?")
        return {"log": [one, two]}

    graph = chain(first, approve).compile()
    report = crash_everywhere(graph, {"topic": ""}, answers=["yes", "no"])
    assert report.values["log"] == ["first", "yes", "no"]
    report = crash_everywhere(graph, {"topic": ""}, answers=lambda q: q.upper())
    assert report.values["log"] == ["first", "ONE?", "TWO?"]
    with pytest.raises(AssertionError, match=r"'two\?', and `answers` has only 1"):
        crash_everywhere(graph, {"topic": ""}, answers=["yes"])


def test_subgraphs_are_killed_inside():
    inner = chain(first, awaits).compile()
    builder = chain(first)
    builder.add_node("inner", inner)
    builder.add_edge("first", "inner")
    alone = crash_everywhere(chain(first).compile(), {"topic": ""})
    report = crash_everywhere(builder.compile(), {"topic": ""})
    assert report.commits > alone.commits + 2
    assert report.repeated.keys() >= {"first", "awaits", "inner"}


def test_tasks_of_a_workflow_do_not_run_again_once_stored():
    called: list[int] = []

    @task
    def square(n: int) -> int:
        called.append(n)
        return n * n

    @entrypoint()
    def total(numbers: list[int]) -> int:
        return sum(future.result() for future in [square(n) for n in numbers])

    report = crash_everywhere(total, [1, 2, 3])
    assert report.ok
    assert report.repeated["total"] >= 3


def test_a_node_that_remembers_outside_of_its_state_is_found():
    seen: list[str] = []

    def forgetful(state: State) -> State:
        seen.append("x")
        return {"log": [str(len(seen))]}

    graph = chain(first, forgetful).compile()
    with pytest.raises(AssertionError, match=r"the same values: .*'2'.*'1'"):
        crash_everywhere(graph, {"topic": ""}, before_each=seen.clear)
    report = crash_everywhere(graph, {"topic": ""}, before_each=seen.clear, check=False)
    assert {finding.law for finding in report.findings} >= {"the same values"}


def test_a_node_that_runs_again_though_its_result_was_stored_is_found(monkeypatch):
    class Forgetful(InMemorySaver):
        def begin_run(self, config, lease=None):
            found = super().begin_run(config, lease)
            return found and found._replace(pending_writes=[])

    monkeypatch.setattr(crashes, "InMemorySaver", Forgetful)
    with pytest.raises(AssertionError, match="no task with a stored result runs again"):
        crash_everywhere(fan().compile(), {"topic": ""})


def test_durable_steps_are_not_repeated_once_stored():
    paid: list[str] = []

    def pay(state: State, runtime: Runtime) -> State:
        one = runtime.step("one", lambda: paid.append("one") or "one")
        two = runtime.step("two", lambda: paid.append("two") or "two")
        return {"log": [one, two]}

    report = crash_everywhere(chain(pay).compile(), {"topic": ""})
    assert report.values["log"] == ["one", "two"]
    # Once in each run, and again only where the crash came before its commit.
    assert paid.count("one") == paid.count("two") == report.commits + 2


def test_ids_and_times_may_differ():
    import uuid
    from datetime import UTC, datetime

    def stamp(state: State) -> State:
        return {"log": [str(uuid.uuid4()), datetime.now(UTC).isoformat()]}

    assert crash_everywhere(chain(stamp, first).compile(), {"topic": ""}).ok


def test_an_error_without_any_crash_is_raised():
    def fails(state: State) -> State:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        crash_everywhere(chain(fails).compile(), {"topic": ""})


def test_scripted_nodes_and_retries_go_on_in_their_script():
    node = scripted(ConnectionError(), {"log": ["one"]}, name="fetch")
    builder = chain(first)
    policy = RetryPolicy(initial_interval=0.001)
    builder.add_node("fetch", node, retry_policy=policy)
    builder.add_edge("first", "fetch")
    report = crash_everywhere(builder.compile(), {"topic": ""})
    assert report.values["log"] == ["first", "one"]


def test_the_callers_config_and_context_reach_the_nodes():
    seen = set()

    def look(state: State, config, runtime: Runtime[str]) -> State:
        seen.add((config["configurable"]["thread_id"], runtime.context))
        return {"log": ["looked"]}

    graph = chain(look).compile()
    config = {"configurable": {"thread_id": "mine"}}
    crash_everywhere(graph, {"topic": ""}, config=config, context="ctx")
    assert seen == {("mine", "ctx")}


def test_a_command_that_goes_elsewhere_goes_there_again():
    def goes(state: State) -> Command:
        return Command(goto="end", update={"log": ["goes"]})

    builder = chain(goes)
    builder.add_node("end", first)
    assert crash_everywhere(builder.compile(), {"topic": ""}).values["log"] == [
        "goes",
        "first",
    ]


def test_no_thread_is_left_that_stores_for_a_dead_run():
    """What ran beside the node that was killed reaches no saver."""
    gate = threading.Event()

    def slow(state: State) -> State:
        gate.wait(0.01)
        return {"log": ["slow"]}

    builder = chain(first)
    builder.add_node("slow", slow)
    builder.add_edge(START, "slow")
    assert crash_everywhere(builder.compile(), {"topic": ""}).ok
