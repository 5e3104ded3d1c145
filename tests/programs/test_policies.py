"""Retries, caches, error handlers, timeouts."""

import operator
import time
from typing import Annotated

from typing_extensions import TypedDict

from towpath.testing.api import Api

from .both import on_both, thread


class Log(TypedDict):
    log: Annotated[list, operator.add]


class FlakyError(Exception):
    """What a service does now and then."""


def flaky(calls: list, failures: int, error: type[Exception] = FlakyError):
    """Return a node that fails at first."""

    def node(state: Log):
        calls.append(len(calls))
        if len(calls) <= failures:
            raise error("not now")
        return {"log": [f"call {len(calls)}"]}

    return node


def run(lib: Api, node, **options):
    """Run a graph of one node and tell how it went."""
    graph = lib.StateGraph(Log)
    graph.add_node("node", node, **options)
    graph.add_edge(lib.START, "node")
    try:
        return graph.compile().invoke({"log": []})
    except Exception as error:
        return type(error).__name__, str(error)


@on_both
def test_a_failing_node_is_retried(lib: Api) -> object:
    seen = []
    for retry_on in (
        FlakyError,
        (ValueError, FlakyError),
        lambda error: True,
        KeyError,
    ):
        calls = []
        policy = lib.RetryPolicy(
            initial_interval=0.001, jitter=False, max_attempts=3, retry_on=retry_on
        )
        seen.append((run(lib, flaky(calls, 2), retry_policy=policy), len(calls)))
    calls = []
    policy = lib.RetryPolicy(initial_interval=0.001, jitter=False, max_attempts=2)
    seen.append((run(lib, flaky(calls, 5), retry_policy=policy), len(calls)))
    return seen


@on_both
def test_programming_errors_are_not_retried_by_default(lib: Api) -> object:
    seen = []
    for error in (ValueError, TypeError, RuntimeError, ConnectionError, OSError):
        calls = []
        policy = lib.RetryPolicy(initial_interval=0.001, jitter=False)
        seen.append((run(lib, flaky(calls, 1, error), retry_policy=policy), len(calls)))
    return seen


@on_both
def test_the_first_matching_policy_counts(lib: Api) -> object:
    fast = lib.RetryPolicy(
        initial_interval=0.001, jitter=False, max_attempts=2, retry_on=KeyError
    )
    slow = lib.RetryPolicy(
        initial_interval=0.001, jitter=False, max_attempts=4, retry_on=FlakyError
    )
    calls = []
    return run(lib, flaky(calls, 3), retry_policy=[fast, slow]), len(calls)


@on_both
def test_results_are_cached(lib: Api) -> object:
    calls = []

    class State(TypedDict):
        x: int
        result: int

    def square(state: State):
        calls.append(state["x"])
        return {"result": state["x"] ** 2}

    graph = lib.StateGraph(State)
    graph.add_node(square, cache_policy=lib.CachePolicy(ttl=60))
    graph.add_edge(lib.START, "square")
    app = graph.compile(cache=lib.InMemoryCache())
    chunks = [list(app.stream({"x": x}, stream_mode="updates")) for x in (3, 3, 4)]
    app.clear_cache()
    app.invoke({"x": 3})
    return chunks, calls


@on_both
def test_a_cache_key_is_chosen(lib: Api) -> object:
    calls = []

    class State(TypedDict):
        x: int
        noise: int
        result: int

    def node(state: State):
        calls.append((state["x"], state["noise"]))
        return {"result": state["x"]}

    policy = lib.CachePolicy(key_func=lambda state: str(state["x"]).encode())
    graph = lib.StateGraph(State)
    graph.add_node(node, cache_policy=policy)
    graph.add_edge(lib.START, "node")
    app = graph.compile(cache=lib.InMemoryCache())
    return [app.invoke({"x": 1, "noise": n}) for n in (1, 2)], calls


@on_both
def test_an_error_handler_goes_on(lib: Api) -> object:
    NodeError = lib.NodeError

    def handle(state: Log, error: NodeError):
        return {"log": [f"{error.node}: {error.error}"]}

    def handle_and_go(state: Log, error: NodeError):
        return lib.Command(update={"log": ["handled"]}, goto="rescue")

    seen = []
    for handler in (handle, handle_and_go):
        graph = lib.StateGraph(Log)
        graph.add_node("bad", flaky([], 9), error_handler=handler)
        graph.add_node("next", lambda state: {"log": ["next"]})
        graph.add_node("rescue", lambda state: {"log": ["rescue"]})
        graph.add_edge(lib.START, "bad")
        graph.add_edge("bad", "next")
        app = graph.compile(checkpointer=lib.InMemorySaver())
        seen.append(app.invoke({"log": []}, thread()))
    return seen


@on_both
def test_defaults_hold_for_every_node(lib: Api) -> object:
    NodeError = lib.NodeError

    def handle(state: Log, error: NodeError):
        return {"log": [f"{error.node} failed"]}

    calls = []
    graph = lib.StateGraph(Log)
    policy = lib.RetryPolicy(initial_interval=0.001, jitter=False, max_attempts=2)
    graph.set_node_defaults(retry_policy=policy, error_handler=handle)
    graph.add_node("a", flaky(calls, 1))
    graph.add_node("b", flaky([], 9))
    graph.add_edge(lib.START, "a")
    graph.add_edge("a", "b")
    return graph.compile().invoke({"log": []}), len(calls)


@on_both
def test_a_failed_thread_is_continued(lib: Api) -> object:
    calls = []
    graph = lib.StateGraph(Log)
    graph.add_node("first", lambda state: {"log": ["first"]})
    graph.add_node("bad", flaky(calls, 1))
    graph.add_edge(lib.START, "first")
    graph.add_edge("first", "bad")
    app = graph.compile(checkpointer=lib.InMemorySaver())
    seen = []
    try:
        app.invoke({"log": []}, thread())
    except FlakyError as error:
        seen.append(str(error))
    seen.append(app.get_state(thread()))
    seen.append(app.invoke(None, thread()))
    return seen


@on_both
def test_a_finished_sibling_is_not_run_again(lib: Api) -> object:
    calls, good = [], []

    def fine(state: Log):
        good.append(1)
        return {"log": ["fine"]}

    def late(state: Log):
        time.sleep(0.05)
        return flaky_node(state)

    flaky_node = flaky(calls, 1)
    graph = lib.StateGraph(Log)
    graph.add_node("fine", fine)
    graph.add_node("late", late)
    graph.add_edge(lib.START, "fine")
    graph.add_edge(lib.START, "late")
    app = graph.compile(checkpointer=lib.InMemorySaver())
    try:
        app.invoke({"log": []}, thread())
    except FlakyError:
        pass
    between = app.get_state(thread())
    done = app.invoke(None, thread())
    return len(good), [(t.name, t.result) for t in between.tasks], done


@on_both
def test_a_cached_result_is_told_as_an_update_only(lib: Api) -> object:
    graph = lib.StateGraph(Log)
    graph.add_node("add", lambda state: {"log": ["a"]}, cache_policy=lib.CachePolicy())
    graph.add_edge(lib.START, "add")
    app = graph.compile(cache=lib.InMemoryCache())
    modes = ["updates", "tasks"]
    return [list(app.stream({"log": []}, stream_mode=modes)) for _ in range(2)]
