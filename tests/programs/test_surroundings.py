"""Graphs among other things: chains, drawings, clocks, shutdowns, batches."""

import asyncio
import operator
import time
from typing import Annotated, Literal

from typing_extensions import TypedDict

from towpath.testing.api import Api

from .both import on_both, thread


class Log(TypedDict):
    log: Annotated[list, operator.add]


def logs(name: str):
    """Return a node that logs its name."""

    def node(state: Log):
        return {"log": [name]}

    return node


def agent(lib: Api):
    """Return the builder of an agent with a tool loop."""

    def more(state: Log) -> Literal["tools", "__end__"]:
        return "tools" if len(state["log"]) < 4 else "__end__"

    graph = lib.StateGraph(Log)
    graph.add_node("model", logs("model"))
    graph.add_node("tools", logs("tools"))
    graph.add_edge(lib.START, "model")
    graph.add_conditional_edges("model", more)
    graph.add_edge("tools", "model")
    return graph


@on_both
def test_a_graph_is_drawn(lib: Api) -> object:
    app = agent(lib).compile(interrupt_before=["tools"])
    drawn = app.get_graph()
    edges = sorted((one.source, one.target, one.conditional) for one in drawn.edges)
    return edges, sorted(drawn.nodes), drawn.draw_mermaid()


@on_both
def test_graphs_inside_are_drawn(lib: Api) -> object:
    graph = lib.StateGraph(Log)
    graph.add_node("before", logs("before"))
    graph.add_node("agent", agent(lib).compile())
    graph.add_node("left", logs("left"), destinations=("right",))
    graph.add_node("right", logs("right"), defer=True, metadata={"k": 1})
    graph.add_edge(lib.START, "before")
    graph.add_edge("before", "agent")
    graph.add_edge("agent", "left")
    graph.add_conditional_edges("right", lambda state: "x", {"x": "left", "y": lib.END})
    app = graph.compile()
    drawings = []
    for xray in (False, True):
        drawn = app.get_graph(xray=xray)
        drawings.append(
            [
                sorted((one.source, one.target, one.data) for one in drawn.edges),
                sorted(drawn.nodes),
                drawn.draw_mermaid(),
            ]
        )
    return drawings


@on_both
def test_a_drawing_is_json(lib: Api) -> object:
    drawn = agent(lib).compile().get_graph().to_json()
    return drawn["edges"], [one["id"] for one in drawn["nodes"]]


@on_both
def test_batches_keep_order_and_errors(lib: Api) -> object:
    def node(state: Log):
        if state["log"] == ["bad"]:
            raise ValueError("bad input")
        return {"log": ["ok"]}

    graph = lib.StateGraph(Log)
    graph.add_node(node)
    graph.add_edge(lib.START, "node")
    app = graph.compile()
    given = [{"log": [text]} for text in ("a", "bad", "c")]
    results = app.batch(given, return_exceptions=True)
    completed = sorted(app.batch_as_completed(given[::2]), key=lambda pair: pair[0])
    return results, completed, app.batch([])


@on_both
async def test_a_coroutine_has_a_time_limit(lib: Api) -> object:
    async def slow(state: Log):
        await asyncio.sleep(30)
        return {"log": ["slow"]}

    graph = lib.StateGraph(Log)
    graph.add_node("slow", slow, timeout=0.05)
    graph.add_edge(lib.START, "slow")
    try:
        return await graph.compile().ainvoke({"log": []})
    except lib.NodeTimeoutError as error:
        return error.node, error.kind, error.run_timeout, error.elapsed < 5


@on_both
async def test_an_idle_coroutine_is_ended_and_a_busy_one_is_not(lib: Api) -> object:
    Runtime = lib.Runtime

    async def idle(state: Log):
        await asyncio.sleep(30)

    async def busy(state: Log, runtime: Runtime):
        for _ in range(6):
            await asyncio.sleep(0.05)
            runtime.heartbeat()
        return {"log": ["busy"]}

    seen = []
    for node in (idle, busy):
        graph = lib.StateGraph(Log)
        policy = lib.TimeoutPolicy(idle_timeout=0.2)
        graph.add_node("node", node, timeout=policy)
        graph.add_edge(lib.START, "node")
        try:
            seen.append(await graph.compile().ainvoke({"log": []}))
        except lib.NodeTimeoutError as error:
            seen.append((error.kind, error.idle_timeout))
    return seen


@on_both
async def test_a_timed_out_node_is_retried(lib: Api) -> object:
    calls = []

    async def node(state: Log):
        calls.append(1)
        if len(calls) == 1:
            await asyncio.sleep(30)
        return {"log": ["second"]}

    graph = lib.StateGraph(Log)
    policy = lib.RetryPolicy(
        initial_interval=0.001, jitter=False, retry_on=lib.NodeTimeoutError
    )
    graph.add_node("node", node, timeout=0.05, retry_policy=policy)
    graph.add_edge(lib.START, "node")
    return await graph.compile().ainvoke({"log": []})


@on_both
def test_a_run_is_drained_and_continued(lib: Api) -> object:
    control = lib.RunControl()

    def first(state: Log):
        control.request_drain("deploy")
        return {"log": ["first"]}

    graph = lib.StateGraph(Log)
    graph.add_sequence([("first", first), ("second", logs("second"))])
    graph.add_edge(lib.START, "first")
    app = graph.compile(checkpointer=lib.InMemorySaver())
    seen = []
    try:
        seen.append(app.invoke({"log": []}, thread(), control=control))
    except lib.GraphDrained as drained:
        seen.append(str(drained))
    state = app.get_state(thread())
    return seen, state.next, state.values, app.invoke(None, thread())


@on_both
def test_a_node_reads_where_it_runs(lib: Api) -> object:
    Runtime = lib.Runtime
    seen = []

    def node(state: Log, runtime: Runtime):
        info = runtime.execution_info
        seen.append((info.node_attempt, info.thread_id, bool(info.task_id)))
        if info.node_attempt == 1:
            raise ConnectionError("once")
        return {"log": [info.checkpoint_ns.split(":")[0]]}

    graph = lib.StateGraph(Log)
    policy = lib.RetryPolicy(initial_interval=0.001, jitter=False)
    graph.add_node("node", node, retry_policy=policy)
    graph.add_edge(lib.START, "node")
    app = graph.compile(checkpointer=lib.InMemorySaver())
    return app.invoke({"log": []}, thread("t")), seen


@on_both
def test_parallel_nodes_run_at_once(lib: Api) -> object:
    def sleeps(state: Log):
        time.sleep(0.1)
        return {"log": ["slept"]}

    graph = lib.StateGraph(Log)
    for number in range(4):
        graph.add_node(f"n{number}", sleeps)
        graph.add_edge(lib.START, f"n{number}")
    start = time.monotonic()
    result = graph.compile().invoke({"log": []}, {"max_concurrency": 8})
    return result, time.monotonic() - start < 0.35


@on_both
def test_concurrency_is_limited(lib: Api) -> object:
    running, most = [], []

    def node(state: Log):
        running.append(1)
        most.append(len(running))
        time.sleep(0.01)
        running.pop()
        return {"log": ["n"]}

    graph = lib.StateGraph(Log)
    for number in range(6):
        graph.add_node(f"n{number}", node)
        graph.add_edge(lib.START, f"n{number}")
    result = graph.compile().invoke({"log": []}, {"max_concurrency": 2})
    return result, max(most) <= 2
