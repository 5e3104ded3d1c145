"""Corners of the guides: what programs of every kind lean on, one at a time."""

import asyncio
import operator
import threading
from functools import partial
from typing import Annotated, Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda, RunnablePassthrough
from pydantic import BaseModel, field_validator
from typing_extensions import NotRequired, TypedDict

from towpath.testing.api import Api

from .both import on_both, on_drop_in, thread
from .guides import Log, chained, says, tried


@on_both
def test_nodes_of_every_callable_kind(lib: Api) -> object:
    class Callable_:
        def __call__(self, state):
            return {"log": ["object"]}

    class Holder:
        def method(self, state):
            return {"log": ["method"]}

        @staticmethod
        def static(state):
            return {"log": ["static"]}

        @classmethod
        def of_class(cls, state):
            return {"log": ["class"]}

    def two(extra, state):
        return {"log": [extra]}

    def with_kwargs(state, **kwargs):
        return {"log": [sorted(kwargs)]}

    app = chained(
        lib,
        Log,
        ("object", Callable_()),
        ("method", Holder().method),
        ("static", Holder.static),
        ("of_class", Holder.of_class),
        ("partial", partial(two, "partial")),
        ("lambda", lambda s: {"log": ["lambda"]}),
        ("runnable", RunnableLambda(lambda s: {"log": ["runnable"]})),
        ("kwargs", with_kwargs),
        ("builtin", RunnablePassthrough() | (lambda s: {"log": ["|"]})),
    )
    return app.invoke({"log": []})


@on_both
def test_callbacks_hear_the_run(lib: Api) -> object:
    heard = []

    class Handler(BaseCallbackHandler):
        def on_chain_start(self, serialized, inputs, *, name=None, **kwargs):
            heard.append(("start", name or kwargs.get("name")))

        def on_chain_end(self, outputs, **kwargs):
            heard.append(
                ("end", sorted(outputs) if isinstance(outputs, dict) else outputs)
            )

        def on_chain_error(self, error, **kwargs):
            heard.append(("error", type(error).__name__))

    app = chained(lib, Log, says("a"), says("b"))
    app.invoke({"log": []}, {"callbacks": [Handler()], "run_name": "mine"})

    def bad(state):
        raise ValueError("bad")

    tried(
        lambda: chained(lib, Log, ("bad", bad)).invoke(
            {"log": []}, {"callbacks": [Handler()]}
        )
    )
    return heard


@on_both
def test_run_ids_and_names_reach_nodes(lib: Api) -> object:
    def node(state, config):
        return {
            "log": [
                sorted(
                    k
                    for k in config
                    if k
                    in (
                        "tags",
                        "metadata",
                        "callbacks",
                        "recursion_limit",
                        "configurable",
                    )
                )
            ]
        }

    node.__annotations__["config"] = RunnableConfig
    app = chained(lib, Log, ("node", node))
    return app.invoke({"log": []}, {"recursion_limit": 12, "tags": ["x"]})


@on_both
def test_a_pydantic_state_validates_its_input_only(lib: Api) -> object:
    class State(BaseModel):
        n: int
        log: Annotated[list, operator.add] = []

        @field_validator("n")
        @classmethod
        def positive(cls, n):
            if n < 0:
                raise ValueError("negative")
            return n

    app = chained(
        lib, State, ("a", lambda s: {"n": s.n + 1, "log": [type(s).__name__]})
    )
    return [
        app.invoke({"n": 1}),
        type(tried(lambda: app.invoke({"n": -1}))).__name__,
        type(tried(lambda: app.invoke({"n": "x"}))).__name__,
        app.invoke(State(n=3)),
    ]


@on_both
def test_generic_and_inherited_states(lib: Api) -> object:
    class Base(TypedDict):
        a: int

    class Mixin(TypedDict, total=False):
        b: Annotated[list, operator.add]

    class Whole(Base, Mixin):
        c: NotRequired[str]

    app = chained(lib, Whole, ("n", lambda s: {"b": [sorted(s)], "c": "c"}))
    return app.invoke({"a": 1}), app.invoke({"a": 1, "b": ["x"]}), sorted(app.channels)


@on_both
def test_input_by_another_schema_than_the_node(lib: Api) -> object:
    class Narrow(TypedDict):
        a: int

    class Whole(TypedDict):
        a: int
        b: int

    def narrow(state: Narrow):
        return {"b": state["a"] + len(state)}

    graph = lib.StateGraph(Whole)
    graph.add_node("narrow", narrow)
    graph.add_node("given", lambda s: {"a": len(s)}, input_schema=Narrow)
    graph.add_edge(lib.START, "narrow")
    graph.add_edge("narrow", "given")
    return graph.compile().invoke({"a": 5, "b": 0})


@on_both
def test_exceptions_pass_as_they_are(lib: Api) -> object:
    class Mine(Exception):
        def __init__(self, code, *, detail):
            super().__init__(code)
            self.code, self.detail = code, detail

    def bad(state):
        raise Mine(3, detail="d")

    app = chained(lib, Log, ("bad", bad))
    error = tried(lambda: app.invoke({"log": []}))
    nested = tried(lambda: chained(lib, Log, ("low", app)).invoke({"log": []}))
    group = tried(lambda: app.batch([{"log": []}], return_exceptions=True))
    return (
        type(error).__name__,
        error.code,
        error.detail,
        type(nested).__name__,
        [type(e).__name__ for e in group],
    )


@on_both
def test_stop_iteration_and_exits(lib: Api) -> object:
    def stops(state):
        raise StopIteration("x")

    def exits(state):
        raise SystemExit(3)

    def interrupts(state):
        raise KeyboardInterrupt

    seen = []
    for node in (exits, interrupts):
        try:
            chained(lib, Log, ("n", node)).invoke({"log": []})
        except BaseException as error:
            seen.append(type(error).__name__)
    return seen


@on_both
def test_threads_of_a_node_see_its_context(lib: Api) -> object:
    found = []

    def node(state):
        from concurrent.futures import ThreadPoolExecutor
        from contextvars import copy_context

        config = lib.get_config()["metadata"]["langgraph_node"]
        with ThreadPoolExecutor() as pool:
            ctx = copy_context()
            inner = pool.submit(
                ctx.run, lambda: lib.get_config()["metadata"]["langgraph_node"]
            )
            found.append((config, inner.result()))
        return {"log": ["x"]}

    chained(lib, Log, ("node", node)).invoke({"log": []})
    return found


@on_both
def test_values_are_shown_after_every_step(lib: Api) -> object:
    class State(TypedDict, total=False):
        a: int
        b: Annotated[list, operator.add]
        c: dict

    app = chained(
        lib,
        State,
        ("x", lambda s: {"a": 1}),
        ("y", lambda s: {"c": {"k": 1}}),
        ("z", lambda s: None),
        ("w", lambda s: {}),
    )
    return [
        list(app.stream(given, stream_mode=["values", "updates"]))
        for given in ({"a": 0}, {"b": ["in"]}, {"c": None})
    ]


@on_both
def test_an_update_of_none_and_missing_keys(lib: Api) -> object:
    class State(TypedDict, total=False):
        a: Any
        log: Annotated[list, operator.add]

    app = chained(
        lib, State, ("x", lambda s: {"a": None}), checkpointer=lib.InMemorySaver()
    )
    seen = [app.invoke({"a": 1, "log": []}, thread()), app.get_state(thread()).values]
    app.update_state(thread(), {"a": 5})
    seen.append(app.get_state(thread()).values)
    seen.append(tried(lambda: app.update_state(thread(), None)) is not None)
    return seen


@on_both
def test_two_threads_of_execution_share_a_graph(lib: Api) -> object:
    app = chained(lib, Log, says("a"), says("b"), checkpointer=lib.InMemorySaver())
    results = {}

    def run(name):
        results[name] = app.invoke({"log": [name]}, thread(name))

    several = [threading.Thread(target=run, args=(str(n),)) for n in range(4)]
    for one in several:
        one.start()
    for one in several:
        one.join()
    return sorted(results.items()), app.get_state(thread("2")).values


@on_both
async def test_many_conversations_are_awaited_at_once(lib: Api) -> object:
    async def node(state):
        await asyncio.sleep(0.001)
        return {"log": ["x"]}

    app = chained(lib, Log, ("node", node), checkpointer=lib.InMemorySaver())
    found = await asyncio.gather(
        *(app.ainvoke({"log": [n]}, thread(str(n))) for n in range(10))
    )
    return found, (await app.aget_state(thread("7"))).values


@on_both
async def test_a_batch_is_awaited_with_limits(lib: Api) -> object:
    running, most = [0], [0]

    async def node(state):
        running[0] += 1
        most[0] = max(most[0], running[0])
        await asyncio.sleep(0.01)
        running[0] -= 1
        return {"log": ["x"]}

    app = chained(lib, Log, ("node", node))
    found = await app.abatch([{"log": [n]} for n in range(5)], {"max_concurrency": 2})
    return found, most


@on_both
def test_parallel_nodes_fold_in_a_fixed_order(lib: Api) -> object:
    import time

    def slow(name, delay):
        def node(state):
            time.sleep(delay)
            return {"log": [name]}

        return node

    graph = lib.StateGraph(Log)
    for name, delay in (("c", 0), ("a", 0.03), ("b", 0.01)):
        graph.add_node(name, slow(name, delay))
        graph.add_edge(lib.START, name)
    return [graph.compile().invoke({"log": []}) for _ in range(3)]


@on_both
def test_a_child_with_its_own_reducer_and_defaults(lib: Api) -> object:
    class Child(TypedDict, total=False):
        total: Annotated[int, operator.add]
        mine: Annotated[list, operator.add]

    class Parent(TypedDict, total=False):
        total: int
        log: Annotated[list, operator.add]

    child = chained(
        lib,
        Child,
        ("a", lambda s: {"total": 2, "mine": ["m"]}),
        ("b", lambda s: {"total": 3}),
    )
    app = chained(
        lib,
        Parent,
        ("x", lambda s: {"total": 10}),
        ("child", child),
        ("y", lambda s: {"log": [s["total"]]}),
    )
    return app.invoke({"log": []}), list(app.stream({"log": []}, subgraphs=True))


@on_both
def test_a_child_keeps_nothing_or_all(lib: Api) -> object:
    class State(TypedDict):
        n: Annotated[int, operator.add]

    seen = []
    for saver in (None, False, True):
        child = lib.StateGraph(State)
        child.add_node("a", lambda s: {"n": 1})
        child.add_edge(lib.START, "a")
        inner = child.compile(checkpointer=saver)

        def call(state, inner=inner):
            return {"log": [inner.invoke({"n": 10})["n"]]}

        app = chained(lib, Log, ("call", call), checkpointer=lib.InMemorySaver())
        seen.append([app.invoke({"log": []}, thread()) for _ in range(3)])
    return seen


@on_both
def test_state_of_children_is_read(lib: Api) -> object:
    def ask(state):
        return {"log": [lib.interrupt("q?")]}

    low = chained(lib, Log, says("x"), ("ask", ask))
    app = chained(lib, Log, ("low", low), checkpointer=lib.InMemorySaver())
    app.invoke({"log": []}, thread())
    outer = app.get_state(thread(), subgraphs=True)
    inner = outer.tasks[0].state
    again = app.get_state(inner.config)
    history = list(app.get_state_history(inner.config))
    app.update_state(inner.config, {"log": ["edited"]})
    return (
        inner.next,
        inner.values,
        again.values,
        [h.values for h in history],
        app.get_state(thread(), subgraphs=True).tasks[0].state.values,
        [name for name, _ in app.get_subgraphs()],
    )


@on_both
def test_messages_state_with_dicts_tuples_and_objects(lib: Api) -> object:
    app = chained(
        lib,
        lib.MessagesState,
        ("a", lambda s: {"messages": {"role": "assistant", "content": "hi"}}),
        ("b", lambda s: {"messages": ("ai", "tuple")}),
        ("c", lambda s: {"messages": [AIMessage("object", id="o")]}),
    )
    found = app.invoke(
        {"messages": [("user", "x"), {"role": "system", "content": "s"}]}
    )
    return [(type(m).__name__, m.content, bool(m.id)) for m in found["messages"]]


@on_both
def test_store_and_context_in_nested_runnables(lib: Api) -> object:
    store = lib.InMemoryStore()
    store.put(("a",), "k", {"v": 1})

    def deep(x):
        return {
            "log": [lib.get_store().get(("a",), "k").value, lib.get_runtime().context]
        }

    app = chained(
        lib, Log, ("n", RunnableLambda(lambda s: s) | RunnableLambda(deep)), store=store
    )
    return app.invoke({"log": []}, context={"u": 1})


@on_both
def test_a_runtime_in_its_fields(lib: Api) -> object:
    def node(state, runtime):
        info = runtime.execution_info
        return {
            "log": [
                runtime.context,
                runtime.store is None,
                info.node_attempt,
                info.thread_id,
                runtime.previous,
                runtime.drain_requested,
            ]
        }

    node.__annotations__["runtime"] = lib.Runtime
    app = chained(lib, Log, ("node", node), checkpointer=lib.InMemorySaver())
    return app.invoke({"log": []}, thread(), context={"a": 1})["log"]


@on_both
def test_compiled_names_and_reprs(lib: Api) -> object:
    app = chained(lib, Log, says("a"))
    named = (
        lib.StateGraph(Log)
        .add_node(*says("x"))
        .add_edge(lib.START, "x")
        .compile(name="my")
    )
    return (
        app.name,
        named.name,
        app.get_name(),
        named.get_name(),
        type(app).__name__,
        app.with_config(run_name="r").config,
        app.InputType is not None,
    )


@on_both
def test_wrong_wirings_are_refused_with_their_kinds(lib: Api) -> object:
    def build(change):
        graph = lib.StateGraph(Log)
        graph.add_node(*says("a"))
        graph.add_edge(lib.START, "a")
        change(graph)
        return graph.compile()

    cases = [
        lambda g: g.add_node(*says("a")),
        lambda g: g.add_node(lib.END, len),
        lambda g: g.add_node(lib.START, len),
        lambda g: g.add_node("a|b", len),
        lambda g: g.add_node("x:y", len),
        lambda g: g.add_edge(lib.END, "a"),
        lambda g: g.add_edge("a", lib.START),
        lambda g: g.add_edge("a", "nowhere"),
        lambda g: g.add_edge("nowhere", "a"),
        lambda g: g.add_edge(["nowhere"], "a"),
        lambda g: g.add_conditional_edges("nowhere", lambda s: "a"),
        lambda g: g.add_conditional_edges("a", lambda s: "a", ["nowhere"]),
        lambda g: g.add_node("lonely", len),
        lambda g: g.add_node("bad", 3),
        lambda g: g.add_node("only name"),
        lambda g: g.compile(interrupt_before=["no"]),
        lambda g: g.compile(checkpointer="x"),
        lambda g: g.add_sequence([]),
        lambda g: lib.StateGraph(Log).compile(),
    ]
    builtin = (ValueError, TypeError, RuntimeError, KeyError)
    seen = []
    for change in cases:
        found = tried(lambda c=change: build(c))
        kinds = [k.__name__ for k in builtin if isinstance(found, k)]
        seen.append(kinds[-1:] or type(found).__name__)
    return seen


def kind_of(call):
    """The last of the built-in kinds that what a call raises is."""
    found = tried(call)
    builtin = (ValueError, TypeError, RuntimeError, KeyError)
    return [k.__name__ for k in builtin if isinstance(found, k)][-1:] or found


@on_both
def test_wrong_calls_are_refused_with_their_kinds(lib: Api) -> object:
    app = chained(lib, Log, says("a"), checkpointer=lib.InMemorySaver())
    bare = chained(lib, Log, says("a"))
    calls = [
        lambda: app.get_state({}),
        lambda: app.get_state({"configurable": {}}),
        lambda: app.update_state({}, {"log": []}),
        lambda: list(app.get_state_history({"configurable": {}})),
        lambda: app.invoke({"log": []}),
        lambda: bare.get_state(thread()),
        lambda: bare.update_state(thread(), {"log": []}),
        lambda: bare.invoke(lib.Command(resume=1)),
        lambda: bare.invoke({"log": []}, {"recursion_limit": "5"}),
        lambda: bare.invoke({"log": []}, {"recursion_limit": 0}),
        lambda: app.bulk_update_state(thread(), []),
        lambda: app.bulk_update_state(thread(), [[]]),
        lambda: bare.clear_cache(),
    ]
    return [kind_of(call) for call in calls]


@on_both
def test_graphs_inside_are_found_by_namespace(lib: Api) -> object:
    low = chained(lib, Log, says("x"))
    middle = chained(lib, Log, ("low", low), ("other", low))
    app = chained(lib, Log, ("middle", middle), ("last", low))
    return [
        [n for n, _ in app.get_subgraphs(namespace=namespace, recurse=recurse)]
        for namespace in (None, "middle", "middle|low", "low", "nothing", "last")
        for recurse in (False, True)
    ]


@on_drop_in
def test_an_empty_map_answers_nothing(lib: Api) -> object:
    app = chained(
        lib,
        Log,
        ("ask", lambda s: {"log": [lib.interrupt("q?")]}),
        checkpointer=lib.InMemorySaver(),
    )
    seen = [app.invoke({"log": []}, thread())]
    seen.append(app.invoke(lib.Command(resume={}), thread()))
    seen.append(app.invoke(lib.Command(resume={"a": 1}), thread()))
    return seen


@on_both
def test_answers_that_are_no_destination(lib: Api) -> object:
    def asked(path, path_map=None):
        graph = lib.StateGraph(Log)
        graph.add_node(*says("a"))
        graph.add_node(*says("b"))
        graph.add_edge(lib.START, "a")
        graph.add_conditional_edges("a", path, path_map)
        return graph.compile().invoke({"log": []})

    return [
        kind_of(lambda: asked(lambda s: None)),
        kind_of(lambda: asked(lambda s: lib.START)),
        kind_of(lambda: asked(lambda s: "q", {"x": "b"})),
        kind_of(lambda: asked(lambda s: ["x", "q"], {"x": "b"})),
        asked(lambda s: []),
        asked(lambda s: ("b", lib.END)),
    ]


@on_both
def test_drawings_without_styles_of_nested_graphs(lib: Api) -> object:
    low = chained(lib, Log, says("low"))
    two = chained(lib, Log, says("x"), says("y"))
    return [
        app.get_graph(xray=True).draw_mermaid(with_styles=False)
        for app in (
            chained(lib, Log, ("o", low)),
            chained(lib, Log, ("o", low), says("z")),
            chained(lib, Log, ("o", two)),
            chained(lib, Log, ("o", chained(lib, Log, ("p", low)))),
        )
    ]
