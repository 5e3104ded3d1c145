"""Threads of every kind that a database may hold, and all there is to read of them."""

from __future__ import annotations

import operator
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, TypedDict
from uuid import UUID

from towpath import START, Command, Overwrite, Send, StateGraph
from towpath.types import interrupt


class Mood(Enum):
    CALM = "calm"


@dataclass
class Note:
    text: str
    mood: Mood = Mood.CALM


class State(TypedDict, total=False):
    topic: str
    log: Annotated[list[str], operator.add]
    notes: Annotated[list[Note], operator.add]
    facts: dict[str, Any]
    nothing: None


FACTS = {
    "when": datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
    "id": UUID(int=7),
    "price": Decimal("1.10"),
    "queue": deque([1, 2], maxlen=3),
    "bytes": b"\x00\xff",
    "big": 2**70,
    "nested": {"list": [1, (2, 3)], 4: "four"},
}


def build() -> StateGraph[Any, Any, Any, Any]:
    """A fan-out, a subgraph that is called, one that lasts, and a question."""
    inner = StateGraph(State)
    inner.add_node("leaf", lambda state: {"log": [f"leaf of {len(state['log'])}"]})
    inner.add_edge(START, "leaf")
    lasting = inner.compile(checkpointer=True)

    def first(state: State) -> State:
        return {"facts": FACTS, "nothing": None, "notes": [Note(state["topic"])]}

    def spread(state: State) -> list[Send]:
        return [Send("wide", {"topic": str(number)}) for number in range(3)]

    def wide(state: State) -> State:
        return {"log": [f"wide {state['topic']}"]}

    def lasts(state: State) -> State:
        return {"log": lasting.invoke({"log": ["in"]})["log"][-1:]}

    def ask(state: State) -> State:
        return {"log": [f"told {interrupt({'ask': state['topic']})}"]}

    builder = StateGraph(State)
    builder.add_node(first).add_node(wide).add_node(lasts).add_node(ask)
    builder.add_node("called", inner.compile())
    builder.add_edge(START, "first").add_conditional_edges("first", spread, ["wide"])
    return (
        builder.add_sequence([("join", lambda state: {})])
        .add_edge("wide", "join")
        .add_edge("join", "called")
        .add_edge("called", "lasts")
        .add_edge("lasts", "ask")
    )


def at(thread: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread}}


THREADS = ("done", "waits", "edited", "forked", "long")


def live(saver: Any) -> None:
    """Make the threads."""
    graph = build().compile(checkpointer=saver)
    for thread in THREADS[:-1]:
        graph.invoke({"topic": thread, "log": []}, at(thread))
    graph.invoke(Command(resume="yes"), at("done"))
    graph.update_state(at("edited"), {"log": ["edited"], "topic": "other"})
    past = list(graph.get_state_history(at("forked")))[3]
    graph.invoke(None, past.config)
    chat = growing().compile(checkpointer=saver)
    for turn in range(8):
        chat.invoke({"log": [f"turn {turn}"]}, at("long"))
    chat.update_state(at("long"), {"log": Overwrite(["anew"])})
    chat.invoke({"log": ["after"]}, at("long"))


def growing() -> StateGraph[Any, Any, Any, Any]:
    builder = StateGraph(State)
    builder.add_node("say", lambda state: {"log": [f"said {len(state['log'])}"]})
    return builder.add_edge(START, "say")


def graph_of(thread: str, saver: Any) -> Any:
    builder = growing() if thread == "long" else build()
    return builder.compile(checkpointer=saver)


def told(saver: Any) -> dict[str, list[Any]]:
    """Return all that is read of the threads, as texts."""
    return {
        thread: [
            [
                repr(state.config["configurable"]["checkpoint_id"]),
                repr(state.values),
                repr(state.next),
                repr({key: state.metadata[key] for key in ("source", "step")}),
                repr([(one.id, one.value) for one in state.interrupts]),
                repr([(task.name, task.error, task.result) for task in state.tasks]),
            ]
            for state in graph_of(thread, saver).get_state_history(at(thread))
        ]
        for thread in THREADS
    }


def go_on(saver: Any) -> dict[str, Any]:
    """Go on with every thread, and return what its log is then."""
    given: dict[str, Any] = {
        "done": {"topic": "again", "log": []},
        "waits": Command(resume="now"),
        "edited": Command(resume="late"),
        "forked": Command(resume="here"),
        "long": {"log": ["more"]},
    }
    return {
        thread: graph_of(thread, saver).invoke(given[thread], at(thread))["log"]
        for thread in THREADS
    }
