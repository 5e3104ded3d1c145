"""Section C of the reports: edges, branches, commands, joins."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from towpath import END, START, Command, InMemorySaver, Send
from towpath.errors import (
    InvalidGraphError,
    InvalidUpdateError,
    StalledJoinError,
    UnknownNodeError,
)
from towpath.semantics import LANGGRAPH, NATIVE

from .kit import Colour, Log, chain, logs, wire


def say_hello(state: Log) -> Log:
    return {"log": ["hello"]}


def joined(**compile_options: Any) -> Any:
    """Return a graph whose join waits for two branches, of which one is taken."""
    builder = wire(("c", "d"), **{name: logs(name) for name in "abcd"})
    builder.add_conditional_edges(START, lambda state: state["note"], list("ab"))
    builder.add_edge(["a", "b"], "c")
    return builder.compile(**compile_options)


# -- row 40: a join that can no longer fire -----------------------------------


def test_a_stalled_join_is_an_error(colour: Colour) -> None:
    with pytest.raises(StalledJoinError) as error:
        colour.invoke(joined(), {"log": [], "note": "a"})
    assert "`c`" in str(error.value)
    assert "`b`" in str(error.value)


def test_what_ran_before_a_stalled_join_is_kept(colour: Colour) -> None:
    app = joined(checkpointer=InMemorySaver())
    with pytest.raises(StalledJoinError):
        colour.invoke(app, {"log": [], "note": "a"})
    assert ["a"] == colour.state(app).values["log"]


def test_a_join_that_was_not_begun_is_no_error(colour: Colour) -> None:
    builder = wire(*(("e", END),), **{name: logs(name) for name in "abce"})
    builder.add_conditional_edges(START, lambda state: state["note"], list("abe"))
    builder.add_edge(["a", "b"], "c")
    assert ["e"] == colour.invoke(builder.compile(), {"log": [], "note": "e"})["log"]


def test_a_join_completed_later_is_no_error(colour: Colour) -> None:
    builder = wire(("a", "b"), **{name: logs(name) for name in "abc"})
    builder.add_edge(START, "a")
    builder.add_edge(["a", "b"], "c")
    assert ["a", "b", "c"] == colour.invoke(builder.compile(), {"log": []})["log"]


@pytest.mark.parametrize("join", ["any", "taken"])
def test_other_join_policies_do_not_stall(colour: Colour, join: str) -> None:
    builder = wire(("c", "d"), **{name: logs(name) for name in "abcd"})
    builder.add_conditional_edges(START, lambda state: state["note"], list("ab"))
    builder.add_edge(["a", "b"], "c", join=join)
    result = colour.invoke(builder.compile(), {"log": [], "note": "a"})
    assert ["a", "c", "d"] == result["log"]


def test_the_peer_preset_ends_silently_at_a_stalled_join(colour: Colour) -> None:
    app = joined(semantics=LANGGRAPH)
    assert ["a"] == colour.invoke(app, {"log": [], "note": "a"})["log"]


# -- rows 41, 42, 44: documented behaviour ------------------------------------


@pytest.mark.parametrize("semantics", [NATIVE, LANGGRAPH], ids=["native", "peer"])
def test_single_edges_do_not_wait_for_each_other(
    colour: Colour, semantics: Any
) -> None:
    edges = [(START, "a"), ("a", "b"), ("b", "b2"), ("b2", "d"), ("a", "c"), ("c", "d")]
    builder = wire(*edges, **{name: logs(name) for name in ("a", "b", "b2", "c", "d")})
    app = builder.compile(semantics=semantics)
    assert ["a", "b", "c", "b2", "d", "d"] == colour.invoke(app, {"log": []})["log"]


@pytest.mark.parametrize("semantics", [NATIVE, LANGGRAPH], ids=["native", "peer"])
def test_goto_adds_to_static_edges(colour: Colour, semantics: Any) -> None:
    def node(state: Log) -> Any:
        return Command(goto="b", update={"log": ["n"]})

    builder = wire((START, "n"), ("n", "c"), n=node, b=logs("b"), c=logs("c"))
    app = builder.compile(semantics=semantics)
    assert ["n", "b", "c"] == colour.invoke(app, {"log": []})["log"]


# -- row 43: targets that do not exist ----------------------------------------


def goes(*targets: Any) -> Any:
    """Return a node that goes to targets."""

    def node(state: Log) -> Any:
        return Command(goto=list(targets), update={"log": ["node"]})

    return node


STRAY = [
    goes("ends"),
    goes("end", "ends"),
    goes(Send("ends", {})),
    goes("end", Send("ends", {})),
]


@pytest.mark.parametrize("node", STRAY)
def test_a_command_to_an_unknown_node_is_an_error(colour: Colour, node: Any) -> None:
    builder = wire((START, "node"), node=node, end=logs("end"))
    app = builder.compile(InMemorySaver())
    with pytest.raises(UnknownNodeError) as error:
        colour.invoke(app, {"log": []})
    for word in ("node", "ends", "`end`"):
        assert word in str(error.value)
    assert ("node",) == colour.state(app).next


@pytest.mark.parametrize(
    "path",
    [
        lambda state: "ends",
        lambda state: ["end", "ends"],
        lambda state: Send("ends", {}),
        lambda state: [Send("end", {}), Send("ends", {})],
    ],
)
@pytest.mark.parametrize("source", [START, "node"])
def test_a_branch_to_an_unknown_node_is_an_error(
    colour: Colour, source: str, path: Any
) -> None:
    builder = wire((START, "node"), node=logs("node"), end=logs("end"))
    builder.add_conditional_edges(source, path)
    with pytest.raises(UnknownNodeError, match="ends"):
        colour.invoke(builder.compile(), {"log": []})


def test_an_answer_that_is_no_key_of_the_path_map_is_an_error(colour: Colour) -> None:
    builder = wire((START, "node"), node=logs("node"), end=logs("end"))
    builder.add_conditional_edges("node", lambda state: "maybe", {"yes": "end"})
    with pytest.raises((InvalidUpdateError, KeyError), match="maybe") as error:
        colour.invoke(builder.compile(), {"log": []})
    assert "it holds: yes" in str(error.value)


@pytest.mark.parametrize(
    ("start", "end", "hint"),
    [
        (START, say_hello, "a node's name is a string: 'say_hello'"),
        (say_hello, "node", "a node's name is a string: 'say_hello'"),
        (START, ["node", "end"], "add an edge for each of them"),
        (START, 3, "a node's name is a string: by default that of its function"),
    ],
)
def test_an_edge_without_names_is_refused_with_a_way_out(
    start: Any, end: Any, hint: str
) -> None:
    builder = wire(node=logs("node"), end=logs("end"))
    with pytest.raises(InvalidGraphError) as error:
        builder.add_edge(start, end)
    assert hint == error.value.hint


def test_a_builder_that_is_run_says_that_it_is_to_be_compiled() -> None:
    builder = wire(node=logs("node"))
    for verb in ("invoke", "ainvoke", "stream", "get_state"):
        with pytest.raises(AttributeError, match=r"compile\(\) makes the graph"):
            getattr(builder, verb)
    with pytest.raises(AttributeError, match="has no attribute 'invok'$"):
        builder.invok  # noqa: B018


def test_a_path_map_to_an_unknown_node_is_an_error_at_build_time() -> None:
    builder = wire((START, "node"), node=logs("node"), end=logs("end"))
    builder.add_conditional_edges("node", lambda state: "x", {"x": "ends"})
    with pytest.raises(InvalidGraphError, match="ends"):
        builder.compile()


def test_a_jump_to_no_node_of_any_parent_is_an_error(colour: Colour) -> None:
    def leaf(state: Log) -> Any:
        return Command(graph=Command.PARENT, goto="nowhere")

    app = wire(child=wire(leaf=leaf).compile()).compile()
    with pytest.raises(Exception, match="nowhere"):
        colour.invoke(app, {"log": []})


@pytest.mark.parametrize("node", STRAY[:1])
def test_the_peer_preset_skips_unknown_targets(colour: Colour, node: Any) -> None:
    builder = wire((START, "node"), node=node, end=logs("end"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        app = builder.compile(semantics=LANGGRAPH)
        assert ["node"] == colour.invoke(app, {"log": []})["log"]


# -- rows 45, 47: commands for a parent ---------------------------------------


@pytest.mark.parametrize("target", ["middle_end", "outer_end"])
def test_a_leaf_goes_to_the_nearest_parent_with_the_node(
    colour: Colour, target: str
) -> None:
    def leaf(state: Log) -> Any:
        update = {"log": ["leaf"]}
        return Command(graph=Command.PARENT, goto=target, update=update)

    inner = wire(leaf=leaf).compile()
    middle = wire((START, "inner"), inner=inner, middle_end=logs("middle_end"))
    outer = wire(
        (START, "middle"), middle=middle.compile(), outer_end=logs("outer_end")
    )
    app = outer.compile(InMemorySaver())
    result = colour.invoke(app, {"log": ["in"]})
    assert [target] == [one for one in result["log"] if one.endswith("end")]
    assert "leaf" in result["log"]


def test_a_child_goes_to_a_sibling_and_updates_the_parent(colour: Colour) -> None:
    def leaf(state: Log) -> Any:
        return Command(
            graph=Command.PARENT,
            goto=["b", Send("c", {"log": []})],
            update={"log": ["leaf"], "note": "from below"},
        )

    child = wire(leaf=leaf).compile()
    builder = wire((START, "a"), a=child, b=logs("b"), c=logs("c"))
    result = colour.invoke(builder.compile(), {"log": []})
    assert (["b", "c", "leaf"], "from below") == (sorted(result["log"]), result["note"])


# -- rows 48, 49: what is known at build time ---------------------------------


def test_an_unannotated_router_is_drawn_to_every_candidate() -> None:
    builder = wire((START, "a"), a=logs("a"), b=logs("b"), c=logs("c"))
    builder.add_conditional_edges("a", lambda state: "b")
    drawn = builder.compile().get_graph()
    targets = {edge.target for edge in drawn.edges if edge.source == "a"}
    assert {"b", "c", END} <= targets


def test_conflicting_writers_are_named(colour: Colour) -> None:
    def writes(state: Log) -> Any:
        return {"note": "x"}

    app = wire(left=writes, right=writes).compile()
    with pytest.raises(InvalidUpdateError) as error:
        colour.invoke(app, {"log": []})
    for word in ("left", "right", "note"):
        assert word in str(error.value)


def test_a_sent_payload_reaches_its_task_alone(colour: Colour) -> None:
    def work(state: Any) -> Any:
        return {"log": [sorted(state.items())]}

    builder = chain(a=logs("a"))
    builder.add_node("work", work)
    builder.add_conditional_edges(
        "a", lambda state: [Send("work", {"n": n}) for n in (2, 1)]
    )
    result = colour.invoke(builder.compile(), {"log": []})
    assert ["a", [("n", 2)], [("n", 1)]] == result["log"]
