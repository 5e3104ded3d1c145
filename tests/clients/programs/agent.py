"""LangChain's `create_agent`: middleware, approval by a human, streams, output."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    HumanInTheLoopMiddleware,
    ModelCallLimitMiddleware,
    ToolCallLimitMiddleware,
    after_model,
    before_model,
    wrap_model_call,
    wrap_tool_call,
)
from langchain.agents.structured_output import ToolStrategy
from langchain.tools import ToolRuntime
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command
from pydantic import BaseModel
from scripted import Scripted, calls, show, thread


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@tool
def send(to: str, text: str) -> str:
    """Send a letter."""
    return f"sent {text!r} to {to}"


@dataclass
class Who:
    name: str


@tool
def remember(fact: str, runtime: ToolRuntime[Who]) -> Command[Any]:
    """Remember a fact."""
    runtime.store.put(("facts", runtime.context.name), "one", {"fact": fact})
    said = ToolMessage(f"kept {fact}", tool_call_id=runtime.tool_call_id)
    return Command(update={"messages": [said], "facts": [fact]})


class Facts(AgentState):
    facts: list[str]


class Loud(AgentMiddleware):
    state_schema = Facts

    def before_agent(self, state: Any, runtime: Runtime[Any]) -> Any:
        return {"facts": ["began"]}

    def after_agent(self, state: Any, runtime: Runtime[Any]) -> Any:
        return {"facts": [*state.get("facts", ()), "ended"]}


@before_model
def count(state: Any, runtime: Runtime[Any]) -> None:
    show(before=len(state["messages"]))


@after_model(can_jump_to=["end"])
def stop(state: Any, runtime: Runtime[Any]) -> Any:
    if state["messages"][-1].content == "halt":
        return {"jump_to": "end"}
    return None


@wrap_model_call
def wrapped(request: Any, handler: Any) -> Any:
    show(tools=[t.name for t in request.tools], prompt=request.system_prompt)
    return handler(request)


@wrap_tool_call
def guarded(request: Any, handler: Any) -> Any:
    try:
        return handler(request)
    except ZeroDivisionError as error:
        return ToolMessage(str(error), tool_call_id=request.tool_call["id"])


class Answer(BaseModel):
    total: int


def plainly() -> None:
    model = Scripted(replies=[calls(("add", {"a": 1, "b": 2})), "it is three"])
    agent = create_agent(
        model, [add], system_prompt="be brief", middleware=[count, wrapped]
    )
    show(plain=agent.invoke({"messages": "1+2?"}), heard=model.heard)


def with_middleware() -> None:
    model = Scripted(replies=[calls(("remember", {"fact": "tea"})), "halt"])
    store = InMemoryStore()
    agent = create_agent(
        model,
        [add, remember],
        middleware=[Loud(), stop, guarded],
        context_schema=Who,
        store=store,
        checkpointer=InMemorySaver(),
    )
    given = {"messages": [("user", "tea")]}
    chunks = list(
        agent.stream(given, thread(), context=Who("ann"), stream_mode="updates")
    )
    show(chunks=chunks)
    show(
        state=agent.get_state(thread()).values,
        kept=store.get(("facts", "ann"), "one").value,
    )
    show(drawn=agent.get_graph().draw_mermaid())


def with_approval() -> None:
    asked = calls(("send", {"to": "bob", "text": "hi"}), ("add", {"a": 1, "b": 1}))
    for decision in (
        {"type": "approve"},
        {"type": "reject", "message": "no letters"},
        {
            "type": "edit",
            "edited_action": {"name": "send", "args": {"to": "eve", "text": "ho"}},
        },
    ):
        model = Scripted(replies=[asked, "done"])
        human = HumanInTheLoopMiddleware(interrupt_on={"send": True, "add": False})
        agent = create_agent(
            model, [send, add], middleware=[human], checkpointer=InMemorySaver()
        )
        first = agent.invoke({"messages": "write"}, thread())
        show(asked=first["__interrupt__"], next=agent.get_state(thread()).next)
        last = agent.invoke(Command(resume={"decisions": [decision]}), thread())
        show(decision=decision["type"], last=last["messages"])


def with_limits() -> None:
    replies = [calls(("add", {"a": 1, "b": 1}))] * 5
    agent = create_agent(
        Scripted(replies=list(replies)),
        [add],
        middleware=[ModelCallLimitMiddleware(run_limit=2, exit_behavior="end")],
    )
    show(limited=agent.invoke({"messages": "x"})["messages"])
    agent = create_agent(
        Scripted(replies=[*replies[:3], "gave up"]),
        [add],
        middleware=[ToolCallLimitMiddleware(run_limit=1)],
    )
    show(tools_limited=agent.invoke({"messages": "x"})["messages"])


def with_structure() -> None:
    model = Scripted(replies=[calls(("Answer", {"total": 3}))])
    agent = create_agent(model, [add], response_format=ToolStrategy(Answer))
    show(structured=agent.invoke({"messages": "1+2?"}))


async def streamed() -> None:
    model = Scripted(
        replies=[calls(("add", {"a": 1, "b": 2}), text="let me see"), "it is three"]
    )
    agent = create_agent(model, [add], name="adder")
    modes = ["messages", "updates", "values"]
    async for mode, chunk in agent.astream({"messages": "1+2?"}, stream_mode=modes):
        if mode == "messages":
            message, metadata = chunk
            show(
                token=message,
                node=metadata["langgraph_node"],
                step=metadata["langgraph_step"],
            )
        else:
            show(mode=mode, chunk=chunk)
    model.replies = [calls(("add", {"a": 1, "b": 2})), "it is three"]
    async for event in agent.astream_events({"messages": "1+2?"}, version="v2"):
        show(
            event=event["event"],
            name=event["name"],
            tags=event["tags"],
            parents=len(event["parent_ids"]),
            data=event["data"],
        )


plainly()
with_middleware()
with_approval()
with_limits()
with_structure()
asyncio.run(streamed())
