"""More of `deepagents`: several subagents at once, approval inside one, a store."""

from __future__ import annotations

import asyncio
import warnings

from deepagents import create_deep_agent
from deepagents.backends import CompositeBackend, StateBackend, StoreBackend
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command
from scripted import Scripted, calls, show, thread

warnings.simplefilter("ignore")


@tool
def post(text: str) -> str:
    """Post a text."""
    return f"posted {text}"


def worker(name: str, *replies: object, approve: bool = False) -> dict:
    found = {
        "name": name,
        "description": name,
        "system_prompt": name,
        "model": Scripted(replies=list(replies)),
        "tools": [post],
    }
    if approve:
        found["interrupt_on"] = {"post": True}
    return found


def team(store: InMemoryStore) -> object:
    asked = ("task", {"description": "post it", "subagent_type": "poster"})
    wrote = ("task", {"description": "write it", "subagent_type": "writer"})
    model = Scripted(
        replies=[
            calls(asked, wrote),
            calls(("write_file", {"file_path": "/memories/a.md", "content": "kept"})),
            calls(
                ("grep", {"pattern": "kept", "path": "/memories/"}),
                ("glob", {"pattern": "**/*.md"}),
            ),
            "over",
        ]
    )
    posting = worker(
        "poster", calls(("post", {"text": "hi"})), "it is out", approve=True
    )
    writing = worker(
        "writer",
        calls(("write_file", {"file_path": "/w.md", "content": "w"})),
        "written",
    )
    return create_deep_agent(
        model=model,
        subagents=[posting, writing],
        backend=CompositeBackend(
            default=StateBackend(),
            routes={"/memories/": StoreBackend(namespace=lambda _: ("files",))},
        ),
        store=store,
        checkpointer=InMemorySaver(),
    )


def seen(state: dict) -> None:
    texts = [
        (m.type, m.content if m.type != "system" else "", m.name)
        for m in state["messages"]
    ]
    show(messages=texts, files=sorted(state.get("files", {})))


def run() -> None:
    store = InMemoryStore()
    agent = team(store)
    first = agent.invoke({"messages": [("user", "go")]}, thread())
    show(asked=[one.value for one in first["__interrupt__"]])
    snapshot = agent.get_state(thread(), subgraphs=True)
    show(
        next=snapshot.next,
        tasks=[(task.name, len(task.interrupts)) for task in snapshot.tasks],
    )
    decision = {
        "type": "edit",
        "edited_action": {"name": "post", "args": {"text": "ho"}},
    }
    final = agent.invoke(Command(resume={"decisions": [decision]}), thread())
    seen(final)
    show(kept=sorted(item.key for item in store.search(("files",))))


async def arun() -> None:
    store = InMemoryStore()
    agent = team(store)
    await agent.ainvoke({"messages": [("user", "go")]}, thread())
    answer = Command(resume={"decisions": [{"type": "reject", "message": "no"}]})
    names = set()
    async for ns, mode, chunk in agent.astream(
        answer, thread(), subgraphs=True, stream_mode=["updates", "messages"]
    ):
        if mode == "updates":
            names.update((len(ns), key) for key in chunk)
    show(updates=sorted(names))
    seen((await agent.aget_state(thread())).values)


run()
asyncio.run(arun())
