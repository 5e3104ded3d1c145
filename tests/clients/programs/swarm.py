"""`langgraph-swarm`: agents hand the conversation to each other."""

from __future__ import annotations

from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.prebuilt import create_react_agent
from langgraph_swarm import create_handoff_tool, create_swarm
from scripted import Scripted, calls, show, thread


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


alice = create_react_agent(
    Scripted(
        replies=[
            calls(("transfer_to_bob", {})),
            calls(("add", {"a": 1, "b": 2})),
            "three",
        ]
    ),
    [add, create_handoff_tool(agent_name="Bob", description="to Bob")],
    prompt="you add",
    name="Alice",
)
bob = create_react_agent(
    Scripted(replies=["arr", calls(("transfer_to_alice", {}))]),
    [create_handoff_tool(agent_name="Alice", description="to Alice")],
    prompt="you are a pirate",
    name="Bob",
)
graph = create_swarm([alice, bob], default_active_agent="Alice").compile(
    checkpointer=InMemorySaver()
)
first = graph.invoke({"messages": [("user", "to Bob, please")]}, thread())
show(first=first)
second = list(
    graph.stream(
        {"messages": [("user", "1+2?")]},
        thread(),
        stream_mode="updates",
        subgraphs=True,
    )
)
show(second=[([one.partition(":")[0] for one in ns], chunk) for ns, chunk in second])
show(active=graph.get_state(thread()).values["active_agent"])
