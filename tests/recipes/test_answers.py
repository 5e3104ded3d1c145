"""Section A of the reports: questions, and what answers may be.

Rows 13 (entrypoints) and 20 in its tool node form belong with the functional
API and the prebuilt nodes.
"""

from __future__ import annotations

import operator
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import pytest
from typing_extensions import TypedDict

from towpath import Command, InMemorySaver, Send, SqliteSaver, interrupt
from towpath.errors import (
    InvalidUpdateError,
    NothingToResumeError,
    UnknownInterruptError,
)
from towpath.semantics import LANGGRAPH, NATIVE

from .kit import THREAD, Colour, Log, chain, logs, questions, wire

FALSY = [None, False, 0, "", (), []]


def asks(question: str, calls: Counter | None = None) -> Any:
    """Return a node that asks one question and logs the answer."""

    def node(state: Any) -> Any:
        if calls is not None:
            calls[question] += 1
        return {"log": [(question, interrupt(question))]}

    return node


# -- row 1: None is an answer -------------------------------------------------


@pytest.mark.parametrize("semantics", [NATIVE, LANGGRAPH], ids=["native", "peer"])
@pytest.mark.parametrize("answer", FALSY, ids=repr)
def test_any_value_is_an_answer(colour: Colour, semantics: Any, answer: Any) -> None:
    builder = wire(ask=asks("?"))
    app = builder.compile(InMemorySaver(), semantics=semantics)
    colour.invoke(app, {"log": []})
    assert {"log": [("?", answer)]} == colour.invoke(app, Command(resume=answer))


@pytest.mark.parametrize("answer", FALSY, ids=repr)
def test_any_value_is_an_answer_by_id(colour: Colour, answer: Any) -> None:
    app = wire(ask=asks("?")).compile(InMemorySaver())
    ids = questions(colour.invoke(app, {"log": []}))
    result = colour.invoke(app, Command(resume={ids["?"]: answer}))
    assert {"log": [("?", answer)]} == result


def test_none_answers_several_at_once(colour: Colour) -> None:
    app = wire(a=asks("a?"), b=asks("b?")).compile(InMemorySaver())
    ids = questions(colour.invoke(app, {"log": []}))
    result = colour.invoke(app, Command(resume=dict.fromkeys(ids.values())))
    assert [("a?", None), ("b?", None)] == result["log"]


def test_none_answers_a_question_from_below(colour: Colour) -> None:
    child = wire(ask=asks("deep?")).compile()
    app = wire(child=wire(middle=child).compile()).compile(InMemorySaver())
    colour.invoke(app, {"log": []})
    assert [("deep?", None)] == colour.invoke(app, Command(resume=None))["log"]


def test_none_answers_one_question_after_another(colour: Colour) -> None:
    def form(state: Log) -> Any:
        return {"log": [interrupt("1?"), interrupt("2?"), interrupt("3?")]}

    app = wire(form=form).compile(InMemorySaver())
    colour.invoke(app, {"log": []})
    for _ in range(3):
        result = colour.invoke(app, Command(resume=None))
    assert [None, None, None] == result["log"]


def test_none_answers_after_a_restart(colour: Colour, tmp_path: Path) -> None:
    path = str(tmp_path / "threads.db")
    for given in ({"log": []}, Command(resume=None)):
        with SqliteSaver.from_conn_string(path) as saver:
            result = colour.invoke(wire(ask=asks("?")).compile(saver), given)
    assert [("?", None)] == [tuple(one) for one in result["log"]]


def test_a_dict_that_names_no_question_is_a_plain_answer(colour: Colour) -> None:
    app = wire(ask=asks("?")).compile(InMemorySaver())
    colour.invoke(app, {"log": []})
    result = colour.invoke(app, Command(resume={"action": "edit"}))
    assert [("?", {"action": "edit"})] == result["log"]


# -- row 2: unknown ids -------------------------------------------------------

UNKNOWN = "0123456789abcdef0123456789abcdef"


def test_an_unknown_id_is_an_error(colour: Colour, saver: Any) -> None:
    app = wire(ask=asks("?")).compile(saver)
    ids = questions(colour.invoke(app, {"log": []}))
    before = colour.state(app)

    with pytest.raises(UnknownInterruptError) as error:
        colour.invoke(app, Command(resume={UNKNOWN: "lost"}))

    assert (UNKNOWN,) == error.value.interrupt_ids
    assert (ids["?"],) == error.value.pending_ids
    assert f"open are: {ids['?']}" == error.value.hint
    assert before == colour.state(app)
    assert [("?", "ok")] == [
        tuple(one) for one in colour.invoke(app, Command(resume="ok"))["log"]
    ]


def test_one_unknown_id_among_known_ones_is_an_error(colour: Colour) -> None:
    calls: Counter = Counter()
    app = wire(a=asks("a?", calls), b=asks("b?", calls)).compile(InMemorySaver())
    ids = questions(colour.invoke(app, {"log": []}))
    with pytest.raises(UnknownInterruptError):
        colour.invoke(app, Command(resume={ids["a?"]: "known", UNKNOWN: "lost"}))
    assert {"a?": 1, "b?": 1} == calls
    assert {"a?", "b?"} == set(questions(colour.state(app)))


def test_an_answered_id_is_unknown_afterwards(colour: Colour) -> None:
    app = chain(a=asks("a?"), b=asks("b?")).compile(InMemorySaver())
    first = questions(colour.invoke(app, {"log": []}))
    colour.invoke(app, Command(resume={first["a?"]: 1}))
    with pytest.raises(UnknownInterruptError):
        colour.invoke(app, Command(resume={first["a?"]: 2}))
    assert {"b?"} == set(questions(colour.state(app)))


# -- rows 3, 8: each answer goes to its own question --------------------------


def test_a_loop_of_questions_gets_its_answers_in_order(colour: Colour) -> None:
    def ask(state: Log) -> Any:
        tried = []
        while not tried or not isinstance(tried[-1], int):
            tried.append(interrupt(f"after {tried}"))
        return {"log": tried}

    app = wire(ask=ask).compile(InMemorySaver())
    asked = [*questions(colour.invoke(app, {"log": []}))]
    for answer in ("a", "b", 5):
        result = colour.invoke(app, Command(resume=answer))
        asked += questions(result)
    assert ["a", "b", 5] == result["log"]
    assert ["after []", "after ['a']", "after ['a', 'b']"] == asked


def test_a_second_question_below_does_not_take_the_first_answer(colour: Colour) -> None:
    child = chain(a=asks("a?"), b=asks("b?")).compile()

    def caller(state: Log) -> Any:
        return {"log": child.invoke({"log": []})["log"]}

    async def acaller(state: Log) -> Any:
        return {"log": (await child.ainvoke({"log": []}))["log"]}

    builder = wire(caller=caller if colour.runner is None else acaller)
    app = builder.compile(InMemorySaver())
    colour.invoke(app, {"log": []})
    colour.invoke(app, Command(resume="first"))
    result = colour.invoke(app, Command(resume="second"))
    assert [("a?", "first"), ("b?", "second")] == result["log"]


# -- row 4: only answered tasks run again -------------------------------------


def test_an_unanswered_task_stays_parked(colour: Colour, saver: Any) -> None:
    calls: Counter = Counter()
    app = wire(a=asks("a?", calls), b=asks("b?", calls)).compile(saver)
    ids = questions(colour.invoke(app, {"log": []}))

    result = colour.invoke(app, Command(resume={ids["a?"]: 1}))

    assert {"a?": 2, "b?": 1} == calls
    assert {"b?": ids["b?"]} == questions(result) == questions(colour.state(app))
    colour.invoke(app, Command(resume=2))
    assert {"a?": 2, "b?": 2} == calls


def test_unanswered_sent_tasks_stay_parked(colour: Colour) -> None:
    calls: Counter = Counter()

    def ask(state: Any) -> Any:
        calls[state["note"]] += 1
        return {"log": [interrupt(state["note"])]}

    builder = wire(("__start__", "start"), start=logs("start"), ask=ask)
    builder.add_conditional_edges(
        "start", lambda state: [Send("ask", {"note": one}) for one in "xyz"]
    )
    app = builder.compile(InMemorySaver())
    ids = questions(colour.invoke(app, {"log": []}))
    colour.invoke(app, Command(resume={ids["y"]: "Y"}))
    assert {"x": 1, "y": 2, "z": 1} == calls
    rest = {ids["x"]: "X", ids["z"]: "Z"}
    assert ["start", "X", "Y", "Z"] == colour.invoke(app, Command(resume=rest))["log"]


def test_an_unanswered_child_stays_parked(colour: Colour) -> None:
    calls: Counter = Counter()
    left = chain(before=logs("left", calls), ask=asks("l?", calls)).compile()
    right = chain(before=logs("right", calls), ask=asks("r?", calls)).compile()
    app = wire(left=left, right=right).compile(InMemorySaver())
    ids = questions(colour.invoke(app, {"log": []}))
    colour.invoke(app, Command(resume={ids["l?"]: 1}))
    assert {"left": 1, "right": 1, "l?": 2, "r?": 1} == calls
    assert {"r?": ids["r?"]} == questions(colour.state(app))


# -- rows 7, 12, 15: several questions ----------------------------------------


@pytest.mark.parametrize("below", [False, True], ids=["here", "below"])
def test_a_bare_answer_for_several_questions_is_an_error(
    colour: Colour, below: bool
) -> None:
    builder = wire(a=asks("a?"), b=asks("b?"))
    if below:
        builder = wire(child=builder.compile())
    app = builder.compile(InMemorySaver())
    ids = questions(colour.invoke(app, {"log": []}))
    with pytest.raises(UnknownInterruptError) as error:
        colour.invoke(app, Command(resume="which?"))
    assert "ambiguous" == error.value.reason
    assert isinstance(error.value, RuntimeError)  # as the peer's is
    assert set(ids.values()) == set(error.value.pending_ids)
    assert set(ids) == set(questions(colour.state(app)))


def test_open_questions_are_the_unanswered_ones(colour: Colour, saver: Any) -> None:
    def ask(name: str, count: int) -> Any:
        def node(state: Log) -> Any:
            return {"log": [interrupt(f"{name}{n}") for n in range(count)]}

        return node

    app = wire(a=ask("a", 2), b=ask("b", 3)).compile(saver)
    colour.invoke(app, {"log": []})
    seen = []
    while (ids := questions(colour.state(app))) and len(seen) < 9:
        seen.append(sorted(ids))
        first = min(ids)
        result = colour.invoke(app, Command(resume={ids[first]: first.upper()}))
        assert questions(result) == questions(colour.state(app))
    assert [["a0", "b0"], ["a1", "b0"], ["b0"], ["b1"], ["b2"]] == seen
    assert ["A0", "A1", "B0", "B1", "B2"] == result["log"]


def test_one_map_answers_children_of_a_fan_out(colour: Colour) -> None:
    class Item(TypedDict):
        log: Annotated[list, operator.add]
        name: str

    def ask(state: Item) -> Any:
        return {"log": [interrupt(state["name"])]}

    child = wire(state=Item, ask=ask).compile()
    builder = wire(("__start__", "start"), start=logs("start"), child=child)
    builder.add_conditional_edges(
        "start", lambda state: [Send("child", {"name": one}) for one in "xyz"]
    )
    app = builder.compile(InMemorySaver())
    ids = questions(colour.invoke(app, {"log": []}))
    answers = {id: value.upper() for value, id in ids.items()}
    assert ["start", "X", "Y", "Z"] == colour.invoke(app, Command(resume=answers))[
        "log"
    ]


# -- row 10: a pinned checkpoint is answered twice ----------------------------


def test_a_second_answer_to_an_old_checkpoint_forks(colour: Colour, saver: Any) -> None:
    app = wire(ask=asks("?")).compile(saver)
    colour.invoke(app, {"log": []})
    pinned = colour.state(app).config
    yes = colour.invoke(app, Command(resume="yes"), pinned)
    no = colour.invoke(app, Command(resume="no"), pinned)
    assert (["yes"], ["no"]) == ([a for _, a in yes["log"]], [a for _, a in no["log"]])
    assert no == colour.state(app).values


def test_an_old_checkpoint_is_answered_anew_by_id(colour: Colour) -> None:
    app = chain(ask=asks("?"), end=logs("end")).compile(InMemorySaver())
    ids = questions(colour.invoke(app, {"log": []}))
    pinned = colour.state(app).config
    for answer in ("yes", "no", None):
        result = colour.invoke(app, Command(resume={ids["?"]: answer}), pinned)
        assert [("?", answer), "end"] == result["log"]


# -- an answer that is refused --------------------------------------------------


def asks_for_number(key: str | None) -> Any:
    def node(state: Any) -> Any:
        return {"log": [interrupt("?", key=key, response_schema=int)]}

    return node


def nested(node: Any) -> Any:
    return chain(inner=node).compile()


@pytest.mark.parametrize("key", [None, "age"])
@pytest.mark.parametrize("depth", [0, 1])
@pytest.mark.parametrize("durability", ["sync", "exit"])
def test_a_refused_answer_is_forgotten_and_its_question_open(
    colour: Colour, key: str | None, depth: int, durability: Any
) -> None:
    """Going on without another answer asks again."""
    node = nested(asks_for_number(key)) if depth else asks_for_number(key)
    app = chain(ask=node).compile(InMemorySaver())
    asked = questions(colour.invoke(app, {"log": []}))
    for _ in range(2):
        with pytest.raises(ValueError, match="valid integer"):
            colour.invoke(app, Command(resume="old"), durability=durability)
        assert asked == {i.value: i.id for i in colour.state(app).interrupts}
    assert asked == questions(colour.invoke(app, None))
    assert [7] == colour.invoke(app, Command(resume=7))["log"]
    assert () == colour.state(app).interrupts


def test_an_answer_that_was_used_closes_its_question(colour: Colour) -> None:
    def fails(state: Any) -> Any:
        raise OSError(interrupt("?"))

    app = chain(ask=fails).compile(InMemorySaver())
    colour.invoke(app, {"log": []})
    with pytest.raises(OSError, match="yes"):
        colour.invoke(app, Command(resume="yes"))
    assert () == colour.state(app).interrupts
    with pytest.raises(OSError, match="yes"):
        colour.invoke(app, None)


def test_what_a_branch_asks_about_is_shown_only_where_it_fits(colour: Colour) -> None:
    """Its node has written a key beside another: that is said when both are through."""

    def note(name: str) -> Any:
        return lambda state: {"note": name}

    builder = wire(a=note("a"), b=note("b"), c=logs("c"))
    builder.add_conditional_edges("a", lambda state: interrupt("?"), ["c"])
    app = builder.compile(InMemorySaver())
    stopped = colour.invoke(app, {"log": []})
    assert ["?"] == [question.value for question in stopped["__interrupt__"]]
    assert ("b", ["c"]) == (stopped["note"], stopped["log"])
    with pytest.raises(InvalidUpdateError, match="note"):
        colour.invoke(app, Command(resume="c"))


# -- row 11: a jump while paused ----------------------------------------------


def test_a_jump_while_paused_leaves_a_consistent_thread(colour: Colour) -> None:
    builder = wire(("__start__", "a"), a=asks("a?"), b=asks("b?"))
    app = builder.compile(InMemorySaver())
    colour.invoke(app, {"log": []})
    colour.invoke(app, Command(goto="b"))
    state = colour.state(app)
    asking = {task.name for task in state.tasks if task.interrupts}
    assert asking == set(state.next)
    assert "b?" in questions(state)


# -- row 16: a child that keeps its state asks at every visit -----------------


def test_a_lasting_child_asks_at_every_visit(colour: Colour) -> None:
    child = wire(ask=asks("?")).compile(checkpointer=True)
    builder = wire(("__start__", "child"), child=child)
    builder.add_conditional_edges(
        "child", lambda state: "child" if state["log"][-1][1] != "stop" else "__end__"
    )
    app = builder.compile(InMemorySaver())
    asked = len(questions(colour.invoke(app, {"log": []})))
    for answer in ("on", "on", "stop"):
        result = colour.invoke(app, Command(resume=answer))
        asked += len(questions(result))
    assert 3 == asked
    assert "stop" == result["log"][-1][1]


# -- row 23: nothing to resume ------------------------------------------------


@pytest.mark.parametrize("finished", [False, True], ids=["fresh", "finished"])
@pytest.mark.parametrize("answer", ["x", None, {"a": 1}], ids=repr)
def test_an_answer_without_a_question_is_an_error(
    colour: Colour, saver: Any, finished: bool, answer: Any
) -> None:
    calls: Counter = Counter()
    app = chain(a=logs("a", calls)).compile(saver)
    if finished:
        colour.invoke(app, {"log": []})
    before = colour.history(app)
    with pytest.raises(NothingToResumeError):
        colour.invoke(app, Command(resume=answer))
    assert before == colour.history(app)
    assert int(finished) == calls["a"]


def test_an_answer_at_a_static_pause_is_an_error(colour: Colour) -> None:
    app = chain(a=logs("a"), b=logs("b")).compile(
        InMemorySaver(), interrupt_before=["b"]
    )
    colour.invoke(app, {"log": []})
    with pytest.raises(NothingToResumeError):
        colour.invoke(app, Command(resume="x"))
    assert ["a", "b"] == colour.invoke(app, None)["log"]


def test_the_peer_preset_lets_idle_answers_pass(colour: Colour) -> None:
    app = chain(a=logs("a")).compile(InMemorySaver(), semantics=LANGGRAPH)
    colour.invoke(app, {"log": []})
    before = colour.state(app).values
    colour.invoke(app, Command(resume="x"), THREAD)
    assert before == colour.state(app).values


def test_under_the_peer_preset_an_early_answer_is_for_the_next_question(
    colour: Colour, saver: Any
) -> None:
    """An edit makes a task anew, which has asked nothing yet."""
    app = chain(a=logs("a"), b=asks("b?")).compile(saver, semantics=LANGGRAPH)
    colour.invoke(app, {"log": []})
    colour.update(app, {"log": ["edited"]}, as_node="a")
    assert {} == questions(colour.state(app))
    done = colour.invoke(app, Command(resume="x"))
    assert ["a", "edited", ("b?", "x")] == [
        tuple(one) if isinstance(one, list) else one for one in done["log"]
    ]


def test_an_early_answer_is_for_nobody_where_several_might_ask(colour: Colour) -> None:
    app = wire(a=asks("a?"), b=asks("b?")).compile(
        InMemorySaver(), semantics=LANGGRAPH, interrupt_before="*"
    )
    colour.invoke(app, {"log": []})
    assert {"a?", "b?"} == set(questions(colour.invoke(app, Command(resume="x"))))


def fails_on(bad: str) -> Any:
    """Return a node that fails after one of its answers."""

    def node(state: Log) -> Any:
        answer = interrupt("?")
        if answer == bad:
            raise ValueError(bad)
        return {"log": [answer]}

    return node


def test_another_answer_than_a_failed_task_has_used_is_an_error(
    colour: Colour, saver: Any
) -> None:
    """The task runs again with what it was given; the new answer would be lost."""
    app = wire(ask=fails_on("bad")).compile(saver)
    colour.invoke(app, {"log": []})
    for _ in range(2):  # the same again is how a program tries again
        with pytest.raises(ValueError, match="bad"):
            colour.invoke(app, Command(resume="bad"))
    with pytest.raises(NothingToResumeError, match="`ask` was given an answer already"):
        colour.invoke(app, Command(resume="good"))
    anew = colour.invoke(app, None, colour.state(app).config)
    assert {"?"} == set(questions(anew))
    assert ["good"] == colour.invoke(app, Command(resume="good"))["log"]


def test_an_early_answer_is_for_nobody_where_several_inside_might_ask(
    colour: Colour,
) -> None:
    inner = wire(a=asks("a?"), b=asks("b?")).compile(semantics=LANGGRAPH)
    app = wire(low=inner).compile(
        InMemorySaver(), semantics=LANGGRAPH, interrupt_before="*"
    )
    colour.invoke(app, {"log": []})
    assert {"a?", "b?"} == set(questions(colour.invoke(app, Command(resume="x"))))
