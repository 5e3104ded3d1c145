"""An error about a key without a value says why it has none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

import pytest

from towpath import START, Send, StateGraph


class Outer(TypedDict, total=False):
    text: str
    count: int


class Inner(TypedDict, total=False):
    question: str
    answer: str


@dataclass
class Strict:
    question: str


def one_node(schema: Any, node_name: str, node: Any, **options: Any) -> Any:
    builder = StateGraph(schema)
    builder.add_node(node_name, node)
    builder.add_edge(START, node_name)
    return builder.compile(**options)


def told(colour: Any, graph: Any, given: Any, kind: type[Exception]) -> list[str]:
    with pytest.raises(kind) as caught:
        colour.invoke(graph, given)
    notes = caught.value.__notes__
    return [note for note in notes if not note.startswith("During")]


@pytest.mark.parametrize(
    ("schema", "read", "kind"),
    [
        (Inner, lambda state: {"answer": state["question"]}, KeyError),
        (Strict, lambda state: None, TypeError),
    ],
)
def test_a_subgraph_that_shares_no_key_says_which_both_have(colour, schema, read, kind):
    inner = one_node(schema, "leaf", read, name="inner")
    graph = one_node(Outer, "sub", inner, name="outer")
    first, second = told(colour, graph, {"text": "a"}, kind)
    assert "`question` had no value when node 'leaf' of graph 'inner' ran" in first
    assert "the node 'sub' of graph 'outer'" in second
    assert "has `text`, `count`" in second


def test_a_subgraph_that_does_not_need_what_it_lacks_runs(colour):
    inner = one_node(Inner, "leaf", lambda state: {"answer": str(state)})
    graph = one_node(Outer, "sub", inner)
    assert {"text": "a"} == colour.invoke(graph, {"text": "a"})


def test_a_shared_key_without_a_value_is_no_matter_of_the_graph_around(colour):
    inner = one_node(Outer, "leaf", lambda state: {"text": state["count"]})
    (note,) = told(colour, one_node(Outer, "sub", inner), {"text": "a"}, KeyError)[:1]
    assert "`count` had no value when node 'leaf'" in note


def test_what_is_sent_is_all_that_a_node_sees(colour):
    builder = StateGraph(Outer)
    builder.add_node("work", lambda state: {"count": len(state["text"])})
    builder.add_conditional_edges(START, lambda state: [Send("work", {"count": 1})])
    (note,) = told(colour, builder.compile(), {"text": "a"}, KeyError)
    assert "'work'" in note
    assert "had no `text`" in note


def test_keys_of_other_dicts_are_left_alone(colour):
    graph = one_node(Outer, "a", lambda state: {"text": {}["nothing"]})
    assert [] == told(colour, graph, {"text": "a"}, KeyError)
