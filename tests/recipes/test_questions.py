"""Siblings of section A: questions asked in unusual places."""

from __future__ import annotations

import contextvars
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from towpath import (
    CachePolicy,
    Command,
    InMemorySaver,
    RetryPolicy,
    Send,
    SqliteSaver,
    interrupt,
)
from towpath.cache.memory import InMemoryCache
from towpath.errors import NodeError, OutsideNodeError, SerializationError

from .kit import THREAD, Colour, Log, chain, logs, questions, wire


def ask(state: Any) -> Any:
    """Ask, and log the answer."""
    return {"log": [interrupt("?")]}


def resume(colour: Colour, app: Any, *answers: Any) -> Any:
    """Run from the start and give answers one after the other."""
    colour.invoke(app, {"log": []})
    for answer in answers:
        result = colour.invoke(app, Command(resume=answer))
    return result


def test_a_question_outside_of_a_node_is_an_error() -> None:
    with pytest.raises(OutsideNodeError):
        interrupt("?")


def test_a_node_with_retries_asks_once_and_is_retried_after(colour: Colour) -> None:
    calls: Counter = Counter()

    def node(state: Log) -> Any:
        calls["node"] += 1
        answer = interrupt("?")
        if calls["node"] < 4:
            raise ValueError("later")
        return {"log": [answer]}

    builder = wire()
    policy = RetryPolicy(
        initial_interval=0.001, jitter=False, max_attempts=5, retry_on=ValueError
    )
    builder.add_node("node", node, retry_policy=policy)
    builder.add_edge("__start__", "node")
    assert ["yes"] == resume(colour, builder.compile(InMemorySaver()), "yes")["log"]
    assert 4 == calls["node"]


def test_an_error_handler_may_ask(colour: Colour) -> None:
    def fails(state: Log) -> Any:
        raise ValueError("no luck")

    def handle(state: Log, error: NodeError) -> Any:
        return {"log": [f"{error.error}: {interrupt('what now?')}"]}

    builder = wire()
    builder.add_node("fails", fails, error_handler=handle)
    builder.add_edge("__start__", "fails")
    app = builder.compile(InMemorySaver())
    (told,) = resume(colour, app, "go on")["log"]
    assert ("no luck" in told, "go on" in told) == (True, True)


def test_a_generator_may_ask_between_its_yields(colour: Colour) -> None:
    def node(state: Log) -> Any:
        yield {"log": ["before"]}
        yield {"log": [interrupt("?")]}
        yield {"log": ["after"]}

    app = wire(node=node).compile(InMemorySaver())
    assert ["before", "yes", "after"] == resume(colour, app, "yes")["log"]


def test_a_helper_thread_may_ask(colour: Colour) -> None:
    def node(state: Log) -> Any:
        context = contextvars.copy_context()
        with ThreadPoolExecutor(1) as pool:
            return {"log": [pool.submit(context.run, interrupt, "?").result()]}

    app = wire(node=node).compile(InMemorySaver())
    assert ["yes"] == resume(colour, app, "yes")["log"]


def test_equal_questions_of_equal_tasks_are_told_apart(colour: Colour) -> None:
    builder = wire(("__start__", "start"), start=logs("start"), ask=ask)
    builder.add_conditional_edges(
        "start", lambda state: [Send("ask", {"log": []}) for _ in range(3)]
    )
    app = builder.compile(InMemorySaver())
    colour.invoke(app, {"log": []})
    ids = [one.id for one in colour.state(app).interrupts]
    assert 3 == len(set(ids))
    answers = {id: number for number, id in enumerate(ids)}
    assert ["start", 0, 1, 2] == colour.invoke(app, Command(resume=answers))["log"]


def test_a_child_called_twice_by_one_node_asks_twice(colour: Colour) -> None:
    child = wire(ask=ask).compile()

    def node(state: Log) -> Any:
        return {"log": [child.invoke({"log": []})["log"] for _ in range(2)]}

    async def anode(state: Log) -> Any:
        return {"log": [(await child.ainvoke({"log": []}))["log"] for _ in range(2)]}

    app = wire(node=node if colour.runner is None else anode).compile(InMemorySaver())
    assert [["1"], ["2"]] == resume(colour, app, "1", "2")["log"]


def test_an_answer_may_come_with_a_goto(colour: Colour) -> None:
    builder = wire(("__start__", "ask"), ask=ask, extra=logs("extra"))
    app = builder.compile(InMemorySaver())
    colour.invoke(app, {"log": []})
    command = Command(resume="yes", goto="extra", update={"note": "n"})
    result = colour.invoke(app, command)
    assert (["extra", "yes"], "n") == (sorted(result["log"]), result["note"])


def test_new_input_while_paused_starts_anew(colour: Colour, saver: Any) -> None:
    app = wire(ask=ask).compile(saver)
    colour.invoke(app, {"log": ["first"]})
    again = colour.invoke(app, {"log": ["second"]})
    assert ["first", "second"] == again["log"]
    assert 1 == len(questions(again))
    assert ["first", "second", "y"] == colour.invoke(app, Command(resume="y"))["log"]


def test_an_answer_without_a_stored_form_is_an_error(colour: Colour) -> None:
    app = wire(ask=ask).compile(InMemorySaver())
    colour.invoke(app, {"log": []})
    with pytest.raises(SerializationError):
        colour.invoke(app, Command(resume=threading.Lock()))
    assert {"?"} == set(questions(colour.state(app)))
    assert ["fine"] == colour.invoke(app, Command(resume="fine"))["log"]


def test_a_question_without_a_stored_form_is_an_error(colour: Colour) -> None:
    def node(state: Log) -> Any:
        return {"log": [interrupt(threading.Lock())]}

    app = wire(node=node).compile(InMemorySaver())
    with pytest.raises(SerializationError, match="node"):
        colour.invoke(app, {"log": []})


def test_a_cached_node_asks_every_time(colour: Colour) -> None:
    builder = wire()
    builder.add_node("ask", ask, cache_policy=CachePolicy())
    builder.add_edge("__start__", "ask")
    app = builder.compile(InMemorySaver(), cache=InMemoryCache())
    for number in range(2):
        config = {"configurable": {"thread_id": str(number)}}
        paused = colour.invoke(app, {"log": [number]}, config)
        assert 1 == len(questions(paused))


def test_questions_survive_a_restart(colour: Colour, tmp_path: Path) -> None:
    path = str(tmp_path / "threads.db")
    child = chain(before=logs("before"), ask=ask)

    def build(saver: Any) -> Any:
        return wire(left=child.compile(), right=child.compile()).compile(saver)

    with SqliteSaver.from_conn_string(path) as saver:
        colour.invoke(build(saver), {"log": []})
        asked = [one.id for one in colour.state(build(saver)).interrupts]
    with SqliteSaver.from_conn_string(path) as saver:
        kept = [one.id for one in colour.state(build(saver)).interrupts]
        colour.invoke(build(saver), Command(resume={kept[0]: "one"}))
    with SqliteSaver.from_conn_string(path) as saver:
        result = colour.invoke(build(saver), Command(resume="two"))
    assert asked == kept
    assert ["before", "one", "before", "two"] == result["log"]


def test_static_and_asked_pauses_go_together(colour: Colour) -> None:
    app = chain(a=logs("a"), ask=ask, b=logs("b")).compile(
        InMemorySaver(), interrupt_before=["ask"], interrupt_after=["ask"]
    )
    colour.invoke(app, {"log": []})
    assert ("ask",) == colour.state(app).next
    assert {"?"} == set(questions(colour.invoke(app, None)))
    colour.invoke(app, Command(resume="yes"))
    assert ("b",) == colour.state(app).next
    assert ["a", "yes", "b"] == colour.invoke(app, None)["log"]


def test_a_paused_thread_does_not_disturb_another(colour: Colour, saver: Any) -> None:
    app = wire(ask=ask).compile(saver)
    other = {"configurable": {"thread_id": "other"}}
    colour.invoke(app, {"log": ["mine"]})
    colour.invoke(app, {"log": ["theirs"]}, other)
    assert ["theirs", 2] == colour.invoke(app, Command(resume=2), other)["log"]
    assert {"?"} == set(questions(colour.state(app, THREAD)))
    assert ["mine", 1] == colour.invoke(app, Command(resume=1))["log"]
