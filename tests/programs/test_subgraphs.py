"""Graphs inside graphs."""

import operator
from typing import Annotated, Any

import pytest
from typing_extensions import TypedDict

from towpath.errors import NoCheckpointerError
from towpath.testing.api import Api, load

from .both import on_both, on_drop_in, thread


class Foo(TypedDict):
    foo: str


class FooBar(TypedDict):
    foo: str
    bar: str


def shared_child(lib: Api, **options):
    """Return a graph that shares `foo` and keeps `bar` to itself."""
    child = lib.StateGraph(FooBar)
    child.add_node("one", lambda state: {"bar": "bar"})
    child.add_node("two", lambda state: {"foo": state["foo"] + state["bar"]})
    child.add_edge(lib.START, "one")
    child.add_edge("one", "two")
    return child.compile(**options)


@on_both
def test_a_child_shares_keys_with_its_parent(lib: Api) -> object:
    graph = lib.StateGraph(Foo)
    graph.add_node("first", lambda state: {"foo": "hi! " + state["foo"]})
    graph.add_node("child", shared_child(lib))
    graph.add_edge(lib.START, "first")
    graph.add_edge("first", "child")
    app = graph.compile()
    return [
        app.invoke({"foo": "foo"}),
        list(app.stream({"foo": "foo"})),
        list(app.stream({"foo": "foo"}, subgraphs=True)),
    ]


@on_both
def test_a_node_translates_for_a_child_with_another_schema(lib: Api) -> object:
    class Child(TypedDict):
        bar: str

    class GrandChild(TypedDict):
        baz: str

    inner = lib.StateGraph(GrandChild)
    inner.add_node("shout", lambda state: {"baz": state["baz"].upper()})
    inner.add_edge(lib.START, "shout")
    grandchild = inner.compile()

    def ask_grandchild(state: Child):
        return {"bar": grandchild.invoke({"baz": state["bar"]})["baz"] + "!"}

    middle = lib.StateGraph(Child)
    middle.add_node(ask_grandchild)
    middle.add_edge(lib.START, "ask_grandchild")
    child = middle.compile()

    def ask_child(state: Foo):
        return {"foo": child.invoke({"bar": state["foo"]})["bar"]}

    graph = lib.StateGraph(Foo)
    graph.add_node(ask_child)
    graph.add_edge(lib.START, "ask_child")
    app = graph.compile()
    return app.invoke({"foo": "hello"}), list(
        app.stream({"foo": "hello"}, subgraphs=True)
    )


def weather(lib: Api):
    """Return a router with a child that pauses before its last node."""

    class Messages(TypedDict):
        log: Annotated[list, operator.add]
        city: str

    child = lib.StateGraph(Messages)
    child.add_node("model", lambda state: {"city": "Paris"})
    child.add_node("fetch", lambda state: {"log": [f"sunny in {state['city']}"]})
    child.add_edge(lib.START, "model")
    child.add_edge("model", "fetch")

    class Router(TypedDict):
        log: Annotated[list, operator.add]
        route: str

    graph = lib.StateGraph(Router)
    graph.add_node("router", lambda state: {"route": "weather"})
    graph.add_node("normal", lambda state: {"log": ["normal"]})
    graph.add_node("weather", child.compile(interrupt_before=["fetch"]))
    graph.add_edge(lib.START, "router")
    graph.add_conditional_edges(
        "router", lambda state: state["route"], ["weather", "normal"]
    )
    return graph.compile(checkpointer=lib.InMemorySaver())


@on_drop_in
def test_a_paused_child_is_inspected_and_continued(lib: Api) -> object:
    app = weather(lib)
    paused = list(app.stream({"log": ["in"]}, thread(), stream_mode="updates"))
    outside = app.get_state(thread())
    inside = app.get_state(thread(), subgraphs=True)
    rest = list(app.stream(None, thread(), stream_mode="values", subgraphs=True))
    return paused, outside, inside, rest


@on_drop_in
def test_a_paused_child_is_edited(lib: Api) -> object:
    app = weather(lib)
    app.invoke({"log": ["in"]}, thread())
    child = app.get_state(thread(), subgraphs=True).tasks[0].state
    app.update_state(child.config, {"city": "Rome"})
    between = app.get_state(thread(), subgraphs=True).tasks[0].state.values
    return between, app.invoke(None, thread())


@on_drop_in
def test_a_node_of_a_child_is_played_by_hand(lib: Api) -> object:
    app = weather(lib)
    app.invoke({"log": ["in"]}, thread())
    child = app.get_state(thread(), subgraphs=True).tasks[0].state
    app.update_state(child.config, {"log": ["rain"]}, as_node="fetch")
    return app.invoke(None, thread())


@on_both
def test_a_whole_child_is_played_by_hand(lib: Api) -> object:
    app = weather(lib)
    app.invoke({"log": ["in"]}, thread())
    app.update_state(thread(), {"log": ["snow"]}, as_node="weather")
    return app.invoke(None, thread()), app.get_state(thread())


@on_both
def test_a_child_asks_a_person(lib: Api) -> object:
    class Inner(TypedDict):
        log: Annotated[list, operator.add]

    def ask(state: Inner):
        return {"log": [lib.interrupt("from below?")]}

    child = lib.StateGraph(Inner)
    child.add_node("prepare", lambda state: {"log": ["prepared"]})
    child.add_node(ask)
    child.add_edge(lib.START, "prepare")
    child.add_edge("prepare", "ask")
    middle = lib.StateGraph(Inner)
    middle.add_node("child", child.compile())
    middle.add_edge(lib.START, "child")
    graph = lib.StateGraph(Inner)
    graph.add_node("middle", middle.compile())
    graph.add_edge(lib.START, "middle")
    app = graph.compile(checkpointer=lib.InMemorySaver())
    paused = app.invoke({"log": []}, thread())
    state = app.get_state(thread(), subgraphs=True)
    done = app.invoke(lib.Command(resume="up"), thread())
    return paused, state, done


@on_both
def test_a_child_keeps_its_memory_over_runs(lib: Api) -> object:
    class Inner(TypedDict):
        log: Annotated[list, operator.add]

    class Outer(TypedDict):
        said: str

    child = lib.StateGraph(Inner)
    child.add_node("count", lambda state: {"log": [len(state["log"])]})
    child.add_edge(lib.START, "count")
    keeps, forgets = child.compile(checkpointer=True), child.compile()

    def run(sub):
        def node(state: Outer):
            return {"said": str(sub.invoke({"log": ["in"]})["log"])}

        return node

    seen = []
    for sub in (keeps, forgets):
        graph = lib.StateGraph(Outer)
        graph.add_node("node", run(sub))
        graph.add_edge(lib.START, "node")
        app = graph.compile(checkpointer=lib.InMemorySaver())
        seen.append([app.invoke({"said": ""}, thread()) for _ in range(3)])
    return seen


@on_both
def test_a_child_hands_over_to_a_node_of_its_parent(lib: Api) -> object:
    Command = lib.Command

    class State(TypedDict):
        log: Annotated[list, operator.add]

    def a(state: State):
        return Command(goto="c", update={"log": ["a"]}, graph=Command.PARENT)

    child = lib.StateGraph(State)
    child.add_node(a)
    child.add_edge(lib.START, "a")
    graph = lib.StateGraph(State)
    graph.add_node("child", child.compile(), destinations=("b", "c"))
    graph.add_node("b", lambda state: {"log": ["b"]})
    graph.add_node("c", lambda state: {"log": ["c"]})
    graph.add_edge(lib.START, "child")
    app = graph.compile()
    return app.invoke({"log": []}), list(app.stream({"log": []}, subgraphs=True))


@on_drop_in
def test_agents_hand_over_to_each_other(lib: Api) -> object:
    Command = lib.Command

    class State(TypedDict):
        log: Annotated[list, operator.add]
        left: int

    def agent(name: str, other: str):
        def act(state: State):
            if state["left"] == 0:
                return {"log": [f"{name} is done"]}
            update = {"log": [f"{name} to {other}"], "left": state["left"] - 1}
            return Command(goto=other, update=update, graph=Command.PARENT)

        sub = lib.StateGraph(State)
        sub.add_node("act", act)
        sub.add_edge(lib.START, "act")
        return sub.compile()

    graph = lib.StateGraph(State)
    graph.add_node("ada", agent("ada", "bob"))
    graph.add_node("bob", agent("bob", "ada"))
    graph.add_edge(lib.START, "ada")
    app = graph.compile()
    return app.invoke({"log": [], "left": 3})


@on_both
def test_the_graphs_inside_are_listed(lib: Api) -> object:
    inner = lib.StateGraph(Foo)
    inner.add_node("child", shared_child(lib))
    inner.add_edge(lib.START, "child")
    graph = lib.StateGraph(Foo)
    graph.add_node("inner", inner.compile())
    graph.add_edge(lib.START, "inner")
    app = graph.compile()
    flat = [name for name, _ in app.get_subgraphs()]
    deep = [name for name, _ in app.get_subgraphs(recurse=True)]
    return flat, deep


def around_a_saver(lib: Api) -> Any:
    """Build a graph without a checkpointer around one that has its own."""

    class State(TypedDict):
        text: str

    child = lib.StateGraph(State)
    child.add_node("say", lambda state: {"text": state["text"] + "!"})
    child.add_edge(lib.START, "say")
    graph = lib.StateGraph(State)
    graph.add_node("child", child.compile(checkpointer=lib.InMemorySaver()))
    graph.add_edge(lib.START, "child")
    return graph.compile()


@on_both
def test_only_the_child_has_a_checkpointer(lib: Api) -> object:
    return around_a_saver(lib).invoke({"text": "hi"}, thread())


@on_drop_in
def test_only_the_child_has_a_checkpointer_and_no_thread_is_known(lib: Api) -> object:
    return around_a_saver(lib).invoke({"text": "hi"})


def test_a_saver_of_which_no_thread_is_known_is_an_error() -> None:
    with pytest.raises(NoCheckpointerError, match="no thread_id is known"):
        around_a_saver(load("towpath")).invoke({"text": "hi"})
