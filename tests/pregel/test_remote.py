"""A graph elsewhere: the same calls made and the same read as by the peer."""

from __future__ import annotations

import asyncio
from datetime import datetime
from importlib import import_module
from importlib.util import find_spec

import pytest
from tests.programs.both import on_both, on_drop_in, thread
from typing_extensions import TypedDict

from towpath.testing.api import Api, load

if not find_spec("langgraph_sdk"):
    pytest.skip("needs langgraph-sdk", allow_module_level=True)

from .remote_client import ASKED, THREAD, Client, part, values


def remote(lib: Api, *parts, **options):
    """Return a graph elsewhere and the list of calls that it makes."""
    kind = import_module(f"{lib.package}.pregel.remote").RemoteGraph
    client = Client(*parts)
    return kind("asst", sync_client=client, **options), client.calls


def tried(call):
    try:
        return call()
    except Exception as error:
        return type(error).__name__


PARTS = (
    values(a=1),
    part("metadata", {"run_id": "r"}),
    part("updates", {"n": {"a": 2}}),
    part("updates|sub:1", {"k": 3}),
    part("values|sub:1|deep:2", {"k": 4}),
    part("messages", [{"content": "hi"}, {"m": 1}]),
    part("messages|sub:1", [{"content": "in"}, {}]),
    part("custom", "said"),
    part("tasks", {"id": "t"}),
    part("values", {"a": 2, **ASKED}),
    part("updates", ASKED),
    part("end", None),
)


@on_both
def test_a_run_is_asked_for_and_its_last_state_returned(lib: Api) -> object:
    graph, calls = remote(lib, *PARTS)
    outcomes = [
        graph.invoke({"x": 1}),
        graph.invoke({"x": 1}, version="v2"),
        graph.invoke({}, THREAD, interrupt_before=["a"], interrupt_after="*",
                     context={"c": 1}, headers={"h": "1"}, params={"p": "1"},
                     durability="sync"),
        remote(lib)[0].invoke(None),
    ]  # fmt: skip
    return outcomes, calls


@on_both
def test_streams_show_what_was_asked_for(lib: Api) -> object:
    graph, calls = remote(lib, *PARTS)
    modes = (
        None, "values", "updates", "custom", "messages", "messages-tuple", "tasks",
        "debug", ["values"], ["updates", "custom"], ["messages", "values"],
    )  # fmt: skip
    ways = [{}, {"subgraphs": True}, {"version": "v2"}]
    both = {"subgraphs": True, "version": "v2"}
    return [
        list(graph.stream({}, stream_mode=mode, **way))
        for mode in modes
        for way in [*ways, both]
    ], calls


@on_both
def test_a_config_is_sent_as_far_as_it_means_something_there(lib: Api) -> object:
    graph, calls = remote(lib, config={"tags": ["base"], "configurable": {"b": 1}})
    conf = {
        "thread_id": "T", "checkpoint_id": "C", "checkpoint_ns": "a:1",
        "checkpoint_map": {"": "z"}, "user": "u", "thing": object(), "none": None,
        "list": [1, object(), None], "tuple": (1, 2), 1: "number", "set": {1},
        "nested": {"kept": {"x": 1.5, "y": b"x"}, "when": datetime(2020, 1, 1)},
    }  # fmt: skip
    config = {
        "configurable": conf, "tags": ["t"], "metadata": {"m": 1, "o": object()},
        "recursion_limit": 5, "run_name": "rn", "max_concurrency": 3,
        "callbacks": [],
    }  # fmt: skip
    graph.with_config(tags=["with"], metadata={"w": 1}).invoke({}, config)
    return calls, graph.with_config({"tags": ["q"]}).config


@on_both
def test_commands_are_sent_as_commands(lib: Api) -> object:
    graph, calls = remote(lib)
    for command in (
        lib.Command(resume="yes"),
        lib.Command(resume={"q1": 1}, update={"x": 1}, goto="n"),
        lib.Command(goto=[lib.Send("n", {"a": 1}), "m"], update=[("a", 1)]),
    ):
        graph.invoke(command, THREAD)
    return calls


@on_both
def test_an_error_there_is_one_here(lib: Api) -> object:
    parts = [
        part("error", {"error": "E", "message": "M"}),
        part("error", "text"),
        part("error|sub:1", {"e": 1}),
    ]
    found = []
    for each in parts:
        graph, _ = remote(lib, values(a=1), each)
        try:
            graph.invoke({})
        except Exception as error:
            found.append((type(error).__name__, error.args))
    return found


@on_both
def test_states_and_graphs_are_read(lib: Api) -> object:
    graph, calls = remote(lib)
    at = {"configurable": {**THREAD["configurable"], "checkpoint_id": "C", "user": 1}}
    drawn = graph.get_graph(xray=2, headers={"h": "1"}, params={"p": 1})
    return [
        graph.get_state(THREAD),
        graph.get_state(at, subgraphs=True, headers={"h": "1"}, params={"p": 1}),
        list(graph.get_state_history(at)),
        list(graph.get_state_history(THREAD, filter={"a": 1}, before=at, limit=3)),
        graph.update_state(at, {"a": 1}, as_node="n"),
        graph.update_state(THREAD, None),
        tried(lambda: graph.get_state({})),
        tried(lambda: graph.bulk_update_state(THREAD, [])),
        [tuple(each) for each in drawn.nodes.values()],
        [tuple(each) for each in drawn.edges],
    ], calls


@on_both
def test_a_client_of_the_other_colour_is_no_use(lib: Api) -> object:
    kind = import_module(f"{lib.package}.pregel.remote").RemoteGraph
    blocking = kind("asst", sync_client=Client(), name="mine")
    looping = kind("asst", client=Client(awaited=True))
    return [
        tried(lambda: looping.invoke({})),
        tried(lambda: asyncio.run(blocking.ainvoke({}))),
        (blocking.name, looping.name, blocking.copy({"name": "copy"}).name),
    ]


@on_both
async def test_every_verb_can_be_awaited(lib: Api) -> object:
    kind = import_module(f"{lib.package}.pregel.remote").RemoteGraph
    client = Client(*PARTS, awaited=True)
    graph = kind("asst", client=client)
    return [
        await graph.ainvoke({}, THREAD),
        await graph.ainvoke({}, version="v2"),
        [each async for each in graph.astream({}, stream_mode="updates")],
        await graph.aget_state(THREAD),
        [each.next async for each in graph.aget_state_history(THREAD, limit=2)],
        await graph.aupdate_state(THREAD, {"a": 1}, "n"),
        len((await graph.aget_graph()).nodes),
        client.calls,
    ]


class State(TypedDict, total=False):
    a: int


def around(lib: Api, *parts, **options):
    """Return a local graph whose one node is a graph elsewhere, and its calls."""
    node, calls = remote(lib, *parts, name="elsewhere")
    graph = lib.StateGraph(State)
    graph.add_node("far", node)
    graph.add_edge(lib.START, "far")
    return graph.compile(**options), calls


@on_both
def test_a_graph_elsewhere_is_a_node(lib: Api) -> object:
    graph, calls = around(lib, values(a=1), values(a=5))
    given = {"tags": ["t"], "metadata": {"m": 1}, "configurable": {"user": "u"}}
    return graph.invoke({"a": 0}, given), calls


@on_both
def test_what_it_tells_is_told_with_the_local_run(lib: Api) -> object:
    parts = [each for each in PARTS if "__interrupt__" not in (each.data or ())]
    graph, _ = around(lib, *parts, values(a=7))
    asked = (["values", "updates"], "updates", ["custom", "tasks"])
    return [
        list(graph.stream({"a": 0}, stream_mode=mode, subgraphs=inside))
        for mode in asked
        for inside in (False, True)
    ]


@on_drop_in
def test_what_it_asks_stops_the_local_run(lib: Api) -> object:
    graph, _ = around(lib, part("updates", ASKED), checkpointer=lib.InMemorySaver())
    asked = graph.invoke({"a": 0}, thread())
    task = graph.get_state(thread()).tasks[0]
    return asked, task.name, task.interrupts


def test_the_answer_goes_back_to_where_it_was_asked():
    lib = load("towpath")
    graph, calls = around(lib, part("updates", ASKED), checkpointer=lib.InMemorySaver())
    graph.invoke({"a": 0}, thread())
    graph.invoke(lib.Command(resume="yes"), thread())
    assert None is calls[-1][3]["input"]
    assert {"q1": "yes"} == calls[-1][3]["command"]["resume"]


def test_answers_to_the_local_nodes_own_questions_stay_here():
    lib = load("towpath")
    node, calls = remote(lib, values(a=5))

    def ask_first(state: State):
        lib.interrupt("mine")
        return node.invoke(state)

    graph = lib.StateGraph(State)
    graph.add_node("far", ask_first)
    graph.add_edge(lib.START, "far")
    app = graph.compile(checkpointer=lib.InMemorySaver())
    app.invoke({"a": 0}, thread())
    assert {"a": 5} == app.invoke(lib.Command(resume="yes"), thread())
    assert None is calls[-1][3]["command"]


def test_the_trace_goes_along_in_headers():
    import langsmith

    lib = load("towpath")
    graph, calls = remote(lib, values(a=1), distributed_tracing=True)
    tree = langsmith.RunTree(name="here", run_type="chain")
    with langsmith.tracing_context(parent=tree):
        graph.invoke({}, headers={"baggage": "mine=1", "h": "x"})
    sent = calls[-1][3]["headers"]
    assert "x" == sent["h"]
    assert sent["baggage"].startswith("mine=1")
    assert str(tree.trace_id) in sent["langsmith-trace"]
