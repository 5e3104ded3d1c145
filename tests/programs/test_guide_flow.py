"""How-tos of flow: commands, sends, deferred nodes, policies, workflows."""

import asyncio
import gc
import operator
import time
from importlib import import_module
from typing import Annotated, Literal

from langchain_core.runnables import RunnableConfig
from typing_extensions import TypedDict

from towpath.testing.api import Api

from .both import in_steps, on_both, on_drop_in, thread
from .guides import Log, says, tried


async def atried(coroutine):
    try:
        return await coroutine
    except Exception as error:
        return error


def graph_of(lib: Api, schema, nodes, edges):
    graph = lib.StateGraph(schema)
    for name, node in nodes:
        graph.add_node(name, node)
    for start, end in edges:
        graph.add_edge(start, end)
    return graph


# -- routes ----------------------------------------------------------------------


@on_both
def test_agents_hand_over_with_commands(lib: Api) -> object:
    class State(Log):
        turns: int

    def agent(name, other):
        def node(state) -> lib.Command[Literal["alice", "bob", "__end__"]]:
            turns = state.get("turns", 0) + 1
            goto = lib.END if turns > 3 else other
            return lib.Command(goto=goto, update={"log": [name], "turns": turns})

        return node

    graph = lib.StateGraph(State)
    graph.add_node("alice", agent("alice", "bob"))
    graph.add_node("bob", agent("bob", "alice"))
    graph.add_edge(lib.START, "alice")
    app = graph.compile(checkpointer=lib.InMemorySaver())
    seen = [list(app.stream({"log": []}, thread(), stream_mode="updates"))]
    drawn = app.get_graph()
    seen.append(sorted((e.source, e.target, e.conditional) for e in drawn.edges))
    return seen, [(s.next, s.values) for s in app.get_state_history(thread())]


@on_both
def test_a_command_goes_to_several_and_to_sends(lib: Api) -> object:
    def start(state):
        return lib.Command(
            update={"log": ["start"]},
            goto=["a", lib.Send("b", {"log": ["sent"]}), "c"],
        )

    nodes = [
        ("start", start),
        says("a"),
        ("b", lambda s: {"log": [s["log"][0]]}),
        says("c"),
        says("end"),
    ]
    graph = graph_of(lib, Log, nodes, [(lib.START, "start"), ("a", "end")])
    app = graph.compile()
    return app.invoke({"log": []}), in_steps(app.stream({"log": []}), 1, 3, 1)


@on_both
def test_a_child_hands_over_twice_removed(lib: Api) -> object:
    def leave(state):
        return lib.Command(graph=lib.Command.PARENT, goto="b", update={"log": ["left"]})

    deep = graph_of(lib, Log, [("leave", leave)], [(lib.START, "leave")]).compile()
    middle = graph_of(
        lib, Log, [("deep", deep), says("b")], [(lib.START, "deep")]
    ).compile()
    app = graph_of(
        lib, Log, [("middle", middle), says("b")], [(lib.START, "middle")]
    ).compile()
    return [
        list(app.stream({"log": []}, subgraphs=True, stream_mode="updates"))
        and app.invoke({"log": []})["log"][-2:],
        len(list(app.stream({"log": []}, subgraphs=True, stream_mode="updates"))),
    ]


@on_both
def test_sends_go_on_from_sends(lib: Api) -> object:
    class State(TypedDict):
        n: int
        log: Annotated[list, operator.add]

    def halve(state):
        goto = [lib.Send("work", {"n": state["n"] // 2})] * 2 if state["n"] > 1 else []
        return lib.Command(goto=goto, update={"log": [state["n"]]})

    graph = lib.StateGraph(State)
    graph.add_node("work", halve)
    graph.add_edge(lib.START, "work")
    app = graph.compile(checkpointer=lib.InMemorySaver())
    seen = [app.invoke({"n": 5, "log": []}, thread())]
    return seen, [s.next for s in app.get_state_history(thread())]


@on_both
def test_map_reduce_with_a_child_per_item(lib: Api) -> object:
    class Item(TypedDict):
        item: str
        found: Annotated[list, operator.add]

    class State(TypedDict):
        items: list
        found: Annotated[list, operator.add]

    child = lib.StateGraph(Item)
    child.add_node("look", lambda s: {"found": [s["item"].upper()]})
    child.add_node("again", lambda s: {"found": [s["item"] * 2]})
    child.add_edge(lib.START, "look")
    child.add_edge("look", "again")
    graph = lib.StateGraph(State)
    graph.add_node("child", child.compile())
    graph.add_node("best", lambda s: {"found": [len(s["found"])]})
    graph.add_conditional_edges(
        lib.START,
        lambda s: [lib.Send("child", {"item": i}) for i in s["items"]],
        ["child"],
    )
    graph.add_edge("child", "best")
    app = graph.compile()
    return app.invoke({"items": ["a", "b", "c"], "found": []})


@on_both
def test_deferred_nodes_wait_for_sends_and_loops(lib: Api) -> object:
    class State(TypedDict):
        n: Annotated[int, operator.add]
        log: Annotated[list, operator.add]

    graph = lib.StateGraph(State)
    graph.add_node("loop", lambda s: {"n": 1, "log": ["loop"]})
    graph.add_node("short", lambda s: {"log": ["short"]})
    graph.add_node("last", lambda s: {"log": ["last"]}, defer=True)
    graph.add_edge(lib.START, "loop")
    graph.add_edge(lib.START, "short")
    graph.add_edge("short", "last")
    graph.add_conditional_edges(
        "loop", lambda s: "loop" if s["n"] < 3 else "last", ["loop", "last"]
    )
    app = graph.compile(checkpointer=lib.InMemorySaver())
    seen = app.invoke({"n": 0, "log": []}, thread())
    return seen, [s.next for s in app.get_state_history(thread())]


@on_both
def test_two_deferred_nodes_in_a_row(lib: Api) -> object:
    graph = lib.StateGraph(Log)
    for name, defer in (("a", False), ("b", True), ("c", True), ("d", False)):
        graph.add_node(name, says(name)[1], defer=defer)
    for edge in ((lib.START, "a"), (lib.START, "b"), ("b", "c"), ("a", "d")):
        graph.add_edge(*edge)
    app = graph.compile()
    return [c for c in app.stream({"log": []}, stream_mode="values")]


@on_both
def test_joins_of_several_kinds(lib: Api) -> object:
    nodes = [says(name) for name in "abcdef"]
    edges = [
        (lib.START, "a"),
        (lib.START, "b"),
        ("a", "c"),
        (["b", "c"], "d"),
        (["a", "d"], "e"),
        ("b", "f"),
    ]
    app = graph_of(lib, Log, nodes, edges).compile()
    return in_steps(app.stream({"log": []}), 2, 2, 1, 1)


@on_both
def test_a_branch_sees_what_its_node_wrote(lib: Api) -> object:
    def route(state):
        return {"go": "b", "no": lib.END}[state["log"][-1]]

    seen = []
    for word in ("go", "no"):
        graph = graph_of(
            lib,
            Log,
            [("a", lambda s, w=word: {"log": [w]}), says("b")],
            [(lib.START, "a")],
        )
        graph.add_conditional_edges("a", route, ["b", lib.END])
        seen.append(graph.compile().invoke({"log": []}))
    return seen


@on_both
def test_branches_answer_with_booleans_and_maps(lib: Api) -> object:
    seen = []
    for value in (0, 3):
        graph = graph_of(
            lib, Log, [says("yes"), says("no"), ("a", lambda s: {})], [(lib.START, "a")]
        )
        graph.add_conditional_edges(
            "a", lambda s, v=value: v > 1, {True: "yes", False: "no"}
        )
        seen.append(graph.compile().invoke({"log": []}))
    return seen


@on_drop_in
def test_a_goto_to_nowhere(lib: Api) -> object:
    def lost(state):
        return lib.Command(goto="nowhere", update={"log": ["lost"]})

    app = graph_of(lib, Log, [("lost", lost)], [(lib.START, "lost")]).compile()
    return tried(lambda: app.invoke({"log": []}))


@on_both
def test_the_recursion_limit_is_met_and_raised(lib: Api) -> object:
    graph = graph_of(
        lib, Log, [says("a"), says("b")], [(lib.START, "a"), ("a", "b"), ("b", "a")]
    )
    app = graph.compile(checkpointer=lib.InMemorySaver())
    config = {**thread(), "recursion_limit": 4}
    seen = [tried(lambda: app.invoke({"log": []}, config))]
    seen.append((app.get_state(thread()).next, app.get_state(thread()).values))
    seen.append(tried(lambda: app.invoke(None, config)))
    seen.append(app.get_state(thread()).values)
    return seen


@on_both
def test_remaining_steps_end_a_loop(lib: Api) -> object:
    class State(TypedDict):
        log: Annotated[list, operator.add]
        left: lib.RemainingSteps
        last: lib.IsLastStep

    def node(state):
        return {"log": [[state["left"], state["last"]]]}

    graph = lib.StateGraph(State)
    graph.add_node("node", node)
    graph.add_edge(lib.START, "node")
    graph.add_conditional_edges(
        "node", lambda s: lib.END if s["left"] <= 2 else "node", ["node", lib.END]
    )
    return graph.compile().invoke({"log": []}, {"recursion_limit": 7})


# -- policies --------------------------------------------------------------------

AT_ONCE = {"initial_interval": 0.0, "jitter": False, "max_attempts": 3}


def flaky(lib: Api, times, error=ConnectionError):
    tries = []

    def node(state):
        tries.append(1)
        if len(tries) <= times:
            raise error(f"try {len(tries)}")
        return {"log": [len(tries)]}

    return node


@on_both
def test_retries_by_class_by_function_and_by_list(lib: Api) -> object:
    seen = []
    for retry_on in (
        ValueError,
        [KeyError, ValueError],
        lambda error: "try" in str(error),
    ):
        for times in (2, 3):
            graph = lib.StateGraph(Log)
            policy = lib.RetryPolicy(**AT_ONCE, retry_on=retry_on)
            graph.add_node("a", flaky(lib, times, ValueError), retry_policy=policy)
            graph.add_edge(lib.START, "a")
            seen.append(tried(lambda g=graph: g.compile().invoke({"log": []})))
    return seen


@on_both
def test_a_retried_node_is_told_as_such(lib: Api) -> object:
    tries = []

    def node(state, runtime):
        tries.append(runtime.execution_info.node_attempt)
        if len(tries) < 3:
            raise ConnectionError
        return {"log": list(tries)}

    node.__annotations__["runtime"] = lib.Runtime
    graph = lib.StateGraph(Log)
    graph.add_node("a", node, retry_policy=lib.RetryPolicy(**AT_ONCE))
    graph.add_edge(lib.START, "a")
    modes = ["updates", "tasks", "values", "custom"]
    return list(graph.compile().stream({"log": []}, stream_mode=modes))


@on_both
def test_a_failing_node_shows_in_state_and_stream(lib: Api) -> object:
    graph = graph_of(
        lib,
        Log,
        [says("a"), ("b", flaky(lib, 1, ValueError))],
        [(lib.START, "a"), ("a", "b")],
    )
    app = graph.compile(checkpointer=lib.InMemorySaver())
    found = []
    try:
        for chunk in app.stream(
            {"log": []}, thread(), stream_mode=["updates", "tasks", "values"]
        ):
            found.append(chunk)
    except ValueError as error:
        found.append(error)
    state = app.get_state(thread())
    found.append((state.next, state.values, [t.error for t in state.tasks]))
    found.append(app.invoke(None, thread()))
    return found


@on_both
def test_one_of_two_parallel_nodes_fails(lib: Api) -> object:
    ran = []

    def good(state):
        ran.append("good")
        return {"log": ["good"]}

    def bad(state):
        time.sleep(0.05)
        ran.append("bad")
        if ran.count("bad") < 2:
            raise ValueError("bad")
        return {"log": ["bad"]}

    graph = graph_of(
        lib,
        Log,
        [("good", good), ("bad", bad)],
        [(lib.START, "good"), (lib.START, "bad")],
    )
    app = graph.compile(checkpointer=lib.InMemorySaver())
    seen = [tried(lambda: app.invoke({"log": []}, thread()))]
    seen.append(
        sorted((t.name, t.result, bool(t.error)) for t in app.get_state(thread()).tasks)
    )
    seen.append(app.invoke(None, thread()))
    return seen, sorted(ran)


@on_both
def test_cached_nodes_across_runs_and_inputs(lib: Api) -> object:
    ran = []

    def node(state):
        ran.append(state["n"])
        return {"out": state["n"] * 2}

    class State(TypedDict, total=False):
        n: int
        out: int

    graph = lib.StateGraph(State)
    graph.add_node(
        "node",
        node,
        cache_policy=lib.CachePolicy(key_func=lambda state: str(state["n"] % 2)),
    )
    graph.add_edge(lib.START, "node")
    app = graph.compile(cache=lib.InMemoryCache())
    seen = [app.invoke({"n": n}) for n in (1, 3, 2)]
    seen.append(list(app.stream({"n": 5}, stream_mode=["updates", "values", "tasks"])))
    app.clear_cache()
    seen.append(app.invoke({"n": 3}))
    return seen, ran


@on_both
async def test_a_node_has_a_time_limit_and_a_retry(lib: Api) -> object:
    tries = []

    async def slow(state):
        tries.append(1)
        if len(tries) < 2:
            await asyncio.sleep(5)
        return {"log": [len(tries)]}

    graph = lib.StateGraph(Log)
    graph.add_node("slow", slow, timeout=0.05, retry_policy=lib.RetryPolicy(**AT_ONCE))
    graph.add_edge(lib.START, "slow")
    seen = [await graph.compile().ainvoke({"log": []})]
    graph = lib.StateGraph(Log)
    tries.clear()
    graph.add_node("slow", slow, timeout=0.05)
    graph.add_edge(lib.START, "slow")
    error = await atried(graph.compile().ainvoke({"log": []}))
    return [*seen, type(error).__name__, error.node, error.kind]


@on_both
def test_an_error_handler_repairs_and_routes(lib: Api) -> object:
    def bad(state):
        raise ValueError("broken")

    def repair(state, error):
        return lib.Command(update={"log": [str(error.error), error.node]}, goto="end")

    repair.__annotations__["error"] = lib.NodeError
    graph = lib.StateGraph(Log)
    graph.add_node("bad", bad, error_handler=repair)
    graph.add_node(*says("end"))
    graph.add_edge(lib.START, "bad")
    app = graph.compile(checkpointer=lib.InMemorySaver())
    seen = [app.invoke({"log": []}, thread())]
    return seen, [s.next for s in app.get_state_history(thread())]


# -- workflows -------------------------------------------------------------------


@on_both
def test_tasks_run_side_by_side(lib: Api) -> object:
    @lib.task
    def square(n):
        return n * n

    @lib.task
    def add(a, b):
        return a + b

    @lib.entrypoint(checkpointer=lib.InMemorySaver())
    def flow(numbers: list) -> int:
        squares = [square(n) for n in numbers]
        total = 0
        for future in squares:
            total = add(total, future.result()).result()
        return total

    chunks = list(flow.stream([1, 2, 3], thread(), stream_mode="updates"))
    return sorted(map(repr, chunks)), flow.get_state(thread()).values


@on_both
def test_a_workflow_evaluates_and_improves(lib: Api) -> object:
    @lib.task
    def generate(topic, feedback):
        return f"{topic} {feedback or ''}".strip()

    @lib.task
    def grade(text):
        return {"ok": "better" in text, "feedback": "better"}

    @lib.entrypoint()
    def flow(topic: str) -> list:
        feedback, seen = None, []
        while True:
            text = generate(topic, feedback).result()
            found = grade(text).result()
            seen.append(text)
            if found["ok"]:
                return seen
            feedback = found["feedback"]

    return flow.invoke("cats"), list(flow.stream("dogs", stream_mode="updates"))


@on_both
def test_a_workflow_with_injected_parameters(lib: Api) -> object:
    def flow(x, *, previous=None, store, writer, config, runtime):
        store.put(("n",), "k", {"x": x})
        writer({"said": x})
        stored = runtime.store.get(("n",), "k").value
        return [previous, stored, config["configurable"]["thread_id"]]

    flow.__annotations__ = {
        "store": import_module(f"{lib.package}.store.base").BaseStore,
        "writer": import_module(f"{lib.package}.types").StreamWriter,
        "config": RunnableConfig,
        "runtime": lib.Runtime,
    }
    made = lib.entrypoint(checkpointer=lib.InMemorySaver(), store=lib.InMemoryStore())
    modes = ["updates", "custom", "values"]
    return [list(made(flow).stream(n, thread(), stream_mode=modes)) for n in (1, 2)]


@on_both
def test_a_failed_workflow_goes_on(lib: Api) -> object:
    ran = []

    @lib.task
    def first(x):
        ran.append("first")
        return x + 1

    @lib.task
    def second(x):
        ran.append("second")
        if ran.count("second") < 2:
            raise ValueError("not yet")
        return x * 10

    @lib.entrypoint(checkpointer=lib.InMemorySaver())
    def flow(x: int) -> int:
        return second(first(x).result()).result()

    seen = [tried(lambda: flow.invoke(1, thread()))]
    seen.append([(t.name, t.error) for t in flow.get_state(thread()).tasks])
    seen.append(flow.invoke(None, thread()))
    return seen, ran


@on_both
def test_a_workflow_calls_a_graph_and_a_workflow(lib: Api) -> object:
    graph = graph_of(lib, Log, [says("a")], [(lib.START, "a")]).compile()

    @lib.entrypoint()
    def inner(x: int) -> int:
        return x + 1

    @lib.entrypoint(checkpointer=lib.InMemorySaver())
    def flow(x: int):
        return [graph.invoke({"log": [x]})["log"], inner.invoke(x)]

    return flow.invoke(1, thread()), list(flow.stream(2, thread("2")))


@on_both
async def test_async_tasks_are_gathered(lib: Api) -> object:
    @lib.task
    async def slow(n):
        await asyncio.sleep(0.01 * (3 - n))
        return n

    @lib.entrypoint(checkpointer=lib.InMemorySaver())
    async def flow(count: int) -> list:
        return list(await asyncio.gather(*[slow(n) for n in range(count)]))

    seen = [await flow.ainvoke(3, thread())]
    chunks = [c async for c in flow.astream(3, thread("2"), stream_mode="updates")]
    return seen, sorted(map(repr, chunks))


@on_both
async def test_a_task_that_fails_and_is_never_awaited(lib: Api) -> object:
    heard = []
    asyncio.get_running_loop().set_exception_handler(
        lambda loop, context: heard.append(context["message"])
    )

    @lib.task
    async def bad():
        raise ValueError("bad")

    @lib.entrypoint(checkpointer=lib.InMemorySaver())
    async def flow(x: int) -> int:
        bad()
        await asyncio.sleep(0.05)
        return x

    seen = await atried(flow.ainvoke(1, thread()))
    gc.collect()
    await asyncio.sleep(0)
    return seen, heard


@on_both
def test_a_task_that_fails_and_is_never_asked(lib: Api) -> object:
    @lib.task
    def bad():
        raise ValueError("bad")

    @lib.entrypoint(checkpointer=lib.InMemorySaver())
    def flow(x: int) -> int:
        bad()
        time.sleep(0.05)
        return x

    seen = [tried(lambda: flow.invoke(1, thread()))]
    return seen, flow.get_state(thread()).next


@on_both
async def test_an_unfinished_future_is_asked_for_its_result(lib: Api) -> object:
    kinds = []

    @lib.task
    async def slow():
        await asyncio.sleep(0.01)
        return 1

    @lib.entrypoint()
    async def flow(x: int) -> int:
        future = slow()
        try:
            future.result()
        except Exception as error:
            kinds.append(isinstance(error, asyncio.InvalidStateError))
        return await future

    return await atried(flow.ainvoke(1)), kinds


@on_both
def test_tasks_are_retried_and_cached(lib: Api) -> object:
    ran = []

    @lib.task(retry_policy=lib.RetryPolicy(**AT_ONCE))
    def flaky(x):
        ran.append(x)
        if len(ran) < 2:
            raise ConnectionError
        return x

    @lib.task(cache_policy=lib.CachePolicy(ttl=60))
    def cached(x):
        ran.append("cached")
        return x * 2

    @lib.entrypoint(cache=lib.InMemoryCache())
    def flow(x: int):
        return [flaky(x).result(), cached(x).result(), cached(x).result()]

    return flow.invoke(1), flow.invoke(1), ran
