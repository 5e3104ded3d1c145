"""`add_messages` folds as the peer's does; the graphs made of messages run."""

import warnings
from importlib import import_module
from typing import Annotated, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
)

from towpath import START, StateGraph
from towpath.graph import MessagesState, add_messages
from towpath.graph.message import REMOVE_ALL_MESSAGES, MessageGraph
from towpath.warnings import LangGraphDeprecatedSinceV10

IDS = ("1", "2", "3")
texts = st.sampled_from(["a", "b", ""])
ids = st.sampled_from([None, "", *IDS])
messages = st.one_of(
    st.builds(lambda text, key: HumanMessage(text, id=key), texts, ids),
    st.builds(lambda text, key: AIMessage(text, id=key), texts, ids),
    st.builds(lambda text, key: AIMessageChunk(text, id=key), texts, ids),
    st.builds(
        lambda text, key: ToolMessage(text, tool_call_id="t", id=key), texts, ids
    ),
    st.sampled_from(IDS).map(lambda key: RemoveMessage(id=key)),
    texts,
    st.tuples(st.sampled_from(["ai", "user", "system"]), texts),
    st.fixed_dictionaries({"role": st.just("user"), "content": texts}),
)
sides = st.one_of(st.none(), messages, st.lists(messages, max_size=5))


def folded(package, left, right):
    """What came out: messages with their ids, where those were given."""
    fold = import_module(f"{package}.graph.message").add_messages
    copies = import_module("copy").deepcopy((left, right))
    try:
        found = fold(*copies)
    except (ValueError, NotImplementedError) as error:
        return type(error), str(error)
    if callable(found):
        return "a reducer"
    return [
        (type(m), m.content, m.id if m.id in IDS else len(m.id or "")) for m in found
    ]


@pytest.mark.differential
@given(left=sides, right=sides)
def test_messages_fold_as_the_peer_s_do(left, right):
    assert folded("langgraph", left, right) == folded("towpath", left, right)


clearing = st.sampled_from(
    [
        RemoveMessage(id=REMOVE_ALL_MESSAGES),
        {"role": "remove", "content": "", "id": REMOVE_ALL_MESSAGES},
    ]
)


@pytest.mark.differential
@given(
    left=st.one_of(sides, st.lists(st.one_of(messages, clearing), max_size=4)),
    right=st.one_of(clearing, st.lists(st.one_of(messages, clearing), max_size=6)),
)
def test_everything_before_can_be_removed(left, right):
    """What comes after the last removal of all is kept as it is, removals too."""
    assert folded("langgraph", left, right) == folded("towpath", left, right)


@pytest.mark.differential
def test_contents_can_be_put_into_openai_s_form():
    image = {"type": "base64", "media_type": "image/jpeg", "data": "1234"}
    content = [{"type": "text", "text": "hi"}, {"type": "image", "source": image}]
    calls = [{"name": "look", "args": {"a": 1}, "id": "t"}]

    def seen(package):
        fold = import_module(f"{package}.graph.message").add_messages
        fold = fold(format="langchain-openai")
        left = [HumanMessage(content, id="1")]
        return fold(left, [AIMessage("x", id="2", tool_calls=calls)])

    assert seen("langgraph") == seen("towpath")


def test_an_unknown_format_is_refused():
    with pytest.raises(ValueError, match="langchain-openai"):
        add_messages([], [], format="other")


def test_a_message_is_kept_as_it_is_and_told_its_id():
    old, new = HumanMessage("a", id="1"), AIMessage("b")
    left = [old]
    found = add_messages(left, [new])
    assert found == [old, new]
    assert found[1] is new
    assert new.id
    assert left == [old]


@pytest.mark.differential
def test_a_graph_of_messages_runs_alike():
    def seen(package):
        graph = import_module(f"{package}.graph")

        def answer(state):
            if len(state["messages"]) > 1:
                return {"messages": RemoveMessage(id="h")}
            return {"messages": ("ai", "hello")}

        builder = graph.StateGraph(graph.MessagesState)
        builder.add_sequence([("one", answer), ("two", answer)])
        builder.add_edge(graph.START, "one")
        app = builder.compile()
        steps = app.stream(
            {"messages": [{"role": "user", "content": "hi", "id": "h"}]},
            stream_mode="values",
        )
        return [[(m.type, m.content) for m in s["messages"]] for s in steps]

    assert seen("langgraph") == seen("towpath")


@pytest.mark.differential
def test_a_message_graph_runs_alike():
    def seen(package):
        home = import_module(f"{package}.graph.message")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            builder = home.MessageGraph()
        builder.add_node("answer", lambda state: AIMessage(f"{len(state)}", id="a"))
        builder.set_entry_point("answer")
        builder.set_finish_point("answer")
        app = builder.compile()
        given_ = HumanMessage("hi", id="h")
        return (
            app.invoke([given_]),
            app.invoke(given_),
            list(app.stream([given_], stream_mode="updates")),
        )

    assert seen("langgraph") == seen("towpath")


def test_a_message_graph_is_a_thing_of_the_past():
    with pytest.warns(LangGraphDeprecatedSinceV10, match="messages"):
        MessageGraph()


def test_the_reducer_of_a_state_can_have_a_format():
    class State(TypedDict):
        messages: Annotated[list, add_messages(format="langchain-openai")]

    builder = StateGraph(State)
    content = [{"type": "image", "source_type": "url", "url": "https://x.y/z.png"}]
    builder.add_node("step", lambda state: {"messages": [HumanMessage(content)]})
    builder.add_edge(START, "step")
    found = builder.compile().invoke({"messages": []})["messages"]
    assert "image_url" == found[0].content[0]["type"]


def test_a_state_can_be_widened():
    class State(MessagesState):
        count: int

    builder = StateGraph(State)
    builder.add_node("step", lambda state: {"messages": "hi", "count": 1})
    builder.add_edge(START, "step")
    found = builder.compile().invoke({"messages": []})
    assert (["hi"], 1) == ([m.content for m in found["messages"]], found["count"])
