"""States of messages: the class to inherit from, and the reducer."""

# pyright: reportTypedDictNotRequiredAccess=false

from __future__ import annotations

from typing import Annotated, TypedDict, assert_type

from langchain_core.messages import AnyMessage

from towpath import START, StateGraph
from towpath.graph import MessagesState, add_messages


class Chat(MessagesState, total=False):
    desk: str


class Own(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def reception(state: Chat) -> Chat:
    assert_type(state["messages"], list[AnyMessage])
    assert_type(state["desk"], str)
    state["dsk"]  # error: typeddict-item
    return {"messages": state["messages"][-1:], "desk": "flights"}


builder = StateGraph(Chat)
builder.add_node("reception", reception)
builder.add_edge(START, "reception")
builder.compile()
