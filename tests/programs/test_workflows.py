"""The functional API: entrypoints, tasks, what they keep and what they tell."""

import asyncio
import operator
from typing import Annotated, Any

from typing_extensions import TypedDict

from towpath.testing.api import Api

from .both import on_both, thread

ALL = ["values", "updates", "custom", "tasks", "checkpoints", "debug", "messages"]


def told(chunks):
    """The chunks without what carries a time of day."""
    return [
        (mode, {k: v for k, v in chunk.items() if k != "timestamp"})
        if mode == "debug"
        else (mode, chunk)
        for mode, chunk in chunks
    ]


def errors(kind, call):
    """Whether a call fails with an error of this kind."""
    try:
        return call()
    except kind:
        return kind.__name__


def simple(lib: Api, **options: Any):
    """A workflow of two tasks, one after the other."""

    @lib.task
    def add(a, b=1):
        return a + b

    @lib.task(name="double")
    def times(a):
        return a * 2

    @lib.entrypoint(**options)
    def flow(x: int) -> int:
        return times(add(x, b=2).result()).result()

    return flow


@on_both
def test_a_workflow_runs_and_tells(lib: Api) -> object:
    flow = simple(lib, checkpointer=lib.InMemorySaver())
    seen = [flow.invoke(1, thread()), list(flow.stream(2, thread()))]
    seen += [told(flow.stream(3, thread(), stream_mode=[mode])) for mode in ALL]
    return (
        seen,
        flow.get_state(thread()),
        list(flow.get_state_history(thread())),
        flow.name,
        list(flow.nodes),
        flow.stream_mode,
        flow.input_channels,
        flow.output_channels,
        flow.stream_channels,
        {name: type(channel).__name__ for name, channel in flow.channels.items()},
        flow.get_input_jsonschema(),
        flow.get_output_jsonschema(),
    )


@on_both
def test_a_workflow_without_a_checkpointer(lib: Api) -> object:
    flow = simple(lib)
    chunks = told(flow.stream(2, stream_mode=["updates", "values", "tasks"]))
    return flow.invoke(1), chunks, flow.batch([1, 2, 3])


@on_both
def test_a_workflow_remembers_what_it_returned(lib: Api) -> object:
    @lib.entrypoint(checkpointer=lib.InMemorySaver())
    def flow(x: int, *, previous: Any = None):
        return [x, previous]

    seen = [flow.invoke(n, thread()) for n in range(3)]
    flow.update_state(thread(), "edited")
    seen.append(flow.invoke(3, thread()))
    seen.append(flow.invoke(0, thread("other")))
    history = [(s.values, s.next, s.metadata) for s in flow.get_state_history(thread())]
    return seen, history


@on_both
def test_a_workflow_keeps_something_else_than_it_returns(lib: Api) -> object:
    final = lib.entrypoint.final

    @lib.entrypoint(checkpointer=lib.InMemorySaver())
    def flow(x: int, *, previous: Any) -> final[int, list]:
        kept = [*(previous or []), x]
        return final(value=sum(kept), save=kept)

    seen = [flow.invoke(n, thread()) for n in (1, 2, 3)]
    chunks = told(flow.stream(4, thread(), stream_mode=["updates", "values", "tasks"]))
    return seen, chunks, flow.get_state(thread()).values, flow.get_output_jsonschema()


@on_both
def test_a_workflow_asks(lib: Api) -> object:
    runs = []

    @lib.task
    def write(topic):
        runs.append(topic)
        return f"on {topic}"

    @lib.entrypoint(checkpointer=lib.InMemorySaver())
    def flow(topic: str):
        text = write(topic).result()
        first = lib.interrupt({"review": text})
        second = lib.interrupt("sure?")
        return [text, first, second]

    modes = ["updates", "values", "tasks"]
    seen = [list(flow.stream("cats", thread(), stream_mode=modes))]
    for answer in ("good", "yes"):
        seen.append(flow.get_state(thread()))
        answered = lib.Command(resume=answer)
        seen.append(list(flow.stream(answered, thread(), stream_mode=modes)))
    return seen, runs, flow.get_state(thread())


@on_both
def test_a_task_asks(lib: Api) -> object:
    runs = []

    @lib.task
    def ask(question):
        runs.append(question)
        return lib.interrupt(question)

    @lib.entrypoint(checkpointer=lib.InMemorySaver())
    def flow(_):
        return [ask("a?").result(), ask("b?").result(), lib.interrupt("c?")]

    seen = [flow.invoke(0, thread())]
    for answer in "ABC":
        seen.append(flow.get_state(thread()))
        seen.append(flow.invoke(lib.Command(resume=answer), thread()))
    return seen, runs


@on_both
def test_a_failure_of_a_task(lib: Api) -> object:
    @lib.task
    def boom():
        raise KeyError("lost")

    @lib.entrypoint(checkpointer=lib.InMemorySaver())
    def flow(how):
        future = boom()
        if how == "caught":
            try:
                return future.result()
            except KeyError as error:
                return repr(error)
        return future.result()

    seen = [flow.invoke("caught", thread())]
    seen.append(errors(KeyError, lambda: flow.invoke("raised", thread())))
    seen.append(flow.get_state(thread()))
    chunks = []
    tasks = flow.stream("caught", thread("2"), stream_mode="tasks")
    for chunk in tasks:
        chunks.append({**chunk, "error": repr(chunk.get("error"))})
    return seen, chunks


@on_both
def test_a_failed_workflow_goes_on_where_it_failed(lib: Api) -> object:
    runs = []

    @lib.task
    def work(n):
        runs.append(n)
        return n * 10

    @lib.entrypoint(checkpointer=lib.InMemorySaver())
    def flow(n: int):
        found = work(n).result()
        if len(runs) == 1:
            runs.append("fails")
            raise KeyError
        return found + work(n + 1).result()

    return (
        errors(KeyError, lambda: flow.invoke(1, thread())),
        flow.get_state(thread()).next,
        flow.invoke(None, thread()),
        runs,
    )


@on_both
def test_a_task_is_retried(lib: Api) -> object:
    attempts = []
    policy = lib.RetryPolicy(initial_interval=0.001, jitter=False, retry_on=KeyError)

    @lib.task(retry_policy=policy)
    def flaky():
        attempts.append(1)
        if len(attempts) < 3:
            raise KeyError
        return len(attempts)

    @lib.entrypoint()
    def flow(_):
        return flaky().result()

    return list(flow.stream(0, stream_mode=["updates", "values"]))


@on_both
def test_a_task_is_cached(lib: Api) -> object:
    runs = []
    cache = lib.InMemoryCache()

    @lib.task(cache_policy=lib.CachePolicy())
    def work(n, plus=0):
        runs.append(n)
        return n + plus

    # Each once: the peer's cache has a result a moment after its task has ended.
    @lib.entrypoint(cache=cache)
    def flow(n: int):
        return [work(n).result(), work(n, plus=2).result()]

    seen = [list(flow.stream(1, stream_mode="updates")) for _ in range(2)]
    work.clear_cache(cache)
    return seen, flow.invoke(1), runs


@on_both
def test_tasks_call_tasks(lib: Api) -> object:
    runs = []

    @lib.task
    def leaf(n):
        runs.append(n)
        return n * 10

    @lib.task
    def middle(n):
        return leaf(n).result() + leaf(n + 1).result()

    @lib.entrypoint(checkpointer=lib.InMemorySaver())
    def flow(n: int):
        return [middle(n).result(), lib.interrupt("?")]

    modes = ["updates", "tasks", "values"]
    seen = list(flow.stream(1, thread(), stream_mode=modes, subgraphs=True))
    return seen, flow.invoke(lib.Command(resume="x"), thread()), runs


class State(TypedDict, total=False):
    x: int
    log: Annotated[list, operator.add]


@on_both
def test_a_node_calls_tasks(lib: Api) -> object:
    runs = []

    @lib.task
    def work(n):
        runs.append(n)
        return n * 10

    def node(state: State):
        found = [work(state["x"]).result(), work(state["x"] + 1).result()]
        return {"log": [*found, lib.interrupt("sure?")]}

    graph = lib.StateGraph(State)
    graph.add_node(node)
    graph.add_edge(lib.START, "node")
    app = graph.compile(checkpointer=lib.InMemorySaver())
    modes = ["updates", "tasks"]
    seen = list(app.stream({"x": 1}, thread(), stream_mode=modes))
    answered = lib.Command(resume="yes")
    return seen, list(app.stream(answered, thread(), stream_mode=modes)), runs


@on_both
def test_a_workflow_calls_graphs_and_workflows(lib: Api) -> object:
    runs = []

    @lib.task
    def work(n):
        runs.append(n)
        return n * 10

    @lib.entrypoint()
    def inner(n: int):
        return work(n).result() + 1

    graph = lib.StateGraph(State)
    graph.add_node("add", lambda state: {"log": [state["x"]]})
    graph.add_edge(lib.START, "add")
    app = graph.compile()

    @lib.entrypoint(checkpointer=lib.InMemorySaver())
    def outer(n: int):
        found = [inner.invoke(n), app.invoke({"x": n})["log"]]
        return [*found, lib.interrupt("?")]

    seen = list(outer.stream(1, thread(), stream_mode="updates", subgraphs=True))
    return seen, outer.invoke(lib.Command(resume="x"), thread()), runs


@on_both
def test_what_is_injected(lib: Api) -> object:
    class Context(TypedDict):
        user: str

    store = lib.InMemoryStore()
    seen = []

    @lib.task
    def work(n):
        lib.get_stream_writer()({"in task": n})
        facts = lib.get_config()["metadata"]
        names = ("langgraph_node", "langgraph_step", "langgraph_path")
        seen.append([facts[name] for name in (*names, "langgraph_triggers")])
        return [n, lib.get_runtime().context["user"]]

    @lib.entrypoint(
        checkpointer=lib.InMemorySaver(), store=store, context_schema=Context
    )
    def flow(x: int, *, config, runtime, store, writer, previous):
        writer("hello")
        store.put(("a",), "k", {"n": x})
        seen.append((runtime.context, runtime.previous, previous))
        seen.append(config["metadata"]["langgraph_node"])
        return work(x).result()

    context = {"user": "me"}
    modes = ["custom", "updates"]
    chunks = [
        list(flow.stream(n, thread(), context=context, stream_mode=modes))
        for n in (1, 2)
    ]
    return chunks, seen, store.get(("a",), "k").value


@on_both
def test_what_cannot_be(lib: Api) -> object:
    @lib.task
    def work():
        return 1

    @lib.task
    async def awaited():
        return 1

    def generator(x):
        yield x

    async def agenerator(x):
        yield x

    @lib.entrypoint()
    def blocking(_):
        return awaited().result()

    @lib.entrypoint()
    async def awaiting(_):
        return await awaited()

    stored = simple(lib, checkpointer=lib.InMemorySaver())
    return [
        errors(RuntimeError, work),
        errors(NotImplementedError, lambda: lib.entrypoint()(generator)),
        errors(NotImplementedError, lambda: lib.entrypoint()(agenerator)),
        errors(ValueError, lambda: lib.entrypoint()(lambda: 1)),
        errors(ValueError, lambda: lib.entrypoint(timeout=1)(lambda x: x) and 1),
        errors(ValueError, lambda: lib.task(timeout=1)(lambda x: x) and 1),
        errors(RuntimeError, lambda: blocking.invoke(0)),
        errors(TypeError, lambda: awaiting.invoke(0)),
        errors(ValueError, lambda: stored.invoke(1)),
    ]


@on_both
async def test_an_async_workflow(lib: Api) -> object:
    runs = []

    @lib.task
    async def awaited(n):
        await asyncio.sleep(0)
        runs.append(n)
        return n * 10

    @lib.task
    def blocking(n):
        return n + 1

    @lib.entrypoint(checkpointer=lib.InMemorySaver())
    async def flow(n: int, *, previous: Any = None):
        first = await awaited(n)
        second = await blocking(first)
        both = await asyncio.gather(awaited(1), blocking(2))
        return [first, second, both, lib.interrupt("?"), previous]

    paused = await flow.ainvoke(5, thread())
    state = await flow.aget_state(thread())
    done = [
        chunk
        async for chunk in flow.astream(
            lib.Command(resume="x"), thread(), stream_mode=["updates", "values"]
        )
    ]
    return paused, state, done, sorted(runs)


@on_both
async def test_a_blocking_workflow_in_an_async_run(lib: Api) -> object:
    @lib.task
    async def awaited(n):
        return n * 10

    @lib.entrypoint()
    def flow(n: int):
        return [future.result() for future in [awaited(n), awaited(n + 1)]]

    return await flow.ainvoke(1)


@on_both
def test_a_workflow_goes_back_in_time(lib: Api) -> object:
    runs = []

    @lib.task
    def work(n):
        runs.append(n)
        return n * 10

    @lib.entrypoint(checkpointer=lib.InMemorySaver())
    def flow(n: int, *, previous: Any = None):
        return [work(n).result(), previous]

    for n in (1, 2):
        flow.invoke(n, thread())
    history = list(flow.get_state_history(thread()))
    again = flow.invoke(None, history[1].config)
    return again, runs, len(list(flow.get_state_history(thread())))
