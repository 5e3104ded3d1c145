"""`langmem`: memory tools in an agent, extraction, and short-term summaries."""

from __future__ import annotations

import asyncio

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore
from langmem import (
    create_manage_memory_tool,
    create_memory_manager,
    create_search_memory_tool,
)
from langmem.short_term import SummarizationNode
from scripted import Scripted, calls, show, thread


def embed(texts: list[str]) -> list[list[float]]:
    return [[float(text.count(letter)) for letter in "abcdefgh"] for text in texts]


def with_tools() -> None:
    store = InMemoryStore(index={"dims": 8, "embed": embed})
    where = ("memories", "{user}")
    tools = [create_manage_memory_tool(where), create_search_memory_tool(where)]
    replies = [
        calls(("manage_memory", {"content": "eats cabbage", "action": "create"})),
        calls(("search_memory", {"query": "cabbage"})),
        "cabbage",
    ]
    agent = create_agent(
        Scripted(replies=replies), tools, store=store, checkpointer=InMemorySaver()
    )
    agent.invoke({"messages": "remember"}, thread(user="ann"))
    show(
        kept=[
            (item.namespace, item.value["content"])
            for item in store.search(("memories",))
        ]
    )
    last = agent.get_state(thread(user="ann")).values["messages"]
    show(types=[message.type for message in last], last=last[-1].content)


def summarized() -> None:
    node = SummarizationNode(
        model=Scripted(replies=["they talked"]),
        max_tokens=40,
        max_summary_tokens=10,
        token_counter=lambda messages: 10 * len(messages),
    )

    class State(MessagesState):
        context: dict
        summarized_messages: list

    builder = StateGraph(State)
    builder.add_node("summarize", node)
    builder.add_edge(START, "summarize")
    talk = [
        HumanMessage(f"q{i}", id=f"h{i}")
        if i % 2 == 0
        else AIMessage(f"a{i}", id=f"a{i}")
        for i in range(7)
    ]
    final = builder.compile().invoke({"messages": talk})
    show(summary=[(m.type, m.content) for m in final["summarized_messages"]])
    show(running=final["context"]["running_summary"].summary)


async def extracted() -> None:
    replies = [calls(("Memory", {"content": "Ann likes tea"})), "no more"]
    manager = create_memory_manager(Scripted(replies=replies), enable_inserts=True)
    found = await manager.ainvoke(
        {"messages": [HumanMessage("I am Ann, I like tea")], "max_steps": 1}
    )
    show(memories=[one.content for one in found])


with_tools()
summarized()
asyncio.run(extracted())
