"""What is counted and timed."""

import operator
from threading import Event
from typing import Annotated, TypedDict

import pytest

from towpath import START, Command, Send, StateGraph, interrupt
from towpath.checkpoint.memory import InMemorySaver
from towpath.checkpoint.sqlite import SqliteSaver
from towpath.func import entrypoint, task

THREAD = {"configurable": {"thread_id": "1"}}


class State(TypedDict, total=False):
    log: Annotated[list, operator.add]


def build(node, name="graph", **options):
    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    return builder.compile(name=name, **options)


def says(state):
    return {"log": ["said"]}


def test_runs_steps_attempts_and_commits_are_timed_by_graph_and_outcome(told, colour):
    graph = build(colour.node(says), checkpointer=InMemorySaver())
    for _ in range(2):
        colour.invoke(graph, {"log": []}, THREAD)
    own = {"gen_ai.agent.name": "graph", "towpath.outcome": "done"}
    metrics = told.metrics()
    assert [(2, own)] == metrics["towpath.run.duration"]
    assert [(2, own)] == metrics["towpath.step.duration"]
    attempts = metrics["towpath.task.attempt.duration"]
    assert [(2, {**own, "towpath.task.name": "node"})] == attempts
    commits = metrics["towpath.commit.duration"]
    assert [(6, {**own, "towpath.durability": "async"})] == commits


def test_failures_are_counted_by_their_type(told, colour):
    def fails(state):
        raise KeyError("k")

    with pytest.raises(KeyError):
        colour.invoke(build(colour.node(fails)), {"log": []})
    ((count, labels),) = told.metrics()["towpath.run.duration"]
    assert (1, "KeyError") == (count, labels["error.type"])


def test_a_run_is_active_while_it_goes_on(told):
    seen = []
    graph = build(lambda s: seen.append(told.total("towpath.run.active")))
    graph.invoke({"log": []})
    assert [1] == seen
    assert 0 == told.total("towpath.run.active")


def test_tasks_beyond_the_width_of_a_run_are_queued(told):
    gate, begun, seen = Event(), Event(), []

    def node(state):
        if not begun.is_set():
            begun.set()
            seen.append(told.total("towpath.task.queued"))
            gate.set()
        gate.wait(10)
        return {"log": [1]}

    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_conditional_edges(START, lambda s: [Send("node", {})] * 4, ["node"])
    builder.compile().invoke({"log": []}, {"max_concurrency": 1})
    assert [3] == seen
    assert 0 == told.total("towpath.task.queued")


def test_checkpoints_left_behind_a_run_are_queued(told, tmp_path, monkeypatch):
    gate = Event()
    seen = []

    def node(state):
        seen.append(told.total("towpath.commit.queued"))
        gate.set()
        return {"log": [1]}

    with SqliteSaver.from_conn_string(str(tmp_path / "db")) as saver:
        stage = saver.stage_commit

        def slow(*args, **kwargs):
            staged = stage(*args, **kwargs)

            class Slow:
                def run(self):
                    gate.wait(10)
                    return staged.run()

            return Slow()

        monkeypatch.setattr(saver, "stage_commit", slow)
        build(node, checkpointer=saver).invoke({"log": []}, THREAD)
    assert [2] == seen  # the input, and the step of the entry
    assert 0 == told.total("towpath.commit.queued")


def test_questions_wait_until_they_are_answered(told, colour):
    def asks(state):
        return {"log": [interrupt("?")]}

    builder = StateGraph(State)
    for name in ("a", "b"):
        builder.add_node(name, colour.node(asks))
        builder.add_edge(START, name)
    graph = builder.compile(checkpointer=InMemorySaver())
    colour.invoke(graph, {"log": []}, THREAD)
    assert 2 == told.total("towpath.interrupt.open")
    first, second = graph.get_state(THREAD).interrupts
    colour.invoke(graph, Command(resume={first.id: 1}), THREAD)
    assert 1 == told.total("towpath.interrupt.open")
    colour.invoke(graph, Command(resume={second.id: 1}), THREAD)
    assert 0 == told.total("towpath.interrupt.open")


def test_a_question_beside_a_failure_waits_too(told):
    asked = Event()

    def asks(state):
        asked.set()
        return {"log": [interrupt("?")]}

    def fails(state):
        asked.wait(10)
        raise ValueError("bad")

    builder = StateGraph(State)
    builder.add_node("asks", asks)
    builder.add_node("fails", fails)
    builder.add_edge(START, "asks")
    builder.add_edge(START, "fails")
    graph = builder.compile(checkpointer=InMemorySaver())
    with pytest.raises(ValueError, match="bad"):
        graph.invoke({"log": []}, THREAD)
    assert 1 == len(graph.get_state(THREAD).interrupts)
    assert 1 == told.total("towpath.interrupt.open")


def test_a_question_is_answered_though_the_run_fails_later(told, colour):
    def asks(state):
        return {"log": [interrupt("?")]}

    def fails(state):
        raise ValueError("bad")

    builder = StateGraph(State)
    builder.add_node("asks", colour.node(asks))
    builder.add_node("fails", colour.node(fails))
    builder.add_edge(START, "asks")
    builder.add_edge("asks", "fails")
    graph = builder.compile(checkpointer=InMemorySaver())
    colour.invoke(graph, {"log": []}, THREAD)
    assert 1 == told.total("towpath.interrupt.open")
    with pytest.raises(ValueError, match="bad"):
        colour.invoke(graph, Command(resume="yes"), THREAD)
    assert 0 == told.total("towpath.interrupt.open")


def test_a_task_that_asks_again_waits_for_one_answer(told, colour):
    def asks(state):
        return {"log": [interrupt("first?"), interrupt("second?")]}

    graph = build(colour.node(asks), checkpointer=InMemorySaver())
    colour.invoke(graph, {"log": []}, THREAD)
    assert 1 == told.total("towpath.interrupt.open")
    colour.invoke(graph, Command(resume=1), THREAD)
    assert 1 == told.total("towpath.interrupt.open")
    colour.invoke(graph, Command(resume=2), THREAD)
    assert 0 == told.total("towpath.interrupt.open")


def test_a_question_of_a_called_task_is_counted_once(told):
    @task
    def inner(x):
        return interrupt("?")

    @entrypoint(checkpointer=InMemorySaver())
    def flow(x):
        return inner(x).result()

    flow.invoke(1, THREAD)
    assert 1 == told.total("towpath.interrupt.open")
    assert "yes" == flow.invoke(Command(resume="yes"), THREAD)
    assert 0 == told.total("towpath.interrupt.open")


def test_a_question_asked_again_on_another_branch_is_the_one_that_waits(told):
    def asks(state):
        return {"log": [interrupt("?")]}

    graph = build(asks, checkpointer=InMemorySaver())
    graph.invoke({"log": []}, THREAD)
    before = graph.get_state(THREAD).config
    graph.invoke(Command(resume="yes"), THREAD)
    assert 0 == told.total("towpath.interrupt.open")
    graph.invoke(None, before)
    assert 1 == len(graph.get_state(THREAD).interrupts)
    assert 1 == told.total("towpath.interrupt.open")
