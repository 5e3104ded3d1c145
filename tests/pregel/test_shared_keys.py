"""A graph that is a node gives to shared keys with a reducer what was written in it."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from typing_extensions import TypedDict

from towpath import END, START, Command, Overwrite, Send, StateGraph, interrupt
from towpath.channels import Topic
from towpath.checkpoint.memory import InMemorySaver
from towpath.checkpoint.sqlite import SqliteSaver
from towpath.graph.message import add_messages
from towpath.semantics import LANGGRAPH, NATIVE

THREAD = {"configurable": {"thread_id": "t"}}


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    sum: Annotated[int, operator.add]
    plain: str


def line(schema: Any, **nodes: Any) -> StateGraph:
    """Build a graph of nodes, one after the other."""
    builder = StateGraph(schema)
    for before, (name, node) in zip((START, *nodes), nodes.items(), strict=False):
        builder.add_node(name, node).add_edge(before, name)
    return builder


def says(name: str) -> Callable[[State], State]:
    return lambda state: {"log": [name]}


def asks(state: State) -> State:
    return {"log": [interrupt("what?")]}


@pytest.mark.parametrize(
    ("semantics", "log", "total"),
    [(NATIVE, ["in", "p", "a"], 3), (LANGGRAPH, ["in", "p", "in", "p", "a"], 6)],
)
def test_what_a_child_was_given_counts_once(semantics, log, total) -> None:
    child = line(State, a=says("a")).compile()
    graph = line(State, p=lambda state: {"log": ["p"], "sum": 1}, child=child)
    app = graph.compile(semantics=semantics)

    done = app.invoke({"log": ["in"], "sum": 2})

    assert (log, total) == (done["log"], done["sum"])


def test_awaited_it_is_the_same() -> None:
    async def a(state: State) -> State:
        return {"log": ["a"], "sum": 1}

    app = line(State, child=line(State, a=a).compile()).compile()
    done = asyncio.run(app.ainvoke({"log": ["in"], "sum": 2}))
    assert {"log": ["in", "a"], "sum": 3} == done


def test_through_several_levels() -> None:
    inner = line(State, a=says("a"), b=says("b")).compile()
    middle = line(State, m=says("m"), inner=inner, n=says("n")).compile()
    app = line(State, p=says("p"), middle=middle).compile()
    assert ["in", "p", "m", "a", "b", "n"] == app.invoke({"log": ["in"]})["log"]


def test_streams_show_what_is_new() -> None:
    child = line(State, a=says("a"), b=says("b")).compile()
    app = line(State, child=child).compile()
    chunks = list(app.stream({"log": ["in"]}, stream_mode="updates"))
    assert [{"child": {"log": ["a", "b"]}}] == chunks


def test_a_child_that_loops_and_fans_out_keeps_its_order() -> None:
    child = StateGraph(State)
    child.add_node("work", lambda state: {"log": [state["plain"]], "sum": 1})
    child.add_node("turn", lambda state: {"sum": 10})
    sends = [Send("work", {"plain": text}) for text in ("x", "y", "z")]
    child.add_conditional_edges(START, lambda state: sends, ["work"])
    child.add_edge("work", "turn")
    child.add_conditional_edges(
        "turn", lambda state: END if state["sum"] > 20 else "turn", ["turn", END]
    )
    app = line(State, child=child.compile()).compile()
    assert {"log": ["in", "x", "y", "z"], "sum": 24} == app.invoke(
        {"log": ["in"], "sum": 1}
    )


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def opened(request, tmp_path) -> Callable[[], Any]:
    """How to open one database again and again."""
    if request.param == "memory":
        saver = InMemorySaver()
        return lambda: saver
    if request.param == "sqlite":
        return lambda: SqliteSaver(str(tmp_path / "db"))
    from towpath.checkpoint.postgres import PostgresSaver

    dsn = request.getfixturevalue("postgres")
    return lambda: PostgresSaver(dsn, pool_size_max=2)


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_across_a_question_and_a_restart(opened, durability) -> None:
    child = line(State, a=says("a"), ask=asks, b=says("b")).compile()
    graph = line(State, p=says("p"), child=child, q=says("q"))
    with opened() as saver:
        graph.compile(checkpointer=saver).invoke(
            {"log": ["in"]}, THREAD, durability=durability
        )
    with opened() as saver:
        app = graph.compile(checkpointer=saver)
        done = app.invoke(Command(resume="yes"), THREAD, durability=durability)
        assert ["in", "p", "a", "yes", "b", "q"] == done["log"]
        asked = next(s for s in app.get_state_history(THREAD) if s.interrupts)
        # On a branch of its own, from before the answer.
        app.invoke(None, asked.config)
        again = app.invoke(Command(resume="no"), THREAD)
        assert ["in", "p", "a", "no", "b", "q"] == again["log"]


def test_an_edit_of_a_paused_child_is_part_of_it(opened) -> None:
    child = line(State, a=says("a"), ask=asks).compile()
    with opened() as saver:
        app = line(State, child=child).compile(checkpointer=saver)
        app.invoke({"log": ["in"]}, THREAD)
        inside = app.get_state(THREAD, subgraphs=True).tasks[0].state.config
        app.update_state(inside, {"log": ["edited"]})
        done = app.invoke(Command(resume="yes"), THREAD)
    assert ["in", "a", "edited", "yes"] == done["log"]


def test_a_lasting_child_gives_what_a_visit_wrote(opened) -> None:
    child = line(State, a=says("a")).compile(checkpointer=True)
    with opened() as saver:
        app = line(State, child=child).compile(checkpointer=saver)
        app.invoke({"log": ["one"]}, THREAD)
        done = app.invoke({"log": ["two"]}, THREAD)
    assert ["one", "a", "two", "a"] == done["log"]


def test_a_replaced_value_replaces_the_parents() -> None:
    def clear(state: State) -> State:
        return {"log": Overwrite(["clear"])}

    app = line(State, child=line(State, clear=clear, b=says("b")).compile()).compile()
    assert ["clear", "b"] == app.invoke({"log": ["in"]})["log"]


def test_a_plain_key_of_the_child_counts_when_it_was_written() -> None:
    class Plain(TypedDict, total=False):
        log: list[str]
        sum: int

    child = line(Plain, a=lambda state: {"log": [*state["log"], "a"]}).compile()
    app = line(State, child=child).compile()
    done = app.invoke({"log": ["in"], "sum": 2})
    assert {"log": ["in", "in", "a"], "sum": 2} == done


def test_reducers_that_may_take_a_value_twice_get_the_whole() -> None:
    class Chat(TypedDict):
        messages: Annotated[list[Any], add_messages]

    class Tags(TypedDict, total=False):
        tags: Annotated[set[str], operator.or_]
        best: Annotated[int, longest]

    def say(state: Chat) -> Any:
        return {"messages": [("ai", "hello")]}

    child = line(Chat, say=say).compile()
    app = line(Chat, child=child).compile(checkpointer=InMemorySaver())
    done = app.invoke({"messages": [("human", "hi")]}, THREAD)["messages"]
    assert ["hi", "hello"] == [message.content for message in done]
    inner = line(Tags, a=lambda state: {"tags": {"a"}}).compile()
    assert {"tags": {"in", "a"}, "best": 3} == line(Tags, inner=inner).compile().invoke(
        {"tags": {"in"}, "best": 3}
    )


def longest(one: int, other: int) -> int:
    return max(one, other)


longest.idempotent = True  # type: ignore[attr-defined]  # what is tested


def test_a_topic_holds_each_value_once() -> None:
    class Topics(TypedDict, total=False):
        seen: Annotated[list[str], Topic(str, accumulate=True)]

    child = line(Topics, a=lambda state: {"seen": "a"}).compile()
    app = line(Topics, p=lambda state: {"seen": "p"}, child=child).compile()
    assert ["in", "p", "a"] == app.invoke({"seen": ["in"]})["seen"]


def test_a_function_that_calls_a_graph_gets_its_whole_output() -> None:
    child = line(State, a=says("a")).compile()

    def call(state: State) -> State:
        return {"log": [str(child.invoke({"log": state["log"]})["log"])]}

    assert ["in", "['in', 'a']"] == line(State, call=call).compile().invoke(
        {"log": ["in"]}
    )["log"]


def test_no_key_has_the_name_under_which_it_is_kept() -> None:
    taken = TypedDict("taken", {"__told__": str})  # type: ignore[misc]  # noqa: UP013
    with pytest.raises(Exception, match="__told__"):
        StateGraph(taken).add_node("a", says("a")).add_edge(START, "a").compile()
