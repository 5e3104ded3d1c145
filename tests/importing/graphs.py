"""Graphs that stop in the middle of something, for either library."""

from __future__ import annotations

import operator
from typing import Annotated, Any

from typing_extensions import TypedDict

from towpath.testing.api import Api

Log = Annotated[list, operator.add]


class State(TypedDict, total=False):
    n: int
    log: Log


class Inner(TypedDict, total=False):
    n: int
    log: Log


def say(runs: list[str], name: str) -> Any:
    """Return a node that says its name, and notes that it ran."""

    def node(state: Any) -> Any:
        runs.append(name)
        return {"log": [name]}

    return node


def ask(lib: Api, runs: list[str], *questions: str) -> Any:
    """Return a node that asks, one question after the other."""

    def node(state: Any) -> Any:
        answers = [lib.interrupt(question) for question in questions]
        runs.append("asked")
        return {"log": answers}

    return node


def line(lib: Api, saver: Any, **nodes: Any) -> Any:
    """Return a compiled graph of nodes one after the other."""
    graph = lib.StateGraph(State)
    before = lib.START
    for name, node in nodes.items():
        graph.add_node(name, node)
        graph.add_edge(before, name)
        before = name
    return graph.compile(checkpointer=saver)


def one_question(lib: Api, saver: Any, runs: list[str]) -> Any:
    return line(
        lib, saver, a=say(runs, "a"), ask=ask(lib, runs, "q"), end=say(runs, "end")
    )


def two_in_a_node(lib: Api, saver: Any, runs: list[str]) -> Any:
    return line(lib, saver, ask=ask(lib, runs, "first", "second"), end=say(runs, "end"))


def beside_finished(lib: Api, saver: Any, runs: list[str]) -> Any:
    """Two questions beside a finished node and a finished send, then a join."""
    graph = lib.StateGraph(State)
    for name in ("a", "side", "end"):
        graph.add_node(name, say(runs, name))
    graph.add_node("one", ask(lib, runs, "one?"))
    graph.add_node("two", ask(lib, runs, "two?"))
    graph.add_node("fan", say(runs, "fan"))
    graph.add_edge(lib.START, "a")
    goals = ["side", "one", "two"]
    graph.add_conditional_edges("a", lambda s: [*goals, lib.Send("fan", {"n": 1})])
    graph.add_edge(goals, "end")
    return graph.compile(checkpointer=saver)


def inner(lib: Api, runs: list[str], deep: Any = None) -> Any:
    graph = lib.StateGraph(Inner)
    graph.add_node("x", say(runs, "x"))
    graph.add_node("ask", deep or ask(lib, runs, "inner?"))
    graph.add_node("y", say(runs, "y"))
    graph.add_edge(lib.START, "x")
    graph.add_edge("x", "ask")
    graph.add_edge("ask", "y")
    return graph.compile()


def in_a_subgraph(lib: Api, saver: Any, runs: list[str]) -> Any:
    return line(lib, saver, a=say(runs, "a"), kid=inner(lib, runs))


def deep_down(lib: Api, saver: Any, runs: list[str]) -> Any:
    kid = inner(lib, runs, inner(lib, runs))
    return line(lib, saver, a=say(runs, "a"), kid=kid, end=say(runs, "end"))


def called_in_a_node(lib: Api, saver: Any, runs: list[str]) -> Any:
    kid = inner(lib, runs)

    def call(state: State) -> Any:
        return {"log": kid.invoke({"n": 1})["log"]}

    return line(lib, saver, call=call, end=say(runs, "end"))


def after_a_failure(lib: Api, saver: Any, runs: list[str]) -> Any:
    """One node fails the first time; the one beside it has finished."""

    def breaks(state: State) -> Any:
        runs.append("breaks")
        if runs == ["breaks"] or runs == ["side", "breaks"]:
            raise ValueError("broke")
        return {"log": ["mended"]}

    graph = lib.StateGraph(State)
    graph.add_node("breaks", breaks)
    graph.add_node("side", say(runs, "side"))
    graph.add_node("end", say(runs, "end"))
    graph.add_edge(lib.START, "breaks")
    graph.add_edge(lib.START, "side")
    graph.add_edge(["breaks", "side"], "end")
    return graph.compile(checkpointer=saver)


def among_sends(lib: Api, saver: Any, runs: list[str]) -> Any:
    """One of four sends asks; the others have finished."""

    def work(state: State) -> Any:
        if state["n"] == 2:
            return {"log": [lib.interrupt("two?")]}
        runs.append(f"work {state['n']}")
        return {"log": [state["n"]]}

    graph = lib.StateGraph(State)
    sends = [lib.Send("work", {"n": number}) for number in range(4)]
    graph.add_node("route", lambda state: lib.Command(goto=sends))
    graph.add_node("work", work)
    graph.add_edge(lib.START, "route")
    return graph.compile(checkpointer=saver)


def beside_a_goto(lib: Api, saver: Any, runs: list[str]) -> Any:
    """A command of a finished node waits for the answer beside it."""

    def move(state: State) -> Any:
        runs.append("move")
        return lib.Command(goto="end", update={"log": ["moved"]})

    graph = lib.StateGraph(State)
    goals = ["move", "ask"]
    graph.add_node("route", lambda state: lib.Command(goto=goals))
    graph.add_node("move", move)
    graph.add_node("ask", ask(lib, runs, "q"))
    graph.add_node("end", say(runs, "end"))
    graph.add_edge(lib.START, "route")
    return graph.compile(checkpointer=saver)


def before_a_deferred(lib: Api, saver: Any, runs: list[str]) -> Any:
    graph = lib.StateGraph(State)
    graph.add_node("a", say(runs, "a"))
    graph.add_node("ask", ask(lib, runs, "q"))
    graph.add_node("last", say(runs, "last"), defer=True)
    graph.add_edge(lib.START, "a")
    graph.add_edge("a", "ask")
    graph.add_edge("a", "last")
    graph.add_edge("ask", "last")
    return graph.compile(checkpointer=saver)
