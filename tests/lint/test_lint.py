"""What lint finds in a graph, and what it keeps silent about."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import pytest

from towpath import END, START, Command, InMemorySaver, Send, StateGraph, interrupt
from towpath import types as types_module
from towpath.lint import RULES, Finding
from towpath.semantics import LANGGRAPH, NATIVE


class State(TypedDict, total=False):
    text: str
    count: int
    notes: Annotated[list, operator.add]


def writes_text(state: State) -> dict:
    return {"text": state["text"] + "!"}


def reads_all(state: State) -> dict:
    return {"notes": [state["count"]], "count": 1, "text": "x"}


def quiet(state: State) -> dict:
    return {"notes": [state["text"], state["count"]]}


def anything(state: State) -> Any:
    return unknown(state)


def unknown(state: State) -> Any:
    raise NotImplementedError


def graph(*edges: tuple[Any, str], **nodes: Any) -> StateGraph:
    builder = StateGraph(State)
    for name, node in nodes.items():
        builder.add_node(name, node)
    for source, target in edges:
        builder.add_edge(source, target)
    return builder


def faults(builder: Any) -> list[tuple[str, str, str | None, str | None]]:
    """Return findings but for notes."""
    return [
        (one.code, one.severity, one.node, one.key)
        for one in builder.lint()
        if one.severity != "note"
    ]


def notes(builder: Any) -> list[tuple[str, str | None, str | None]]:
    return [
        (one.code, one.node, one.key)
        for one in builder.lint()
        if one.severity == "note"
    ]


# -- wiring -------------------------------------------------------------------


def test_a_node_that_nothing_leads_to_is_found():
    builder = graph((START, "a"), ("b", "a"), a=quiet, b=quiet)
    assert [("L101", "warning", "b", None)] == faults(builder)


@pytest.mark.parametrize(
    "node",
    [
        pytest.param(lambda state: Command(goto="b"), id="a command"),
        pytest.param(lambda state: Command(goto=[Send("b", {})]), id="a send"),
        pytest.param(lambda state: [Command(goto="b")], id="a list of commands"),
        pytest.param(anything, id="what another function returns"),
    ],
)
def test_a_node_that_a_function_may_lead_to_is_not_unreachable(node):
    assert [] == faults(graph((START, "a"), a=node, b=quiet))


def test_an_annotation_without_a_command_is_believed():
    def says_so(state: State) -> State:
        return unknown(state)

    builder = graph((START, "a"), a=says_so, b=quiet)
    assert [("L101", "warning", "b", None)] == faults(builder)


def test_a_declared_destination_is_reached():
    def go(state: State) -> Command[Literal["b"]]:
        return unknown(state)

    assert [] == faults(graph((START, "a"), a=go, b=quiet))


def test_a_node_that_a_subgraph_may_hand_over_to_is_reached():
    inner = graph((START, "leaf"), leaf=lambda s: Command(goto="b", graph="__parent__"))
    assert [] == faults(graph((START, "a"), a=inner.compile(), b=quiet))


def assigns(state: State) -> None:
    state["count"] = 1


def adds_to(state: State) -> dict:
    state["count"] += 1
    return {"text": "x"}


def appends(state: State) -> None:
    state["notes"].append(1)


def updates(state: State) -> None:
    state.update({"count": 1})


def updates_by_name(state: State) -> None:
    state.update(count=1)


async def assigns_later(state: State) -> None:
    state["count"], _ = 1, 2


@pytest.mark.parametrize(
    ("node", "key"),
    [
        (assigns, "count"),
        (adds_to, "count"),
        (appends, "notes"),
        (updates, "count"),
        (updates_by_name, "count"),
        (assigns_later, "count"),
    ],
)
def test_a_key_that_is_assigned_and_not_returned_is_found(node, key):
    builder = graph((START, "a"), ("a", "b"), a=node, b=quiet)
    assert ("L204", "warning", "a", key) in faults(builder)


def test_so_is_one_of_a_dataclass_and_one_of_a_branch():
    @dataclass
    class Counted:
        count: int = 0

    def node(state: Counted) -> None:
        state.count = 1

    def branch(state: State) -> str:
        state["count"] = 3
        return "a"

    builder = StateGraph(Counted)
    builder.add_node("a", node)
    builder.add_edge(START, "a")
    assert ("L204", "warning", "a", "count") in faults(builder)
    builder = graph((START, "a"), a=quiet)
    builder.add_conditional_edges("a", branch, ["a"])
    assert ("L204", "warning", "a", "count") in faults(builder)


def returns_the_state(state: State) -> State:
    state["count"] = 1
    return state


def returns_the_key(state: State) -> dict:
    state["notes"].append(1)
    return {"notes": state["notes"]}


def reads_it_again(state: State) -> dict:
    state["text"] = state["text"].strip()
    return {"notes": [state["text"], state["count"]]}


def has_a_copy(state: State) -> dict:
    state = dict(state)
    state["count"] = 1
    return {"text": "x"}


def keeps_what_is_none_of_its_keys(state: Any) -> dict:
    state["scratch"] = 1
    return {"text": "x"}


def changes_an_object(state: State) -> None:
    state["text"].update(1)


@pytest.mark.parametrize(
    "node",
    [
        returns_the_state,
        returns_the_key,
        reads_it_again,
        has_a_copy,
        keeps_what_is_none_of_its_keys,
        changes_an_object,
    ],
)
def test_what_a_node_assigns_for_itself_or_returns_is_not(node):
    builder = graph((START, "a"), ("a", "b"), a=node, b=quiet)
    assert "L204" not in {one.code for one in builder.lint()}


def test_lists_that_nodes_share_may_be_changed_in_place():
    builder = graph((START, "a"), ("a", "b"), a=appends, b=quiet)
    shared = {one.code for one in builder.compile(semantics=LANGGRAPH).lint()}
    assert "L204" not in shared


class Other(TypedDict, total=False):
    question: str


def other(leaf: Any) -> Any:
    builder = StateGraph(Other)
    builder.add_node("leaf", leaf)
    builder.add_edge(START, "leaf")
    return builder.compile()


def test_a_subgraph_without_a_key_of_its_parents_is_found():
    inner = other(lambda s: {"question": s["question"]})
    assert [("L304", "warning", "a", None)] == faults(graph((START, "a"), a=inner))


def test_a_subgraph_that_is_sent_its_state_or_leaves_needs_no_key_of_its_parents():
    inner = other(lambda s: {"question": s["question"]})
    builder = graph(a=inner, b=quiet)
    builder.add_conditional_edges(START, lambda s: [Send("a", {"question": ""})], ["a"])
    assert "L304" not in {one.code for one in builder.lint()}
    inner = other(lambda s: Command(update={"text": "x"}, graph=Command.PARENT))
    assert [] == faults(graph((START, "a"), a=inner))


def test_a_join_that_waits_for_a_node_that_never_runs_is_found():
    builder = graph((START, "a"), (["a", "b"], "c"), a=quiet, b=quiet, c=quiet)
    assert {("L101", "warning", "b", None), ("L102", "error", "c", None)} == set(
        faults(builder)
    )


def choice(several: bool, policy: str = "all") -> StateGraph:
    def one_way(state: State) -> str:
        return "a" if state["count"] else "b"

    def both_ways(state: State) -> list[str]:
        return ["a", "b"]

    builder = graph((START, "first"), first=quiet, a=quiet, b=quiet, c=quiet)
    route = both_ways if several else one_way
    builder.add_conditional_edges("first", route, ["a", "b"])
    builder.add_edge(["a", "b"], "c", join=policy)
    return builder


def test_a_join_of_two_ways_of_one_choice_is_found():
    (found,) = [one for one in choice(several=False).lint() if one.code == "L102"]
    assert ("error", "c") == (found.severity, found.node)
    assert "takes only one of the two" in found.message
    assert 'join="taken"' in found.hint


def test_a_stuck_join_fails_as_lint_says_it_does():
    with pytest.raises(Exception, match="TP-304"):
        choice(several=False).compile().invoke({"count": 1, "text": ""})


@pytest.mark.parametrize("builder", [choice(True), choice(False, "taken")])
def test_a_join_that_fires_is_not_found(builder):
    assert [] == faults(builder)


def test_a_join_that_a_second_turn_completes_is_not_found():
    builder = choice(several=False)
    builder.add_edge("a", "first")
    assert [] == [one for one in faults(builder) if one[0] == "L102"]


def test_a_circle_of_edges_is_found():
    builder = graph((START, "a"), ("a", "b"), ("b", "a"), a=quiet, b=quiet)
    (found,) = builder.lint()
    assert ("L103", "warning") == (found.code, found.severity)
    assert "'a' -> 'b' -> 'a'" in found.message


def ask(state: State) -> dict:
    return {"notes": [interrupt(state["text"])]}


def asks_through_another(state: State) -> dict:
    return {"notes": [ask(state), state["count"]]}


@pytest.mark.parametrize("node", [ask, asks_through_another])
def test_a_circle_in_which_somebody_is_asked_is_not_found(node):
    builder = graph((START, "a"), ("a", "b"), ("b", "a"), a=quiet, b=node)
    assert [] == faults(builder)


def test_a_circle_with_a_breakpoint_is_not_found():
    builder = graph((START, "a"), ("a", "a"), a=quiet)
    compiled = builder.compile(InMemorySaver(), interrupt_before=["a"])
    assert [] == faults(compiled)


def test_a_loop_with_a_condition_is_not_found():
    builder = graph((START, "a"), ("a", "b"), a=quiet, b=quiet)
    builder.add_conditional_edges("b", lambda s: "a" if s["count"] else END, ["a", END])
    assert [] == builder.lint()


# -- destinations -------------------------------------------------------------


def test_a_command_to_a_node_that_is_not_there_is_found():
    builder = graph((START, "a"), a=lambda state: Command(goto="summarise"))
    builder.add_node("summarize", quiet)
    found = [one for one in builder.lint() if one.severity == "error"]
    assert [("L401", "a")] == [(one.code, one.node) for one in found]
    assert "summarize" in found[0].hint


def test_a_branch_to_a_node_that_is_not_there_is_found():
    builder = graph((START, "a"), a=quiet)
    builder.add_conditional_edges("a", lambda state: "b")
    assert [("L401", "error", "a", None)] == faults(builder)


def test_a_send_to_a_node_that_is_not_there_is_found():
    builder = graph((START, "a"), a=quiet)
    builder.add_conditional_edges("a", lambda state: [Send("b", state)], ["a"])
    assert ("L401", "error", "a", None) in faults(builder)


def test_a_destination_that_is_not_declared_is_noted():
    def go(state: State) -> Command:
        return Command(goto="b" if state["count"] else END, update={"text": ""})

    builder = graph((START, "a"), a=go, b=quiet)
    (found,) = builder.lint()
    assert ("L402", "note", "a") == (found.code, found.severity, found.node)
    assert '-> Command[Literal["b"]]' in found.hint


def test_a_branch_without_a_map_is_noted():
    builder = graph((START, "a"), a=quiet)
    builder.add_conditional_edges("a", lambda state: unknown(state))
    assert [("L403", "a", None)] == notes(builder)


def test_an_answer_that_is_not_in_the_map_is_found():
    builder = graph((START, "a"), a=quiet)
    ends = {True: "a", "stop": END}
    builder.add_conditional_edges("a", lambda s: s["count"] > 3 or "stop", ends)
    assert [] == faults(builder)
    builder.add_conditional_edges("a", lambda s: s["count"] > 3, {True: "a"})
    assert [("L404", "error", "a", None)] == faults(builder)


# -- keys ---------------------------------------------------------------------


def test_two_nodes_that_write_a_plain_key_side_by_side_are_found():
    builder = graph((START, "a"), (START, "b"), a=writes_text, b=reads_all)
    assert [("L201", "error", "a", "text")] == faults(builder)
    with pytest.raises(Exception, match="TP-203"):
        builder.compile().invoke({"text": "", "count": 1})


def sometimes(state: State) -> dict:
    if state["count"]:
        return {"text": "b"}
    return {}


def without_end(state: State) -> dict:  # noqa: RET503 - what it is about
    if state["count"]:
        return {"text": "b"}


@pytest.mark.parametrize("node", [sometimes, without_end])
def test_a_node_that_may_write_a_plain_key_is_a_warning(node):
    builder = graph((START, "a"), (START, "b"), a=writes_text, b=node)
    assert [("L201", "warning", "a", "text")] == faults(builder)


def test_writers_that_come_together_later_are_found():
    edges = [(START, "a"), (START, "b"), ("a", "c"), ("b", "d")]
    builder = graph(*edges, a=quiet, b=quiet, c=writes_text, d=writes_text)
    assert [("L201", "error", "c", "text")] == faults(builder)


def test_writers_one_after_the_other_are_not_found():
    edges = [(START, "a"), (START, "b"), ("b", "c")]
    builder = graph(*edges, a=writes_text, b=quiet, c=writes_text)
    assert [] == faults(builder)


def test_writers_of_a_key_with_a_reducer_are_not_found():
    assert [] == faults(graph((START, "a"), (START, "b"), a=quiet, b=quiet))


def test_tasks_sent_to_a_writer_of_a_plain_key_are_found():
    def fan(state: State) -> list[Send]:
        return [Send("part", {"text": one}) for one in state["notes"]]

    builder = graph(part=writes_text, other=reads_all)
    builder.add_conditional_edges(START, fan, ["part"])
    builder.add_edge("part", "other")
    assert [("L202", "warning", "part", "text")] == faults(builder)


@pytest.mark.parametrize(
    ("semantics", "severity"), [(NATIVE, "error"), (LANGGRAPH, "warning")]
)
def test_a_key_that_no_schema_has_is_found(semantics, severity):
    builder = graph((START, "a"), a=lambda state: {"txet": state["text"]})
    compiled = builder.compile(semantics=semantics)
    assert [("L203", severity, "a", "txet")] == faults(compiled)
    assert "`text`" in compiled.lint()[0].hint


def test_a_key_that_is_set_later_counts():
    def node(state: State) -> dict:
        found = {"text": state["text"]}
        found["txet"] = state["count"]
        return found

    assert [("L203", "error", "a", "txet")] == faults(graph((START, "a"), a=node))


def test_an_update_that_another_function_may_change_is_left_alone():
    def node(state: State) -> dict:
        found = {"text": state["text"]}
        unknown(found)
        return found

    assert [] == graph((START, "a"), a=node).lint()


class Small(TypedDict):
    text: str


class Wide(TypedDict, total=False):
    text: str
    hidden: int
    wanted: int


def test_keys_that_nobody_reads_or_writes_are_found():
    builder = StateGraph(Wide, input_schema=Small, output_schema=Small)
    builder.add_node("a", lambda state: {"hidden": 1, "text": state["text"]})
    builder.add_node("b", lambda state: {"text": str(state["wanted"])})
    builder.add_edge(START, "a").add_edge("a", "b")
    assert [
        ("L302", "warning", None, "hidden"),
        ("L303", "warning", None, "wanted"),
    ] == faults(builder)


def test_what_is_sent_to_a_node_is_not_taken_for_missing():
    builder = StateGraph(Wide, input_schema=Small, output_schema=Small)
    builder.add_node("b", lambda state: {"text": str(state["wanted"])})
    builder.add_conditional_edges(
        START, lambda state: [Send("b", {"wanted": 1})], ["b"]
    )
    assert [] == faults(builder)


def test_what_is_pushed_while_a_node_runs_may_be_any_key():
    def says(state: State) -> dict:
        from towpath.graph.message import push_message

        push_message(state["text"])
        return {}

    assert [] == graph((START, "a"), a=says).lint()


def test_a_key_of_no_use_is_noted():
    builder = graph((START, "a"), a=lambda state: {"text": state["text"]})
    assert [("L301", None, "count"), ("L301", None, "notes")] == notes(builder)


def test_a_function_that_takes_the_whole_state_reads_every_key():
    builder = graph((START, "a"), a=lambda state: {"text": str(state)})
    assert [] == builder.lint()


# -- all of it ----------------------------------------------------------------


def decorated(function: Callable) -> Callable:
    return lambda state: function(state)


@pytest.mark.parametrize(
    "node",
    [print, decorated(writes_text), object.__call__, str],
    ids=["builtin", "closure", "method", "class"],
)
def test_a_function_that_cannot_be_read_is_trusted(node):
    assert [] == graph((START, "a"), (START, "b"), a=node, b=node).lint()


def test_two_lambdas_on_one_line_are_told_apart():
    nodes = {"a": lambda s: {"x": 1}, "b": lambda s: {"y": s}}
    builder = graph((START, "a"), ("a", "b"), **nodes)
    assert [("a", "x"), ("b", "y")] == [one[2:] for one in faults(builder)]


def test_a_graph_that_cannot_be_compiled_is_a_finding():
    (found,) = graph(("a", "b"), a=quiet).lint()
    assert ("TP-101", "error") == (found.code, found.severity)
    assert "b" in found.message


def test_rules_can_be_left_out():
    builder = graph((START, "a"), ("b", "a"), a=quiet, b=quiet)
    assert [] == builder.lint(ignore=["L101"])
    assert [] == builder.compile().lint(ignore=["L101"])


def test_a_finding_says_its_code_and_what_to_do():
    found = Finding("L101", "warning", "nothing leads to `b`", "add an edge", "b")
    assert "L101 warning: nothing leads to `b`\n  hint: add an edge" == str(found)


def test_nothing_is_run():
    def explodes(state: State) -> dict:
        raise AssertionError("lint ran it")

    builder = graph((START, "a"), a=explodes)
    builder.add_conditional_edges("a", explodes)
    assert [] == faults(builder)


def test_every_rule_has_a_test():
    text = Path(__file__).read_text("utf-8")
    assert set() == {code for code in RULES if f'"{code}"' not in text}


class Agent:
    def node(self, state: State) -> dict:
        return {"text": self.word + state["text"], "txet": ""}

    word = "x"


def with_option(state: State, *, option: int) -> dict:
    return {"txet": state["text"]}


@pytest.mark.parametrize(
    "node",
    [Agent().node, functools.partial(with_option, option=1)],
    ids=["method", "partial"],
)
def test_methods_and_partials_are_read(node):
    assert [("L203", "error", "a", "txet")] == faults(graph((START, "a"), a=node))


def test_a_circle_that_asks_through_a_module_is_not_found():
    def node(state: State) -> dict:
        return {"notes": [types_module.interrupt(state["text"]), state["count"]]}

    assert [] == faults(graph((START, "a"), ("a", "a"), a=node))
