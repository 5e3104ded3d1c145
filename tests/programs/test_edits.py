"""Every way to edit a thread from outside."""

import operator
from typing import Annotated

from typing_extensions import TypedDict

from towpath.testing.api import Api

from .both import on_both, on_drop_in, thread


class State(TypedDict, total=False):
    log: Annotated[list, operator.add]
    note: str


def abc(lib: Api, **options):
    """Return a graph of three nodes in a row, with a way back."""
    graph = lib.StateGraph(State)
    for name in "abc":
        graph.add_node(name, lambda state, name=name: {"log": [name]})
    graph.add_edge(lib.START, "a")
    graph.add_edge("a", "b")
    graph.add_conditional_edges(
        "b", lambda state: "a" if state.get("note") == "back" else "c", ["a", "c"]
    )
    return graph.compile(checkpointer=lib.InMemorySaver(), **options)


def attempt(call):
    """Return what a call returns, or the kind of its error."""
    try:
        return call()
    except Exception as error:
        return error


@on_both
def test_an_update_as_end_clears_the_tasks(lib: Api) -> object:
    app = abc(lib, interrupt_before=["b"])
    app.invoke({"log": []}, thread())
    app.update_state(thread(), None, as_node=lib.END)
    return app.get_state(thread()), app.invoke({"log": ["again"]}, thread())


@on_both
def test_a_copy_forks_a_checkpoint(lib: Api) -> object:
    app = abc(lib, interrupt_before=["b"])
    app.invoke({"log": []}, thread())
    app.update_state(thread(), None, as_node="__copy__")
    return list(app.get_state_history(thread())), app.invoke(None, thread())


@on_both
def test_an_update_without_values_keeps_what_is_next(lib: Api) -> object:
    app = abc(lib, interrupt_before=["b"])
    app.invoke({"log": []}, thread())
    app.update_state(thread(), None)
    return app.get_state(thread()), app.invoke(None, thread())


@on_both
def test_an_update_as_a_node_fires_its_branch(lib: Api) -> object:
    seen = []
    for note in ("back", "on"):
        app = abc(lib, interrupt_before=["b"])
        app.invoke({"log": []}, thread())
        app.update_state(thread(), {"note": note}, as_node="b")
        seen.append(app.get_state(thread()).next)
    return seen


@on_both
def test_an_update_as_the_input_starts_a_run(lib: Api) -> object:
    app = abc(lib)
    app.update_state(thread(), {"log": ["given"]}, as_node="__input__")
    state = app.get_state(thread())
    started = abc(lib)
    started.update_state(thread(), {"log": ["given"]}, as_node=lib.START)
    return (
        state,
        attempt(lambda: app.invoke(None, thread())),
        started.get_state(thread()),
    )


@on_both
def test_wrong_updates_are_errors(lib: Api) -> object:
    app = abc(lib)
    fresh = attempt(lambda: app.update_state(thread("fresh"), {"log": ["x"]}))
    unknown = attempt(lambda: app.update_state(thread(), {"log": []}, as_node="zz"))
    nothing = attempt(lambda: app.bulk_update_state(thread(), []))
    return [
        type(one).__mro__[-3].__name__ if isinstance(one, Exception) else "accepted"
        for one in (unknown, nothing)
    ], isinstance(fresh, Exception)


@on_both
def test_a_fresh_thread_takes_an_update(lib: Api) -> object:
    graph = lib.StateGraph(State)
    graph.add_node("only", lambda state: {"log": ["only"]})
    graph.add_edge(lib.START, "only")
    app = graph.compile(checkpointer=lib.InMemorySaver())
    app.update_state(thread(), {"log": ["x"]})
    return app.get_state(thread()), list(app.get_state_history(thread()))


@on_both
def test_supersteps_of_updates_are_told_apart(lib: Api) -> object:
    update = lib.StateUpdate
    app = abc(lib)
    app.bulk_update_state(
        thread(),
        [
            [update({"log": ["in"]}, as_node="__input__")],
            [update({"log": ["a"]}, as_node="a")],
            [
                update({"log": ["b1"]}, as_node="b"),
                update({"log": ["c1"]}, as_node="c"),
            ],
        ],
    )
    return list(app.get_state_history(thread()))


@on_both
def test_an_update_goes_to_an_old_checkpoint(lib: Api) -> object:
    app = abc(lib)
    app.invoke({"log": []}, thread())
    old = next(one for one in app.get_state_history(thread()) if one.next == ("b",))
    config = app.update_state(old.config, {"log": ["old"]}, as_node="a")
    state = app.get_state(config)
    again = app.invoke(None, config)
    return state, again, len(list(app.get_state_history(thread())))


@on_both
def test_of_a_checkpoint_that_was_passed_nothing_is_changed(lib: Api) -> object:
    """An update that stands in for a planned task is its result, on the newest."""
    app = abc(lib, interrupt_before=["b"])
    app.invoke({"log": []}, thread())
    at = app.get_state(thread()).config
    seen = []
    for text in ("first", "second"):
        app.update_state(at, {"log": [text]}, as_node="b")
        seen.append([task.result for task in app.get_state(at).tasks])
    app.update_state(thread(), {"log": ["on"]}, as_node="a")
    passed = app.get_state(thread()).config
    app.update_state(at, {"log": ["beside"]}, as_node="a")
    app.update_state(passed, {"log": ["late"]}, as_node="b")
    return seen, [task.result for task in app.get_state(passed).tasks]


@on_drop_in
def test_metadata_of_a_run_is_kept_and_searched(lib: Api) -> object:
    app = abc(lib)
    config = {**thread(), "metadata": {"user": "ada", "n": 1}, "run_name": "r"}
    app.invoke({"log": []}, config)
    app.invoke({"log": []}, thread())
    found = app.get_state_history(thread(), filter={"user": "ada"})
    steps = [(one.metadata["step"], one.metadata["user"]) for one in found]
    return steps, app.get_state(thread()).metadata


@on_drop_in
def test_children_are_edited_at_their_place(lib: Api) -> object:
    child = lib.StateGraph(State)
    for name in "xyz":
        child.add_node(name, lambda state, name=name: {"log": [name]})
    child.add_edge(lib.START, "x")
    child.add_edge("x", "y")
    child.add_edge("y", "z")
    graph = lib.StateGraph(State)
    graph.add_node("child", child.compile(interrupt_before=["y", "z"]))
    graph.add_node("end", lambda state: {"log": ["end"]})
    graph.add_edge(lib.START, "child")
    graph.add_edge("child", "end")
    app = graph.compile(checkpointer=lib.InMemorySaver())
    app.invoke({"log": ["in"]}, thread())
    place = app.get_state(thread(), subgraphs=True).tasks[0].state.config
    inner = list(app.get_state_history(place))
    app.update_state(place, {"log": ["edited"]}, as_node="y")
    between = app.get_state(thread(), subgraphs=True)
    paused = app.invoke(None, thread())
    return inner, between, paused, app.get_state(thread()).next
