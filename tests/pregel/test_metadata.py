"""What of a config's metadata is stored with checkpoints."""

from typing import TypedDict

from towpath import START, StateGraph
from towpath.checkpoint.memory import InMemorySaver


class State(TypedDict):
    text: str


def test_a_graph_called_with_its_task_s_config_stores_the_caller_s_metadata_only():
    inner = StateGraph(State)
    inner.add_node("inner", lambda state: None)
    inner.add_edge(START, "inner")
    called = inner.compile(checkpointer=True)
    outer = StateGraph(State)
    outer.add_node("outer", lambda state, config: called.invoke(state, config))
    outer.add_edge(START, "outer")
    saver = InMemorySaver()
    graph = outer.compile(checkpointer=saver, store_metadata=["k"])
    thread = {"configurable": {"thread_id": "1"}}
    graph.invoke({"text": ""}, {**thread, "metadata": {"k": "v"}})
    conf = {"configurable": {"thread_id": "1", "checkpoint_ns": "outer"}}
    stored = [set(kept.metadata) for kept in saver.list(conf)]
    assert stored
    assert all({"k", "parents", "source", "step"} == keys for keys in stored)
