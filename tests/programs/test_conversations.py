"""Messages: how they are merged, streamed and told apart."""

import operator
from typing import Annotated

from langchain_core.language_models import FakeListChatModel, GenericFakeChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    AnyMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
)
from langchain_core.runnables import RunnableLambda
from typing_extensions import TypedDict

from towpath.testing.api import Api

from .both import on_both, thread


def brief(messages):
    """Keep kind, id and content of messages."""
    return [(type(one).__name__, one.id, one.content) for one in messages]


@on_both
def test_messages_are_merged_by_id(lib: Api) -> object:
    add = lib.add_messages
    left = [HumanMessage("a", id="1"), AIMessage("b", id="2")]
    seen = [
        brief(add(left, AIMessage("B", id="2"))),
        brief(add(left, [HumanMessage("c", id="3"), HumanMessage("C", id="3")])),
        brief(add(left, [RemoveMessage(id="1")])),
        brief(add(left, [RemoveMessage(id=lib.REMOVE_ALL_MESSAGES)])),
        brief(add([], ("user", "x"))),
        brief(add([], [{"role": "assistant", "content": "y"}, "z"])),
        brief(add(HumanMessage("h", id="h"), [SystemMessage("s", id="s")])),
        brief(add(left, [AIMessageChunk(content="chunk", id="2")])),
    ]
    try:
        add(left, [RemoveMessage(id="9")])
    except ValueError:
        seen.append("unknown id")
    return seen


@on_both
def test_messages_are_formatted(lib: Api) -> object:
    class State(TypedDict):
        messages: Annotated[list, lib.add_messages(format="langchain-openai")]

    def node(state: State):
        picture = {"type": "image", "source": {"type": "base64", "data": "1234"}}
        picture["source"]["media_type"] = "image/jpeg"
        content = [{"type": "text", "text": "look"}, picture]
        return {"messages": [{"role": "user", "content": content}]}

    graph = lib.StateGraph(State)
    graph.add_node(node)
    graph.add_edge(lib.START, "node")
    return graph.compile().invoke({"messages": []})["messages"][0].content


@on_both
def test_a_state_extends_the_messages(lib: Api) -> object:
    class State(lib.MessagesState):
        documents: list[str]

    def node(state: State):
        return {"messages": [AIMessage("found", id="m")], "documents": ["d"]}

    graph = lib.StateGraph(State)
    graph.add_node(node)
    graph.add_edge(lib.START, "node")
    result = graph.compile().invoke({"messages": [HumanMessage("q", id="q")]})
    return brief(result["messages"]), result["documents"]


@on_both
def test_messages_are_kept_in_a_database(lib: Api) -> object:
    def node(state: lib.MessagesState):
        return {"messages": [AIMessage(f"{len(state['messages'])}", id=None)]}

    graph = lib.StateGraph(lib.MessagesState)
    graph.add_node(node)
    graph.add_edge(lib.START, "node")
    with lib.SqliteSaver.from_conn_string(":memory:") as saver:
        app = graph.compile(checkpointer=saver)
        for text in ("a", "b"):
            app.invoke({"messages": text}, thread())
        return app.get_state(thread()).values["messages"]


META = (
    "langgraph_node langgraph_step langgraph_triggers langgraph_path thread_id "
    "langgraph_checkpoint_ns checkpoint_ns ls_provider tags user"
).split()


def told(chunk):
    """Keep what a program reads of a token and its metadata."""
    message, metadata = chunk
    kept = {key: metadata[key] for key in META if key in metadata}
    return type(message).__name__, message.content, message.id, kept


@on_both
def test_tokens_know_where_they_come_from(lib: Api) -> object:
    class Inner(TypedDict):
        messages: Annotated[list[AnyMessage], lib.add_messages]

    model = FakeListChatModel(responses=["ab", "cd"])

    def call(state: Inner):
        return {"messages": [model.invoke(state["messages"])]}

    child = lib.StateGraph(Inner)
    child.add_node(call, metadata={"user": "node"})
    child.add_edge(lib.START, "call")
    graph = lib.StateGraph(lib.MessagesState)
    graph.add_node("first", call)
    graph.add_node("child", child.compile())
    graph.add_edge(lib.START, "first")
    graph.add_edge("first", "child")
    app = graph.compile(checkpointer=lib.InMemorySaver())
    given = {"messages": [HumanMessage("hi", id="h")]}
    config = {**thread(), "tags": ["t"], "metadata": {"user": "ada"}}
    chunks = app.stream(given, config, stream_mode="messages", subgraphs=True)
    return [(place, told(chunk)) for place, chunk in chunks]


@on_both
def test_tokens_and_messages_are_told_once(lib: Api) -> object:
    model = GenericFakeChatModel(
        messages=iter([AIMessage("a b", id="one"), AIMessage("c d", id="two")])
    )

    def twice(state: lib.MessagesState):
        model.invoke("not kept")
        extra = AIMessage("by hand", id="hand")
        return {"messages": [model.invoke("kept"), extra]}

    graph = lib.StateGraph(lib.MessagesState)
    graph.add_node(twice)
    graph.add_edge(lib.START, "twice")
    chunks = graph.compile().stream({"messages": "hi"}, stream_mode="messages")
    return [(message.content, message.id) for message, _ in chunks]


@on_both
def test_models_may_be_kept_quiet(lib: Api) -> object:
    loud = FakeListChatModel(responses=["loud"])
    quiet = FakeListChatModel(responses=["quiet"]).with_config(tags=["nostream"])

    def node(state: lib.MessagesState):
        quiet.invoke("q")
        return {"messages": [AIMessage(loud.invoke("l").content, id="x")]}

    graph = lib.StateGraph(lib.MessagesState)
    graph.add_node(node)
    graph.add_edge(lib.START, "node")
    chunks = graph.compile().stream({"messages": "hi"}, stream_mode="messages")
    return [message.content for message, _ in chunks]


@on_both
def test_tokens_come_from_chains_and_branches(lib: Api) -> object:
    model = FakeListChatModel(responses=["ab"])
    chain = RunnableLambda(lambda state: state["messages"]) | model
    chain = chain | RunnableLambda(lambda message: {"messages": [message]})

    def route(state: lib.MessagesState):
        return lib.END if FakeListChatModel(responses=["z"]).invoke("?") else "chain"

    graph = lib.StateGraph(lib.MessagesState)
    graph.add_node("chain", chain)
    graph.add_edge(lib.START, "chain")
    graph.add_conditional_edges("chain", route)
    chunks = graph.compile().stream({"messages": "hi"}, stream_mode="messages")
    return [(message.content, meta["langgraph_node"]) for message, meta in chunks]


@on_both
async def test_tokens_come_from_parallel_coroutines(lib: Api) -> object:
    class State(TypedDict):
        log: Annotated[list, operator.add]

    def speaker(name: str):
        model = GenericFakeChatModel(messages=iter([AIMessage(f"{name} one two")]))

        async def node(state: State):
            return {"log": [(await model.ainvoke("?")).content]}

        return node

    graph = lib.StateGraph(State)
    for name in ("x", "y"):
        graph.add_node(name, speaker(name))
        graph.add_edge(lib.START, name)
    app = graph.compile()
    modes = ["messages", "updates"]
    heard = {"x": "", "y": "", "updates": []}
    async for mode, chunk in app.astream({"log": []}, stream_mode=modes):
        if mode == "updates":
            heard["updates"] += sorted(chunk)
        else:
            heard[chunk[1]["langgraph_node"]] += chunk[0].content
    return heard["x"], heard["y"], sorted(heard["updates"])


@on_both
def test_messages_are_pushed_by_hand(lib: Api) -> object:
    def node(state: lib.MessagesState):
        lib.push_message(AIMessage("pushed", id="p"))
        return {"messages": [AIMessage("returned", id="r")]}

    graph = lib.StateGraph(lib.MessagesState)
    graph.add_node(node)
    graph.add_edge(lib.START, "node")
    app = graph.compile()
    given = {"messages": [HumanMessage("hi", id="h")]}
    chunks = [message.id for message, _ in app.stream(given, stream_mode="messages")]
    return chunks, brief(app.invoke(given)["messages"])
