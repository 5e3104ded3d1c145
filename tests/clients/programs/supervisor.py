"""`langgraph-supervisor`: a supervisor hands over to agents, and back."""

from __future__ import annotations

from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.prebuilt import create_react_agent
from langgraph_supervisor import create_handoff_tool, create_supervisor
from scripted import Scripted, calls, show, thread


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def team(output_mode: str, **options: object) -> object:
    maths = create_react_agent(
        Scripted(replies=[calls(("add", {"a": 1, "b": 2})), "three"] * 2),
        [add],
        name="maths",
    )
    words = create_react_agent(Scripted(replies=["drei"] * 2), [], name="words")
    boss = Scripted(
        replies=[
            calls(("transfer_to_maths", {})),
            calls(("transfer_to_words", {})),
            "it is drei",
            "bye",
        ]
    )
    workflow = create_supervisor(
        [maths, words], model=boss, prompt="lead", output_mode=output_mode, **options
    )
    return workflow.compile(checkpointer=InMemorySaver(), name="team")


for mode in ("last_message", "full_history"):
    graph = team(mode)
    final = graph.invoke({"messages": [("user", "1+2 in German")]}, thread())
    show(mode=mode, messages=final["messages"])
    show(
        again=graph.invoke({"messages": [("user", "thanks")]}, thread())["messages"][-1]
    )
    show(drawn=graph.get_graph(xray=True).draw_mermaid())

graph = team("last_message", add_handoff_messages=False)
for ns, mode, chunk in graph.stream(
    {"messages": [("user", "1+2 in German")]},
    thread(),
    subgraphs=True,
    stream_mode=["updates", "messages"],
):
    names = [one.partition(":")[0] for one in ns]
    if mode == "messages":
        show(names=names, message=chunk[0], node=chunk[1]["langgraph_node"])
    else:
        show(names=names, update=chunk)
show(tool=create_handoff_tool(agent_name="maths").name)
