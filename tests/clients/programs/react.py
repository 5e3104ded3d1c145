"""`langgraph.prebuilt`: agents, tool nodes, injection, questions in tools."""

from __future__ import annotations

import asyncio
import warnings
from typing import Annotated, Any

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import (
    InjectedState,
    InjectedStore,
    ToolNode,
    ToolRuntime,
    create_react_agent,
    tools_condition,
)
from langgraph.prebuilt.chat_agent_executor import AgentState
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, interrupt
from pydantic import BaseModel
from scripted import Scripted, calls, show, thread

warnings.simplefilter("ignore")


@tool
def add(a: int, b: int) -> int:
    """Add."""
    if a < 0:
        raise ValueError("too small")
    return a + b


@tool
def ask(what: str) -> str:
    """Ask a person."""
    return f"{what}: {interrupt({'question': what})}"


@tool
def look(
    state: Annotated[dict, InjectedState], store: Annotated[BaseStore, InjectedStore()]
) -> str:
    """Look at the state."""
    store.put(("seen",), "count", {"messages": len(state["messages"])})
    return f"{len(state['messages'])} messages"


@tool
def rename(name: str, call: Annotated[str, InjectedToolCallId]) -> Command[Any]:
    """Rename the user."""
    return Command(
        update={"user": name, "messages": [ToolMessage("renamed", tool_call_id=call)]}
    )


@tool
def where(runtime: ToolRuntime) -> str:
    """Say where this runs."""
    runtime.stream_writer({"at": runtime.tool_call_id})
    return f"{runtime.tool_call_id} {sorted(runtime.state)}"


class State(AgentState):
    user: str


class Total(BaseModel):
    total: int


def agent(*replies: Any, **options: Any) -> Any:
    model = Scripted(replies=list(replies))
    return create_react_agent(model, [add, ask, look, rename, where], **options)


def loops() -> None:
    for version in ("v1", "v2"):
        both = calls(("add", {"a": 1, "b": 2}), ("add", {"a": 3, "b": 4}))
        graph = agent(both, "three and seven", version=version, prompt="brief")
        show(version=version, final=graph.invoke({"messages": "sums"}))
    show(drawn=graph.get_graph().draw_mermaid())


def injections() -> None:
    store = InMemoryStore()
    graph = agent(
        calls(("look", {})),
        calls(("rename", {"name": "ann"})),
        calls(("where", {})),
        "ok",
        state_schema=State,
        store=store,
        checkpointer=InMemorySaver(),
    )
    for mode, chunk in graph.stream(
        {"messages": "go"}, thread(), stream_mode=["updates", "custom"]
    ):
        show(mode=mode, chunk=chunk)
    show(
        user=graph.get_state(thread()).values["user"],
        store=store.get(("seen",), "count").value,
    )


def questions() -> None:
    both = calls(("ask", {"what": "name"}), ("ask", {"what": "age"}))
    graph = agent(both, "thanks", checkpointer=InMemorySaver())
    first = graph.invoke({"messages": "hi"}, thread())
    asked = first["__interrupt__"]
    show(asked=sorted(one.value["question"] for one in asked))
    answers = {one.id: one.value["question"].upper() for one in asked}
    show(final=graph.invoke(Command(resume=answers), thread()))


def hooks() -> None:
    def before(state: dict) -> dict:
        return {"llm_input_messages": state["messages"][-1:]}

    def after(state: dict) -> dict:
        return {"messages": [AIMessage("checked")]}

    model = Scripted(replies=["one", calls(("Total", {"total": 3}))])
    graph = create_react_agent(model, [], pre_model_hook=before, post_model_hook=after)
    show(
        hooked=graph.invoke({"messages": [("user", "a"), ("user", "b")]}),
        heard=model.heard,
    )


def nodes() -> None:
    node = ToolNode([add, rename], handle_tool_errors="sorry")
    builder = StateGraph(MessagesState)
    builder.add_node(
        "model",
        lambda state: {"messages": [calls(("add", {"a": -1, "b": 2}), ("none", {}))]},
    )
    builder.add_node("tools", node)
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", tools_condition)
    builder.add_edge("tools", END)
    show(errors=builder.compile().invoke({"messages": []}))
    failing = StateGraph(MessagesState)
    failing.add_node("tools", ToolNode([add], handle_tool_errors=False))
    failing.add_edge(START, "tools")
    try:
        failing.compile().invoke({"messages": [calls(("add", {"a": -1, "b": 2}))]})
    except ValueError as error:
        show(raised=str(error))


async def awaited() -> None:
    graph = agent(calls(("add", {"a": 1, "b": 2}), text="I add"), "three")
    async for message, metadata in graph.astream(
        {"messages": "sum"}, stream_mode="messages"
    ):
        show(token=message, node=metadata["langgraph_node"])
    with_format = create_react_agent(Scripted(replies=["four"]), [add], name="calc")
    show(final=await with_format.ainvoke({"messages": "sum"}))


loops()
injections()
questions()
hooks()
nodes()
asyncio.run(awaited())
