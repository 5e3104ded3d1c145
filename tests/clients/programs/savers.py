"""The peer's own savers, with a run that stops, goes on, and looks back."""

from __future__ import annotations

import asyncio
import operator
import os
import sys
from typing import Annotated, Any

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, Send, interrupt
from scripted import show, thread


class State(MessagesState):
    parts: Annotated[list, operator.add]


def spread(state: State) -> list[Send]:
    return [Send("part", {"of": index}) for index in range(3)]


def part(given: dict) -> dict:
    return {"parts": [given["of"]]}


def ask(state: State) -> dict:
    return {"messages": [HumanMessage(interrupt("your name?"))]}


inner = StateGraph(State)
inner.add_node("ask", ask)
inner.add_edge(START, "ask")
builder = StateGraph(State)
builder.add_node("begin", lambda state: {"messages": ["hello"]})
builder.add_node("part", part)
builder.add_node("inner", inner.compile())
builder.add_edge(START, "begin")
builder.add_conditional_edges("begin", spread, ["part"])
builder.add_edge("part", "inner")


def seen(snapshot: Any) -> dict:
    return {
        "values": snapshot.values,
        "next": snapshot.next,
        "step": snapshot.metadata["step"],
        "source": snapshot.metadata["source"],
        "asked": [task.interrupts for task in snapshot.tasks],
    }


def talk(saver: Any) -> None:
    graph = builder.compile(checkpointer=saver)
    for durability in ("sync", "async", "exit"):
        config = thread(durability)
        first = graph.invoke({"messages": ["hi"]}, config, durability=durability)
        show(first=first)
        show(stopped=seen(graph.get_state(config, subgraphs=True)))
        show(last=graph.invoke(Command(resume="Ann"), config, durability=durability))
        show(history=[seen(one) for one in graph.get_state_history(config)])
    graph.update_state(config, {"messages": ["late"]}, as_node="inner")
    show(edited=seen(graph.get_state(config)))
    before = next(
        s for s in graph.get_state_history(thread("sync")) if s.next == ("inner",)
    )
    show(replayed=graph.invoke(None, before.config))
    show(answered=graph.invoke(Command(resume="Bob"), thread("sync"))["messages"][-1])
    saver.delete_thread("sync")
    show(gone=list(graph.get_state_history(thread("sync"))))


async def atalk(saver: Any) -> None:
    graph = builder.compile(checkpointer=saver)
    config = thread("async-talk")
    show(first=await graph.ainvoke({"messages": ["hi"]}, config))
    show(last=await graph.ainvoke(Command(resume="Ann"), config))
    show(history=[seen(one) async for one in graph.aget_state_history(config)])


async def later(path: str, dsn: str | None) -> None:
    async with AsyncSqliteSaver.from_conn_string(path) as saver:
        await atalk(saver)
    if dsn:
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

        async with AsyncPostgresSaver.from_conn_string(dsn) as saver:
            await saver.setup()
            await atalk(saver)


assert "site-packages" in sys.modules[SqliteSaver.__module__].__file__
path, dsn = sys.argv[1], os.environ.get("DATABASE_URL")
with SqliteSaver.from_conn_string(path) as saver:
    talk(saver)
if dsn:
    from langgraph.checkpoint.postgres import PostgresSaver

    with PostgresSaver.from_conn_string(dsn) as saver:
        saver.setup()
        talk(saver)
asyncio.run(later(path, dsn))
