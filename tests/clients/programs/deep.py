"""`deepagents`: a plan, files, a subagent, and approval of a tool."""

from __future__ import annotations

import asyncio

from deepagents import create_deep_agent
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from scripted import Scripted, calls, show, thread


@tool
def look_up(word: str) -> str:
    """Look a word up."""
    return f"{word}: a word"


helper = Scripted(replies=[calls(("look_up", {"word": "towpath"})), "it is a path"])
todo = [{"content": "look it up", "status": "in_progress"}]
model = Scripted(
    replies=[
        calls(("write_todos", {"todos": todo})),
        calls(("write_file", {"file_path": "/notes.md", "content": "one\ntwo"})),
        calls(("read_file", {"file_path": "/notes.md"}), ("ls", {"path": "/"})),
        calls(
            (
                "edit_file",
                {"file_path": "/notes.md", "old_string": "two", "new_string": "2"},
            )
        ),
        calls(
            ("task", {"description": "what is a towpath?", "subagent_type": "helper"})
        ),
        calls(("look_up", {"word": "path"})),
        "all done",
    ]
)
agent = create_deep_agent(
    model=model,
    tools=[look_up],
    system_prompt="work",
    subagents=[
        {
            "name": "helper",
            "description": "helps",
            "system_prompt": "help",
            "model": helper,
            "tools": [look_up],
        }
    ],
    interrupt_on={"look_up": False, "edit_file": True},
    checkpointer=InMemorySaver(),
)


def seen(state: dict) -> None:
    messages = [
        (m.type, m.content if m.type != "system" else "", m.name)
        for m in state["messages"]
    ]
    files = {name: file["content"] for name, file in state.get("files", {}).items()}
    show(messages=messages, todos=state.get("todos"), files=files)


async def run() -> None:
    first = await agent.ainvoke({"messages": [("user", "go")]}, thread())
    seen(first)
    show(asked=first["__interrupt__"], next=(await agent.aget_state(thread())).next)
    answer = Command(resume={"decisions": [{"type": "approve"}]})
    async for ns, mode, chunk in agent.astream(
        answer, thread(), stream_mode=["updates"], subgraphs=True
    ):
        show(
            depth=len(ns),
            names=[one.partition(":")[0] for one in ns],
            mode=mode,
            keys=list(chunk),
        )
    seen((await agent.aget_state(thread())).values)
    show(
        bound=model.bound[:1],
        steps=len([s async for s in agent.aget_state_history(thread())]),
    )


asyncio.run(run())
