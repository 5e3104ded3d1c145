"""A thread goes on in another graph than the one it was made by."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, NewType, Optional, TypedDict

import pytest

from towpath import Migration
from towpath.channels import Topic
from towpath.checkpoint.memory import InMemorySaver
from towpath.checkpoint.sqlite import SqliteSaver
from towpath.constants import GRAPH
from towpath.errors import (
    ChangedKeyError,
    InvalidGraphError,
    MigrationError,
    UnknownInterruptError,
    UnknownVersionError,
    VanishedNodeError,
)
from towpath.graph import START, StateGraph
from towpath.plan.fingerprint import fingerprint
from towpath.semantics import LANGGRAPH, NATIVE
from towpath.types import Command, RetryPolicy, Send, interrupt
from towpath.warnings import TowpathWarning

from .colours import THREAD, Calls, Colour

Log = Annotated[list, operator.add]


class State(TypedDict, total=False):
    log: Log
    text: str


class Renamed(TypedDict, total=False):
    steps: Log
    text: str


def says(colour: Colour, word: str, key: str = "log") -> Any:
    return colour.node(lambda state: {key: [word]})


def asks(colour: Colour, key: str = "log") -> Any:
    return colour.node(lambda state: {key: [interrupt("go on?")]})


def fan(schema: Any, saver: Any, nodes: Mapping[str, Any], **options: Any) -> Any:
    """Nodes beside each other."""
    semantics = options.pop("semantics", NATIVE)
    builder = StateGraph(schema, **options)
    for name, node in nodes.items():
        builder.add_node(name, node)
        builder.add_edge(START, name)
    return builder.compile(checkpointer=saver, semantics=semantics)


def chain(schema: Any, saver: Any, nodes: Mapping[str, Any], **options: Any) -> Any:
    """Nodes one after the other, stopping before each but the first."""
    stops = list(nodes)[1:]
    builder = StateGraph(schema, **options)
    for before, name in zip((START, *nodes), nodes, strict=False):
        builder.add_node(name, nodes[name])
        builder.add_edge(before, name)
    return builder.compile(checkpointer=saver, interrupt_before=stops)


def held(saver: Any) -> list[Any]:
    return [kept.checkpoint["id"] for kept in saver.list(None)]


# -- what passes --------------------------------------------------------------


class Wider(TypedDict, total=False):
    log: Annotated[list[str], lambda old, new: old + new]
    text: str | None
    extra: int


def test_new_nodes_keys_and_functions_pass(colour: Colour) -> None:
    saver = InMemorySaver()
    graph = chain(State, saver, {"a": says(colour, "a"), "b": says(colour, "b")})
    colour.invoke(graph, {"log": ["in"], "text": "t"}, THREAD)

    nodes = {"a": says(colour, "new a"), "b": says(colour, "new b")}
    other = chain(Wider, saver, {**nodes, "c": says(colour, "c")})
    colour.invoke(other, None, THREAD)
    done = colour.invoke(other, None, THREAD)

    assert {"log": ["in", "a", "new b", "c"], "text": "t"} == done


def test_a_node_that_nothing_waits_for_may_go(colour: Colour) -> None:
    saver = InMemorySaver()
    graph = chain(State, saver, {"a": says(colour, "a"), "b": says(colour, "b")})
    colour.invoke(graph, {"log": []}, THREAD)
    without = chain(State, saver, {"b": says(colour, "b")})
    assert ["a", "b"] == colour.invoke(without, None, THREAD)["log"]


class Short(TypedDict, total=False):
    log: Log


def test_a_key_that_nothing_waits_with_may_go(colour: Colour) -> None:
    saver = InMemorySaver()
    graph = chain(State, saver, {"a": says(colour, "a"), "b": says(colour, "b")})
    colour.invoke(graph, {"log": [], "text": "t"}, THREAD)
    other = chain(Short, saver, {"a": says(colour, "a"), "b": says(colour, "b")})
    assert {"log": ["a", "b"]} == colour.invoke(other, None, THREAD)


def test_the_description_is_stored_once_per_thread_and_graph(colour: Colour) -> None:
    saver = InMemorySaver()
    graph = chain(State, saver, {"a": says(colour, "a"), "b": says(colour, "b")})
    for _ in range(3):
        colour.invoke(graph, {"log": []}, THREAD)
        colour.invoke(graph, None, THREAD)
    kept = list(saver.list(THREAD))
    assert {1} == {one.checkpoint["channel_versions"][GRAPH] for one in kept}
    assert all(
        fingerprint(graph.plan_of_graph) == one.checkpoint["channel_values"][GRAPH]
        for one in kept
    )
    assert all(
        not any("graph" in key for key in one.metadata)
        for one in graph.get_state_history(THREAD)
    )


def test_equal_graphs_are_described_by_equal_texts() -> None:
    def text(version: Any = None) -> str:
        nodes = {"a": lambda state: None, "b": lambda state: None}
        return fingerprint(chain(State, None, nodes, version=version).plan_of_graph)

    assert text() == text()
    assert text(1) == text("1") != text()
    told = json.loads(text(1))
    assert {"log": "BinaryOperatorAggregate list add", "text": "LastValue str"} == (
        told["keys"]
    )
    assert (["a", "b"], "1") == (told["nodes"], told["version"])


# -- what is refused ----------------------------------------------------------


def test_a_vanished_node_is_told_with_versions(colour: Colour) -> None:
    saver = InMemorySaver()
    nodes = {"a": says(colour, "a"), "b": says(colour, "b")}
    colour.invoke(chain(State, saver, nodes, version=1), {"log": []}, THREAD)
    before = held(saver)
    del nodes["b"]
    passes = [Migration(1, 2)]
    other = chain(State, saver, nodes, version=2, migrations=passes)
    with pytest.raises(VanishedNodeError, match="`b` by version 1 .* in version 2"):
        colour.invoke(other, None, THREAD)
    assert before == held(saver)


def test_a_send_to_a_vanished_node_is_refused(colour: Colour) -> None:
    saver = InMemorySaver()

    def build(target: str) -> Any:
        builder = StateGraph(State)
        builder.add_node(target, says(colour, "sent"))
        builder.add_node("a", says(colour, "a"))
        builder.add_edge(START, "a")
        builder.add_conditional_edges("a", lambda state: [Send(target, {})], [target])
        return builder.compile(checkpointer=saver, interrupt_before=[target])

    colour.invoke(build("b"), {"log": []}, THREAD)
    with pytest.raises(VanishedNodeError, match="`b`"):
        colour.invoke(build("c"), None, THREAD)


def joined(colour: Colour, saver: Any, sources: Sequence[str], **options: Any) -> Any:
    """A join of `a` and others, of which one asks; `a` arrives a step earlier."""
    semantics = options.pop("semantics", NATIVE)
    builder = StateGraph(State, **options)
    for name in ("a", "late"):
        builder.add_node(name, says(colour, name))
    builder.add_node("slow", asks(colour))
    builder.add_node("end", says(colour, "end"))
    builder.add_edge(START, "a")
    builder.add_edge(START, "late")
    builder.add_edge("late", "slow")
    builder.add_edge(list(sources), "end")
    return builder.compile(checkpointer=saver, semantics=semantics)


def test_a_join_at_which_a_source_has_arrived_may_not_change(colour: Colour) -> None:
    saver = InMemorySaver()
    colour.invoke(joined(colour, saver, ["a", "slow"]), {"log": []}, THREAD)
    other = joined(colour, saver, ["a", "late", "slow"])
    with pytest.raises(VanishedNodeError, match="`a`, `slow` into `end`"):
        colour.invoke(other, Command(resume="yes"), THREAD)
    lenient = joined(colour, saver, ["a", "late", "slow"], semantics=LANGGRAPH)
    with pytest.warns(TowpathWarning, match="waits in the join"):
        colour.invoke(lenient, Command(resume="yes"), THREAD)


UserId = NewType("UserId", str)


class Texts(TypedDict, total=False):
    key: str


class Lists(TypedDict, total=False):
    key: Log


class Dicts(TypedDict, total=False):
    key: Annotated[dict, operator.or_]


class Optionals(TypedDict, total=False):
    key: Optional[str]  # noqa: UP045 - the other spelling


class Ids(TypedDict, total=False):
    key: UserId


class Words(TypedDict, total=False):
    key: Literal["one", "two"]


class Numbers(TypedDict, total=False):
    key: float


class Whole(TypedDict, total=False):
    key: int


class Topics(TypedDict, total=False):
    key: Annotated[list, Topic(str, accumulate=True)]


class Plain(TypedDict, total=False):
    key: list


PASSES = [
    (Texts, "one", Optionals),
    (Texts, "one", Ids),
    (Texts, "one", Words),
    (Whole, 1, Numbers),
    (Plain, ["one"], Lists),
    (Lists, ["one"], Plain),
    (Optionals, "one", Texts),
]
FAILS = [
    (Texts, "one", Lists),
    (Texts, "three", Words),
    (Lists, ["one"], Dicts),
    (Lists, ["one"], Topics),
    (Numbers, 1.5, Whole),
    (Optionals, None, Texts),
]


def silent(schema: Any, saver: Any, **options: Any) -> Any:
    return fan(schema, saver, {"node": lambda state: None}, **options)


@pytest.mark.parametrize(("old", "value", "new"), PASSES)
def test_a_key_that_can_take_up_its_value_passes(
    colour: Colour, old: Any, value: Any, new: Any
) -> None:
    saver = InMemorySaver()
    colour.invoke(silent(old, saver), {"key": value}, THREAD)
    assert {"key": value} == colour.invoke(silent(new, saver), {}, THREAD)


@pytest.mark.parametrize(("old", "value", "new"), FAILS)
def test_a_key_that_changed_its_meaning_is_refused(
    colour: Colour, old: Any, value: Any, new: Any
) -> None:
    saver = InMemorySaver()
    colour.invoke(silent(old, saver), {"key": value}, THREAD)
    before = held(saver)
    graph = silent(new, saver)
    with pytest.raises(ChangedKeyError, match="key `key` was"):
        colour.invoke(graph, {}, THREAD)
    with pytest.raises(ChangedKeyError, match="key `key` was"):
        graph.update_state(THREAD, {})
    assert before == held(saver)


def test_under_langgraph_a_changed_key_is_a_warning(colour: Colour) -> None:
    saver = InMemorySaver()
    colour.invoke(silent(Texts, saver), {"key": "one"}, THREAD)
    lenient = silent(Whole, saver, semantics=LANGGRAPH)
    with pytest.warns(TowpathWarning, match="key `key` was"):
        assert {"key": "one"} == colour.invoke(lenient, {}, THREAD)
    mixed = replace(NATIVE, changed_graphs="warn")
    colour.invoke(silent(Whole, saver, semantics=mixed), {}, THREAD)


def test_a_key_that_seems_renamed_is_hinted_at(colour: Colour) -> None:
    saver = InMemorySaver()
    colour.invoke(silent(State, saver), {"log": ["a"]}, THREAD)
    graph = silent(Renamed, saver)
    with pytest.warns(TowpathWarning, match="`steps` is new and declared alike"):
        colour.invoke(graph, {}, THREAD)


def test_a_finished_task_that_wrote_a_vanished_key_is_refused(colour: Colour) -> None:
    saver = InMemorySaver()
    wrote = colour.node(lambda state: {"text": "done"})
    graph = fan(State, saver, {"done": wrote, "ask": asks(colour)})
    colour.invoke(graph, {"log": []}, THREAD)
    nodes = {"done": colour.node(lambda state: None), "ask": asks(colour)}
    other = fan(Short, saver, nodes)
    with pytest.raises(ChangedKeyError, match="wrote key `text`"):
        colour.invoke(other, Command(resume="yes"), THREAD)


# -- migrations ---------------------------------------------------------------


def test_questions_and_finished_work_survive_a_migration(colour: Colour) -> None:
    saver, calls = InMemorySaver(), Calls()

    def nodes(key: str, *names: str) -> dict[str, Callable[..., Any]]:
        def done(state: Any) -> Any:
            calls("done")
            return {key: ["done"]}

        return dict(zip(names, (colour.node(done), asks(colour, key)), strict=True))

    graph = fan(State, saver, nodes("log", "done", "ask"), version=1)
    asked = colour.invoke(graph, {"log": ["in"]}, THREAD)["__interrupt__"]
    to_2 = Migration(
        1,
        "2",
        lambda state: {**state, "steps": [word.upper() for word in state["steps"]]},
        keys={"log": "steps"},
        nodes={"done": "did", "ask": "approve"},
    )
    renamed = nodes("steps", "did", "approve")
    other = fan(Renamed, saver, renamed, version="2", migrations=[to_2])
    before = held(saver)

    shown = other.get_state(THREAD)
    assert (("approve",), ["IN", "done"]) == (shown.next, shown.values["steps"])
    assert asked == list(shown.interrupts)
    assert before == held(saver)

    done = colour.invoke(other, Command(resume={asked[0].id: "yes"}), THREAD)
    assert ["IN", "yes", "done"] == done["steps"]
    assert {"done": 1} == calls.count
    sources = [one.metadata["source"] for one in other.get_state_history(THREAD)]
    assert ["loop", "update", "loop", "input"] == sources
    assert all(
        GRAPH not in one.metadata and "carried" not in one.metadata
        for one in other.get_state_history(THREAD)
    )


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_subgraph_is_found_behind_a_renamed_node(
    colour: Colour, durability: Any
) -> None:
    saver, calls = InMemorySaver(), Calls()

    def first(state: Any) -> Any:
        calls("first")
        return {"log": ["first"]}

    inner = StateGraph(State)
    inner.add_node("first", colour.node(first))
    inner.add_node("second", asks(colour))
    inner.add_edge(START, "first")
    inner.add_edge("first", "second")
    graph = fan(State, saver, {"sub": inner.compile()}, version=1)
    colour.invoke(graph, {"log": []}, THREAD, durability=durability)
    moves = [Migration(1, 2, nodes={"sub": "inner"})]
    nodes = {"inner": inner.compile()}
    other = fan(State, saver, nodes, version=2, migrations=moves)
    shown = other.get_state(THREAD, subgraphs=True)
    assert ("second",) == shown.tasks[0].state.next
    place = other.get_state(THREAD).tasks[0].state
    assert ("second",) == other.get_state(place).next
    done = colour.invoke(other, Command(resume="yes"), THREAD, durability=durability)
    assert ["first", "yes"] == done["log"]
    assert {"first": 1} == calls.count


def test_a_subgraph_has_migrations_of_its_own(colour: Colour) -> None:
    saver = InMemorySaver()

    def build(schema: Any, key: str, **options: Any) -> Any:
        inner = StateGraph(schema, **options)
        inner.add_node("first", says(colour, "first", key))
        inner.add_node("second", asks(colour, key))
        inner.add_edge(START, "first")
        inner.add_edge("first", "second")
        called = inner.compile()
        return called, fan(State, saver, {"sub": called})

    class Inner(State, total=False):
        steps: Log

    colour.invoke(build(Inner, "log", version=1)[1], {"log": []}, THREAD)
    moves = [Migration(1, 2, lambda state: {**state, "text": "moved"})]
    _, graph = build(Inner, "log", version=2, migrations=moves)
    done = colour.invoke(graph, Command(resume="yes"), THREAD)
    assert {"log": ["first", "yes"], "text": "moved"} == done


def test_pending_sends_and_joins_follow_new_names(colour: Colour) -> None:
    saver = InMemorySaver()

    def build(a: str, b: str, end: str, **options: Any) -> Any:
        builder = StateGraph(State, **options)
        builder.add_node(a, says(colour, "a"))
        builder.add_node("late", says(colour, "late"))
        builder.add_node(b, asks(colour))
        builder.add_node(end, says(colour, "end"))
        builder.add_edge(START, a)
        builder.add_edge(START, "late")
        builder.add_conditional_edges("late", lambda state: [Send(b, {})], [b])
        builder.add_edge([a, b], end)
        return builder.compile(checkpointer=saver)

    colour.invoke(build("a", "b", "end"), {"log": []}, THREAD)
    moves = [
        Migration(None, 1, nodes={"a": "x", "b": "b2"}),
        Migration(1, 2, nodes={"b2": "y", "end": "z"}),
    ]
    other = build("x", "y", "z", version=2, migrations=moves)
    # What the edit stores is found by a graph that has nothing left to migrate.
    other.update_state(THREAD, {"text": "edited"})
    done = colour.invoke(other, Command(resume="yes"), THREAD)
    assert ["a", "late", "yes", "end"] == done["log"]


def test_an_error_handler_that_asks_is_found_behind_a_renamed_node(
    colour: Colour,
) -> None:
    saver, calls = InMemorySaver(), Calls()

    def fails(state: Any) -> Any:
        calls("fails")
        raise ValueError("no")

    def build(name: str, **options: Any) -> Any:
        builder = StateGraph(State, **options)
        builder.add_node(
            name,
            colour.node(fails),
            error_handler=asks(colour),
            retry_policy=RetryPolicy(max_attempts=1),
        )
        builder.add_edge(START, name)
        return builder.compile(checkpointer=saver)

    colour.invoke(build("a"), {"log": []}, THREAD)
    moves = [Migration(None, 1, nodes={"a": "b"})]
    other = build("b", version=1, migrations=moves)
    done = colour.invoke(other, Command(resume="handled"), THREAD)
    assert ["handled"] == done["log"]
    assert {"fails": 1} == calls.count


def test_new_input_to_an_older_thread_is_folded_into_migrated_values(
    colour: Colour,
) -> None:
    saver = InMemorySaver()
    colour.invoke(silent(State, saver), {"log": ["old"]}, THREAD)
    moves = [
        Migration(None, 1, keys={"log": "steps"}),
        Migration(1, 2, lambda state: {**state, "text": "from 1"}),
    ]
    graph = silent(Renamed, saver, version=2, migrations=moves)
    done = colour.invoke(graph, {"steps": ["new"]}, THREAD)
    assert {"steps": ["old", "new"], "text": "from 1"} == done
    again = colour.invoke(graph, {"steps": ["more"]}, THREAD)
    assert ["old", "new", "more"] == again["steps"]


def test_an_edit_brings_a_thread_up(colour: Colour) -> None:
    saver = InMemorySaver()
    colour.invoke(fan(State, saver, {"ask": asks(colour)}), {"log": []}, THREAD)
    moves = [Migration(None, 1, keys={"log": "steps"}, nodes={"ask": "approve"})]
    nodes = {"approve": asks(colour, "steps")}
    graph = fan(Renamed, saver, nodes, version=1, migrations=moves)
    graph.update_state(THREAD, {"text": "edited"})
    assert ("approve",) == graph.get_state(THREAD).next
    done = colour.invoke(graph, Command(resume="yes"), THREAD)
    assert {"steps": ["yes"], "text": "edited"} == done


def test_an_old_checkpoint_is_run_again_in_the_new_form(colour: Colour) -> None:
    saver = InMemorySaver()
    graph = chain(State, saver, {"a": says(colour, "a"), "b": says(colour, "b")})
    colour.invoke(graph, {"log": []}, THREAD)
    colour.invoke(graph, None, THREAD)
    moves = [Migration(None, 1, keys={"log": "steps"}, nodes={"b": "c"})]
    nodes = {"a": says(colour, "a", "steps"), "c": says(colour, "c", "steps")}
    other = chain(Renamed, saver, nodes, version=1, migrations=moves)
    history = list(other.get_state_history(THREAD))
    assert [["a", "b"], ["a"]] == [one.values["steps"] for one in history[:2]]
    done = colour.invoke(other, None, history[1].config)
    assert ["a", "c"] == done["steps"]


def test_a_thread_of_an_unknown_version_is_refused(colour: Colour) -> None:
    saver = InMemorySaver()
    colour.invoke(silent(State, saver, version="9"), {"log": []}, THREAD)
    before = held(saver)
    graph = silent(State, saver, version="2", migrations=[Migration("1", "2")])
    with pytest.raises(UnknownVersionError, match=r"version 9 .* version 2"):
        colour.invoke(graph, {"log": []}, THREAD)
    with pytest.raises(UnknownVersionError, match="without a version"):
        colour.invoke(silent(State, saver), {"log": []}, THREAD)
    assert {"log": []} == graph.get_state(THREAD).values
    assert before == held(saver)
    lenient = silent(State, saver, version="2", semantics=LANGGRAPH)
    with pytest.warns(TowpathWarning, match="version 9"):
        colour.invoke(lenient, {"log": []}, THREAD)


def fail(state: dict[str, Any]) -> dict[str, Any]:
    state["log"].append("changed in place")
    raise ValueError("no")


def test_a_migration_that_fails_leaves_the_thread_as_it_was(colour: Colour) -> None:
    saver = InMemorySaver()
    colour.invoke(silent(State, saver, version=1), {"log": ["a"]}, THREAD)
    before = held(saver)

    def migrated(state: Any) -> Any:
        return silent(State, saver, version=2, migrations=[Migration(1, 2, state)])

    with pytest.raises(ValueError, match="no") as caught:
        colour.invoke(migrated(fail), {"log": []}, THREAD)
    assert "While migrating a thread from version 1 to 2" in caught.value.__notes__
    with pytest.raises(MigrationError, match="returned NoneType"):
        colour.invoke(migrated(lambda state: None), {"log": []}, THREAD)
    with pytest.raises(MigrationError, match="`logs`"):
        colour.invoke(migrated(lambda state: {"logs": []}), {"log": []}, THREAD)
    with pytest.raises(ChangedKeyError, match="`log`"):
        colour.invoke(migrated(lambda state: {"log": "text"}), {"log": []}, THREAD)
    assert before == held(saver)
    old = silent(State, saver, version=1)
    assert {"log": ["a", "b"]} == colour.invoke(old, {"log": ["b"]}, THREAD)


def test_migrations_that_lead_nowhere_are_refused_at_once() -> None:
    with pytest.raises(InvalidGraphError, match="does not lead to 3"):
        StateGraph(State, version=3, migrations=[Migration(1, 2)])
    with pytest.raises(InvalidGraphError, match="does not lead"):
        StateGraph(State, version=3, migrations=[Migration(1, 2), Migration(2, 1)])
    with pytest.raises(InvalidGraphError, match="two migrations start"):
        StateGraph(State, version=2, migrations=[Migration(1, 2), Migration("1", 2)])


def test_a_subgraph_kept_under_its_node_s_name_is_not_renamed() -> None:
    inner = StateGraph(State)
    inner.add_node("node", lambda state: None)
    inner.add_edge(START, "node")
    moves = [Migration(1, 2, nodes={"sub": "other"})]
    nodes = {"other": inner.compile(checkpointer=True)}
    with pytest.raises(InvalidGraphError, match="keeps its state across calls"):
        fan(State, None, nodes, version=2, migrations=moves)


def test_an_edit_above_a_subgraph_that_asks_keeps_its_work(colour: Colour) -> None:
    """The question stays open under its id, and what had finished is not repeated."""
    saver, calls = InMemorySaver(), Calls()

    def first(state: Any) -> Any:
        calls("first")
        return {"log": ["first"]}

    inner = StateGraph(State)
    inner.add_node("first", colour.node(first))
    inner.add_node("second", asks(colour))
    inner.add_edge(START, "first")
    inner.add_edge("first", "second")
    graph = fan(State, saver, {"sub": inner.compile(checkpointer=True)})
    colour.invoke(graph, {"log": []}, THREAD)
    graph.update_state(THREAD, {"text": "once"})
    graph.update_state(THREAD, {"text": "twice"})
    done = colour.invoke(graph, Command(resume="yes"), THREAD)
    assert (["first", "yes"], {"first": 1}) == (done["log"], calls.count)


def test_nodes_and_keys_may_swap_their_names(colour: Colour) -> None:
    saver = InMemorySaver()

    class Two(TypedDict, total=False):
        a: Log
        b: Log

    def build(one: str, two: str, **options: Any) -> Any:
        nodes = {one: says(colour, "done", one), two: asks(colour, two)}
        return fan(Two, saver, nodes, **options)

    colour.invoke(build("a", "b"), {"a": ["in a"], "b": ["in b"]}, THREAD)
    swap = {"a": "b", "b": "a"}
    moves = [Migration(None, 1, keys=swap, nodes=swap)]
    other = build("b", "a", version=1, migrations=moves)
    other.update_state(THREAD, {"a": ["edited"]})
    done = colour.invoke(other, Command(resume="yes"), THREAD)
    assert {"b": ["in a", "done"], "a": ["in b", "edited", "yes"]} == done


def test_a_thread_that_does_not_say_what_made_it_goes_on(colour: Colour) -> None:
    """One of an earlier release, or of the peer's."""
    first, saver = InMemorySaver(), InMemorySaver()
    nodes = {"a": says(colour, "a"), "b": says(colour, "b")}
    colour.invoke(chain(State, first, nodes), {"log": []}, THREAD)
    kept = first.get_tuple(THREAD)
    assert kept is not None
    checkpoint = {**kept.checkpoint}
    for part in ("channel_values", "channel_versions"):
        checkpoint[part] = {k: v for k, v in checkpoint[part].items() if k != GRAPH}
    place = {"configurable": {"thread_id": "thread", "checkpoint_ns": ""}}
    saver.put(place, checkpoint, kept.metadata, checkpoint["channel_versions"])

    gone = chain(State, saver, {"a": says(colour, "a"), "c": says(colour, "c")})
    with pytest.raises(VanishedNodeError, match="`b`"):
        colour.invoke(gone, None, THREAD)
    moves = [Migration(None, 1, nodes={"b": "c"})]
    nodes = {"a": says(colour, "a"), "c": says(colour, "c")}
    graph = chain(State, saver, nodes, version=1, migrations=moves)
    assert ["a", "c"] == colour.invoke(graph, None, THREAD)["log"]


@pytest.mark.parametrize("saver", [InMemorySaver, lambda: SqliteSaver(":memory:")])
def test_a_run_that_does_nothing_claims_no_checkpoint_for_its_graph(
    colour: Colour, saver: Callable[[], Any]
) -> None:
    with saver() as kept:
        colour.invoke(silent(Texts, kept), {"key": "one"}, THREAD)
        before = [one.checkpoint["channel_values"][GRAPH] for one in kept.list(None)]
        colour.invoke(silent(Optionals, kept), None, THREAD)
        after = [one.checkpoint["channel_values"][GRAPH] for one in kept.list(None)]
        assert before == after


def test_no_key_has_the_name_under_which_the_description_is_kept() -> None:
    builder = StateGraph(TypedDict("Taken", {GRAPH: str}))  # noqa: UP013
    builder.add_node("node", lambda state: None)
    builder.add_edge(START, "node")
    with pytest.raises(InvalidGraphError, match="use for themselves"):
        builder.compile()


def test_a_wrong_answer_to_an_older_thread_writes_nothing(colour: Colour) -> None:
    saver = InMemorySaver()
    colour.invoke(fan(State, saver, {"ask": asks(colour)}), {"log": []}, THREAD)
    before = held(saver)
    moves = [Migration(None, 1, nodes={"ask": "approve"})]
    nodes = {"approve": asks(colour)}
    graph = fan(State, saver, nodes, version=1, migrations=moves)
    with pytest.raises(UnknownInterruptError):
        colour.invoke(graph, Command(resume={"0" * 32: "yes"}), THREAD)
    assert before == held(saver)
