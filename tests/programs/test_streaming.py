"""What a run shows while it goes on."""

import operator
from typing import Annotated

from langchain_core.language_models import FakeListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage
from typing_extensions import TypedDict

from towpath.testing.api import Api
from towpath.testing.normal import stream

from .both import on_both, thread


class State(TypedDict):
    topic: str
    joke: str


def jokes(lib: Api, **options):
    """Return a graph that refines a topic and tells a joke."""

    def refine(state: State):
        return {"topic": state["topic"] + " and cats"}

    def tell(state: State):
        return {"joke": f"a joke on {state['topic']}"}

    graph = lib.StateGraph(State)
    graph.add_sequence([refine, tell])
    graph.add_edge(lib.START, "refine")
    return graph.compile(**options)


@on_both
def test_each_mode_shows_its_own(lib: Api) -> object:
    app = jokes(lib, checkpointer=lib.InMemorySaver())
    modes = ("values", "updates", "custom", "tasks", "checkpoints", "debug")
    return {
        mode: list(app.stream({"topic": "ice"}, thread(mode), stream_mode=mode))
        for mode in modes
    }


@on_both
def test_several_modes_are_told_apart(lib: Api) -> object:
    app = jokes(lib)
    return list(app.stream({"topic": "ice"}, stream_mode=["updates", "values"]))


@on_both
def test_typed_parts_say_what_they_are(lib: Api) -> object:
    app = jokes(lib)
    modes = ["updates", "values", "tasks"]
    return list(app.stream({"topic": "ice"}, stream_mode=modes, version="v2"))


@on_both
def test_typed_results_hold_the_open_questions(lib: Api) -> object:
    def ask(state: State):
        return {"joke": lib.interrupt("funny?")}

    graph = lib.StateGraph(State)
    graph.add_node(ask)
    graph.add_edge(lib.START, "ask")
    app = graph.compile(checkpointer=lib.InMemorySaver())
    paused = app.invoke({"topic": "ice"}, thread(), version="v2")
    done = app.invoke(lib.Command(resume="yes"), thread(), version="v2")
    return paused.value, paused.interrupts, done.value, done.interrupts


@on_both
def test_nodes_write_their_own_chunks(lib: Api) -> object:
    def by_call(state: State):
        writer = lib.get_stream_writer()
        writer({"progress": 1})
        writer("half")
        return {"topic": "t"}

    def by_parameter(state: State, writer):
        writer({"progress": 2})
        return {"joke": "j"}

    graph = lib.StateGraph(State)
    graph.add_sequence([by_call, by_parameter])
    graph.add_edge(lib.START, "by_call")
    app = graph.compile()
    return (
        list(app.stream({"topic": "ice"}, stream_mode="custom")),
        list(app.stream({"topic": "ice"}, stream_mode=["custom", "updates"])),
        app.invoke({"topic": "ice"}),
    )


@on_both
def test_children_show_under_their_place(lib: Api) -> object:
    class Foo(TypedDict):
        topic: str

    def child_node(state: State, writer):
        writer("from below")
        return {"topic": state["topic"] + "!"}

    child = lib.StateGraph(State)
    child.add_node(child_node)
    child.add_edge(lib.START, "child_node")
    graph = lib.StateGraph(Foo)
    graph.add_node("before", lambda state: {"topic": "b" + state["topic"]})
    graph.add_node("child", child.compile())
    graph.add_edge(lib.START, "before")
    graph.add_edge("before", "child")
    app = graph.compile()
    modes = ["updates", "custom", "values", "debug"]
    chunks = list(app.stream({"topic": "t"}, stream_mode=modes, subgraphs=True))
    plain = list(app.stream({"topic": "t"}, stream_mode="updates", subgraphs=True))
    return stream(chunks), plain


TELLING = (
    "langgraph_node langgraph_step langgraph_triggers langgraph_path ls_model_type tags"
).split()


def told(chunk):
    """Keep what a program reads of a token and its metadata."""
    message, metadata = chunk
    kept = {key: metadata.get(key) for key in TELLING}
    return type(message).__name__, message.content, kept


@on_both
def test_tokens_of_a_model_are_streamed(lib: Api) -> object:
    model = FakeListChatModel(responses=["one two", "three"])

    def call(state: lib.MessagesState):
        return {"messages": [model.invoke(state["messages"])]}

    graph = lib.StateGraph(lib.MessagesState)
    graph.add_node(call)
    graph.add_edge(lib.START, "call")
    app = graph.compile()
    given = {"messages": [("user", "count")]}
    chunks = list(app.stream(given, stream_mode="messages"))
    return [told(chunk) for chunk in chunks], app.invoke(given)["messages"][-1].content


@on_both
def test_tokens_are_filtered_by_node_and_tag(lib: Api) -> object:
    joke = FakeListChatModel(responses=["ha ha"]).with_config(tags=["joke"])
    poem = FakeListChatModel(responses=["la la"]).with_config(tags=["poem"])

    class Both(TypedDict):
        joke: str
        poem: str

    def write(state: Both):
        return {"joke": joke.invoke("j").content}

    def sing(state: Both):
        return {"poem": poem.invoke("p").content}

    graph = lib.StateGraph(Both)
    graph.add_sequence([write, sing])
    graph.add_edge(lib.START, "write")
    app = graph.compile()
    chunks = list(app.stream({}, stream_mode="messages"))
    by_tag = [message.content for message, meta in chunks if "joke" in meta["tags"]]
    by_node = [
        message.content for message, meta in chunks if meta["langgraph_node"] == "sing"
    ]
    return "".join(by_tag), "".join(by_node)


@on_both
def test_messages_returned_by_nodes_are_streamed(lib: Api) -> object:
    def answer(state: lib.MessagesState):
        return {"messages": [AIMessage("by hand", id="m1")]}

    model = GenericFakeChatModel(messages=iter([AIMessage("by a model", id="m2")]))

    def call(state: lib.MessagesState):
        return {"messages": [model.invoke(state["messages"])]}

    graph = lib.StateGraph(lib.MessagesState)
    graph.add_sequence([answer, call])
    graph.add_edge(lib.START, "answer")
    app = graph.compile()
    chunks = app.stream({"messages": "hi"}, stream_mode=["messages", "updates"])
    return [
        (mode, told(chunk)[:2] if mode == "messages" else sorted(chunk))
        for mode, chunk in chunks
    ]


@on_both
def test_chosen_keys_are_shown(lib: Api) -> object:
    app = jokes(lib)
    return (
        list(app.stream({"topic": "i"}, stream_mode="values", output_keys="joke")),
        list(app.stream({"topic": "i"}, stream_mode="updates", output_keys=["joke"])),
        app.invoke({"topic": "i"}, output_keys=["topic"]),
        app.invoke({"topic": "i"}, stream_mode="updates"),
    )


@on_both
def test_an_abandoned_stream_stops_the_run(lib: Api) -> object:
    class Log(TypedDict):
        log: Annotated[list, operator.add]

    calls = []

    def node(state: Log):
        calls.append(len(state["log"]))
        return {"log": ["x"]}

    graph = lib.StateGraph(Log)
    graph.add_node(node)
    graph.add_edge(lib.START, "node")
    graph.add_conditional_edges("node", lambda state: "node")
    run = graph.compile().stream({"log": []}, {"recursion_limit": 50})
    first = [next(run), next(run)]
    run.close()
    return first, len(calls) < 50
