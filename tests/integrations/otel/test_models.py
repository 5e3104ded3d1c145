"""The calls of langchain's models and tools in nodes."""

import asyncio
import json
from contextlib import aclosing
from typing import TypedDict

import pytest

pytest.importorskip("langchain_core")

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool

from towpath import START, StateGraph
from towpath.checkpoint.memory import InMemorySaver
from towpath.prebuilt import create_react_agent
from towpath.testing.models import ScriptedChatModel, calling

USAGE = {
    "input_tokens": 5,
    "output_tokens": 7,
    "total_tokens": 12,
    "input_token_details": {"cache_read": 2},
}


def answer(said):
    meta = {"model_name": "scripted-2", "finish_reason": "stop"}
    return AIMessage(said, usage_metadata=USAGE, response_metadata=meta, id="answer-1")


def agent(told, *tools, script=None, **options):
    lines = script or [calling(("look", {"word": "secret"})), answer("secret too")]
    model = ScriptedChatModel(script=lines)
    return create_react_agent(model, list(tools), name="scribe", **options)


@pytest.fixture
def look(told):
    @tool
    def look(word: str) -> str:
        """Look a word up."""
        with told.tracer.start_as_current_span("inside"):
            return "found"

    return look


@pytest.fixture
def alook(told):
    @tool
    async def look(word: str) -> str:
        """Look a word up."""
        await asyncio.sleep(0)
        with told.tracer.start_as_current_span("inside"):
            return "found"

    return look


def words(told):
    """The chain of names above each span of a model, a tool or the user's."""
    spans = {span.context.span_id: span for span in told.spans()}
    found = []
    for span in told.spans():
        if span.name.split()[0] in ("chat", "execute_tool", "inside"):
            chain = [span.name]
            while span.parent and span.parent.span_id in spans:
                span = spans[span.parent.span_id]
                chain.append(span.name)
            found.append(chain[:-1])
    return found


AROUND = ["superstep"]
EXPECTED = [
    ["chat", "attempt agent", "task agent", *AROUND],
    ["execute_tool look", "attempt tools", "task tools", *AROUND],
    ["inside", "execute_tool look", "attempt tools", "task tools", *AROUND],
    ["chat", "attempt agent", "task agent", *AROUND],
]


def test_models_and_tools_hang_under_the_attempts_that_call_them(told, look, colour):
    graph = agent(told, look, checkpointer=InMemorySaver())
    place = {"configurable": {"thread_id": "7"}}
    colour.invoke(graph, {"messages": ["hi"]}, place)
    assert EXPECTED == words(told)
    assert {"7"} == {
        span.attributes["gen_ai.conversation.id"]
        for name in ("chat", "execute_tool", "invoke_agent")
        for span in told.spans(name)
    }


def test_the_code_of_an_async_tool_hangs_under_its_call(told, alook):
    asyncio.run(agent(told, alook).ainvoke({"messages": ["hi"]}))
    assert EXPECTED == words(told)


def test_each_call_is_told_once_beside_other_listeners(told, look, colour):
    graph = agent(told, look)
    config = {"callbacks": [BaseCallbackHandler()]}
    colour.invoke(graph, {"messages": ["hi"]}, config)
    assert EXPECTED == words(told)


def test_a_stream_of_tokens_tells_the_same(told, look):
    graph = agent(told, look)
    chunks = list(graph.stream({"messages": ["hi"]}, stream_mode="messages"))
    assert chunks
    assert EXPECTED == words(told)


def test_a_model_tells_its_name_and_what_it_used(told, look):
    agent(told, look).invoke({"messages": ["hi"]})
    chat = told.spans("chat")[1]
    facts = dict(chat.attributes)
    assert "CLIENT" == chat.kind.name
    assert "chat" == facts["gen_ai.operation.name"]
    assert "scripted-2" == facts["gen_ai.response.model"]
    assert "answer-1" == facts["gen_ai.response.id"]
    assert ("stop",) == facts["gen_ai.response.finish_reasons"]
    assert 5 == facts["gen_ai.usage.input_tokens"]
    assert 7 == facts["gen_ai.usage.output_tokens"]
    assert 2 == facts["gen_ai.usage.cache_read.input_tokens"]
    tokens = told.metrics()["gen_ai.client.token.usage"]
    kinds = {labels["gen_ai.token.type"] for _, labels in tokens}
    assert {"input", "output"} == kinds
    assert 2 == told.total("gen_ai.client.operation.duration")


def test_a_tool_tells_its_name_and_its_call(told, look):
    agent(told, look).invoke({"messages": ["hi"]})
    facts = dict(told.span("execute_tool").attributes)
    assert "look" == facts["gen_ai.tool.name"]
    assert "function" == facts["gen_ai.tool.type"]
    assert facts["gen_ai.tool.call.id"]


def test_messages_and_arguments_are_shown_only_where_asked_for(told, look):
    agent(told, look).invoke({"messages": ["secret"]})
    assert "secret" not in "".join(span.to_json() for span in told.spans())
    told.exporter.clear()
    told.instrument(record_content=True)
    agent(told, look).invoke({"messages": ["secret"]})
    first, second = told.spans("chat")
    asked = json.loads(first.attributes["gen_ai.input.messages"])
    part = {"type": "text", "content": "secret"}
    assert [{"role": "user", "parts": [part]}] == asked
    (said,) = json.loads(second.attributes["gen_ai.output.messages"])
    assert ("assistant", "secret too") == (said["role"], said["parts"][0]["content"])
    tool_span = told.span("execute_tool").attributes
    assert {"word": "secret"} == json.loads(tool_span["gen_ai.tool.call.arguments"])
    assert "found" == tool_span["gen_ai.tool.call.result"]


def test_a_model_that_fails_is_told_as_an_error(told, look, colour):
    graph = agent(told, look, script=[TimeoutError("too slow")])
    with pytest.raises(TimeoutError):
        colour.invoke(graph, {"messages": ["hi"]})
    span = told.span("chat")
    assert "TimeoutError" == span.attributes["error.type"]
    assert "ERROR" == span.status.status_code.name


def test_a_tool_that_asks_somebody_is_no_error(told, colour):
    from towpath import interrupt

    @tool
    def look(word: str) -> str:
        """Look a word up."""
        return interrupt("may I?")

    graph = agent(told, look, checkpointer=InMemorySaver())
    colour.invoke(graph, {"messages": ["hi"]}, {"configurable": {"thread_id": "1"}})
    span = told.span("execute_tool")
    assert "interrupt" == span.attributes["towpath.outcome"]
    assert "UNSET" == span.status.status_code.name


class State(TypedDict, total=False):
    log: list


@pytest.mark.parametrize("stops", [False, True], ids=["to its end", "given up"])
def test_a_stream_of_a_model_leaves_the_attempt_current(told, colour, stops):
    model = ScriptedChatModel(script=["one two three"])

    def node(state):
        for _ in model.stream("hi"):
            if stops:
                break
        with told.tracer.start_as_current_span("inside"):
            return {"log": ["done"]}

    async def anode(state):
        async with aclosing(model.astream("hi")) as chunks:
            async for _ in chunks:
                if stops:
                    break
        with told.tracer.start_as_current_span("inside"):
            return {"log": ["done"]}

    builder = StateGraph(State)
    builder.add_node("node", anode if colour.name == "async" else node)
    builder.add_edge(START, "node")
    colour.invoke(builder.compile(), {"log": []})
    above = ["attempt node", "task node", "superstep"]
    assert [["chat", *above], ["inside", *above]] == words(told)
    assert "UNSET" == told.span("chat").status.status_code.name


def test_what_a_model_does_hangs_under_its_call_and_calls_beside_each_other(
    told, colour
):
    def answers(messages):
        with told.tracer.start_as_current_span("inside"):
            return "hi"

    model = ScriptedChatModel(again=answers)

    def node(state):
        for _ in range(3):
            model.invoke("hi")

    async def anode(state):
        for _ in range(3):
            await model.ainvoke("hi")

    builder = StateGraph(State)
    builder.add_node("node", anode if colour.name == "async" else node)
    builder.add_edge(START, "node")
    colour.invoke(builder.compile(), {"log": []})
    above = ["attempt node", "task node", "superstep"]
    assert [["chat", *above], ["inside", "chat", *above]] * 3 == words(told)


def test_two_chats_of_one_call_are_side_by_side(told):
    model = ScriptedChatModel(again="hi")

    def node(state):
        model.generate([[HumanMessage("a")], [HumanMessage("b")]])

    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    builder.compile().invoke({"log": []})
    above = ["attempt node", "task node", "superstep"]
    assert [["chat", *above], ["chat", *above]] == words(told)


def test_models_outside_of_nodes_are_left_alone(told, look):
    agent(told, look).invoke({"messages": ["hi"]})
    told.exporter.clear()
    ScriptedChatModel(script=["hi"]).invoke("hi")
    assert [] == told.spans()
