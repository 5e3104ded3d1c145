"""How-tos of streams: typed parts, events, tokens, writers, nested graphs."""

import asyncio
import contextlib
import io
import operator
import re
from dataclasses import dataclass, field
from typing import Annotated

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda

from towpath.testing.api import Api

from .both import on_both, on_drop_in, thread
from .guides import Log, chained, says, tried


def timeless(chunk):
    """A chunk without what tells the time."""
    if isinstance(chunk, dict):
        return {
            k: timeless(v)
            for k, v in chunk.items()
            if k not in ("timestamp", "step_time")
        }
    if isinstance(chunk, (list, tuple)):
        return [timeless(each) for each in chunk]
    return chunk


def model(*texts):
    return GenericFakeChatModel(messages=iter([AIMessage(t) for t in texts]))


@on_both
def test_typed_parts_of_every_mode(lib: Api) -> object:
    app = chained(lib, Log, says("a"), says("b"), checkpointer=lib.InMemorySaver())
    modes = ["values", "updates", "custom", "messages", "tasks", "checkpoints", "debug"]
    return timeless(
        list(app.stream({"log": []}, thread(), stream_mode=modes, version="v2"))
    )


@on_both
def test_typed_parts_of_one_mode_each(lib: Api) -> object:
    def node(state):
        lib.get_stream_writer()({"said": 1})
        return {"log": ["x"]}

    app = chained(lib, Log, ("node", node))
    return [
        timeless(list(app.stream({"log": []}, stream_mode=mode, version="v2")))
        for mode in ("values", "updates", "custom", "messages", "tasks", "debug")
    ]


@on_both
def test_typed_parts_of_nested_graphs(lib: Api) -> object:
    low = chained(lib, Log, says("low"))
    deep = chained(lib, Log, ("low_one", low))
    app = chained(lib, Log, ("deep", deep))
    seen = []
    for mode in ("updates", ["updates", "tasks"]):
        chunks = app.stream({"log": []}, stream_mode=mode, version="v2", subgraphs=True)
        seen.append([(c["type"], c["ns"], c["data"]) for c in chunks])
    return seen


@on_both
def test_typed_results(lib: Api) -> object:
    def ask(state):
        return {"log": [lib.interrupt("q?")]}

    app = chained(lib, Log, ("ask", ask), checkpointer=lib.InMemorySaver())
    first = app.invoke({"log": []}, thread(), version="v2")
    last = app.invoke(lib.Command(resume="yes"), thread(), version="v2")
    return [(type(r).__name__, r.value, r.interrupts) for r in (first, last)]


@on_both
def test_invoke_with_other_modes(lib: Api) -> object:
    app = chained(lib, Log, says("a"), says("b"))
    return [
        app.invoke({"log": []}, stream_mode="updates"),
        app.invoke({"log": []}, stream_mode=["updates", "values"]),
        app.invoke({"log": []}, output_keys="log"),
        app.invoke({"log": []}, output_keys=["log"]),
        list(app.stream({"log": []}, output_keys="log", stream_mode="values")),
    ]


@on_both
def test_events_are_read_by_projection(lib: Api) -> object:
    def node(state):
        lib.get_stream_writer()("said")
        return {"log": ["x"]}

    app = chained(lib, Log, ("node", node), says("b"))
    run = app.stream_events({"log": []}, version="v3")
    seen = [list(run.values), run.output]
    run = app.stream_events({"log": []}, version="v3")
    seen.append(list(run.interleave("values", "messages")))
    run = app.stream_events({"log": []}, version="v3")
    seen.append([event["method"] for event in run])
    return seen


@on_both
def test_events_of_a_run_that_asks(lib: Api) -> object:
    def ask(state):
        return {"log": [lib.interrupt("q?")]}

    app = chained(lib, Log, ("ask", ask), checkpointer=lib.InMemorySaver())
    run = app.stream_events({"log": []}, thread(), version="v3")
    seen = [run.output, run.interrupted, [i.value for i in run.interrupts]]
    run = app.stream_events(lib.Command(resume="yes"), thread(), version="v3")
    seen += [run.output, run.interrupted, list(run.interrupts)]
    return seen


@on_both
def test_events_of_a_run_that_fails(lib: Api) -> object:
    def bad(state):
        raise ValueError("bad")

    app = chained(lib, Log, says("a"), ("bad", bad))
    run = app.stream_events({"log": []}, version="v3")
    return [tried(lambda: run.output), tried(lambda: list(run.values))]


@on_both
async def test_events_are_awaited(lib: Api) -> object:
    async def node(state):
        await asyncio.sleep(0)
        return {"log": ["x"]}

    app = chained(lib, Log, ("node", node), says("b"))
    run = await app.astream_events({"log": []}, version="v3")
    seen = [[value async for value in run.values]]
    run = await app.astream_events({"log": []}, version="v3")
    seen.append(await run.output())
    return seen


@on_both
async def test_the_events_of_langchain(lib: Api) -> object:
    app = chained(lib, Log, says("a"))
    found = []
    async for event in app.astream_events({"log": []}, version="v2"):
        found.append(
            (event["event"], event["name"], event["tags"], sorted(event["data"]))
        )
    return found


@on_both
def test_tokens_with_their_metadata(lib: Api) -> object:
    chat = model("hello big world")

    def call(state, config: RunnableConfig):
        return {"messages": [chat.invoke(state["messages"], config)]}

    app = chained(lib, lib.MessagesState, ("call", call))
    found = []
    for message, about in app.stream(
        {"messages": [HumanMessage("hi", id="1")]},
        stream_mode="messages",
        config={"tags": ["t"]},
    ):
        found.append(
            (
                type(message).__name__,
                message.content,
                about["langgraph_node"],
                about["langgraph_step"],
                sorted(k for k in about if k.startswith("langgraph_")),
            )
        )
    return found


@on_both
def test_tokens_and_updates_together(lib: Api) -> object:
    chat = model("one two")

    def call(state):
        return {"messages": [chat.invoke(state["messages"])]}

    def manual(state):
        return {"messages": [AIMessage("by hand", id="m")]}

    app = chained(lib, lib.MessagesState, ("call", call), ("manual", manual))
    found = []
    for mode, chunk in app.stream(
        {"messages": [HumanMessage("hi", id="1")]},
        stream_mode=["messages", "updates", "custom"],
    ):
        if mode == "messages":
            found.append((mode, type(chunk[0]).__name__, chunk[0].content))
        else:
            found.append(
                (mode, sorted(chunk), [len(v["messages"]) for v in chunk.values()])
            )
    return found


@on_both
def test_messages_of_tools_and_of_the_input(lib: Api) -> object:
    def tools(state):
        return {
            "messages": [
                ToolMessage("found", tool_call_id="c", id="t"),
                AIMessageChunk(content="chunk", id="k"),
            ]
        }

    def echo(state):
        return {"messages": state["messages"][-1:]}

    app = chained(lib, lib.MessagesState, ("tools", tools), ("echo", echo))
    return [
        (type(m).__name__, m.content, about["langgraph_node"])
        for m, about in app.stream(
            {"messages": [HumanMessage("hi", id="1")]}, stream_mode="messages"
        )
    ]


@on_both
def test_tokens_of_a_nested_model(lib: Api) -> object:
    chat = model("deep words here")

    def call(state):
        return {"messages": [chat.invoke(state["messages"])]}

    low = chained(lib, lib.MessagesState, ("call", call))
    app = chained(lib, lib.MessagesState, ("low", low))
    seen = []
    for subgraphs in (False, True):
        chat.messages = iter([AIMessage("deep words here")])
        chunks = app.stream(
            {"messages": [HumanMessage("hi", id="1")]},
            stream_mode="messages",
            subgraphs=subgraphs,
        )
        seen.append(
            [
                (c[0] if subgraphs else (), (c[1] if subgraphs else c)[0].content)
                for c in chunks
            ]
        )
    return seen


@on_both
async def test_tokens_of_a_parallel_pair(lib: Api) -> object:
    async def call(state, config: RunnableConfig):
        name = config["metadata"]["langgraph_node"]
        message = await model(f"{name} says").ainvoke(state["messages"], config)
        return {"messages": [message]}

    graph = lib.StateGraph(lib.MessagesState)
    for name in ("a", "b"):
        graph.add_node(name, call)
        graph.add_edge(lib.START, name)
    found = {}
    async for message, about in graph.compile().astream(
        {"messages": [HumanMessage("hi", id="1")]}, stream_mode="messages"
    ):
        found.setdefault(about["langgraph_node"], []).append(message.content)
    return found


@on_both
def test_writers_as_a_parameter_and_from_anywhere(lib: Api) -> object:
    def helper():
        lib.get_stream_writer()("helper")

    def node(state, writer):
        writer("first")
        helper()
        writer({"last": True})
        return {"log": ["x"]}

    low = chained(lib, Log, ("node", node))
    app = chained(lib, Log, ("low", low), ("node", node))
    return [
        list(app.stream({"log": []}, stream_mode="custom")),
        list(app.stream({"log": []}, stream_mode="custom", subgraphs=True)),
        app.invoke({"log": []}),
    ]


@on_both
async def test_async_streams_of_every_mode(lib: Api) -> object:
    async def node(state, writer):
        writer("custom")
        return {"log": ["x"]}

    app = chained(lib, Log, ("node", node), checkpointer=lib.InMemorySaver())
    modes = ["values", "updates", "custom", "tasks", "checkpoints"]
    return [c async for c in app.astream({"log": []}, thread(), stream_mode=modes)]


def printed(app, **options):
    """What a run prints, without the ids of tasks."""
    heard = io.StringIO()
    with contextlib.redirect_stdout(heard):
        list(app.stream({"log": []}, **options))
    return re.sub(r":[0-9a-f-]{36}", "", heard.getvalue())


@on_both
def test_chunks_are_printed(lib: Api) -> object:
    app = chained(lib, Log, ("low", chained(lib, Log, says("b"))))
    return [
        printed(app, print_mode="updates"),
        printed(app, print_mode=["values", "updates"], stream_mode="custom"),
        printed(app, print_mode="updates", subgraphs=True),
    ]


@on_drop_in
def test_debugging_prints(lib: Api) -> object:
    def low(**options):
        return chained(lib, Log, ("low", chained(lib, Log, says("b"))), **options)

    return [
        printed(low(), debug=True),
        printed(low(), debug=True, subgraphs=True, print_mode="tasks"),
        printed(low(debug=True)),
        printed(low(debug=True), debug=False, stream_mode="custom"),
    ]


@on_both
def test_a_generator_node_streams(lib: Api) -> object:
    def parts(state):
        yield {"log": ["one"]}
        yield {"log": ["two"]}

    app = tried(lambda: chained(lib, Log, ("parts", parts), says("b")))
    return [tried(lambda: app.invoke({"log": []}))] and len(
        tried(lambda: list(app.stream({"log": []}, stream_mode="values")))
    ) > 1


@on_both
def test_runnables_in_a_node_see_the_config(lib: Api) -> object:
    def deep(given, config: RunnableConfig):
        return {"log": [sorted(config["tags"])[:1], config["metadata"]["k"]]}

    chain = RunnableLambda(lambda s: s) | RunnableLambda(deep)
    app = chained(lib, Log, ("chain", chain))
    return app.invoke({"log": []}, {"tags": ["a"], "metadata": {"k": 1}})


@on_both
def test_a_graph_is_part_of_a_chain(lib: Api) -> object:
    app = chained(lib, Log, says("a"))
    chain = RunnableLambda(lambda x: {"log": [x]}) | app | RunnableLambda(len)
    return [
        chain.invoke("in"),
        chain.batch(["x", "y"]),
        app.with_retry().invoke({"log": []}),
        (app | (lambda s: s["log"])).invoke({"log": []}),
        list((app | RunnableLambda(lambda s: s)).stream({"log": []})),
    ]


@on_drop_in
def test_a_stream_is_left_early(lib: Api) -> object:
    ran = []

    def node(name):
        def run(state):
            ran.append(name)
            return {"log": [name]}

        return name, run

    app = chained(
        lib, Log, node("a"), node("b"), node("c"), checkpointer=lib.InMemorySaver()
    )
    for chunk in app.stream({"log": []}, thread(), stream_mode="updates"):
        if "a" in chunk:
            break
    state = app.get_state(thread())
    return "c" in ran, "c" in state.values["log"]


@on_both
def test_values_of_a_run_that_goes_on(lib: Api) -> object:
    app = chained(lib, Log, says("a"), says("b"), checkpointer=lib.InMemorySaver())
    modes = ["values", "updates"]
    seen = [
        list(
            app.stream({"log": []}, thread(), stream_mode=modes, interrupt_before=["b"])
        )
    ]
    seen.append(list(app.stream(None, thread(), stream_mode=modes)))
    seen.append(list(app.stream(None, thread(), stream_mode=modes)))
    return seen


@dataclass
class Notes:
    log: Annotated[list[str], operator.add] = field(default_factory=list)
    item: int = 0


@on_both
def test_typed_checkpoints_of_a_run_that_starts_over(lib: Api) -> object:
    """One that still has to take the input has no state of its class yet."""
    app = chained(lib, Notes, says("a"), checkpointer=lib.InMemorySaver())
    app.invoke({"log": ["in"]}, thread())
    seen = []
    for snapshot in list(app.get_state_history(thread())):
        for modes in (["checkpoints"], ["values", "checkpoints", "debug"]):
            told = app.stream(None, snapshot.config, stream_mode=modes, version="v2")
            seen.append(timeless(list(told)))
    return seen
