"""Pieces of a user interface fold, and are pushed, as the peer's are."""

from importlib import import_module
from typing import Annotated, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from towpath.errors import OutsideNodeError
from towpath.graph.ui import push_ui_message
from towpath.testing.normal import Placeholders

ids = st.sampled_from(["1", "2", "3"])
props = st.dictionaries(st.sampled_from("xy"), st.integers(0, 2))
pieces = st.one_of(
    st.fixed_dictionaries(
        {
            "type": st.just("ui"),
            "id": ids,
            "name": st.just("chart"),
            "props": props,
            "metadata": st.sampled_from([{}, {"merge": True}, {"merge": False}]),
        }
    ),
    st.fixed_dictionaries({"type": st.just("remove-ui"), "id": ids}),
)
drawn = pieces.filter(lambda piece: piece["type"] == "ui")


def folded(package, left, right):
    fold = import_module(f"{package}.graph.ui").ui_message_reducer
    try:
        return fold(left, right)
    except ValueError as error:
        return str(error)


@pytest.mark.differential
@given(
    left=st.one_of(drawn, st.lists(drawn, max_size=3, unique_by=lambda p: p["id"])),
    right=st.one_of(pieces, st.lists(pieces, max_size=4)),
)
def test_pieces_fold_as_the_peer_s_do(left, right):
    assert folded("langgraph", left, right) == folded("towpath", left, right)


@pytest.mark.differential
def test_pieces_are_pushed_as_the_peer_s_are():
    def seen(package):
        graph, home = (import_module(f"{package}.graph{n}") for n in ("", ".ui"))

        class State(TypedDict):
            ui: Annotated[list, home.ui_message_reducer]

        def step(state):
            answer = AIMessage("x", id="m")
            push = home.push_ui_message
            push("a", {"x": 1}, id="u", metadata={"k": 1}, message=answer)
            push("a", {"y": 2}, id="u", merge=True)
            push("b", {})
            push("c", {}, id="not kept", state_key=None)
            push("d", {}, id="gone")
            home.delete_ui_message("gone")
            return {}

        builder = graph.StateGraph(State)
        builder.add_node("step", step)
        builder.add_edge(graph.START, "step")
        app = builder.compile()
        config = {"tags": ["t"], "metadata": {"k": "v"}}
        streams = [
            list(app.stream({"ui": []}, config, stream_mode=mode))
            for mode in ("custom", "updates", "values")
        ]
        return Placeholders().value(streams)

    assert seen("langgraph") == seen("towpath")


def test_pieces_are_pushed_from_nodes_only():
    with pytest.raises(OutsideNodeError, match="outside of a running node"):
        push_ui_message("chart", {})
