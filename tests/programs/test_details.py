"""Small print: names, forms of nodes, configs, limits, old spellings."""

import asyncio
import contextvars
import functools
import itertools
import operator
import uuid
from typing import Annotated

from typing_extensions import TypedDict

from towpath.testing.api import Api

from .both import in_steps, on_both, thread


class Log(TypedDict):
    log: Annotated[list, operator.add]


def named(state: Log):
    return {"log": ["named"]}


class Callable:
    """A callable object as a node."""

    def __call__(self, state: Log):
        return {"log": ["object"]}

    def method(self, state: Log):
        return {"log": ["method"]}


@on_both
def test_nodes_are_named_after_what_they_are(lib: Api) -> object:
    graph = lib.StateGraph(Log)
    graph.add_node(named)
    graph.add_node(Callable())
    graph.add_node(Callable().method)
    graph.add_node("partial", functools.partial(named))
    names = list(graph.nodes)
    for source, target in zip([lib.START, *names], names, strict=False):
        graph.add_edge(source, target)
    app = graph.compile()
    return names, app.invoke({"log": []}), sorted(app.nodes)


@on_both
def test_builder_calls_chain(lib: Api) -> object:
    app = (
        lib.StateGraph(Log)
        .add_node("a", named)
        .add_node("b", named)
        .add_edge(lib.START, "a")
        .add_conditional_edges("a", lambda state: "b", ["b"])
        .set_finish_point("b")
        .compile()
    )
    return app.invoke({"log": []})


@on_both
def test_wrapped_functions_keep_what_they_ask_for(lib: Api) -> object:
    def traced(node):
        @functools.wraps(node)
        def wrapper(*args, **kwargs):
            return node(*args, **kwargs)

        return wrapper

    @traced
    def node(state: Log, config):
        return {"log": [config["configurable"]["who"]]}

    graph = lib.StateGraph(Log)
    graph.add_node(node)
    graph.add_edge(lib.START, "node")
    return graph.compile().invoke({"log": []}, {"configurable": {"who": "ada"}})


@on_both
def test_thread_ids_of_any_kind(lib: Api) -> object:
    graph = lib.StateGraph(Log)
    graph.add_node(named)
    graph.add_edge(lib.START, "named")
    app = graph.compile(checkpointer=lib.InMemorySaver())
    seen = []
    for name in (1, uuid.UUID(int=5), "ключ", ""):
        config = {"configurable": {"thread_id": name}}
        app.invoke({"log": []}, config)
        seen.append(app.get_state(config).values)
    return seen


@on_both
def test_limits_are_checked(lib: Api) -> object:
    graph = lib.StateGraph(Log)
    graph.add_node(named)
    graph.add_edge(lib.START, "named")
    app = graph.compile()
    seen = []
    for limit in (0, -1):
        try:
            seen.append(app.invoke({"log": []}, {"recursion_limit": limit}))
        except ValueError:
            seen.append("error")
    return seen


@on_both
def test_missing_and_empty_input_is_an_error(lib: Api) -> object:
    graph = lib.StateGraph(Log)
    graph.add_node(named)
    graph.add_edge(lib.START, "named")
    app = graph.compile(checkpointer=lib.InMemorySaver())
    seen = []
    for given in (None,):
        try:
            seen.append(app.invoke(given, thread()))
        except lib.EmptyInputError:
            seen.append("empty")
    return seen


@on_both
def test_nodes_without_updates_pass_the_state_on(lib: Api) -> object:
    graph = lib.StateGraph(Log)
    graph.add_node("none", lambda state: None)
    graph.add_node("empty", lambda state: {})
    graph.add_node("end", named)
    graph.add_edge(lib.START, "none")
    graph.add_edge("none", "empty")
    graph.add_edge("empty", "end")
    app = graph.compile()
    return list(app.stream({"log": ["in"]})), list(
        app.stream({"log": ["in"]}, stream_mode="values")
    )


@on_both
def test_none_is_a_value(lib: Api) -> object:
    class State(TypedDict):
        a: str | None
        b: str | None

    seen = []

    def look(state: State):
        seen.append(dict(state))
        return {"a": None}

    graph = lib.StateGraph(State)
    graph.add_sequence([("x", look), ("y", look)])
    graph.add_edge(lib.START, "x")
    result = graph.compile(checkpointer=lib.InMemorySaver()).invoke(
        {"a": "1", "b": None}, thread()
    )
    return seen, result


@on_both
def test_a_custom_reducer_sees_the_first_write(lib: Api) -> object:
    calls = []

    def reducer(left, right):
        calls.append((left, right))
        return (left or []) + [right]

    class State(TypedDict):
        seen: Annotated[list, reducer]

    graph = lib.StateGraph(State)
    for name in "ab":
        graph.add_node(name, lambda state, name=name: {"seen": name})
        graph.add_edge(lib.START, name)
    return graph.compile().invoke({"seen": "in"}), calls


@on_both
def test_a_send_may_carry_anything(lib: Api) -> object:
    def start(state: Log):
        return {}

    def work(item):
        return {"log": [f"{type(item).__name__} {item}"]}

    graph = lib.StateGraph(Log)
    graph.add_node(start)
    graph.add_node("work", work)
    graph.add_edge(lib.START, "start")
    items = (1, "text", None, ["list"], {"log": ["dict"]}, (1, 2))
    graph.add_conditional_edges(
        "start", lambda state: [lib.Send("work", item) for item in items], ["work"]
    )
    return graph.compile().invoke({"log": []})


@on_both
def test_branches_from_start_and_several_from_one_node(lib: Api) -> object:
    graph = lib.StateGraph(Log)
    for name in "abcd":
        graph.add_node(name, lambda state, name=name: {"log": [name]})
    graph.add_conditional_edges(lib.START, lambda state: ["a", "b"])

    def first(state):
        return "c"

    def second(state):
        return "d"

    graph.add_conditional_edges("a", first)
    graph.add_conditional_edges("a", second)
    return in_steps(graph.compile().stream({"log": []}), 2, 2)


@on_both
def test_a_step_writes_before_its_branches_decide(lib: Api) -> object:
    class State(TypedDict):
        n: Annotated[int, operator.add]
        log: Annotated[list, operator.add]

    def route(state: State):
        return "big" if state["n"] > 1 else "small"

    graph = lib.StateGraph(State)
    graph.add_node("a", lambda state: {"n": 1})
    graph.add_node("b", lambda state: {"n": 1})
    for name in ("big", "small"):
        graph.add_node(name, lambda state, name=name: {"log": [(name, state["n"])]})
    for name in "ab":
        graph.add_edge(lib.START, name)
        graph.add_conditional_edges(name, route, ["big", "small"])
    return graph.compile().invoke({"n": 0, "log": []})


@on_both
def test_interrupts_carry_anything(lib: Api) -> object:
    questions = ({"a": [1, 2]}, ["list"], ("tuple",), None, 0, "")
    seen = []
    for question in questions:
        graph = lib.StateGraph(Log)
        graph.add_node("ask", lambda state, q=question: {"log": [lib.interrupt(q)]})
        graph.add_edge(lib.START, "ask")
        app = graph.compile(checkpointer=lib.InMemorySaver())
        paused = app.invoke({"log": []}, thread())
        asked = [one.value for one in paused["__interrupt__"]]
        seen.append((asked, app.invoke(lib.Command(resume=question or 1), thread())))
    return seen


@on_both
def test_a_raw_list_is_a_state(lib: Api) -> object:
    graph = lib.StateGraph(Annotated[list, operator.add])
    graph.add_node("a", lambda state: ["a", len(state)])
    graph.add_node("b", lambda state: ["b", len(state)])
    graph.add_edge(lib.START, "a")
    graph.add_edge("a", "b")
    app = graph.compile(checkpointer=lib.InMemorySaver())
    return (
        app.invoke(["in"], thread()),
        list(app.stream(["in"], thread("2"))),
        app.get_state(thread()).values,
    )


@on_both
def test_schemas_are_described_as_json(lib: Api) -> object:
    class In(TypedDict):
        a: int

    class Out(TypedDict):
        b: str

    class State(In, Out):
        pass

    graph = lib.StateGraph(State, input_schema=In, output_schema=Out)
    graph.add_node("x", lambda state: {"b": str(state["a"])})
    graph.add_edge(lib.START, "x")
    app = graph.compile(name="named")
    return (
        sorted(app.get_input_jsonschema()["properties"]),
        sorted(app.get_output_jsonschema()["properties"]),
        app.get_name(),
    )


@on_both
def test_nodes_see_the_keys_in_the_order_of_declaration(lib: Api) -> object:
    class State(TypedDict):
        text: str
        log: Annotated[list, operator.add]
        late: int

    seen = []

    def look(state):
        seen.append(list(state))
        return {"late": 1}

    builder = lib.StateGraph(State)
    builder.add_node("one", look)
    builder.add_node("two", look)
    builder.add_edge(lib.START, "one")
    builder.add_edge("one", "two")
    graph = builder.compile(checkpointer=lib.InMemorySaver())
    final = graph.invoke({"log": [1], "text": "x"}, thread())
    return [seen, list(final), list(graph.get_state(thread()).values)]


VARIABLE = contextvars.ContextVar("variable", default="nothing")


def sets(name, seen, result, *, is_async):
    """A function that says what it finds in the variable, and sets it."""

    def function(state):
        seen.append((name, VARIABLE.get()))
        VARIABLE.set(name)
        return result

    async def coroutine(state):
        await asyncio.sleep(0)
        return function(state)

    return coroutine if is_async else function


@on_both
async def test_contextvars_of_a_node_end_with_it(lib: Api) -> object:
    """Its branches do not see them, nor those of each other."""
    told = []
    for colours in itertools.product((False, True), repeat=3):
        seen: list = []
        first, second, beside = colours
        graph = lib.StateGraph(Log)
        graph.add_node("a", sets("a", seen, {"log": ["a"]}, is_async=first))
        graph.add_edge(lib.START, "a")
        if beside:
            graph.add_node("beside", lambda state: None)
            graph.add_edge(lib.START, "beside")
        for name in ("one", "two"):
            path = sets(name, seen, ["b"], is_async=second)
            path.__name__ = name
            graph.add_conditional_edges("a", path, ["b"])
        graph.add_node("b", sets("b", seen, None, is_async=first))
        app = graph.compile()
        VARIABLE.set("caller")
        await app.ainvoke({"log": []})
        if not (first or second):
            app.invoke({"log": []})
        told.append((seen, VARIABLE.get()))
    return told
