"""Event streams of version 3 of agents, with the transformers of their packages."""

from __future__ import annotations

import asyncio
import warnings

from langchain.agents import create_agent
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from scripted import Scripted, calls, show

warnings.simplefilter("ignore")


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def agent(**options: object) -> object:
    replies = [calls(("add", {"a": 1, "b": 2}), text="let me add"), "it is three"]
    return create_agent(Scripted(replies=replies), [add], **options)


def within() -> object:
    builder = StateGraph(MessagesState)
    builder.add_node("sub", agent(name="adder"))
    builder.add_edge(START, "sub")
    return builder.compile()


def methods(events: list) -> list:
    return [
        (
            event["method"],
            [one.partition(":")[0] for one in event["params"]["namespace"]],
        )
        for event in events
    ]


def blocking() -> None:
    for graph in (agent(), within()):
        with graph.stream_events({"messages": "1+2?"}, version="v3") as run:
            show(methods=methods(list(run)))
            show(output=run.output, interrupted=run.interrupted)
    with agent().stream_events({"messages": "1+2?"}, version="v3") as run:
        texts = [str(message.text) for message in run.messages]
        show(texts=texts)
    with agent().stream_events({"messages": "1+2?"}, version="v3") as run:
        show(values=[sorted(value) for value in run.values])


async def awaited() -> None:
    run = await agent().astream_events({"messages": "1+2?"}, version="v3")
    async with run:
        texts = []
        async for message in run.messages:
            texts.append(str(await message.text))
        show(texts=texts, output=await run.output())
    run = await within().astream_events({"messages": "1+2?"}, version="v3")
    async with run:
        show(methods=methods([event async for event in run]))


blocking()
asyncio.run(awaited())
