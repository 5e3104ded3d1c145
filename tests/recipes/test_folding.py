"""Siblings of sections B, C and D: reducers, joins, loops, branches of time."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Annotated, Any

import pytest
from pydantic import BaseModel
from typing_extensions import TypedDict

from towpath import END, START, Command, InMemorySaver, Overwrite, Send
from towpath.errors import InvalidUpdateError, SerializationError

from .kit import THREAD, Colour, Log, chain, logs, wire


def returns(update: Any) -> Any:
    """Return a node that returns `update`."""

    def node(state: Any) -> Any:
        return update

    return node


# -- reducers ---------------------------------------------------------------------


def test_a_reducer_that_works_in_place_does_not_change_the_past(
    colour: Colour, saver: Any
) -> None:
    def extend(left: list, right: list) -> list:
        left.extend(right)
        return left

    class State(TypedDict):
        items: Annotated[list, extend]

    app = chain(
        state=State, a=returns({"items": ["a"]}), b=returns({"items": ["b"]})
    ).compile(saver)
    given = {"items": ["in"]}
    colour.invoke(app, given)
    assert {"items": ["in"]} == given
    assert [["in", "a", "b"], ["in", "a"], ["in"], []] == [
        one.values.get("items", []) for one in colour.history(app)
    ]


def test_a_failing_reducer_names_its_key_and_loses_nothing(colour: Colour) -> None:
    def fold(left: int, right: int) -> int:
        if right < 0:
            raise ValueError("negative")
        return left + right

    class State(TypedDict):
        n: Annotated[int, fold]

    wrong = [True]

    def culprit(state: State) -> Any:
        return {"n": -1 if wrong else 1}

    app = chain(state=State, a=returns({"n": 1}), culprit=culprit).compile(
        InMemorySaver()
    )
    with pytest.raises(ValueError, match="negative") as error:
        colour.invoke(app, {"n": 1})
    told = " ".join([str(error.value), *getattr(error.value, "__notes__", [])])
    assert "`n`" in told
    assert "culprit" in told
    assert 2 == colour.state(app).values["n"]


def test_one_overwrite_wins_over_writes_of_its_step(colour: Colour) -> None:
    builder = wire(a=logs("a"), b=returns({"log": Overwrite(["only"])}), c=logs("c"))
    assert ["only"] == colour.invoke(builder.compile(), {"log": ["in"]})["log"]


def test_two_overwrites_in_a_step_are_an_error(colour: Colour) -> None:
    over = returns({"log": Overwrite([])})
    with pytest.raises(InvalidUpdateError, match="log"):
        colour.invoke(wire(a=over, b=over).compile(), {"log": []})


def test_a_value_without_a_stored_form_names_node_key_and_place(colour: Colour) -> None:
    def culprit(state: Log) -> Any:
        return {"log": [{"deep": [threading.Lock()]}]}

    app = wire(culprit=culprit).compile(InMemorySaver())
    with pytest.raises(SerializationError) as error:
        colour.invoke(app, {"log": []})
    told = " ".join([str(error.value), *getattr(error.value, "__notes__", [])])
    for word in ("culprit", "log", "deep"):
        assert word in told


def test_an_update_from_outside_is_validated(colour: Colour) -> None:
    class Person(BaseModel):
        age: int = 0

    app = chain(state=Person, a=returns({"age": 1})).compile(InMemorySaver())
    colour.invoke(app, {})
    with pytest.raises(ValueError, match="age"):
        colour.update(app, {"age": "old"})
    colour.update(app, {"age": "7"})
    assert 7 == colour.state(app).values["age"]


# -- routing --------------------------------------------------------------------------


def test_a_join_fires_at_every_round_of_a_loop(colour: Colour) -> None:
    builder = wire(
        (START, "fork"),
        ("fork", "a"),
        ("fork", "b"),
        **{name: logs(name) for name in ("fork", "a", "b", "join")},
    )
    builder.add_edge(["a", "b"], "join")
    builder.add_conditional_edges(
        "join", lambda state: "fork" if state["log"].count("join") < 3 else END
    )
    log = colour.invoke(builder.compile(), {"log": []})["log"]
    assert ["fork", "a", "b", "join"] * 3 == log


def test_a_join_waits_for_sent_tasks_of_its_node(colour: Colour) -> None:
    builder = wire((START, "a"), **{name: logs(name) for name in ("a", "b", "join")})
    builder.add_conditional_edges(
        "a", lambda state: [Send("b", {"log": []}) for _ in range(2)]
    )
    builder.add_edge(["a", "b"], "join")
    assert ["a", "b", "b", "join"] == colour.invoke(builder.compile(), {"log": []})[
        "log"
    ]


def test_sends_keep_their_order_in_the_state(colour: Colour) -> None:
    def work(state: Any) -> Any:
        return {"log": [state["n"]]}

    builder = chain(a=logs("a"))
    builder.add_node("work", work)
    order = [5, 3, 9, 1]
    builder.add_conditional_edges(
        "a", lambda state: [Send("work", {"n": n}) for n in order]
    )
    assert ["a", *order] == colour.invoke(builder.compile(), {"log": []})["log"]


@pytest.mark.parametrize("target", [START, "node "])
def test_jumps_to_no_node_are_errors(colour: Colour, target: str) -> None:
    def node(state: Log) -> Any:
        return Command(goto=target)

    with pytest.raises(InvalidUpdateError):
        colour.invoke(wire(node=node).compile(), {"log": []})


def test_a_jump_to_the_end_ends_only_its_branch(colour: Colour) -> None:
    def node(state: Log) -> Any:
        return Command(goto=END, update={"log": ["left"]})

    builder = wire(
        (START, "a"), (START, "b"), ("b", "c"), a=node, b=logs("b"), c=logs("c")
    )
    assert ["left", "b", "c"] == colour.invoke(builder.compile(), {"log": []})["log"]


def test_an_empty_answer_of_a_branch_ends_it(colour: Colour) -> None:
    builder = wire((START, "a"), a=logs("a"), b=logs("b"))
    builder.add_conditional_edges("a", lambda state: [])
    assert ["a"] == colour.invoke(builder.compile(), {"log": []})["log"]


def test_a_failing_branch_is_told_and_run_again(colour: Colour) -> None:
    wrong = [True]

    def route(state: Log) -> str:
        if wrong:
            raise ValueError("no way")
        return "b"

    calls: Counter = Counter()
    builder = wire((START, "a"), a=logs("a", calls), b=logs("b"))
    builder.add_conditional_edges("a", route)
    app = builder.compile(InMemorySaver())
    with pytest.raises(ValueError, match="no way"):
        colour.invoke(app, {"log": []})
    wrong.clear()
    assert ["a", "b"] == colour.invoke(app, None)["log"]


# -- branches of time ----------------------------------------------------------------


def test_forks_do_not_see_each_other(colour: Colour, saver: Any) -> None:
    app = chain(a=logs("a"), b=logs("b")).compile(saver)
    colour.invoke(app, {"log": ["in"]})
    past = next(one for one in colour.history(app) if one.next == ("b",)).config
    forks = [colour.update(app, {"log": [name]}, past) for name in ("x", "y")]
    results = [colour.invoke(app, None, fork)["log"] for fork in forks]
    assert [["in", "a", "x", "b"], ["in", "a", "y", "b"]] == results
    assert ["in", "a"] == colour.state(app, past).values["log"]


def test_a_fork_goes_on_by_itself(colour: Colour, saver: Any) -> None:
    app = chain(a=logs("a")).compile(saver)
    for name in "123":
        colour.invoke(app, {"log": [name]})
    ends = [one for one in colour.history(app) if one.next == ()]
    first = ends[-1]
    assert ["1", "a"] == first.values["log"]
    colour.invoke(app, {"log": ["fork"]}, first.config)
    result = colour.invoke(app, {"log": ["on"]})
    assert ["1", "a", "fork", "a", "on", "a"] == result["log"]


def test_an_unknown_checkpoint_is_empty(colour: Colour, saver: Any) -> None:
    app = chain(a=logs("a")).compile(saver)
    colour.invoke(app, {"log": []})
    nowhere = {"configurable": {**THREAD["configurable"], "checkpoint_id": "0-0"}}
    state = colour.state(app, nowhere)
    assert ({}, ()) == (state.values, state.next)


def test_every_state_of_the_past_can_be_looked_at(colour: Colour, saver: Any) -> None:
    app = chain(**{name: logs(name) for name in "abc"}).compile(saver)
    colour.invoke(app, {"log": []})
    for one in colour.history(app):
        pinned = colour.state(app, one.config)
        assert (one.values, one.next) == (pinned.values, pinned.next)
