"""Faults that were found by trying to break the engine; each stays mended."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest

from towpath import (
    START,
    Command,
    InMemorySaver,
    RetryPolicy,
    Send,
    StateGraph,
    interrupt,
)
from towpath.errors import (
    ConcurrentUpdateError,
    InvalidGraphError,
    InvalidPolicyError,
    InvalidReturnError,
    NodeCancelledError,
    TowpathError,
    UnknownCheckpointError,
    UnknownNodeError,
)
from towpath.types import StateUpdate


class Log(TypedDict, total=False):
    log: Annotated[list, operator.add]
    one: int


THREAD = {"configurable": {"thread_id": "1"}}


def says(name: str) -> Callable[[Any], Any]:
    return lambda _: {"log": [name]}


def asks(question: str) -> Callable[[Any], Any]:
    return lambda _: {"log": [interrupt(question)]}


def build(*edges: tuple[str, str], **nodes: Any) -> Any:
    graph = StateGraph(Log)
    for name, node in nodes.items():
        graph.add_node(name, node)
    for source, target in edges:
        graph.add_edge(source, target)
    return graph


def saved(*edges: tuple[str, str], **nodes: Any) -> Any:
    return build(*edges, **nodes).compile(checkpointer=InMemorySaver())


# -- commands while a question is open ----------------------------------------


def test_every_command_given_while_a_question_is_open_is_kept() -> None:
    app = saved((START, "a"), a=asks("q"), b=says("b"), c=says("c"))
    app.invoke({"log": []}, THREAD)
    app.invoke(Command(update={"log": ["u1"]}), THREAD)
    app.invoke(Command(update={"log": ["u2"]}), THREAD)
    done = app.invoke(Command(resume="yes", update={"log": ["u3"]}), THREAD)
    assert ["u1", "u2", "u3", "yes"] == done["log"]


# -- subgraphs ----------------------------------------------------------------


def nested() -> Any:
    child = build(
        (START, "p"), ("p", "q"), ("q", "r"), p=says("p"), q=asks("q"), r=says("r")
    )
    return saved(
        (START, "a"),
        ("a", "c"),
        ("c", "z"),
        a=says("a"),
        c=child.compile(),
        z=says("z"),
    )


def test_an_edit_as_the_asking_node_of_a_subgraph_settles_its_question() -> None:
    app = nested()
    app.invoke({"log": []}, THREAD)
    child = app.get_state(THREAD, subgraphs=True).tasks[0].state

    app.update_state(child.config, {"log": ["Q"]}, as_node="q")

    assert () == app.get_state(THREAD).interrupts
    assert ["a", "p", "Q", "r", "z"] == app.invoke(None, THREAD)["log"]


def test_a_run_goes_on_from_the_checkpoint_of_a_subgraph() -> None:
    app = nested()
    app.invoke({"log": []}, THREAD)
    child = app.get_state(THREAD, subgraphs=True).tasks[0].state.config
    place = {key: child["configurable"][key] for key in ("thread_id", "checkpoint_ns")}
    history = app.get_state_history({"configurable": place})
    before_p = next(one for one in history if one.next == ("p",))

    again = app.invoke(None, before_p.config)

    assert ["q"] == [question.value for question in again["__interrupt__"]]
    done = app.invoke(Command(resume="yes"), THREAD)
    assert ["a", "p", "yes", "r", "z"] == done["log"]


def test_each_call_of_a_lasting_subgraph_has_a_slot_of_its_own() -> None:
    child = build((START, "s"), s=says("s")).compile(checkpointer=True)

    def twice(_: Any) -> Any:
        first = child.invoke({"log": ["A"]})["log"]
        return {"log": [first, child.invoke({"log": ["B"]})["log"]]}

    app = saved((START, "twice"), twice=twice)
    assert [["A", "s"], ["B", "s"]] == app.invoke({"log": []}, THREAD)["log"]
    assert [["A", "s", "A", "s"], ["B", "s", "B", "s"]] == app.invoke(
        {"log": []}, THREAD
    )["log"][2:]


def test_all_commands_of_a_list_reach_the_parent() -> None:
    def leaf(_: Any) -> Any:
        return [
            Command(graph=Command.PARENT, update={"log": ["x"]}, goto="t"),
            Command(graph=Command.PARENT, update={"log": ["y"]}, goto="u"),
        ]

    child = build((START, "leaf"), leaf=leaf).compile()
    app = build((START, "c"), c=child, t=says("t"), u=says("u")).compile()
    assert ["x", "y", "t", "u"] == app.invoke({"log": []})["log"]


# -- what nodes return and raise -----------------------------------------------


def test_a_bare_send_is_sent() -> None:
    app = build(
        (START, "a"),
        a=lambda _: Send("b", {"one": 7}),
        b=lambda state: {"log": [state["one"]]},
    ).compile()
    assert [7] == app.invoke({"log": []})["log"]


def test_a_bare_send_to_nowhere_is_refused() -> None:
    app = build((START, "a"), a=lambda _: Send("zz", 1)).compile()
    with pytest.raises(UnknownNodeError, match="zz"):
        app.invoke({"log": []})


class StubbornError(Exception):
    """Refuses notes, attributes and to be shown."""

    def add_note(self, _: str) -> None:
        raise TypeError("no notes")

    def __setattr__(self, *_: Any) -> None:
        raise TypeError("frozen")

    def __repr__(self) -> str:
        raise TypeError("not shown")


@pytest.mark.parametrize("names", ["a", "ab"])
def test_an_exception_that_refuses_everything_comes_out(names: str) -> None:
    def fails(_: Any) -> Any:
        raise StubbornError

    nodes = dict.fromkeys(names, fails)
    app = saved(*((START, name) for name in names), **nodes)
    with pytest.raises(StubbornError):
        app.invoke({"log": []}, THREAD)
    assert tuple(names) == app.get_state(THREAD).next


def test_a_blocking_node_that_cancels_itself_is_named() -> None:
    import asyncio

    def cancels(_: Any) -> Any:
        raise asyncio.CancelledError

    with pytest.raises(NodeCancelledError, match="a"):
        build((START, "a"), a=cancels).compile().invoke({"log": []})


async def test_a_thread_beside_a_failure_finishes_and_is_recorded() -> None:
    import threading

    may_end = threading.Event()
    calls: list[str] = []

    async def fails(_: Any) -> Any:
        if not calls:
            may_end.set()
            raise ValueError("x")
        return {"log": ["fails"]}

    def slow(_: Any) -> Any:
        may_end.wait(5)
        calls.append("slow")
        return {"log": ["slow"]}

    app = saved((START, "fails"), (START, "slow"), fails=fails, slow=slow)
    with pytest.raises(ValueError, match="x"):
        await app.ainvoke({"log": []}, THREAD)
    assert ("fails",) == app.get_state(THREAD).next
    assert ["fails", "slow"] == (await app.ainvoke(None, THREAD))["log"]
    assert ["slow"] == calls


def test_attempts_do_not_see_each_others_changes() -> None:
    seen: list[int] = []

    def grows(state: Any) -> Any:
        state["log"].append("leak")
        seen.append(len(state["log"]))
        if len(seen) < 3:
            raise ConnectionError
        return {"log": state["log"][-1:]}

    graph = StateGraph(Log)
    policy = RetryPolicy(initial_interval=0, jitter=False)
    graph.add_node("a", grows, retry_policy=policy)
    graph.add_edge(START, "a")
    graph.compile().invoke({"log": ["in"]})
    assert [2, 2, 2] == seen


# -- threads that met bad input -------------------------------------------------


def test_a_thread_goes_on_after_an_input_that_could_not_be_folded() -> None:
    app = saved((START, "a"), a=says("a"))
    with pytest.raises(TypeError) as caught:
        app.invoke({"log": 3}, THREAD)
    assert "`log`" in "".join(caught.value.__notes__)
    assert {} == app.get_state(THREAD).values
    assert ["ok", "a"] == app.invoke({"log": ["ok"]}, THREAD)["log"]


def test_a_step_that_could_not_be_folded_can_be_looked_at() -> None:
    app = saved(
        (START, "a"), (START, "b"), a=lambda _: {"one": 1}, b=lambda _: {"one": 2}
    )
    with pytest.raises(ConcurrentUpdateError, match="`a`, `b`"):
        app.invoke({"log": ["in"]}, THREAD)
    assert {"log": ["in"]} == app.get_state(THREAD).values


def test_an_unknown_checkpoint_is_refused() -> None:
    app = saved((START, "a"), a=says("a"))
    app.invoke({"log": []}, THREAD)
    lost = {"configurable": {"thread_id": "1", "checkpoint_id": "none"}}
    for act in (
        lambda: app.invoke(None, lost),
        lambda: app.update_state(lost, {"log": ["x"]}),
    ):
        with pytest.raises(UnknownCheckpointError, match="none"):
            act()
    assert ["a"] == app.get_state(THREAD).values["log"]


def test_a_question_of_an_error_handler_is_shown() -> None:
    def fails(_: Any) -> Any:
        raise ValueError

    def handles(_: Any, error: Any) -> Any:
        return {"log": [interrupt(f"{error.node}?")]}

    graph = StateGraph(Log)
    graph.add_node("a", fails, error_handler=handles)
    graph.add_edge(START, "a")
    app = graph.compile(checkpointer=InMemorySaver())
    app.invoke({"log": []}, THREAD)

    state = app.get_state(THREAD)
    assert ["a?"] == [question.value for question in state.interrupts]
    assert ("a",) == state.next
    assert ["yes"] == app.invoke(Command(resume="yes"), THREAD)["log"]


# -- options ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"durability": "snyc"}, "sync"),
        ({"version": "v3"}, "v3"),
        ({"stream_mode": 3}, "3"),
        ({"stream_mode": "valeus"}, "values"),
    ],
)
def test_an_option_that_cannot_be_meant_is_refused(
    options: dict[str, Any], said: str
) -> None:
    app = build((START, "a"), a=says("a")).compile()
    with pytest.raises(TowpathError, match=said):
        app.invoke({"log": []}, **options)


@pytest.mark.parametrize(
    "config",
    [3, "abc", {"metadata": 3}, {"configurable": "x"}, {"max_concurrency": 0}],
)
def test_a_config_of_the_wrong_kind_is_refused(config: Any) -> None:
    app = build((START, "a"), a=says("a")).compile()
    with pytest.raises(TowpathError, match="TP-610"):
        app.invoke({"log": []}, config)


def test_policies_are_checked_when_they_are_given() -> None:
    graph = StateGraph(Log)
    for wrong in (3, RetryPolicy(max_attempts=0), RetryPolicy(initial_interval=-1)):
        with pytest.raises(InvalidPolicyError):
            graph.add_node("a", says("a"), retry_policy=wrong)  # type: ignore[arg-type]


def test_edges_and_savers_of_the_wrong_kind_are_refused() -> None:
    with pytest.raises(InvalidGraphError, match="None"):
        StateGraph(Log).add_edge(None, "a")  # type: ignore[arg-type]
    with pytest.raises(TowpathError, match="InMemorySaver"):
        build((START, "a"), a=says("a")).compile(checkpointer=InMemorySaver)  # type: ignore[arg-type]


def test_a_lone_breakpoint_is_a_name_and_not_its_letters() -> None:
    app = saved((START, "ab"), ("ab", "a"), ab=says("ab"), a=says("a"))
    assert ["ab"] == app.invoke({"log": []}, THREAD, interrupt_before="a")["log"]


def test_an_input_that_is_no_update_is_told_as_such() -> None:
    app = build((START, "a"), a=says("a")).compile()
    with pytest.raises(InvalidReturnError, match="the input is list"):
        app.invoke([1])


def test_updates_may_be_tuples() -> None:
    app = saved((START, "a"), ("a", "b"), a=says("a"), b=says("b"))
    app.bulk_update_state(THREAD, [[({"log": ["x"]}, "a")], [StateUpdate({}, "b")]])
    assert {"log": ["x"]} == app.get_state(THREAD).values


def test_a_slip_in_a_config_or_an_option_is_told() -> None:
    app = build((START, "a"), a=says("a")).compile()
    with pytest.raises(TowpathError, match="recursion_limit"):
        app.invoke({"log": []}, {"recursion_limt": 3})
    with pytest.raises(TypeError, match=r"invoke\(\).*stream_mode"):
        app.invoke({"log": []}, stream_mod="values")


def test_a_schema_that_is_no_class_is_refused() -> None:
    with pytest.raises(InvalidGraphError, match="schema"):
        StateGraph({"log": []})  # type: ignore[arg-type]


def test_a_node_that_takes_nothing_is_refused_before_a_run() -> None:
    def nothing() -> Log:
        return {"log": []}

    with pytest.raises(InvalidGraphError, match="`a` takes no parameter"):
        StateGraph(Log).add_node("a", nothing)  # type: ignore[arg-type]


def test_the_former_name_of_durability_is_taken() -> None:
    app = saved((START, "a"), a=says("a"))
    with pytest.warns(DeprecationWarning, match="durability"):
        app.invoke({"log": []}, THREAD, checkpoint_during=False)
    assert 1 == len(list(app.get_state_history(THREAD)))


def test_graphs_show_what_they_hold() -> None:
    graph = build((START, "a"), a=says("a"))
    assert "a" in repr(graph)
    assert "a" in repr(graph.compile())
