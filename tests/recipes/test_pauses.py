"""Section A of the reports: how a run pauses, and what a pause keeps."""

from __future__ import annotations

import contextlib
import warnings
from collections import Counter
from typing import Any

import pytest

from towpath import Command, InMemorySaver, RetryPolicy, interrupt
from towpath.errors import NoCheckpointerError
from towpath.semantics import LANGGRAPH

from .kit import Colour, Log, chain, logs, questions, wire


def ask(state: Any) -> Any:
    """Ask, and log the answer."""
    return {"log": [interrupt("?")]}


# -- row 18: a pause needs a checkpointer -------------------------------------


def test_a_prompt_without_a_checkpointer_is_an_error(colour: Colour) -> None:
    with pytest.raises(NoCheckpointerError):
        colour.invoke(wire(ask=ask).compile(), {"log": []})


def test_a_prompt_from_below_without_a_checkpointer_is_an_error(colour: Colour) -> None:
    app = wire(child=wire(ask=ask).compile()).compile()
    with pytest.raises(NoCheckpointerError):
        colour.invoke(app, {"log": []})


def test_a_prompt_of_a_child_that_keeps_nothing_is_an_error(colour: Colour) -> None:
    child = wire(ask=ask).compile(checkpointer=False)
    app = wire(child=child).compile(InMemorySaver())
    with pytest.raises(NoCheckpointerError):
        colour.invoke(app, {"log": []})


@pytest.mark.parametrize("where", ["interrupt_before", "interrupt_after"])
@pytest.mark.parametrize("when", ["compile", "run"])
def test_a_breakpoint_without_a_checkpointer_is_an_error(
    colour: Colour, where: str, when: str
) -> None:
    builder, points = chain(a=logs("a"), b=logs("b")), {where: ["a"]}
    with pytest.raises(NoCheckpointerError):
        if when == "compile":
            colour.invoke(builder.compile(**points), {"log": []})
        else:
            colour.invoke(builder.compile(), {"log": []}, **points)


def test_the_peer_preset_returns_the_prompt_nobody_can_answer(colour: Colour) -> None:
    app = wire(ask=ask).compile(semantics=LANGGRAPH)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert {"?"} == set(questions(colour.invoke(app, {"log": []})))


# -- row 20: user code catches the interrupt ----------------------------------


def catches_exception(state: Log) -> Any:
    try:
        answer = interrupt("?")
    except Exception:
        answer = "swallowed"
    return {"log": [answer]}


def suppresses(state: Log) -> Any:
    with contextlib.suppress(Exception):
        return {"log": [interrupt("?")]}
    return {"log": ["swallowed"]}


def raises_another(state: Log) -> Any:
    try:
        return {"log": [interrupt("?")]}
    except Exception as error:
        raise ValueError("swallowed") from error


async def catches_in_a_coroutine(state: Log) -> Any:
    return catches_exception(state)


SWALLOWERS = [catches_exception, suppresses, raises_another]


@pytest.mark.parametrize("node", SWALLOWERS)
def test_a_caught_question_stays_asked(colour: Colour, node: Any) -> None:
    app = wire(node=node).compile(InMemorySaver())
    with pytest.warns(Warning, match="node"):
        paused = colour.invoke(app, {"log": []})
    assert {"?"} == set(questions(paused))
    assert ["yes"] == colour.invoke(app, Command(resume="yes"))["log"]


def test_a_caught_question_is_not_retried(colour: Colour) -> None:
    calls: Counter = Counter()

    def node(state: Log) -> Any:
        calls["node"] += 1
        return raises_another(state)

    builder = wire()
    policy = RetryPolicy(
        initial_interval=0.001, jitter=False, max_attempts=3, retry_on=Exception
    )
    builder.add_node("node", node, retry_policy=policy)
    builder.add_edge("__start__", "node")
    app = builder.compile(InMemorySaver())
    with pytest.warns(Warning):
        colour.invoke(app, {"log": []})
    assert 1 == calls["node"]


def test_a_question_caught_in_a_coroutine_stays_asked() -> None:
    with Colour(asynchronous=True) as colour:
        app = wire(node=catches_in_a_coroutine).compile(InMemorySaver())
        with pytest.warns(Warning, match="node"):
            assert {"?"} == set(questions(colour.invoke(app, {"log": []})))
        assert ["yes"] == colour.invoke(app, Command(resume="yes"))["log"]


def test_a_question_caught_around_a_child_stays_asked(colour: Colour) -> None:
    child = wire(ask=ask).compile()

    def node(state: Log) -> Any:
        try:
            return {"log": child.invoke({"log": []})["log"]}
        except Exception:
            return {"log": ["swallowed"]}

    async def anode(state: Log) -> Any:
        try:
            return {"log": (await child.ainvoke({"log": []}))["log"]}
        except Exception:
            return {"log": ["swallowed"]}

    app = wire(node=node if colour.runner is None else anode).compile(InMemorySaver())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert {"?"} == set(questions(colour.invoke(app, {"log": []})))
    assert ["yes"] == colour.invoke(app, Command(resume="yes"))["log"]


# -- row 22: an update during a pause -----------------------------------------


def test_an_update_during_a_pause_keeps_a_finished_sibling(
    colour: Colour, saver: Any
) -> None:
    calls: Counter = Counter()
    builder = wire(
        ("__start__", "start"),
        ("start", "done"),
        ("start", "ask"),
        start=logs("start"),
        done=logs("done", calls),
        ask=ask,
    )
    app = builder.compile(saver)
    ids = questions(colour.invoke(app, {"log": []}))

    colour.update(app, {"note": "edited"})

    state = colour.state(app)
    assert ids == questions(state)
    assert ("done" in state.values["log"], "edited") == (True, state.values["note"])
    result = colour.invoke(app, Command(resume="yes"))
    assert {"done": 1} == calls
    assert ["done", "start", "yes"] == sorted(result["log"])
    assert "edited" == result["note"]


def test_an_update_during_a_pause_can_play_the_asking_node(colour: Colour) -> None:
    app = chain(ask=ask, end=logs("end")).compile(InMemorySaver())
    colour.invoke(app, {"log": []})
    colour.update(app, {"log": ["by hand"]}, as_node="ask")
    assert {} == questions(colour.state(app))
    assert ["by hand", "end"] == colour.invoke(app, None)["log"]


def test_the_bodies_of_finished_siblings_run_once(colour: Colour, saver: Any) -> None:
    calls: Counter = Counter()
    app = wire(a=logs("a", calls), b=logs("b", calls), ask=ask).compile(saver)
    colour.invoke(app, {"log": []})
    result = colour.invoke(app, Command(resume="yes"))
    assert ["a", "b", "yes"] == sorted(result["log"])
    assert {"a": 1, "b": 1} == calls
