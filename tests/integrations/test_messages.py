"""The `messages` stream: tokens as they come, messages once."""

import time
from dataclasses import replace
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
)
from langchain_core.runnables import RunnableLambda

from towpath import START, StateGraph, semantics

from .watching import model, on_both


def one(lib, action, schema=None, *, name="step", **options):
    """A graph of one node."""
    builder = lib.StateGraph(schema or lib.MessagesState)
    builder.add_node(name, action, **options)
    builder.add_edge(lib.START, name)
    return builder.compile()


HELLO = {"messages": [HumanMessage("hi", id="h1")]}


def streamed(graph, given=HELLO, mode="messages", **options):
    return list(graph.stream(given, stream_mode=mode, **options))


async def astreamed(graph, given=HELLO, mode="messages", **options):
    return [c async for c in graph.astream(given, stream_mode=mode, **options)]


def invoke(state):
    return {"messages": model("hello world").invoke(state["messages"])}


async def ainvoke(state):
    return {"messages": await model("hello world").ainvoke(state["messages"])}


def stream(state):
    parts = list(model("hello world").stream(state["messages"]))
    return {"messages": parts[0] + parts[1] + parts[2]}


async def astream(state):
    async for _ in model("hello world").astream(state["messages"]):
        pass


@on_both
def test_tokens_of_an_invoked_model(lib):
    conf = {"thread_id": "1", "more": 2}
    config = {"tags": ["t"], "metadata": {"k": "v"}, "configurable": conf}
    return streamed(one(lib, invoke, metadata={"of": "node"}), config=config)


@on_both
def test_tokens_of_a_streamed_model(lib):
    return streamed(one(lib, stream))


@on_both
async def test_tokens_of_async_models(lib):
    return [await astreamed(one(lib, node)) for node in (ainvoke, astream, invoke)]


@on_both
def test_tags_of_a_model_are_told(lib):
    tagged = model("hello").with_config(tags=["mine"])
    return streamed(one(lib, lambda state: {"messages": tagged.invoke("?")}))


@on_both
def test_a_model_may_be_left_out(lib):
    quiet = model("a", "b").with_config(tags=["nostream"])

    def step(state):
        quiet.invoke("?")
        return {"messages": AIMessage("said", id="1")}

    return streamed(one(lib, step))


@on_both
def test_a_model_that_does_not_stream_is_told_at_its_end(lib):
    whole = model("hello world", disable_streaming=True)
    return streamed(one(lib, lambda state: {"messages": whole.invoke("?")}))


@on_both
def test_a_model_inside_a_sequence_streams(lib):
    node = (
        RunnableLambda(lambda state: state["messages"])
        | model("hello world")
        | RunnableLambda(lambda message: {"messages": message})
    )
    return streamed(one(lib, node))


@on_both
def test_a_model_in_a_path_function_streams(lib):
    def path(state):
        model("which way").invoke("?")
        return lib.END

    builder = lib.StateGraph(lib.MessagesState)
    builder.add_node("step", lambda state: None)
    builder.add_edge(lib.START, "step")
    builder.add_conditional_edges("step", path)
    return streamed(builder.compile())


class Wide(TypedDict):
    a: Any
    b: Any


RETURNED = {
    "one": lambda lib: {"a": AIMessage("x")},
    "list": lambda lib: {"a": [AIMessage("x", id="1"), HumanMessage("y"), "z"]},
    "several keys": lambda lib: {"a": AIMessage("x"), "b": [AIMessage("y")]},
    "deeper": lambda lib: {"a": {"m": AIMessage("x")}, "b": [[AIMessage("y")]]},
    "same id": lambda lib: {"a": AIMessage("x", id="1"), "b": AIMessage("y", id="1")},
    "command": lambda lib: lib.Command(update={"a": AIMessage("x")}),
    "commands": lambda lib: [lib.Command(update={"a": AIMessage("x")}), {"b": 1}],
    "kinds": lambda lib: {
        "a": [ToolMessage("r", tool_call_id="1"), AIMessageChunk("c")]
    },
}


@on_both
def test_messages_that_nodes_return_are_told_once(lib):
    told = {}
    for case, made in RETURNED.items():
        graph = one(lib, lambda state, made=made: made(lib), Wide)
        told[case] = streamed(graph, {"a": None}, config={"tags": ["t"]})
    return told


@on_both
def test_what_a_node_was_given_is_no_news(lib):
    class State(TypedDict):
        messages: Annotated[list, lib.add_messages]

    def again(state):
        return {"messages": [*state["messages"], AIMessage("new", id="2")]}

    builder = lib.StateGraph(State)
    builder.add_node("first", lambda state: {"messages": AIMessage("x", id="1")})
    builder.add_node("then", again)
    builder.add_edge(lib.START, "first")
    builder.add_edge("first", "then")
    return streamed(builder.compile())


@on_both
def test_removals_are_not_told(lib):
    update = {"messages": [RemoveMessage(id="h1"), AIMessage("b", id="b")]}
    return streamed(one(lib, lambda state: update))


@on_both
def test_tokens_before_an_error_are_told(lib):
    def step(state):
        invoke(state)
        raise ValueError("after all")

    seen = []
    with pytest.raises(ValueError, match="after all"):
        for chunk in one(lib, step).stream(HELLO, stream_mode="messages"):
            seen.append(chunk)
    return seen


@on_both
def test_with_other_modes_and_as_typed_parts(lib):
    graph = one(lib, invoke)
    return (
        streamed(graph, mode=["messages", "updates"]),
        streamed(graph, version="v2"),
    )


@on_both
def test_subgraphs_are_told_under_their_namespace(lib):
    inner = one(lib, invoke, name="inner")
    answer = one(lib, lambda state: {"messages": AIMessage("z", id="z")}, name="inner")
    return [
        streamed(one(lib, node), subgraphs=True)
        for node in (inner, answer, lambda state: inner.invoke(state))
    ]


@on_both
async def test_async_subgraphs_are_told_under_their_namespace(lib):
    inner = one(lib, ainvoke, name="inner")
    return await astreamed(one(lib, inner), subgraphs=True)


@on_both
def test_a_graph_streamed_in_a_node_tells_it_and_the_caller(lib):
    inner = one(lib, invoke, name="inner")

    def step(state):
        tokens = [m.content for m, _ in inner.stream(state, stream_mode="messages")]
        return {"messages": AIMessage(str(tokens), id="end")}

    graph = one(lib, step)
    return (
        graph.invoke(HELLO),
        streamed(graph, subgraphs=True),
        streamed(graph),
    )


@on_both
def test_a_pushed_message_is_told_at_once_and_kept(lib):
    def step(state):
        lib.push_message(AIMessage("early", id="p"))
        return {"messages": [AIMessage("late", id="r")]}

    graph = one(lib, step)
    return (
        streamed(graph, config={"metadata": {"k": "v"}}),
        streamed(graph, mode=["messages", "updates", "values"]),
        graph.invoke(HELLO),
    )


@on_both
def test_a_pushed_message_may_stay_out_of_the_state(lib):
    def step(state):
        lib.push_message(("ai", "no id"), state_key=None)

    def other(state):
        lib.push_message(AIMessage("x", id="1"), state_key=None)

    with pytest.raises(ValueError, match="ID is required"):
        one(lib, step).invoke(HELLO)
    return streamed(one(lib, other)), one(lib, other).invoke(HELLO)


def test_subgraphs_are_kept_in_unless_the_semantics_let_them_out():
    """LG#4843: one rule for every mode."""
    inner = StateGraph(Wide)
    inner.add_node("inner", lambda state: {"b": model("hello world").invoke("?").id})
    inner.add_edge(START, "inner")
    outer = StateGraph(Wide)
    outer.add_node("outer", inner.compile())
    outer.add_edge(START, "outer")

    def tokens(preset):
        chunks = streamed(outer.compile(semantics=preset), {"a": 1})
        return [message.content for message, _ in chunks]

    open_ = replace(semantics.NATIVE, inner_modes=("messages",))
    assert [] == tokens(semantics.NATIVE) == tokens(semantics.LANGGRAPH)
    assert ["hello", " ", "world"] == tokens(open_)


def test_a_token_is_told_while_the_model_still_runs():
    gate = []

    def step(state):
        for part in model("hello world").stream("?"):
            gate.append(part.content)
            if len(gate) == 1:
                deadline = time.monotonic() + 5
                while "told" not in gate and time.monotonic() < deadline:
                    time.sleep(0.001)
        return {"a": list(gate)}

    builder = StateGraph(Wide)
    builder.add_node("step", step)
    builder.add_edge(START, "step")
    chunks = builder.compile().stream({"a": 1}, stream_mode="messages")
    next(chunks)
    gate.append("told")
    list(chunks)
    assert ["hello", "told"] == gate[:2]
