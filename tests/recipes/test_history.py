"""Section D of the reports: time travel, history, state from outside."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from typing import Any

import pytest

from towpath import START, Command, InMemorySaver, Send, interrupt
from towpath.errors import (
    AmbiguousUpdateError,
    TowpathError,
    UnknownNamespaceError,
)
from towpath.semantics import LANGGRAPH

from .kit import THREAD, Colour, Log, chain, logs, questions, wire


def ask(state: Any) -> Any:
    """Ask, and log the answer."""
    return {"log": [interrupt("?")]}


# -- row 51: a run from a pinned checkpoint -----------------------------------


def test_a_run_from_an_old_checkpoint_moves_the_head(
    colour: Colour, saver: Any
) -> None:
    app = chain(a=logs("a")).compile(saver)
    colour.invoke(app, {"log": ["1"]})
    pinned = colour.state(app).config
    colour.invoke(app, {"log": ["2"]})
    for name in "34":
        result = colour.invoke(app, {"log": [name]}, pinned)
        assert ["1", "a", name, "a"] == result["log"]
        head = colour.state(app)
        assert result == head.values
        assert head.config != pinned
    assert ["1", "a"] == colour.state(app, pinned).values["log"]


# -- row 52: replaying asks again, with the state of then ---------------------


def test_replaying_a_finished_run_asks_again(colour: Colour, saver: Any) -> None:
    child = chain(before=logs("before"), ask=ask).compile()
    app = chain(first=logs("first"), child=child).compile(saver)
    colour.invoke(app, {"log": []})
    colour.invoke(app, Command(resume="old"))
    past = next(one for one in colour.history(app) if one.next == ("child",))

    again = colour.invoke(app, None, past.config)

    assert {"?"} == set(questions(again))
    inside = colour.state(app, subgraphs=True).tasks[0].state.values["log"]
    assert ["first", "before"] == inside
    result = colour.invoke(app, Command(resume="new"))
    assert ("new", False) == (result["log"][-1], "old" in result["log"])


def test_replaying_reruns_only_what_follows(colour: Colour) -> None:
    calls: Counter = Counter()
    app = chain(**{name: logs(name, calls) for name in "abc"}).compile(InMemorySaver())
    colour.invoke(app, {"log": []})
    past = next(one for one in colour.history(app) if one.next == ("b",))
    assert ["a", "b", "c"] == colour.invoke(app, None, past.config)["log"]
    assert {"a": 1, "b": 2, "c": 2} == calls


# -- row 54: one contract for limits and filters ------------------------------


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({}, [1, 0, -1]),
        ({"limit": 1}, [1]),
        ({"limit": 0}, []),
        ({"limit": 9}, [1, 0, -1]),
        ({"filter": {"source": "input"}}, [-1]),
        ({"filter": {"source": "loop"}, "limit": 1}, [1]),
        ({"filter": {"step": 0, "source": "loop"}}, [0]),
        ({"filter": {"step": 0, "source": "input"}}, []),
        ({"filter": {"no_such_key": None}}, []),
        ({"filter": {"no_such_key": 1}}, []),
        ({"filter": {}}, [1, 0, -1]),
    ],
    ids=str,
)
def test_savers_agree_on_limits_and_filters(
    colour: Colour, saver: Any, options: Any, steps: list[int]
) -> None:
    app = chain(a=logs("a")).compile(saver, store_metadata=["no_such_key"])
    colour.invoke(app, {"log": []})
    found = colour.history(app, **options)
    assert steps == [one.metadata["step"] for one in found]


def test_savers_agree_on_what_came_before(colour: Colour, saver: Any) -> None:
    app = chain(a=logs("a"), b=logs("b")).compile(saver)
    colour.invoke(app, {"log": []})
    newest, second, *_ = colour.history(app)
    found = colour.history(app, before=newest.config, limit=1)
    assert [second] == found


# -- row 55: children called inside a node ------------------------------------


def test_a_child_called_inside_a_node_is_seen(colour: Colour, saver: Any) -> None:
    # Kept in a dict, the child is invisible to whoever reads the function.
    children = {"one": chain(before=logs("before"), ask=ask).compile()}

    def caller(state: Log) -> Any:
        return {"log": children["one"].invoke({"log": []})["log"]}

    async def acaller(state: Log) -> Any:
        return {"log": (await children["one"].ainvoke({"log": []}))["log"]}

    node = caller if colour.runner is None else acaller
    app = wire(caller=node).compile(saver)
    colour.invoke(app, {"log": []})
    (task,) = colour.state(app, subgraphs=True).tasks
    assert {"log": ["before"]} == task.state.values
    assert ("ask",) == task.state.next
    assert ["before", "yes"] == colour.invoke(app, Command(resume="yes"))["log"]


# -- row 57: what a history lists ---------------------------------------------


def test_a_history_lists_the_input_and_every_step(colour: Colour, saver: Any) -> None:
    app = chain(a=logs("a"), b=logs("b")).compile(saver)
    colour.invoke(app, {"log": ["in"]})
    history = colour.history(app)
    assert [
        (2, "loop", (), ["in", "a", "b"]),
        (1, "loop", ("b",), ["in", "a"]),
        (0, "loop", ("a",), ["in"]),
        (-1, "input", ("__start__",), []),
    ] == [
        (
            one.metadata["step"],
            one.metadata["source"],
            one.next,
            one.values.get("log", []),
        )
        for one in history
    ]
    parents = [one.parent_config for one in history]
    assert [*(one.config for one in history[1:]), None] == parents


# -- row 58: the graph changed under a paused thread --------------------------


def test_a_paused_node_that_is_gone_is_an_error(colour: Colour, saver: Any) -> None:
    before = chain(a=logs("a"), b=logs("b")).compile(saver, interrupt_before=["b"])
    colour.invoke(before, {"log": []})
    after = chain(a=logs("a"), b2=logs("b2")).compile(saver)
    with pytest.raises(TowpathError, match="`b`"):
        colour.invoke(after, None)
    assert ["a", "b"] == colour.invoke(before, None)["log"]


def test_a_node_that_was_added_does_not_disturb_a_thread(
    colour: Colour, saver: Any
) -> None:
    before = chain(a=logs("a"), b=logs("b")).compile(saver, interrupt_before=["b"])
    colour.invoke(before, {"log": []})
    after = chain(a=logs("a"), b=logs("b"), c=logs("c")).compile(saver)
    assert ["a", "b", "c"] == colour.invoke(after, None)["log"]


def test_an_unknown_thread_has_an_empty_state(colour: Colour, saver: Any) -> None:
    state = colour.state(chain(a=logs("a")).compile(saver), THREAD)
    assert ({}, (), ()) == (state.values, state.next, state.tasks)
    assert [] == colour.history(chain(a=logs("a")).compile(saver))


def test_an_unknown_namespace_is_an_error(colour: Colour, saver: Any) -> None:
    app = chain(a=logs("a")).compile(saver)
    colour.invoke(app, {"log": []})
    place = {"configurable": {"thread_id": "thread", "checkpoint_ns": "nowhere:1"}}
    with pytest.raises(UnknownNamespaceError, match="nowhere"):
        colour.state(app, place)


# -- snapshots are the caller's own -------------------------------------------


def test_changing_a_snapshot_changes_no_other_one_and_not_the_thread(
    colour: Colour, saver: Any
) -> None:
    app = chain(a=logs("a"), b=logs("b")).compile(saver)
    colour.invoke(app, {"log": ["1"]})
    before = deepcopy([colour.state(app), *colour.history(app)])
    mine = [colour.state(app), *colour.history(app)]

    for one in mine[::2]:
        one.values["log"].append("mine")
        one.values["other"] = "mine"
        one.config["configurable"].clear()
        one.metadata.clear()
        for task in one.tasks:
            task.result.clear()

    assert before[1::2] == mine[1::2]
    assert before == [colour.state(app), *colour.history(app)]
    assert ["1", "a", "b", "2", "a", "b"] == colour.invoke(app, {"log": ["2"]})["log"]


# -- who wrote last, when tasks were sent -------------------------------------


def fanned_out(*before: str, **compile_options: Any) -> Any:
    """Return a graph that sends two tasks and stops before what follows them."""
    nodes = {name: logs(name) for name in before}
    builder = wire(("count", "end"), **nodes, count=logs("count"), end=logs("end"))
    sender = before[-1] if before else START
    if before:
        builder.add_edge(START, sender)
    sends = [Send("count", {}), Send("count", {})]
    builder.add_conditional_edges(sender, lambda state: sends, ["count"])
    return builder.compile(InMemorySaver(), interrupt_before=["end"], **compile_options)


@pytest.mark.parametrize("before", [(), ("plan",)])
def test_an_edit_after_sent_tasks_has_to_name_a_node(
    colour: Colour, before: tuple[str, ...]
) -> None:
    app = fanned_out(*before)
    colour.invoke(app, {"log": []})
    state = colour.state(app)
    with pytest.raises(AmbiguousUpdateError, match="sent ran last") as error:
        colour.update(app, {"log": ["edit"]})
    assert f"as_node='{(*before, '__start__')[0]}' sends anew" in str(error.value.hint)
    assert state == colour.state(app)

    colour.update(app, {"log": ["edit"]}, as_node="count")
    assert [*before, "count", "count", "edit", "end"] == colour.invoke(app, None)["log"]
    colour.update(app, {"log": ["edit"]})
    assert () == colour.state(app).next, "`end` ran last"


def test_an_edit_while_tasks_are_to_be_sent_counts_as_the_sender(
    colour: Colour,
) -> None:
    app = fanned_out("plan")
    colour.invoke(app, {"log": []})
    sent = [one for one in colour.history(app) if one.next == ("count", "count")]
    colour.update(app, {"log": ["edit"]}, sent[0].config)
    assert ("count", "count") == colour.state(app).next


def test_the_peer_preset_takes_an_edit_after_sent_tasks_as_the_senders(
    colour: Colour,
) -> None:
    app = fanned_out("plan", semantics=LANGGRAPH)
    colour.invoke(app, {"log": []})
    colour.update(app, {"log": ["edit"]})
    assert ("count", "count") == colour.state(app).next
