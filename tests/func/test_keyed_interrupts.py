"""Questions with keys: an answer reaches the question it was given for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict

import pytest

from towpath import START, Command, InMemorySaver, Interrupt, StateGraph, interrupt
from towpath.checkpoint.sqlite import SqliteSaver
from towpath.errors import UnknownInterruptError

THREAD = {"configurable": {"thread_id": "1"}}


class State(TypedDict, total=False):
    answers: dict[str, Any]


def graph_of(node: Callable[[Any], Any], saver: Any) -> Any:
    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    return builder.compile(checkpointer=saver)


def asks(*keys: str) -> Callable[[Any], Any]:
    """A node that asks for these keys, in this order."""
    return lambda _: {"answers": {key: interrupt(f"{key}?", key=key) for key in keys}}


def test_answer_stays_with_its_key_when_the_node_asks_in_another_order() -> None:
    saver = InMemorySaver()
    graph_of(asks("budget", "date"), saver).invoke({}, THREAD)
    graph_of(asks("budget", "date"), saver).invoke(Command(resume=100), THREAD)
    changed = graph_of(asks("date", "budget"), saver)

    done = changed.invoke(Command(resume="May"), THREAD)

    assert {"answers": {"date": "May", "budget": 100}} == done


def test_answer_does_not_reach_a_question_that_took_the_place_of_the_asked() -> None:
    saver = InMemorySaver()
    graph_of(asks("delete the draft"), saver).invoke({}, THREAD)
    changed = graph_of(asks("delete everything", "delete the draft"), saver)

    paused = changed.invoke(Command(resume="yes"), THREAD)
    done = changed.invoke(Command(resume="no"), THREAD)

    assert ["delete everything?"] == [q.value for q in paused["__interrupt__"]]
    assert {"delete everything": "no", "delete the draft": "yes"} == done["answers"]


def test_questions_without_keys_are_counted_by_themselves() -> None:
    def node(_: Any) -> Any:
        first = interrupt("first?")
        return {
            "answers": {"k": interrupt("k?", key="k"), "1": first, "2": interrupt("2")}
        }

    graph = graph_of(node, InMemorySaver())
    graph.invoke({}, THREAD)
    for answer in ("one", "key"):
        graph.invoke(Command(resume=answer), THREAD)

    done = graph.invoke(Command(resume="two"), THREAD)

    assert {"k": "key", "1": "one", "2": "two"} == done["answers"]


def test_question_can_be_answered_by_its_id_and_by_its_key() -> None:
    for answered_by in ("id", "key"):
        graph = graph_of(asks("budget"), InMemorySaver())
        [question] = graph.invoke({}, THREAD)["__interrupt__"]
        name = getattr(question, answered_by)

        done = graph.invoke(Command(resume={name: {"amount": 5}}), THREAD)

        assert {"answers": {"budget": {"amount": 5}}} == done


def test_several_questions_are_answered_by_key_at_once(tmp_path: Any) -> None:
    builder = StateGraph(State)
    builder.add_node("a", lambda _: {"answers": {"a": interrupt("a?", key="a")}})
    builder.add_node("b", lambda _: interrupt("b?", key="b") and {})
    builder.add_edge(START, "a")
    builder.add_edge(START, "b")
    with SqliteSaver.from_conn_string(str(tmp_path / "db")) as saver:
        graph = builder.compile(checkpointer=saver)
        graph.invoke({}, THREAD)
        graph = builder.compile(checkpointer=saver)  # as in another process

        done = graph.invoke(Command(resume={"a": 1, "b": 2}), THREAD)

    assert {"answers": {"a": 1}} == done


def test_key_that_two_tasks_ask_for_must_be_answered_by_id() -> None:
    builder = StateGraph(State)
    for name in ("a", "b"):
        builder.add_node(name, lambda _: interrupt("go?", key="go") and {})
        builder.add_edge(START, name)
    graph = builder.compile(checkpointer=InMemorySaver())
    asked = graph.invoke({}, THREAD)["__interrupt__"]

    with pytest.raises(UnknownInterruptError, match="`go`") as raised:
        graph.invoke(Command(resume={"go": True}), THREAD)
    graph.invoke(Command(resume={q.id: True for q in asked}), THREAD)

    assert "ambiguous" == raised.value.reason
    assert () == graph.get_state(THREAD).next


def test_dict_with_other_names_than_keys_is_an_answer() -> None:
    graph = graph_of(asks("budget"), InMemorySaver())
    graph.invoke({}, THREAD)

    done = graph.invoke(Command(resume={"budget": 1, "note": "x"}), THREAD)

    assert {"answers": {"budget": {"budget": 1, "note": "x"}}} == done


def test_key_asked_twice_in_a_task_is_one_question() -> None:
    def node(_: Any) -> Any:
        return {"answers": {n: interrupt(n, key="same") for n in ("1", "2")}}

    graph = graph_of(node, InMemorySaver())
    graph.invoke({}, THREAD)

    assert {"answers": {"1": "x", "2": "x"}} == graph.invoke(
        Command(resume="x"), THREAD
    )


def test_key_in_a_loop_is_a_new_question_each_time() -> None:
    def node(state: Any) -> Any:
        answers = state.get("answers", {})
        answer = interrupt("more?", key="more")
        goto = "node" if len(answers) < 1 else ()
        return Command(
            update={"answers": {**answers, str(len(answers)): answer}}, goto=goto
        )

    graph = graph_of(node, InMemorySaver())
    graph.invoke({}, THREAD)
    graph.invoke(Command(resume="a"), THREAD)

    assert {"0": "a", "1": "b"} == graph.invoke(Command(resume="b"), THREAD)["answers"]


def test_key_is_shown_with_the_question() -> None:
    graph = graph_of(asks("budget"), InMemorySaver())
    graph.invoke({}, THREAD)
    [question] = graph.get_state(THREAD).interrupts

    assert ("budget?", "budget") == (question.value, question.key)
    assert None is Interrupt("plain", "id").key
