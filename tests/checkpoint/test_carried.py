"""A checkpoint that takes over a step's tasks has what is recorded of them at once."""

from __future__ import annotations

import operator
from typing import Annotated, TypedDict

import pytest

from towpath import START, Command, InMemorySaver, Migration, StateGraph, interrupt
from towpath.checkpoint.sqlite import SqliteSaver

THREAD = {"configurable": {"thread_id": "1"}}


class State(TypedDict):
    log: Annotated[list[str], operator.add]


def builder(ran, **options):
    """One task ends and another asks, in one step."""

    def works(state: State) -> State:
        ran.append("works")
        return {"log": ["worked"]}

    def asks(state: State) -> State:
        return {"log": [interrupt("well?")]}

    made = StateGraph(State, **options).add_node(asks)
    name = "works" if options.get("version") != 2 else "labours"
    return made.add_node(name, works).add_edge(START, name).add_edge(START, "asks")


@pytest.fixture(params=[InMemorySaver, lambda: SqliteSaver(":memory:")])
def saver(request):
    with request.param() as made:
        yield made


def dies(*args, **options):
    raise ConnectionError("the process is gone")


def edit(graph, saver, ran):
    graph.update_state(THREAD, {"log": ["edited"]})
    return graph


def answer_the_past(graph, saver, ran):
    past = graph.get_state(THREAD).config
    graph.update_state(THREAD, {"log": ["aside"]})
    with pytest.raises(ConnectionError):
        graph.invoke(Command(resume="once"), past, durability="sync")
    return graph


def migrate(graph, saver, ran):
    steps = [Migration(1, 2, nodes={"works": "labours"})]
    later = builder(ran, version=2, migrations=steps).compile(checkpointer=saver)
    with pytest.raises(ConnectionError):
        later.invoke(Command(resume="once"), THREAD, durability="sync")
    return later


@pytest.mark.parametrize("way", [edit, answer_the_past, migrate])
@pytest.mark.parametrize("durability", ["sync", "async"])
def test_who_dies_right_after_it_loses_nothing(saver, way, durability, monkeypatch):
    ran = []
    graph = builder(ran, version=1).compile(checkpointer=saver)
    graph.invoke({"log": ["in"]}, THREAD, durability=durability)
    with monkeypatch.context() as dead:
        dead.setattr(saver, "stage_writes", dies)
        later = way(graph, saver, ran)
    state = later.get_state(THREAD)
    assert ["well?"] == [asked.value for asked in state.interrupts]
    done = later.invoke(Command(resume="yes"), THREAD)
    assert {"worked", "yes"} < set(done["log"])
    # A branch repeats what had ended on the old one; only its questions are kept.
    assert ["works"] * (2 if way is answer_the_past else 1) == ran
