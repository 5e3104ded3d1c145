"""langchain's listeners hear of graphs, nodes, path functions and models."""

import asyncio
import operator
import threading
from typing import Annotated, TypedDict
from uuid import UUID

import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import tool

from towpath import END, START, StateGraph

from .watching import Watcher, model, on_both


class State(TypedDict):
    seen: Annotated[list, operator.add]


def one(lib, action, *, name=None, **options):
    """A graph of one node called `step`."""
    builder = lib.StateGraph(State)
    builder.add_node("step", action, **options)
    builder.add_edge(lib.START, "step")
    return builder.compile(name=name)


def ask(state):
    model("hello world").invoke("?", {"tags": ["mine"]})
    return {"seen": [1]}


async def aask(state):
    await model("hello world").ainvoke("?", {"tags": ["mine"]})
    return {"seen": [1]}


def listened(graph, given, **config):
    """Run a graph and return all that a listener was told."""
    watcher = Watcher()
    graph.invoke(given, {"callbacks": [watcher], **config})
    return watcher.told


async def alistened(graph, given, **config):
    watcher = Watcher()
    await graph.ainvoke(given, {"callbacks": [watcher], **config})
    return watcher.told


@on_both
def test_a_model_runs_below_its_node_and_that_below_the_graph(lib):
    graph = one(lib, ask, name="Asks", metadata={"of": "node"})
    conf = {"thread_id": "7", "other": 1}
    metadata = {"of": "caller", "k": "v"}
    return listened(
        graph, {"seen": []}, tags=["t"], metadata=metadata, configurable=conf
    )


@on_both
async def test_the_same_of_async_runs(lib):
    return await alistened(one(lib, aask), {"seen": []}, run_name="Mine")


@on_both
async def test_a_blocking_node_of_an_async_run_is_told_alike(lib):
    return await alistened(one(lib, ask), {"seen": []})


@on_both
def test_path_functions_are_runs_of_their_node(lib):
    def first(state):
        RunnableLambda(lambda text: text, name="inside").invoke("x")
        return "step"

    def last(state):
        return lib.END

    builder = lib.StateGraph(State)
    builder.add_node("step", lambda state: {"seen": [1]})
    builder.add_node("more", lambda state: {"seen": [2]})
    builder.add_edge("step", "more")
    builder.add_conditional_edges(lib.START, first)
    builder.add_conditional_edges("step", last)
    return listened(builder.compile(), {"seen": []})


@on_both
async def test_async_path_functions_are_runs_of_their_node(lib):
    async def last(state):
        await RunnableLambda(lambda text: text, name="inside").ainvoke("x")
        return lib.END

    builder = lib.StateGraph(State)
    builder.add_node("step", lambda state: {"seen": [1]})
    builder.add_edge(lib.START, "step")
    builder.add_conditional_edges("step", last)
    return await alistened(builder.compile(), {"seen": []})


@on_both
def test_a_subgraph_runs_below_its_node(lib):
    inner = one(lib, ask, name="Inner")
    return listened(one(lib, inner, name="Outer"), {"seen": []}, tags=["t"])


@on_both
def test_a_graph_called_in_a_node_runs_below_it(lib):
    inner = one(lib, lambda state: {"seen": [2]}, name="Inner")

    def given(state, config):
        inner.invoke({"seen": []}, config)
        return {"seen": inner.invoke({"seen": []})["seen"]}

    return listened(one(lib, given), {"seen": []}, metadata={"k": "v"})


@on_both
def test_a_graph_called_in_a_runnable_runs_below_it(lib):
    graph = one(lib, lambda state, config: {"seen": [config["configurable"]["x"]]})
    runnable = RunnableLambda(lambda given: graph.invoke(given), name="Runnable")
    return listened(runnable, {"seen": []}, configurable={"x": 5}, tags=["t"])


@on_both
def test_a_runnable_as_a_node_is_a_run_below_it(lib):
    node = RunnableLambda(lambda state: {"seen": [1]}, name="Runnable")
    return listened(one(lib, node), {"seen": []})


@on_both
def test_a_runnable_that_a_node_returns_is_a_run_below_it(lib):
    node = RunnableLambda(lambda state: {"seen": [1]}, name="Runnable")
    return listened(one(lib, lambda state: node), {"seen": []})


@on_both
def test_errors_are_told_up_to_the_graph(lib):
    def fail(state):
        raise ValueError("no")

    watcher = Watcher()
    with pytest.raises(ValueError, match="no"):
        one(lib, fail).invoke({"seen": []}, {"callbacks": [watcher]})
    return watcher.told


@on_both
def test_each_attempt_is_a_run(lib):
    attempts = []

    def flaky(state):
        attempts.append(1)
        if len(attempts) < 2:
            raise ConnectionError("again")
        return {"seen": [1]}

    policy = lib.RetryPolicy(initial_interval=0.001)
    return listened(one(lib, flaky, retry_policy=policy), {"seen": []})


@on_both
def test_a_question_is_an_error_of_the_node_but_not_of_the_graph(lib):
    builder = lib.StateGraph(State)
    builder.add_node("step", lambda state: {"seen": [lib.interrupt("?")]})
    builder.add_edge(lib.START, "step")
    outer = lib.StateGraph(State)
    outer.add_node("inner", builder.compile())
    outer.add_edge(lib.START, "inner")
    graph = outer.compile(checkpointer=lib.InMemorySaver())
    conf = {"thread_id": "1"}
    asked = listened(graph, {"seen": []}, configurable=conf)
    answered = listened(graph, lib.Command(resume=1), configurable=conf)
    return [call[:3] for call in (*asked, *answered)]


@on_both
def test_a_stream_that_is_closed_ends_its_run(lib):
    watcher = Watcher()
    graph = one(lib, lambda state: {"seen": [1]})
    chunks = graph.stream({"seen": []}, {"callbacks": [watcher]}, stream_mode="values")
    next(chunks)
    chunks.close()
    return watcher.tree()[0], watcher.told[-1]


@on_both
async def test_a_run_that_is_cancelled_is_told_so(lib):
    started = asyncio.Event()

    async def slow(state):
        started.set()
        await asyncio.sleep(60)

    watcher = Watcher()
    graph = one(lib, slow)
    run = asyncio.create_task(graph.ainvoke({"seen": []}, {"callbacks": [watcher]}))
    await started.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    return watcher.told


@on_both
def test_callbacks_of_the_graph_and_of_the_call_are_both_told(lib):
    watcher = Watcher()
    graph = one(lib, lambda state: {"seen": [1]}).with_config(
        callbacks=[watcher], tags=["its"]
    )
    told = listened(graph, {"seen": []}, tags=["call's"])
    return told, watcher.told


@on_both
def test_callbacks_given_in_a_node_are_told_beside_the_run_s(lib):
    own = Watcher()
    inner = one(lib, lambda state: {"seen": [2]}, name="Inner")

    def call(state):
        inner.invoke({"seen": []}, {"callbacks": [own], "tags": ["own"]})

    told = listened(one(lib, call), {"seen": []})
    return told, [what[:2] for what in own.told]


@on_both
def test_tools_and_threads_of_a_node_belong_to_it(lib):
    @tool
    def look(topic: str) -> str:
        """Look something up."""
        return model("found").invoke(topic).content

    def work(state):
        return {"seen": [look.invoke({"topic": "x"})]}

    return [call[:3] for call in listened(one(lib, work), {"seen": []})]


@on_both
async def test_async_listeners_are_awaited(lib):
    told = []

    class Slow(AsyncCallbackHandler):
        async def on_chain_start(self, *args, name=None, **kwargs):
            await asyncio.sleep(0)
            told.append(name)

        async def on_chain_end(self, *args, **kwargs):
            await asyncio.sleep(0)
            told.append("end")

    config = {"callbacks": [Slow()]}
    await one(lib, lambda state: {"seen": [1]}).ainvoke({"seen": []}, config)
    return told


@on_both
def test_a_listener_may_stop_the_run(lib):
    class Strict(Watcher):
        raise_error = True

        def on_chain_start(self, *args, **kwargs):
            super().on_chain_start(*args, **kwargs)
            if kwargs["name"] == "step":
                raise PermissionError("not this one")

    ran = []
    graph = one(lib, lambda state: ran.append(1))
    with pytest.raises(PermissionError):
        graph.invoke({"seen": []}, {"callbacks": [Strict()]})
    return [ran, "stopped"]


@on_both
def test_the_id_of_a_run_is_the_caller_s(lib):
    ids = []

    class Ids(Watcher):
        def on_chain_start(self, *args, run_id, **kwargs):
            ids.append(run_id)

        on_chain_end = on_chain_start

    graph = one(lib, lambda state: None)
    graph.invoke({"seen": [1]}, {"callbacks": [Ids()], "run_id": UUID(int=5)})
    return [ids[0] == ids[-1] == UUID(int=5), len(set(ids))]


@on_both
def test_langchain_s_own_annotation_gets_the_config(lib):
    def step(state, config: RunnableConfig):
        return {"seen": [config["configurable"]["x"]]}

    conf = {"configurable": {"x": 1}}
    return [one(lib, step).invoke({"seen": []}, conf)]


@on_both
def test_runnables_in_a_node_see_the_configurable_without_any_listener(lib):
    def step(state):
        def read(_, config: RunnableConfig):
            return config["configurable"]["x"], config["metadata"]["langgraph_node"]

        return {"seen": [RunnableLambda(read).invoke(None)]}

    return [one(lib, step).invoke({"seen": []}, {"configurable": {"x": 1}})]


def test_a_graph_in_a_runnable_is_not_bound_by_langchain_s_default_limit():
    builder = StateGraph(State)
    builder.add_node("step", lambda state: {"seen": [1]})
    builder.add_edge(START, "step")
    go_on = lambda state: "step" if len(state["seen"]) < 40 else END
    builder.add_conditional_edges("step", go_on, ["step", END])
    graph = builder.compile()
    result = RunnableLambda(lambda given: graph.invoke(given)).invoke({"seen": []})
    assert 40 == len(result["seen"])


def test_threads_of_a_node_hand_on_the_callbacks():
    def step(state):
        thread = threading.Thread(target=model("x").invoke, args=("?",))
        thread.start()
        thread.join()

    builder = StateGraph(State)
    builder.add_node("step", step)
    builder.add_edge(START, "step")
    watcher = Watcher()
    builder.compile().invoke({"seen": []}, {"callbacks": [watcher]})
    assert ("model", "model", "step") in watcher.tree()


def test_what_a_trace_policy_hides_is_not_told():
    from towpath.types import TracePolicy

    policy = TracePolicy(
        process_inputs=lambda given: "in", process_outputs=lambda made: "out"
    )
    builder = StateGraph(State)
    builder.add_node("step", lambda state: {"seen": [1]}, trace_policy=policy)
    builder.add_edge(START, "step")
    watcher = Watcher()
    builder.compile().invoke({"seen": [0]}, {"callbacks": [watcher]})
    shown = [facts for _, name, _, facts in watcher.told if name == "step"]
    assert ["in", "out"] == [shown[0]["inputs"], shown[1]["outputs"]]


def test_a_generator_node_s_updates_are_its_output():
    def step(state):
        yield {"seen": [1]}
        yield {"seen": [2]}

    builder = StateGraph(State)
    builder.add_node("step", step)
    builder.add_edge(START, "step")
    watcher = Watcher()
    builder.compile().invoke({"seen": [0]}, {"callbacks": [watcher]})
    ended = next(
        f for what, name, _, f in watcher.told if (what, name) == ("end", "step")
    )
    assert [("seen", [1]), ("seen", [2])] == ended["outputs"]


@on_both
def test_a_tool_may_return_a_command(lib):
    @tool
    def move(place: str) -> object:
        """Go somewhere."""
        return lib.Command(update={"seen": [place]})

    call = {"type": "tool_call", "id": "1", "name": "move", "args": {"place": "x"}}
    return one(lib, lambda state: move.invoke(call)).invoke({"seen": []})


def test_a_lone_handler_will_do():
    builder = StateGraph(State)
    builder.add_node("step", lambda state: {"seen": [1]})
    builder.add_edge(START, "step")
    its, mine = Watcher(), Watcher()
    graph = builder.compile().with_config(callbacks=its)
    graph.invoke({"seen": []}, {"callbacks": mine})
    assert its.tree() == mine.tree()
    assert ("start", "step", "LangGraph") in mine.tree()
