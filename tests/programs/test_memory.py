"""Threads, stores and savers."""

import operator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from typing_extensions import TypedDict

from towpath.testing.api import Api

from .both import on_both, thread


class Log(TypedDict):
    log: Annotated[list, operator.add]


def found(items):
    """Keep what a program reads of stored items."""
    return [(one.namespace, one.key, one.value) for one in items]


@on_both
def test_a_store_is_shared_between_threads(lib: Api) -> object:
    def remember(state: Log, config, *, store):
        user = config["configurable"]["user"]
        old = [one.value["text"] for one in store.search(("memories", user))]
        store.put(("memories", user), f"m{len(old)}", {"text": state["log"][-1]})
        return {"log": [f"knew {sorted(old)}"]}

    graph = lib.StateGraph(Log)
    graph.add_node(remember)
    graph.add_edge(lib.START, "remember")
    store = lib.InMemoryStore()
    app = graph.compile(checkpointer=lib.InMemorySaver(), store=store)
    seen = [
        app.invoke({"log": [text]}, thread(name, user=user))
        for name, user, text in (("1", "a", "x"), ("2", "a", "y"), ("3", "b", "z"))
    ]
    return seen, found(store.search(("memories",)))


@on_both
def test_a_store_is_read_and_written(lib: Api) -> object:
    store = lib.InMemoryStore()
    for number in range(4):
        store.put(("docs", "a"), str(number), {"n": number, "even": number % 2 == 0})
    store.put(("docs", "b"), "0", {"n": 9})
    store.put(("docs", "a"), "0", {"n": 10, "even": True})
    store.delete(("docs", "a"), "3")
    return (
        store.get(("docs", "a"), "0").value,
        store.get(("docs", "a"), "3"),
        found(store.search(("docs", "a"), filter={"even": True})),
        found(store.search(("docs",), filter={"n": {"$gt": 1}}, limit=2)),
        found(store.search(("docs", "a"), limit=1, offset=1)),
        store.list_namespaces(prefix=("docs",)),
        store.list_namespaces(max_depth=1),
    )


@on_both
def test_the_store_is_reached_from_anywhere_in_a_node(lib: Api) -> object:
    def helper():
        lib.get_store().put(("n",), "k", {"by": "call"})
        return lib.get_config()["configurable"]["thread_id"]

    Runtime = lib.Runtime

    def by_call(state: Log):
        return {"log": [helper()]}

    def by_runtime(state: Log, runtime: Runtime):
        return {"log": [runtime.store.get(("n",), "k").value["by"]]}

    graph = lib.StateGraph(Log)
    graph.add_sequence([by_call, by_runtime])
    graph.add_edge(lib.START, "by_call")
    app = graph.compile(checkpointer=lib.InMemorySaver(), store=lib.InMemoryStore())
    return app.invoke({"log": []}, thread("t"))


@on_both
def test_a_database_keeps_a_thread(lib: Api) -> object:
    def ask(state: Log):
        return {"log": [lib.interrupt(f"{len(state['log'])} so far?")]}

    def program(saver):
        graph = lib.StateGraph(Log)
        graph.add_node(ask)
        graph.add_edge(lib.START, "ask")
        return graph.compile(checkpointer=saver)

    with TemporaryDirectory() as folder:
        path = str(Path(folder) / "threads.db")
        with lib.SqliteSaver.from_conn_string(path) as saver:
            paused = program(saver).invoke({"log": ["a"]}, thread())
        with lib.SqliteSaver.from_conn_string(path) as saver:
            done = program(saver).invoke(lib.Command(resume="b"), thread())
            history = list(program(saver).get_state_history(thread()))
            saver.delete_thread("1")
            gone = program(saver).get_state(thread())
    return paused, done, history, gone


@on_both
def test_a_saver_lists_its_checkpoints(lib: Api) -> object:
    graph = lib.StateGraph(Log)
    graph.add_node("a", lambda state: {"log": ["a"]})
    graph.add_edge(lib.START, "a")
    saver = lib.InMemorySaver()
    app = graph.compile(checkpointer=saver)
    for name in "12":
        app.invoke({"log": []}, thread(name))
    found = [
        (one.metadata["step"], one.metadata["source"], one.parent_config is None)
        for one in saver.list(thread("1"))
    ]
    latest = saver.get_tuple(thread("2"))
    values = latest.checkpoint["channel_values"]["log"]
    return found, values, len(list(saver.list(None))), saver.get(thread("3"))


@on_both
def test_durability_says_when_steps_are_kept(lib: Api) -> object:
    graph = lib.StateGraph(Log)
    graph.add_node("a", lambda state: {"log": ["a"]})
    graph.add_node("b", lambda state: {"log": ["b"]})
    graph.add_edge(lib.START, "a")
    graph.add_edge("a", "b")
    app = graph.compile(checkpointer=lib.InMemorySaver())
    seen = []
    for durability in ("sync", "async", "exit"):
        config = thread(durability)
        app.invoke({"log": []}, config, durability=durability)
        history = list(app.get_state_history(config))
        seen.append([(one.next, one.values, one.metadata) for one in history])
    return seen
