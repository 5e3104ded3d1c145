"""Models and tools in a stream: messages as streams of their own, tools' events."""

from __future__ import annotations

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from tests.programs.both import on_both, thread

from towpath.testing.api import Api

from .programs import chat, read, speaks

HELLO = {"messages": [HumanMessage("hi", id="h")]}
HIDDEN = ("ls_", "lc_versions", "checkpoint_ns")


def run_of(graph, **options):
    return graph.stream_events(HELLO, version="v3", **options)


def shown(event):
    """Return an event without what langchain says of itself."""
    if isinstance(event, Exception) or event["method"] != "messages":
        return event
    what, metadata = event["params"]["data"]
    kept = {k: v for k, v in metadata.items() if not k.startswith(HIDDEN)}
    return event["params"]["namespace"], what, kept


def events(graph, **options):
    return [shown(each) for each in read(run_of(graph, **options))]


@on_both
def test_a_model_is_told_event_by_event(lib: Api) -> object:
    def call(state):
        return {"messages": [speaks("one two").invoke(state["messages"])]}

    config = {"tags": ["t"], "metadata": {"m": 1}}
    return events(chat(lib, call), config=config)


@on_both
def test_messages_in_one_piece_are_told_whole(lib: Api) -> object:
    def call(state):
        lib.push_message(AIMessage("pushed", id="p"))
        calls = [{"name": "f", "args": {"a": 1}, "id": "c1"}]
        return {
            "messages": [
                ToolMessage("of a tool", tool_call_id="1", id="t"),
                HumanMessage("of a person", id="q"),
                AIMessage("of a model", id="x", tool_calls=calls),
            ]
        }

    graph = chat(lib, call)
    streams = list(run_of(graph).messages)
    return events(graph), [
        (each.message_id, each.node, each.namespace, each.output, list(each.text))
        for each in streams
    ]


@on_both
def test_a_model_that_a_node_streams_or_hides_is_told_at_its_end(lib: Api) -> object:
    def streaming(state):
        for _ in speaks("a b").stream("hi"):
            pass
        return {}

    def hidden(state):
        model = speaks("a b", id="x").with_config(tags=["nostream"])
        return {"messages": [model.invoke("hi")]}

    runs = [read(run_of(chat(lib, each))) for each in (streaming, hidden)]
    return [[event["method"] for event in run] for run in runs]


@on_both
def test_the_text_of_a_message_is_read_as_it_comes(lib: Api) -> object:
    def call(state):
        first, second = (speaks(text).invoke("hi") for text in ("a b", "c d"))
        return {"messages": [first, second]}

    graph = lib.StateGraph(lib.MessagesState)
    graph.add_node("kid", chat(lib, call))
    graph.add_edge(lib.START, "kid")
    app = graph.compile()
    own = [(each.done, list(each.text)) for each in run_of(chat(lib, call)).messages]
    inside = [
        [list(message.text) for message in handle.messages]
        for handle in run_of(app).subgraphs
    ]
    return own, inside, list(run_of(app).messages), events(app)


@on_both
def test_an_async_model_is_awaited(lib: Api) -> object:
    async def call(state):
        return {"messages": [await speaks("a b").ainvoke("hi")]}

    async def program():
        run = await chat(lib, call).astream_events(HELLO, version="v3")
        found = []
        async for message in run.messages:
            text = [word async for word in message.text]
            found.append((type(message).__name__, text, await message.output))
        return found

    return program()


@on_both
def test_an_error_of_a_model_ends_its_message(lib: Api) -> object:
    class Breaks(type(speaks(""))):
        def _stream(self, *args, **kwargs):
            yield from list(super()._stream(*args, **kwargs))[:2]
            raise ValueError("the line broke")

    def call(state):
        return {"messages": [Breaks(messages=iter([AIMessage("a b c")])).invoke("hi")]}

    run = run_of(chat(lib, call))
    messages, texts = [], []
    try:
        for message in run.messages:
            messages.append(message)
            for word in message.text:
                texts.append(word)
    except ValueError as error:
        texts.append(error)
    return len(messages), texts


@on_both
def test_the_mode_tools_tells_of_tool_calls(lib: Api) -> object:
    from importlib import import_module

    writer = import_module(f"{lib.package}.pregel._tools")._tool_call_writer

    @tool
    def adds(a: int) -> int:
        """Add one."""
        writer.get()({"so far": a})
        return a + 1

    @tool
    def breaks(a: int) -> int:
        """Break."""
        raise ValueError("broke")

    @tool
    def asks(a: int) -> str:
        """Ask."""
        return lib.interrupt("how much?")

    def calling(each):
        call = {"type": "tool_call", "name": each.name, "id": "c1", "args": {"a": 1}}

        def node(state):
            each.invoke(call)
            return {}

        return chat(lib, node, checkpointer=lib.InMemorySaver())

    found = []
    for each in (adds, breaks, asks):
        graph = calling(each)
        found.append(read(graph.stream(HELLO, thread(), stream_mode="tools")))
        answer = lib.Command(resume="much")
        if each is asks:
            found.append(read(graph.stream(answer, thread(), stream_mode="tools")))
    return found, writer.get()
