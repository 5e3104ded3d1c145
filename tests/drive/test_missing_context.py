"""A run without the context that its graph declares says so where it is missed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

import pytest

from towpath import START, Runtime, StateGraph, entrypoint, get_runtime, task
from towpath.store.base import BaseStore


@dataclass
class Who:
    user: str


class Settings(TypedDict):
    user: str


class State(TypedDict, total=False):
    said: str


def graph_of(node: Any, schema: Any = Who, **route: Any) -> Any:
    builder = StateGraph(State, context_schema=schema)
    builder.add_node("greet", node)
    builder.add_edge(START, "greet")
    if route:
        builder.add_conditional_edges("greet", route["path"])
    return builder.compile(name="desk")


def by_parameter(state: State, runtime: Runtime[Who]) -> State:
    return {"said": runtime.context.user}


def by_function(state: State) -> State:
    return {"said": get_runtime(Who).context.user}


def by_key(state: State) -> State:
    return {"said": get_runtime(Settings).context["user"]}


def by_method(state: State) -> State:
    return {"said": get_runtime(Settings).context.get("user")}


def router(state: State, runtime: Runtime[Who]) -> str:
    return runtime.context.user


def notes(error: BaseException) -> str:
    return "\n".join(error.__notes__)


@pytest.mark.parametrize(
    ("graph", "kind"),
    [
        (graph_of(by_parameter), AttributeError),
        (graph_of(by_function), AttributeError),
        (graph_of(by_key, Settings), TypeError),
        (graph_of(by_method, Settings), AttributeError),
        (graph_of(lambda state: None, path=router), AttributeError),
    ],
)
def test_a_node_without_its_context_says_how_to_give_one(colour, graph, kind):
    with pytest.raises(kind) as caught:
        colour.invoke(graph, {})
    told = notes(caught.value)
    assert "'greet'" in told
    assert "'desk'" in told
    assert "context=" in told


def test_async_nodes_are_told_as_well(colour):
    async def node(state: State, runtime: Runtime[Who]) -> State:
        return {"said": runtime.context.user}

    if colour.name == "sync":
        pytest.skip("async nodes are awaited")
    with pytest.raises(AttributeError) as caught:
        colour.invoke(graph_of(node), {})
    assert "no context" in notes(caught.value)


def test_it_is_said_once_where_tasks_call_tasks(colour):
    @task
    def greet(n: int) -> str:
        return get_runtime(Who).context.user

    @entrypoint(context_schema=Who)
    def flow(n: int) -> str:
        return greet(n).result()

    if colour.name != "sync":
        pytest.skip("the same code")
    with pytest.raises(AttributeError) as caught:
        colour.invoke(flow, 1)
    assert ["greet"] == [
        note.split("'")[1] for note in caught.value.__notes__ if "no context" in note
    ]


def test_other_missing_things_are_not_blamed_on_the_context(colour):
    def node(state: State, runtime: Runtime[Who]) -> State:
        assert runtime.context is None
        return {"said": state.get("said").upper()}

    with pytest.raises(AttributeError) as caught:
        colour.invoke(graph_of(node), {})
    assert "context" not in notes(caught.value)


def test_a_context_that_fits_is_used_and_one_that_does_not_names_its_schema():
    graph = graph_of(by_parameter)
    assert {"said": "ada"} == graph.invoke({}, context={"user": "ada"})
    with pytest.raises(TypeError) as caught:
        graph.invoke({}, context={"usr": "ada"})
    assert "context_schema=Who" in notes(caught.value)


def test_a_store_that_is_missed_is_named(colour):
    def by_runtime(state: State, runtime: Runtime) -> State:
        return {"said": str(runtime.store.get(("a",), "b"))}

    def by_argument(state: State, *, store: BaseStore) -> State:
        store.put(("a",), "b", {})
        return {}

    for node in (by_runtime, by_argument):
        with pytest.raises(AttributeError) as caught:
            colour.invoke(graph_of(node, None), {})
        assert "compiled without" in notes(caught.value)


def test_a_store_that_is_not_asked_for_is_not_blamed(colour):
    def node(state: State, runtime: Runtime) -> State:
        return {"said": state.get("said").upper()}

    with pytest.raises(AttributeError) as caught:
        colour.invoke(graph_of(node, None), {})
    assert "store" not in notes(caught.value)
