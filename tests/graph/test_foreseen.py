"""What a path function was shown is the fold that the step ends with, done once."""

from __future__ import annotations

import operator
from importlib import import_module
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from towpath import END, START, Overwrite, StateGraph
from towpath.graph import MessagesState
from towpath.semantics import LANGGRAPH, NATIVE

PRESETS = (NATIVE, LANGGRAPH)


class Counted:
    """A reducer of lists that says it leaves them alone, and counts its calls."""

    pure = True

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, left: list[Any], right: list[Any]) -> list[Any]:
        self.calls += 1
        return [*left, *right]


def looping(reducer: Any, path: Any, semantics: Any = NATIVE, turns: int = 3) -> Any:
    """A graph of one node that adds its turn until `path` has had enough."""
    state = TypedDict("state", {"seen": Annotated[list, reducer]})  # noqa: UP013
    builder = StateGraph(state)
    builder.add_node("add", lambda state: {"seen": [len(state["seen"])]})
    builder.add_edge(START, "add")

    def route(state: Any) -> str:
        path(state)
        return "add" if len(state["seen"]) < turns else END

    builder.add_conditional_edges("add", route, ["add", END])
    return builder.compile(semantics=semantics)


def test_a_fold_that_a_path_function_saw_is_not_done_again():
    reducer = Counted()
    graph = looping(reducer, lambda state: None)
    reducer.calls = 0
    assert graph.invoke({"seen": []})["seen"] == [0, 1, 2]
    assert reducer.calls == 1 + 3  # the input, and one for each step


@pytest.mark.parametrize("semantics", PRESETS)
@pytest.mark.parametrize("reducer", [Counted(), operator.add, lambda a, b: [*a, *b]])
def test_what_a_path_function_does_to_its_view_stays_there(reducer, semantics):
    graph = looping(reducer, lambda state: state["seen"].append("mine"), semantics, 4)
    # It sees one more than there is, and so stops one turn early.
    assert graph.invoke({"seen": []})["seen"] == [0, 1, 2]


def test_tasks_of_one_step_each_see_their_own_and_all_of_it_is_folded():
    reducer = Counted()

    class State(TypedDict):
        seen: Annotated[list, reducer]

    shown: dict[str, list[Any]] = {}
    builder = StateGraph(State)
    for name in ("a", "b"):
        builder.add_node(name, lambda state, name=name: {"seen": [name]})
        builder.add_edge(START, name)

        def route(state: State, name: str = name) -> str:
            shown[name] = list(state["seen"])
            return END

        builder.add_conditional_edges(name, route, [END])
    assert builder.compile().invoke({"seen": []})["seen"] == ["a", "b"]
    assert shown == {"a": ["a"], "b": ["b"]}


def test_a_value_that_was_replaced_is_shown_and_kept():
    reducer = Counted()

    class State(TypedDict):
        seen: Annotated[list, reducer]

    builder = StateGraph(State)
    builder.add_node("reset", lambda state: {"seen": Overwrite(["new"])})
    builder.add_edge(START, "reset")
    shown = []
    builder.add_conditional_edges(
        "reset", lambda state: shown.append(list(state["seen"])) or END, [END]
    )
    assert builder.compile().invoke({"seen": ["old"]})["seen"] == ["new"]
    assert shown == [["new"]]


@pytest.mark.parametrize("where", ["state", "written"])
def test_a_list_that_changed_since_a_path_function_saw_the_fold_is_folded_anew(where):
    """Nodes share lists with the state in the preset of the peer's semantics."""

    class State(TypedDict):
        seen: Annotated[list, Counted()]

    written: list[Any] = ["a"]
    builder = StateGraph(State)
    builder.add_node("a", lambda state: {"seen": written})

    def change(state: State) -> None:
        if where == "state":
            state["seen"].append("b")

    builder.add_node("b", change)
    builder.add_edge(START, "a")

    def route(state: State) -> str:
        if where == "written":
            written.append("later")
        return END

    builder.add_conditional_edges("a", route, [END])
    builder.add_edge(START, "b")
    graph = builder.compile(semantics=LANGGRAPH)
    found = graph.invoke({"seen": ["old"]}, {"max_concurrency": 1})["seen"]
    assert found == (["old", "b", "a"] if where == "state" else ["old", "a", "later"])


@pytest.mark.parametrize("semantics", PRESETS)
def test_what_a_path_function_does_to_a_message_that_the_fold_made_stays_there(
    semantics,
):
    def route(state: MessagesState) -> str:
        state["messages"][-1].content = "mine"
        return END

    builder = StateGraph(MessagesState)
    builder.add_node("say", lambda state: {"messages": "said"})
    builder.add_edge(START, "say")
    builder.add_conditional_edges("say", route, [END])
    found = builder.compile(semantics=semantics).invoke({"messages": ["hi"]})
    assert [m.content for m in found["messages"]] == ["hi", "said"]


@pytest.mark.differential
@pytest.mark.parametrize("package", ["langgraph", "towpath"])
def test_a_message_whose_id_a_node_changes_in_place_is_still_one(package):
    words = import_module(f"{package}.graph")

    def rename(state: Any) -> dict[str, Any]:
        last = state["messages"][-1]
        last.id = "renamed"
        return {"messages": [last, AIMessage("done", id="end")]}

    builder = words.StateGraph(words.MessagesState)
    builder.add_node("rename", rename)
    builder.add_edge(words.START, "rename")
    builder.add_conditional_edges("rename", lambda state: words.END, [words.END])
    given = [HumanMessage("a", id="1"), HumanMessage("b", id="2")]
    found = builder.compile().invoke({"messages": given})["messages"]
    assert [(m.content, m.id) for m in found] == [
        ("a", "1"),
        ("b", "renamed"),
        ("done", "end"),
    ]


def test_long_chats_fold_in_order_whatever_is_replaced_and_removed():
    def turn(state: MessagesState) -> dict[str, Any]:
        n = len(state["messages"])
        again = [AIMessage(f"again {n}", id=str(n // 2))] if n % 3 == 0 else []
        return {"messages": [HumanMessage(f"{n}", id=str(n)), *again]}

    builder = StateGraph(MessagesState)
    builder.add_node("turn", turn)
    builder.add_edge(START, "turn")
    builder.add_conditional_edges(
        "turn", lambda s: "turn" if len(s["messages"]) < 60 else END, ["turn", END]
    )
    given = {"messages": [HumanMessage("0", id="0")]}
    found = builder.compile().invoke(given, {"recursion_limit": 100})["messages"]
    assert [m.id for m in found] == [str(n) for n in range(60)]
    assert found[29].content == "29"
    assert found[24].content == "again 48"
