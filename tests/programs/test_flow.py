"""Branches, loops, fan-out, map-reduce, commands."""

import operator
from typing import Annotated, Literal

from typing_extensions import TypedDict

from towpath.testing.api import Api

from .both import in_steps, on_both


class Log(TypedDict):
    log: Annotated[list, operator.add]


def logs(name: str):
    """Return a node that logs its name."""

    def node(state: Log):
        return {"log": [name]}

    return node


@on_both
def test_branches_fan_out_and_in(lib: Api) -> object:
    graph = lib.StateGraph(Log)
    for name in "abcd":
        graph.add_node(name, logs(name))
    graph.add_edge(lib.START, "a")
    graph.add_edge("a", "b")
    graph.add_edge("a", "c")
    graph.add_edge(["b", "c"], "d")
    graph.add_edge("d", lib.END)
    app = graph.compile()
    return app.invoke({"log": []}), list(app.stream({"log": []}, stream_mode="values"))


@on_both
def test_a_deferred_node_waits_for_the_longer_branch(lib: Api) -> object:
    graph = lib.StateGraph(Log)
    for name in ("a", "b", "b2", "c"):
        graph.add_node(name, logs(name))
    graph.add_node("d", logs("d"), defer=True)
    graph.add_edge(lib.START, "a")
    graph.add_edge("a", "b")
    graph.add_edge("a", "c")
    graph.add_edge("b", "b2")
    graph.add_edge("b2", "d")
    graph.add_edge("c", "d")
    return graph.compile().invoke({"log": []})


@on_both
def test_a_branch_chooses_by_state(lib: Api) -> object:
    class State(TypedDict):
        log: Annotated[list, operator.add]
        which: str

    def route(state: State):
        return ["b", "c"] if state["which"] == "bc" else ["c", "d"]

    graph = lib.StateGraph(State)
    for name in "abcde":
        graph.add_node(name, logs(name))
    graph.add_edge(lib.START, "a")
    graph.add_conditional_edges("a", route, ["b", "c", "d"])
    for name in "bcd":
        graph.add_edge(name, "e")
    app = graph.compile()
    return [app.invoke({"log": [], "which": which}) for which in ("bc", "cd")]


@on_both
def test_a_path_map_names_the_routes(lib: Api) -> object:
    class State(TypedDict):
        n: int

    graph = lib.StateGraph(State)
    graph.add_node("even", lambda state: {"n": state["n"] // 2})
    graph.add_node("odd", lambda state: {"n": state["n"] * 3 + 1})
    paths = {True: "even", False: "odd", "done": lib.END}

    def route(state: State):
        return "done" if state["n"] == 1 else state["n"] % 2 == 0

    for source in (lib.START, "even", "odd"):
        graph.add_conditional_edges(source, route, paths)
    app = graph.compile()
    return [chunk["n"] for chunk in app.stream({"n": 6}, stream_mode="values")]


@on_both
def test_map_reduce_makes_jokes(lib: Api) -> object:
    class Overall(TypedDict):
        topic: str
        subjects: list[str]
        jokes: Annotated[list[str], operator.add]
        best: str

    class One(TypedDict):
        subject: str

    def topics(state: Overall):
        return {"subjects": ["lions", "elephants", "penguins"]}

    def joke(state: One):
        return {"jokes": [f"a joke on {state['subject']}"]}

    def fan_out(state: Overall):
        return [lib.Send("joke", {"subject": one}) for one in state["subjects"]]

    def best(state: Overall):
        return {"best": max(state["jokes"], key=len)}

    graph = lib.StateGraph(Overall)
    for node in (topics, joke, best):
        graph.add_node(node)
    graph.add_edge(lib.START, "topics")
    graph.add_conditional_edges("topics", fan_out, ["joke"])
    graph.add_edge("joke", "best")
    graph.add_edge("best", lib.END)
    app = graph.compile()
    chunks = app.stream({"topic": "animals"})
    return app.invoke({"topic": "animals"}), in_steps(chunks, 1, 3, 1)


@on_both
def test_commands_update_and_go(lib: Api) -> object:
    Command = lib.Command

    class State(TypedDict):
        foo: str

    def a(state: State) -> Command[Literal["b", "c"]]:
        goto = "b" if state["foo"] == "left" else "c"
        return Command(update={"foo": goto}, goto=goto)

    graph = lib.StateGraph(State)
    graph.add_node(a)
    graph.add_node("b", lambda state: {"foo": state["foo"] + "B"})
    graph.add_node("c", lambda state: {"foo": state["foo"] + "C"})
    graph.add_edge(lib.START, "a")
    app = graph.compile()
    return app.invoke({"foo": "left"}), app.invoke({"foo": "right"})


@on_both
def test_a_command_sends_and_goes_at_once(lib: Api) -> object:
    def start(state: Log):
        sends = [lib.Send("work", {"log": [n]}) for n in range(3)]
        return lib.Command(update={"log": ["start"]}, goto=[*sends, "beside"])

    def work(state: Log):
        return {"log": [f"work {state['log']}"]}

    graph = lib.StateGraph(Log)
    graph.add_node(start)
    graph.add_node(work)
    graph.add_node("beside", logs("beside"))
    graph.add_node("last", logs("last"))
    graph.add_edge(lib.START, "start")
    graph.add_edge("work", "last")
    return in_steps(graph.compile().stream({"log": []}), 1, 4, 1)


@on_both
def test_a_loop_ends_by_its_condition(lib: Api) -> object:
    graph = lib.StateGraph(Log)
    graph.add_node("a", logs("a"))
    graph.add_node("b", logs("b"))
    graph.add_edge(lib.START, "a")
    graph.add_conditional_edges(
        "a", lambda state: "b" if len(state["log"]) < 7 else lib.END
    )
    graph.add_edge("b", "a")
    return graph.compile().invoke({"log": []})


@on_both
def test_a_loop_is_ended_by_the_recursion_limit(lib: Api) -> object:
    graph = lib.StateGraph(Log)
    graph.add_node("a", logs("a"))
    graph.add_node("b", logs("b"))
    graph.add_edge(lib.START, "a")
    graph.add_edge("a", "b")
    graph.add_edge("b", "a")
    seen = []
    try:
        for chunk in graph.compile().stream({"log": []}, {"recursion_limit": 4}):
            seen.append(chunk)
    except lib.GraphRecursionError:
        seen.append("limit")
    return seen


@on_both
def test_a_node_sees_how_many_steps_remain(lib: Api) -> object:
    class State(TypedDict):
        log: Annotated[list, operator.add]
        remaining: lib.RemainingSteps
        last: lib.IsLastStep

    def a(state: State):
        return {"log": [(state["remaining"], state["last"])]}

    def more(state: State):
        return "a" if state["remaining"] > 2 else lib.END

    graph = lib.StateGraph(State)
    graph.add_node(a)
    graph.add_edge(lib.START, "a")
    graph.add_conditional_edges("a", more)
    return graph.compile().invoke({"log": []}, {"recursion_limit": 6})


@on_both
def test_parallel_writers_need_a_reducer(lib: Api) -> object:
    class State(TypedDict):
        value: str

    graph = lib.StateGraph(State)
    graph.add_node("a", lambda state: {"value": "a"})
    graph.add_node("b", lambda state: {"value": "b"})
    graph.add_edge(lib.START, "a")
    graph.add_edge(lib.START, "b")
    try:
        return graph.compile().invoke({"value": ""})
    except lib.InvalidUpdateError as error:
        return "INVALID_CONCURRENT_GRAPH_UPDATE" in str(error), "value" in str(error)


@on_both
def test_wrong_returns_are_errors(lib: Api) -> object:
    seen = []
    for wrong in (["a list"], "a text", 1):
        graph = lib.StateGraph(Log)
        graph.add_node("a", lambda state, wrong=wrong: wrong)
        graph.add_edge(lib.START, "a")
        try:
            seen.append(graph.compile().invoke({"log": []}))
        except lib.InvalidUpdateError as error:
            seen.append(("error", type(wrong).__name__, "dict" in str(error)))
    return seen


@on_both
def test_wrong_wiring_is_an_error_when_compiling(lib: Api) -> object:
    def unknown_target(graph):
        graph.add_edge("a", "nowhere")

    def unknown_source(graph):
        graph.add_edge("nowhere", "a")

    def twice(graph):
        graph.add_node("a", logs("a"))

    def from_end(graph):
        graph.add_edge(lib.END, "a")

    def to_start(graph):
        graph.add_edge("a", lib.START)

    def reserved(graph):
        graph.add_node(lib.END, logs("end"))

    seen = []
    for fault in (unknown_target, unknown_source, twice, from_end, to_start, reserved):
        graph = lib.StateGraph(Log)
        graph.add_node("a", logs("a"))
        graph.add_edge(lib.START, "a")
        try:
            fault(graph)
            graph.compile()
            seen.append("accepted")
        except ValueError:
            seen.append(f"{fault.__name__}: error")
    try:
        lib.StateGraph(Log).add_node("a", logs("a")).compile()
    except ValueError:
        seen.append("no entry: error")
    return seen


@on_both
def test_a_sequence_is_added_at_once(lib: Api) -> object:
    graph = lib.StateGraph(Log)
    graph.add_sequence([("x", logs("x")), ("y", logs("y")), ("z", logs("z"))])
    graph.add_edge(lib.START, "x")
    app = graph.compile()
    many = app.batch([{"log": [0]}, {"log": [1]}])
    return many, list(app.stream({"log": []}, output_keys=["log"]))
