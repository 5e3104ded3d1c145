"""More of `create_agent`: the middleware that comes with it, agents in graphs."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import (
    ContextEditingMiddleware,
    HumanInTheLoopMiddleware,
    LLMToolSelectorMiddleware,
    ModelFallbackMiddleware,
    ModelRequest,
    PIIMiddleware,
    SummarizationMiddleware,
    TodoListMiddleware,
    ToolRetryMiddleware,
    after_agent,
    dynamic_prompt,
)
from langchain.agents.middleware.context_editing import ClearToolUsesEdit
from langchain_core.messages import HumanMessage, RemoveMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.config import get_config, get_stream_writer
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from scripted import Scripted, calls, show, thread

warnings.simplefilter("ignore")
tries = []


@tool
def add(a: int, b: int) -> int:
    """Add."""
    get_stream_writer()({"adding": [a, b]})
    return a + b


@tool
def flaky(x: int) -> str:
    """Fail twice."""
    tries.append(x)
    if len(tries) < 3:
        raise ConnectionError("down")
    return f"up after {len(tries)}"


@tool
def confirm(what: str) -> str:
    """Ask for confirmation."""
    return f"{what}: {interrupt({'confirm': what})}"


@tool
async def later(x: int) -> str:
    """Answer later."""
    await asyncio.sleep(0)
    return f"{x} later in {get_config()['metadata']['langgraph_node']}"


def summarizes() -> None:
    middleware = SummarizationMiddleware(
        model=Scripted(replies=["they talked"] * 3),
        trigger=("messages", 4),
        keep=("messages", 2),
        token_counter=lambda messages: 10 * len(list(messages)),
    )
    agent = create_agent(
        Scripted(replies=["a", "b", "c", "d"]),
        middleware=[middleware],
        checkpointer=InMemorySaver(),
    )
    for text in "wxyz":
        final = agent.invoke({"messages": text}, thread())
    show(summarized=final["messages"])


def redacts() -> None:
    middleware = PIIMiddleware("email", strategy="redact", apply_to_input=True)
    agent = create_agent(
        Scripted(replies=[lambda messages: messages[-1].content]),
        middleware=[middleware],
    )
    show(redacted=agent.invoke({"messages": "mail ann@example.com"})["messages"])


def retries() -> None:
    def fails(messages: list) -> Any:
        raise ConnectionError("no model")

    middleware = [
        ToolRetryMiddleware(max_retries=3, initial_delay=0.0, jitter=False),
        ModelFallbackMiddleware(Scripted(replies=["saved"])),
    ]
    agent = create_agent(
        Scripted(replies=[calls(("flaky", {"x": 1})), fails]),
        [flaky],
        middleware=middleware,
    )
    show(retried=agent.invoke({"messages": "go"})["messages"], tries=len(tries))


def plans() -> None:
    todos = [{"content": "one", "status": "pending"}]
    replies = [
        calls(("write_todos", {"todos": todos})),
        calls(("add", {"a": 1, "b": 1})),
        "two",
    ]
    model = Scripted(replies=replies)
    middleware = [
        TodoListMiddleware(),
        ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=1, keep=0)]),
    ]
    agent = create_agent(model, [add], middleware=middleware)
    for mode, chunk in agent.stream(
        {"messages": "go"}, stream_mode=["custom", "updates"]
    ):
        show(mode=mode, chunk=chunk)
    show(bound=model.bound)


def prompts() -> None:
    class Named(AgentState):
        user: str

    @dynamic_prompt
    def prompt(request: ModelRequest) -> str:
        return f"talk to {request.state['user']}"

    @after_agent(state_schema=Named)
    def forget(state: Any, runtime: Any) -> dict:
        return {
            "messages": [RemoveMessage(id=state["messages"][0].id)],
            "user": "nobody",
        }

    model = Scripted(replies=[lambda messages: messages[0].content])
    agent = create_agent(model, middleware=[prompt, forget], state_schema=Named)
    show(
        prompted=agent.invoke({"messages": [HumanMessage("hi", id="1")], "user": "ann"})
    )


def asks_twice() -> None:
    both = calls(
        ("confirm", {"what": "a"}),
        ("confirm", {"what": "b"}),
        ("add", {"a": 1, "b": 2}),
    )
    agent = create_agent(
        Scripted(replies=[both, "done"]), [confirm, add], checkpointer=InMemorySaver()
    )
    first = agent.invoke({"messages": "go"}, thread())
    asked = sorted(first["__interrupt__"], key=lambda one: one.value["confirm"])
    show(asked=asked)
    half = agent.invoke(Command(resume={asked[0].id: "yes"}), thread())
    show(left=[one.value["confirm"] for one in half["__interrupt__"]])
    final = agent.invoke(Command(resume={half["__interrupt__"][0].id: "no"}), thread())
    show(final=final["messages"])
    show(
        history=[
            (one.metadata["step"], one.next)
            for one in agent.get_state_history(thread())
        ]
    )


def in_graphs() -> None:
    human = HumanInTheLoopMiddleware(interrupt_on={"add": True})
    agent = create_agent(
        Scripted(replies=[calls(("add", {"a": 1, "b": 2})), "three"]),
        [add],
        middleware=[human],
        name="adder",
    )
    builder = StateGraph(MessagesState)
    builder.add_node("adder", agent)
    builder.add_node(
        "end", RunnableLambda(lambda state: {"messages": [("ai", "over")]})
    )
    builder.add_edge(START, "adder")
    builder.add_edge("adder", "end")
    with SqliteSaver.from_conn_string(":memory:") as saver:
        graph = builder.compile(checkpointer=saver)
        show(stopped=graph.invoke({"messages": "sum"}, thread())["__interrupt__"])
        inner = graph.get_state(thread(), subgraphs=True).tasks[0].state
        show(inner=inner.next, values=inner.values["messages"])
        answer = Command(resume={"decisions": [{"type": "approve"}]})
        for ns, chunk in graph.stream(
            answer, thread(), subgraphs=True, stream_mode="updates"
        ):
            show(ns=[one.partition(":")[0] for one in ns], chunk=chunk)
        show(drawn=graph.get_graph(xray=True).draw_mermaid())


async def awaited() -> None:
    selector = LLMToolSelectorMiddleware(
        model=Scripted(replies=["unused"]), max_tools=1
    )
    show(selector=type(selector).__name__)
    model = Scripted(replies=[calls(("later", {"x": 1}), ("later", {"x": 2})), "ok"])
    agent = create_agent(model, [later], cache=InMemoryCache())
    final = await agent.ainvoke({"messages": "go"})
    show(awaited=final["messages"])
    model.replies = [calls(("later", {"x": 3})), "fine"]
    async for event in agent.astream_events({"messages": "go"}, version="v1"):
        show(event=event["event"], name=event["name"], tags=event["tags"])
    model.replies = ["one", "two"]
    many = await agent.abatch(
        [{"messages": "a"}, {"messages": "b"}], {"max_concurrency": 1}
    )
    show(many=[one["messages"][-1].content for one in many])
    tooled = agent.as_tool(name="inner", description="an agent")
    show(tool=tooled.name)


summarizes()
redacts()
retries()
plans()
prompts()
asks_twice()
in_graphs()
asyncio.run(awaited())
