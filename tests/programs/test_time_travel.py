"""Looking back, replaying, forking, editing the past."""

import operator
from typing import Annotated

from typing_extensions import TypedDict

from towpath.testing.api import Api

from .both import on_both, thread


class State(TypedDict, total=False):
    topic: str
    log: Annotated[list, operator.add]


def jokes(lib: Api, calls: list, **options):
    """Return a graph of two nodes, and note each call of a node."""

    def topic(state: State):
        calls.append("topic")
        return {"topic": "socks", "log": ["topic"]}

    def joke(state: State):
        calls.append("joke")
        return {"log": [f"a joke on {state['topic']}"]}

    graph = lib.StateGraph(State)
    graph.add_sequence([topic, joke])
    graph.add_edge(lib.START, "topic")
    return graph.compile(checkpointer=lib.InMemorySaver(), **options)


@on_both
def test_the_history_lists_every_step(lib: Api) -> object:
    app = jokes(lib, [])
    app.invoke({}, thread())
    history = list(app.get_state_history(thread()))
    limited = list(app.get_state_history(thread(), limit=2))
    older = list(app.get_state_history(thread(), before=history[1].config))
    inputs = list(app.get_state_history(thread(), filter={"source": "input"}))
    return history, limited, older, inputs


@on_both
def test_a_checkpoint_is_replayed(lib: Api) -> object:
    calls = []
    app = jokes(lib, calls)
    app.invoke({}, thread())
    before_joke = list(app.get_state_history(thread()))[1]
    again = app.invoke(None, before_joke.config)
    return calls, again, [one.metadata for one in app.get_state_history(thread())]


@on_both
def test_the_past_is_edited_and_continued(lib: Api) -> object:
    calls = []
    app = jokes(lib, calls)
    app.invoke({}, thread())
    before_joke = list(app.get_state_history(thread()))[1]
    forked = app.update_state(before_joke.config, {"topic": "chickens"})
    result = app.invoke(None, forked)
    return result, calls, list(app.get_state_history(thread()))


@on_both
def test_the_state_is_updated_as_a_node(lib: Api) -> object:
    calls = []
    app = jokes(lib, calls)
    app.update_state(thread(), {"topic": "cats"}, as_node="topic")
    state = app.get_state(thread())
    return state, app.invoke(None, thread()), calls


@on_both
def test_an_update_as_the_last_node_ends_the_run(lib: Api) -> object:
    app = jokes(lib, [], interrupt_before=["joke"])
    app.invoke({}, thread())
    app.update_state(thread(), {"log": ["my own"]}, as_node="joke")
    return app.get_state(thread()), app.invoke(None, thread())


@on_both
def test_many_updates_are_one_step(lib: Api) -> object:
    app = jokes(lib, [])
    update = lib.StateUpdate
    app.bulk_update_state(
        thread(),
        [
            [update({"topic": "a", "log": ["t"]}, as_node="topic")],
            [update({"log": ["j"]}, as_node="joke")],
        ],
    )
    return list(app.get_state_history(thread()))


@on_both
def test_a_question_is_asked_again_when_replayed(lib: Api) -> object:
    def ask(state: State):
        return {"log": [lib.interrupt("which?")]}

    graph = lib.StateGraph(State)
    graph.add_node(ask)
    graph.add_edge(lib.START, "ask")
    app = graph.compile(checkpointer=lib.InMemorySaver())
    app.invoke({"log": []}, thread())
    app.invoke(lib.Command(resume="first"), thread())
    before = [one for one in app.get_state_history(thread()) if one.next == ("ask",)]
    again = app.invoke(None, before[0].config)
    other = app.invoke(lib.Command(resume="second"), thread())
    return again, other


@on_both
def test_a_thread_continues_with_new_input(lib: Api) -> object:
    app = jokes(lib, [])
    app.invoke({"log": ["one"]}, thread())
    app.invoke({"log": ["two"]}, thread())
    return list(app.get_state_history(thread()))


@on_both
def test_unknown_threads_and_missing_savers(lib: Api) -> object:
    app = jokes(lib, [])
    seen = [app.get_state(thread()), list(app.get_state_history(thread()))]
    bare = lib.StateGraph(State)
    bare.add_node("a", lambda state: {"topic": "t"})
    bare.add_edge(lib.START, "a")
    try:
        bare.compile().get_state(thread())
    except ValueError:
        seen.append("no checkpointer")
    try:
        app.invoke({})
    except ValueError:
        seen.append("no thread")
    try:
        app.invoke(None, thread("fresh"))
    except lib.EmptyInputError:
        seen.append("no input")
    return seen


@on_both
def test_what_is_next_is_told_as_the_nodes_were_added(lib: Api) -> object:
    graph = lib.StateGraph(State)
    for name in ("first", "z", "a"):
        graph.add_node(name, lambda state: {})
    graph.add_edge(lib.START, "first")
    graph.add_edge("first", "z")
    graph.add_edge("first", "a")
    app = graph.compile(checkpointer=lib.InMemorySaver(), interrupt_before=["a"])
    app.invoke({"topic": ""}, thread())
    return app.get_state(thread()), list(app.get_state_history(thread()))
