"""A program as it is written for LangGraph: only the package's name is ours.

What passes with LangGraph's own types must pass here; the test asks both.
"""

# pyright: reportTypedDictNotRequiredAccess=false

from __future__ import annotations

import operator
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict, cast

from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel

from towpath.checkpoint.memory import InMemorySaver
from towpath.config import get_store, get_stream_writer
from towpath.func import entrypoint, task
from towpath.graph import END, START, StateGraph
from towpath.graph.state import CompiledStateGraph
from towpath.pregel import Pregel
from towpath.runtime import Runtime, get_runtime
from towpath.store.base import BaseStore
from towpath.store.memory import InMemoryStore
from towpath.types import Command, Interrupt, RetryPolicy, Send, StreamWriter, interrupt


class State(TypedDict):
    topic: str
    notes: Annotated[list[str], operator.add]


class Part(TypedDict):
    topic: str


class Model(BaseModel):
    topic: str
    notes: list[str] = []


@dataclass
class Data:
    topic: str


@dataclass
class Context:
    user: str


def plain(state: State) -> dict[str, Any]:
    return {"notes": [state["topic"]]}


async def with_config(state: State, config: RunnableConfig) -> State:
    return {"topic": config["configurable"]["topic"], "notes": []}


def with_runtime(state: State, runtime: Runtime[Context]) -> dict[str, list[str]]:
    assert runtime.store is not None
    runtime.store.put(("notes", runtime.context.user), "1", {"text": state["topic"]})
    found = runtime.store.get(("notes",), "1")
    runtime.stream_writer({"seen": found.value if found else None})
    return {"notes": [get_runtime(Context).context.user]}


def with_store(state: State, *, store: BaseStore) -> dict[str, list[str]]:
    items = store.search(("notes",), query=state["topic"])
    return {"notes": [str(item.value["text"]) for item in items]}


def with_writer(state: State, writer: StreamWriter) -> dict[str, Any]:
    writer("custom")
    get_stream_writer()({"more": get_store().get(("a",), "b")})
    return {}


def asks(state: State) -> Command[Literal["plain", "__end__"]]:
    answer = interrupt({"question": state["topic"]})
    if answer["ok"]:
        return Command(goto="plain", update={"notes": [answer["text"]]})
    return Command(goto="__end__")


def hands_over(state: State) -> Command[Any]:
    return Command(graph=Command.PARENT, goto=[Send("plain", {"topic": "x"})])


def part(state: Part) -> Part:
    return {"topic": state["topic"]}


def fan_out(state: State) -> list[Send]:
    return [Send("plain", {"topic": note}) for note in state["notes"]]


def route(state: State) -> Literal["plain", "asks"]:
    return "plain" if state["notes"] else "asks"


def build() -> CompiledStateGraph[State, Context, State, State]:
    builder = StateGraph(State, Context)
    builder.add_node(plain)
    builder.add_node("with_config", with_config, retry_policy=RetryPolicy())
    builder.add_node("with_runtime", with_runtime)
    builder.add_node("with_store", with_store)
    builder.add_node("with_writer", with_writer, defer=True)
    builder.add_node("asks", asks, destinations=("plain",))
    builder.add_node("hands_over", hands_over)
    builder.add_node("part", part, input_schema=Part)
    builder.add_node("nested", StateGraph(State).add_node(plain).compile())
    builder.add_edge("part", END)
    builder.add_edge(START, "plain")
    builder.add_edge(["plain", "asks"], "part")
    builder.add_conditional_edges("plain", fan_out, ["plain"])
    builder.add_conditional_edges("part", route)
    builder.add_conditional_edges("asks", lambda state: "x", {"x": "plain"})
    builder.add_sequence([("one", plain), ("two", plain)])
    return builder.compile(checkpointer=InMemorySaver(), store=InMemoryStore())


graph = build()
config: RunnableConfig = {"configurable": {"thread_id": "1"}}

result = graph.invoke({"topic": "x", "notes": []}, config, context=Context("ada"))
print(result["notes"][0].upper(), result.get("topic"), list(result))
if "__interrupt__" in result:
    questions: list[Interrupt] = result["__interrupt__"]
    print(questions[0].value, questions[0].id)
final = cast("State", graph.invoke(None, config, durability="sync"))
print(final["topic"])
graph.invoke(Command(resume={"ok": True}), config, interrupt_before=["plain"])
checked = Model(**graph.invoke({"topic": "x", "notes": []}))
print(checked.topic)
output = graph.invoke({"topic": "x", "notes": []}, version="v2")
print(output.value["topic"], output.interrupts)
print(graph.batch([{"topic": "x", "notes": []}], config)[0]["notes"])

for chunk in graph.stream({"topic": "x", "notes": []}, config):
    for node, update in chunk.items():
        print(node, update["notes"])
for chunk in graph.stream(
    {"topic": "x", "notes": []}, config, stream_mode="values", subgraphs=False
):
    print(chunk["notes"][-1])
for typed in graph.stream({"topic": "x", "notes": []}, version="v2"):
    if typed["type"] == "values":
        print(typed["data"]["topic"], typed["interrupts"])

snapshot = graph.get_state(config)
print(snapshot.values["notes"], snapshot.next, snapshot.tasks[0].interrupts)
for past in graph.get_state_history(config, limit=2):
    graph.update_state(past.config, {"notes": ["x"]}, as_node="plain")
print(StateGraph(Model).compile().invoke(Model(topic="x"))["topic"])
print(StateGraph(Data).compile().invoke(Data("x"))["topic"])


async def arun(stream: AsyncIterator[Any]) -> dict[str, Any]:
    async for event in graph.astream({"topic": "x", "notes": []}, config):
        print(event["plain"])
    async for event in graph.astream_events({"topic": "x", "notes": []}, version="v2"):
        print(event["event"])
    found = await graph.ainvoke({"topic": "x", "notes": []}, config)
    print(found["notes"])
    return found


@task
def fetch(name: str, *, loud: bool = False) -> str:
    return name.upper() if loud else name


@task
async def afetch(name: str) -> str:
    return name


@entrypoint(checkpointer=InMemorySaver(), context_schema=Context)
def workflow(name: str, *, previous: str | None = None) -> str:
    futures = [fetch(name, loud=True), fetch(name)]
    return "".join(future.result() for future in futures)


@entrypoint()
async def aworkflow(name: str) -> entrypoint.final[str, int]:
    return entrypoint.final(value=await afetch(name), save=1)


flow: Pregel[Any, Any, Any, Any] = workflow
answer = workflow.invoke("x", config)
print(answer["__interrupt__"])
for step in workflow.stream("x", config, stream_mode="updates"):
    print(step["workflow"])
