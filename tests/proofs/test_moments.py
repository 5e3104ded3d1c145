"""What is stored is the value of the moment, however late it is stored."""

from __future__ import annotations

import asyncio
import operator
import threading
from contextlib import closing
from time import monotonic
from typing import Annotated, Any, TypedDict

import pytest

from towpath.checkpoint.sqlite import SqliteSaver
from towpath.drive.common import BACKLOG
from towpath.graph import END, START, StateGraph

THREAD = {"configurable": {"thread_id": "t"}}
COLOURS = ("sync", "loop")


class State(TypedDict, total=False):
    tree: dict[str, Any]
    log: Annotated[list[Any], operator.add]
    count: int


class Gate:
    """Holds back what a saver stores, and counts it."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.open.set()
        self.stored = 0
        self.changed = threading.Condition()

    def pass_through(self) -> None:
        assert self.open.wait(30)
        with self.changed:
            self.stored += 1
            self.changed.notify_all()


def gated(kind: Any, gate: Gate) -> Any:
    """A saver whose transactions wait at a gate, in either colour."""

    class Gated(kind):
        def _write(self, make, *, durable=True):
            gate.pass_through()
            return super()._write(make, durable=durable)

        async def _awrite(self, make, *, durable=True):
            await asyncio.to_thread(gate.pass_through)
            return await super()._awrite(make, durable=durable)

    return Gated


@pytest.fixture(params=["sqlite", "postgres"])
def slow(request, tmp_path):
    """A saver with a gate."""
    gate = Gate()
    if request.param == "sqlite":
        kind, place = SqliteSaver, str(tmp_path / "slow.sqlite")
    else:
        place = request.getfixturevalue("postgres")
        from towpath.checkpoint.postgres import PostgresSaver as kind
    with closing(gated(kind, gate)(place)) as saver:
        yield saver, gate
        gate.open.set()


def call(graph: Any, given: Any, colour: str, **options: Any) -> Any:
    if colour == "sync":
        return graph.invoke(given, THREAD, **options)
    return asyncio.run(graph.ainvoke(given, THREAD, **options))


def chain(*nodes: Any) -> Any:
    builder: Any = StateGraph(State)
    above = START
    for node in nodes:
        builder.add_node(node.__name__, node)
        builder.add_edge(above, node.__name__)
        above = node.__name__
    return builder


@pytest.mark.parametrize("colour", COLOURS)
def test_what_was_returned_is_stored_though_it_changed_since(slow, colour):
    """Nothing is stored before the node that changes it has done so."""
    saver, gate = slow
    kept: dict[str, Any] = {}

    def gives(state):
        gate.open.clear()
        kept["tree"] = {"list": [1, {"deep": [2]}], "text": "as it was"}
        kept["log"] = [{"n": 1}]
        return {"tree": kept["tree"], "log": kept["log"]}

    def changes(state):
        kept["tree"]["list"][1]["deep"].append("late")
        kept["tree"]["text"] = "late"
        kept["log"][0]["n"] = "late"
        kept["log"].append("late")
        gate.open.set()
        return {"count": 1}

    graph = chain(gives, changes).compile(checkpointer=saver)
    call(graph, {"log": []}, colour, durability="async")

    steps = {s.metadata["step"]: s.values for s in graph.get_state_history(THREAD)}
    assert {"list": [1, {"deep": [2]}], "text": "as it was"} == steps[1]["tree"]
    assert [{"n": 1}] == steps[1]["log"]


@pytest.mark.filterwarnings("ignore::towpath.warnings.TowpathWarning")
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("colour", COLOURS)
def test_the_end_of_a_thread_is_what_its_caller_got(slow, colour, durability):
    """Also of what nodes changed in place and did not return."""
    saver, gate = slow

    def gives(state):
        return {"tree": {"list": [1], "more": {}}, "log": ["gives"]}

    def changes(state):
        state["tree"]["list"].append("in place")
        state["tree"]["more"]["key"] = ["in place"]
        state["log"].append("in place")
        return {"count": 1}

    def ends(state):
        return {"log": ["ends"]}

    graph = chain(gives, changes, ends).compile(checkpointer=saver)
    told = call(graph, {"log": ["in"]}, colour, durability=durability)

    assert told == graph.get_state(THREAD).values
    again = call(graph, {"log": ["in"]}, colour, durability=durability)
    assert told["log"] == again["log"][: len(told["log"])]
    assert again == graph.get_state(THREAD).values


@pytest.mark.parametrize("durability", ["sync", "async"])
@pytest.mark.parametrize("colour", COLOURS)
def test_a_result_is_stored_while_its_siblings_still_run(slow, colour, durability):
    """So a crash repeats none but them."""
    saver, gate = slow

    def is_stored():
        found = saver.get_tuple(THREAD)
        pending = found.pending_writes if found else ()
        return any(value == ["quick"] for *_, value in pending)

    def quick(state):
        return {"log": ["quick"]}

    def slow_one(state):
        deadline = monotonic() + 10
        while not is_stored():
            assert monotonic() < deadline
            with gate.changed:
                gate.changed.wait(0.05)
        return {"log": ["slow"]}

    builder: Any = StateGraph(State)
    for node in (quick, slow_one):
        builder.add_node(node.__name__, node)
        builder.add_edge(START, node.__name__)
    graph = builder.compile(checkpointer=saver)
    told = call(graph, {"log": []}, colour, durability=durability)
    assert ["quick", "slow"] == told["log"]


@pytest.mark.parametrize("colour", COLOURS)
def test_a_run_is_held_back_when_too_much_waits_to_be_stored(slow, colour):
    """With the gate shut, the run comes as far as the backlog, and no further."""
    saver, gate = slow
    steps = 12
    reached: list[int] = []
    ahead = threading.Event()

    def loop(state):
        count = state.get("count", 0)
        if not reached:
            gate.open.clear()
        reached.append(count)
        if len(reached) == 2:
            ahead.set()
        lead.append(len(reached) - sum(1 for _ in saver.list(THREAD)))
        return {"count": count + 1}

    lead: list[int] = []
    builder: Any = StateGraph(State)
    builder.add_node("loop", loop)
    builder.add_edge(START, "loop")
    builder.add_conditional_edges(
        "loop", lambda state: "loop" if state["count"] < steps else END, ["loop", END]
    )
    graph = builder.compile(checkpointer=saver)
    runner = threading.Thread(
        target=call, args=(graph, {"count": 0}, colour), kwargs={"durability": "async"}
    )
    runner.start()
    assert ahead.wait(30)  # it runs ahead of the disk,
    runner.join(0.3)
    assert runner.is_alive()
    far = len(reached)
    assert far <= BACKLOG + 3  # but not for long
    gate.open.set()
    runner.join(30)

    assert not runner.is_alive()
    assert steps == len(reached)
    assert max(lead) <= BACKLOG + 3
    assert steps == graph.get_state(THREAD).values["count"]
