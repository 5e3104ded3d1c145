"""langchain's listeners hear of tasks below whoever called them."""

from langchain_core.runnables import RunnableLambda

from towpath import START, InMemorySaver, Runtime, StateGraph

from .watching import Watcher, model, on_both


def workflow(lib):
    """A task that calls a model and a task, and one that fails."""

    @lib.task
    def leaf(n, plus=1):
        return n + plus

    @lib.task
    def middle(n):
        model("hello world").invoke("?", {"tags": ["mine"]})
        return leaf(n).result()

    @lib.task
    def boom():
        raise ValueError

    @lib.entrypoint()
    def flow(n):
        found = middle(n).result()
        try:
            boom().result()
        except ValueError:
            return found

    return flow


@on_both
def test_tasks_run_below_their_callers(lib):
    watcher = Watcher()
    workflow(lib).invoke(1, {"callbacks": [watcher], "tags": ["t"]})
    return watcher.told


@on_both
async def test_the_same_of_async_runs(lib):
    watcher = Watcher()
    await workflow(lib).ainvoke(1, {"callbacks": [watcher]})
    return watcher.told


@on_both
def test_tokens_of_models_in_tasks_are_streamed(lib):
    chunks = workflow(lib).stream(1, stream_mode="messages")
    return [(text.content, facts["langgraph_node"]) for text, facts in chunks]


def test_step_is_part_of_its_node():
    watcher = Watcher()

    def node(_, runtime: Runtime):
        shown = RunnableLambda(lambda text: text, name="inside")
        runtime.step("step", lambda: runtime.step("deeper", shown.invoke, "text"))

    builder = StateGraph(dict)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    graph = builder.compile(checkpointer=InMemorySaver(), name="graph")
    thread = {"configurable": {"thread_id": "1"}}

    graph.invoke({}, {"callbacks": [watcher], **thread})

    assert [
        ("start", "graph", None),
        ("start", "node", "graph"),
        ("start", "inside", "node"),
        ("end", "inside", "node"),
        ("end", "node", "graph"),
        ("end", "graph", None),
    ] == watcher.tree()
