"""Steps inside a node: recorded at once, found again, with a key of their own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, TypedDict

import pytest

from towpath import (
    START,
    Command,
    InMemorySaver,
    RetryPolicy,
    Runtime,
    StateGraph,
    get_runtime,
    interrupt,
)
from towpath.checkpoint.sqlite import SqliteSaver
from towpath.errors import NodeCancelledError, OutsideNodeError
from towpath.func import AsyncTaskError, task

THREAD = {"configurable": {"thread_id": "1"}}
AT_ONCE = RetryPolicy(initial_interval=0.0, jitter=False, retry_on=ValueError)


class State(TypedDict, total=False):
    found: Any


def graph_of(node: Callable[..., Any], saver: Any = None, **options: Any) -> Any:
    builder = StateGraph(State)
    builder.add_node("node", node, **options)
    builder.add_edge(START, "node")
    return builder.compile(checkpointer=saver)


@pytest.fixture(params=["invoke", "ainvoke"])
def invoke(request: Any) -> Callable[..., Any]:
    """Run a graph to its end, in either colour."""

    def run(graph: Any, *args: Any) -> Any:
        if request.param == "invoke":
            return graph.invoke(*args)
        return asyncio.run(graph.ainvoke(*args))

    return run


def test_step_is_not_repeated_when_its_node_runs_again(
    invoke: Any, tmp_path: Any
) -> None:
    ran: list[str] = []

    def charge(amount: int, *, currency: str) -> str:
        ran.append(get_runtime().idempotency_key)
        return f"{amount} {currency}"

    def node(_: Any, runtime: Runtime) -> Any:
        paid = runtime.step("charge", charge, 5, currency="EUR")
        return {"found": [paid, interrupt("ship?")]}

    with SqliteSaver.from_conn_string(str(tmp_path / "db")) as saver:
        invoke(graph_of(node, saver), {}, THREAD)
        done = invoke(graph_of(node, saver), Command(resume="yes"), THREAD)

    assert {"found": ["5 EUR", "yes"]} == done
    assert 1 == len(ran)


@pytest.mark.parametrize("saver", [None, InMemorySaver()])
def test_step_is_not_repeated_when_its_node_is_retried(invoke: Any, saver: Any) -> None:
    ran: list[str] = []

    def node(_: Any, runtime: Runtime) -> Any:
        runtime.step("work", ran.append, "step")
        ran.append("node")
        if ran.count("node") < 3:
            raise ValueError
        return {"found": list(ran)}

    done = invoke(graph_of(node, saver, retry_policy=AT_ONCE), {}, THREAD)

    assert {"found": ["step", "node", "node", "node"]} == done


def test_failed_step_runs_again_under_the_same_key(invoke: Any) -> None:
    keys: list[str] = []

    def fails_once() -> str:
        keys.append(get_runtime().idempotency_key)
        if len(keys) == 1:
            raise ConnectionError
        return "ok"

    def node(_: Any, runtime: Runtime) -> Any:
        return {"found": [runtime.step("call", fails_once), runtime.step("call", str)]}

    graph = graph_of(node, InMemorySaver())
    with pytest.raises(ConnectionError):
        invoke(graph, {}, THREAD)

    assert {"found": ["ok", ""]} == invoke(graph, None, THREAD)
    assert 2 == len(keys)
    assert 1 == len(set(keys))


def test_keys_differ_between_steps_nodes_and_threads_of_state() -> None:
    keys: list[str] = []

    def key() -> None:
        keys.append(get_runtime().idempotency_key)

    def node(_: Any, runtime: Runtime) -> None:
        keys.append(runtime.idempotency_key)
        for name in ("one", "one", "two"):
            runtime.step(name, key)

    graph = graph_of(node, InMemorySaver())
    for name in ("1", "2"):
        graph.invoke({}, {"configurable": {"thread_id": name}})

    assert 8 == len(set(keys))


def test_steps_are_told_apart_by_name_when_the_code_changes(invoke: Any) -> None:
    saver, ran = InMemorySaver(), []

    def made(*names: str) -> Any:
        def node(_: Any, runtime: Runtime) -> Any:
            found = {n: runtime.step(n, lambda n=n: ran.append(n) or n) for n in names}
            return {"found": [found, interrupt("?")]}

        return graph_of(node, saver)

    invoke(made("a", "b"), {}, THREAD)
    done = invoke(made("new", "b", "a"), Command(resume=1), THREAD)

    assert {"found": [{"new": "new", "b": "b", "a": "a"}, 1]} == done
    assert ["a", "b", "new"] == ran


def test_step_runs_in_the_thread_of_its_blocking_node(invoke: Any) -> None:
    def node(_: Any, runtime: Runtime) -> Any:
        where = runtime.step("where", threading.get_ident)
        return {"found": where == threading.get_ident()}

    assert {"found": True} == invoke(graph_of(node, InMemorySaver()), {}, THREAD)


def test_async_node_awaits_its_steps() -> None:
    ran = []

    async def work(name: str) -> str:
        await asyncio.sleep(0)
        ran.append(name)
        return name

    async def node(_: Any, runtime: Runtime) -> Any:
        both = await asyncio.gather(
            runtime.step("a", work, "a"), runtime.step("b", lambda: ran.append("b"))
        )
        return {"found": [*both, interrupt("?")]}

    graph = graph_of(node, InMemorySaver())
    asyncio.run(graph.ainvoke({}, THREAD))
    done = asyncio.run(graph.ainvoke(Command(resume=1), THREAD))

    assert {"found": ["a", None, 1]} == done
    assert ["a", "b"] == sorted(ran)


def test_async_step_of_a_blocking_node_is_run_by_the_loop_if_there_is_one() -> None:
    async def work() -> str:
        return "awaited"

    def node(_: Any, runtime: Runtime) -> Any:
        return {"found": runtime.step("work", work)}

    graph = graph_of(node, InMemorySaver())

    assert {"found": "awaited"} == asyncio.run(graph.ainvoke({}, THREAD))
    with pytest.raises(AsyncTaskError):
        graph.invoke({}, THREAD)


def test_question_asked_in_a_step_parks_its_node(invoke: Any) -> None:
    ran = []

    def node(_: Any, runtime: Runtime) -> Any:
        runtime.step("before", ran.append, 1)
        return {"found": runtime.step("ask", interrupt, "really?")}

    graph = graph_of(node, InMemorySaver())
    asked = invoke(graph, {}, THREAD)["__interrupt__"]

    assert ["really?"] == [question.value for question in asked]
    assert {"found": "yes"} == invoke(graph, Command(resume="yes"), THREAD)
    assert [1] == ran


def test_steps_inside_steps_and_in_subgraphs(invoke: Any) -> None:
    ran = []

    def inner(_: Any, runtime: Runtime) -> Any:
        def outer_step() -> int:
            return 1 + runtime.step("leaf", lambda: ran.append("leaf") or 1)

        return {"found": [runtime.step("outer", outer_step), interrupt("?")]}

    graph = graph_of(graph_of(inner), InMemorySaver())
    invoke(graph, {}, THREAD)

    assert {"found": [2, "x"]} == invoke(graph, Command(resume="x"), THREAD)
    assert ["leaf"] == ran


def test_steps_of_parallel_nodes_and_threads_do_not_meet(invoke: Any) -> None:
    builder = StateGraph(State)

    def node(_: Any, runtime: Runtime) -> None:
        threads = [
            threading.Thread(target=runtime.step, args=(str(n), int)) for n in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
            assert not thread.is_alive()

    for name in ("a", "b", "c"):
        builder.add_node(name, node)
        builder.add_edge(START, name)
    graph = builder.compile(checkpointer=InMemorySaver())

    assert {} == (invoke(graph, {}, THREAD) or {})


def test_step_is_told_to_nobody() -> None:
    def node(_: Any, runtime: Runtime) -> Any:
        return {"found": runtime.step("work", int)}

    graph = graph_of(node, InMemorySaver())
    modes = ["updates", "tasks", "values"]

    names = [c.get("name") for m, c in graph.stream({}, THREAD, stream_mode=modes)]

    assert "work" not in names


def test_step_of_a_node_that_is_over_is_refused() -> None:
    late, outcome, threads = threading.Event(), [], []

    def call_late(runtime: Runtime) -> None:
        late.wait(10)
        try:
            runtime.step("late", int)
        except NodeCancelledError as error:
            outcome.append(error.code)

    def node(_: Any, runtime: Runtime) -> None:
        threads.append(threading.Thread(target=call_late, args=(runtime,)))
        threads[0].start()

    graph_of(node, InMemorySaver()).invoke({}, THREAD)
    late.set()
    threads[0].join(10)

    assert ["TP-404"] == outcome


def test_step_outside_of_a_node_says_so() -> None:
    with pytest.raises(OutsideNodeError):
        Runtime().step("x", int)
    with pytest.raises(OutsideNodeError):
        _ = Runtime().idempotency_key


@pytest.mark.parametrize("name", [1, None, ("a",), b"a"])
def test_name_that_is_no_text_is_refused_before_anything_waits(
    invoke: Any, name: Any
) -> None:
    def node(state: State, runtime: Runtime) -> State:
        return {"found": runtime.step(name, dict)}

    with pytest.raises(TypeError, match="name of a step must be a str, not"):
        invoke(graph_of(node, InMemorySaver()), {}, THREAD)


def test_name_of_a_task_is_text() -> None:
    with pytest.raises(TypeError, match="name of a task must be a str, not int"):
        task(name=1)  # type: ignore[call-overload]


@pytest.mark.parametrize("saver", [None, InMemorySaver()])
def test_step_is_tried_again_by_its_own_policy(invoke: Any, saver: Any) -> None:
    ran: list[str] = []

    def flaky() -> str:
        ran.append(get_runtime().idempotency_key)
        if len(ran) < 3:
            raise ValueError(len(ran))
        return "ok"

    def node(_: Any, runtime: Runtime) -> Any:
        ran.clear()
        return {"found": runtime.step("call", flaky, retry_policy=AT_ONCE)}

    thread = {"configurable": {"thread_id": "own policy"}}
    assert {"found": "ok"} == invoke(graph_of(node, saver), {}, thread)
    assert 3 == len(ran)
    assert 1 == len(set(ran))


@pytest.mark.parametrize("saver", [None, InMemorySaver()])
def test_async_step_is_tried_again_by_its_own_policy(saver: Any) -> None:
    ran: list[int] = []

    async def flaky(limit: int) -> int:
        ran.append(1)
        if len(ran) < limit:
            raise ValueError
        return len(ran)

    async def node(_: Any, runtime: Runtime) -> Any:
        return {"found": await runtime.step("call", flaky, 2, retry_policy=[AT_ONCE])}

    thread = {"configurable": {"thread_id": "async policy"}}
    found = asyncio.run(graph_of(node, saver).ainvoke({}, thread))
    assert {"found": 2} == found


def test_step_that_fails_every_time_fails_its_node(invoke: Any) -> None:
    ran: list[int] = []

    def broken() -> None:
        ran.append(1)
        raise ValueError("broken")

    def node(_: Any, runtime: Runtime) -> Any:
        with pytest.raises(ValueError, match="broken"):
            runtime.step("call", broken, retry_policy=AT_ONCE)
        with pytest.raises(KeyError):
            runtime.step("other", {}.__getitem__, 1, retry_policy=AT_ONCE)
        return {"found": len(ran)}

    found = invoke(graph_of(node, InMemorySaver()), {}, THREAD)
    assert {"found": AT_ONCE.max_attempts} == found


def test_step_waits_between_its_attempts_beside_others(invoke: Any) -> None:
    """The waits of two nodes' steps are one another's, and not added up."""
    waits = RetryPolicy(initial_interval=0.05, jitter=False, retry_on=ValueError)

    def node_of(name: str) -> Callable[..., Any]:
        ran: list[int] = []

        def flaky() -> int:
            ran.append(1)
            if len(ran) < 2:
                raise ValueError
            return len(ran)

        def node(_: Any, runtime: Runtime) -> Any:
            return {name: runtime.step("call", flaky, retry_policy=waits)}

        return node

    class Both(TypedDict, total=False):
        a: int
        b: int

    builder = StateGraph(Both)
    for name in ("a", "b"):
        builder.add_node(name + "_node", node_of(name))
        builder.add_edge(START, name + "_node")
    graph = builder.compile(checkpointer=InMemorySaver())
    assert {"a": 2, "b": 2} == invoke(graph, {}, THREAD)


def test_step_with_a_policy_that_is_none_is_refused(invoke: Any) -> None:
    def node(_: Any, runtime: Runtime) -> Any:
        with pytest.raises(TypeError, match="TP-605"):
            runtime.step("call", int, retry_policy=3)  # type: ignore[arg-type]
        return {"found": "refused"}

    assert {"found": "refused"} == invoke(graph_of(node), {})
