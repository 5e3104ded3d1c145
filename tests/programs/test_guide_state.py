"""How-tos of state: schemas, reducers, channels, history, forks, deltas."""

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Optional

from pydantic import BaseModel, Field
from typing_extensions import NotRequired, Required, TypedDict

from towpath.testing.api import Api

from .both import on_both, on_drop_in, thread
from .guides import Log, chained, says, tried


def history(app, config=None):
    return [
        (s.values, s.next, s.metadata, [(t.name, t.result) for t in s.tasks])
        for s in app.get_state_history(config or thread())
    ]


@on_both
def test_reducers_of_every_kind(lib: Api) -> object:
    def keep_longest(left: str, right: str) -> str:
        return max(left or "", right or "", key=len)

    class Totals(TypedDict, total=False):
        number: Annotated[int, operator.add]
        text: Annotated[str, operator.add]
        items: Annotated[set, operator.or_]
        table: Annotated[dict, operator.or_]
        longest: Annotated[str, keep_longest]
        biggest: Annotated[int, lambda a, b: max(a, b)]
        pair: Annotated[tuple, operator.add]
        last: str

    def one(state):
        return {
            "number": 1,
            "text": "a",
            "items": {1},
            "table": {"a": 1},
            "longest": "abc",
            "biggest": 3,
            "pair": (1,),
            "last": "one",
        }

    def two(state):
        return {
            "number": 2,
            "text": "b",
            "items": {2},
            "table": {"b": 2},
            "longest": "ab",
            "biggest": 2,
            "pair": (2,),
            "last": "two",
        }

    app = chained(lib, Totals, ("one", one), ("two", two))
    return [list(app.stream({}, stream_mode="values")), app.invoke({"number": 10})]


@on_both
def test_required_and_optional_keys(lib: Api) -> object:
    class State(TypedDict, total=False):
        a: Required[int]
        b: NotRequired[str]
        c: Optional[list]
        d: Annotated[NotRequired[list], operator.add]

    def node(state):
        return {"b": repr(sorted(state)), "d": ["x"]}

    app = chained(lib, State, ("node", node))
    return [
        app.invoke({"a": 1}),
        app.invoke({"a": 1, "d": ["y"], "c": None}),
        app.get_input_jsonschema(),
        app.get_output_jsonschema(),
    ]


@on_both
def test_a_dataclass_state_with_reducers(lib: Api) -> object:
    @dataclass
    class State:
        name: str
        log: Annotated[list, operator.add] = field(default_factory=list)
        count: int = 0

    def node(state: State):
        return {"log": [f"{state.name} {state.count}"], "count": state.count + 1}

    def whole(state: State):
        return State(name=state.name.upper(), log=["whole"], count=state.count + 1)

    app = chained(lib, State, ("node", node), ("whole", whole))
    return [
        app.invoke({"name": "x"}),
        app.invoke(State(name="y", log=["in"])),
        list(app.stream({"name": "z"}, stream_mode="updates")),
    ]


@on_drop_in
def test_a_pydantic_state_with_nested_models(lib: Api) -> object:
    class Address(BaseModel):
        city: str
        zip: int = 0

    class State(BaseModel):
        name: str
        address: Address
        tags: list[str] = Field(default_factory=list)

    def node(state: State):
        return {"tags": [*state.tags, state.address.city], "name": state.name + "!"}

    app = chained(lib, State, ("node", node), checkpointer=lib.InMemorySaver())
    found = app.invoke({"name": "n", "address": {"city": "c", "zip": "3"}}, thread())
    state = app.get_state(thread()).values
    bad = tried(lambda: app.invoke({"name": "n", "address": {}}, thread("2")))
    return (
        found["name"],
        found["tags"],
        type(found["address"]).__name__,
        sorted(state),
        type(bad).__name__,
    )


@on_both
def test_private_state_between_nodes(lib: Api) -> object:
    class Overall(TypedDict):
        a: str

    class Private(TypedDict):
        secret: str

    def one(state: Overall) -> Private:
        return {"secret": f"s of {state['a']}"}

    def two(state: Private) -> Overall:
        return {"a": state["secret"] + repr(sorted(state))}

    def three(state: Overall) -> Overall:
        return {"a": state["a"] + repr(sorted(state))}

    graph = lib.StateGraph(Overall)
    graph.add_sequence([one, two, three])
    graph.add_edge(lib.START, "one")
    app = graph.compile(checkpointer=lib.InMemorySaver())
    seen = [app.invoke({"a": "x"}, thread()), history(app)]
    seen.append(
        list(
            app.stream(
                {"a": "y"}, stream_mode=["values", "updates"], config=thread("2")
            )
        )
    )
    return seen


@on_both
def test_raw_channels_in_a_state(lib: Api) -> object:
    class State(TypedDict, total=False):
        topic: Annotated[Sequence[str], lib.Topic]
        once: Annotated[int, lib.EphemeralValue]
        any: Annotated[int, lib.AnyValue]
        hidden: Annotated[int, lib.UntrackedValue]

    def one(state):
        return {"topic": ["a", "b"], "once": 1, "any": 1, "hidden": 7}

    def two(state):
        return {"topic": "c", "any": state.get("once"), "once": 2}

    def three(state):
        return {"any": state.get("hidden"), "once": len(state.get("topic") or [])}

    app = chained(
        lib,
        State,
        ("one", one),
        ("two", two),
        ("three", three),
        checkpointer=lib.InMemorySaver(),
    )
    modes = ["values", "updates"]
    seen = [list(app.stream({"any": 0}, thread(), stream_mode=modes))]
    return [*seen, history(app)]


@on_both
def test_overwriting_a_reducer(lib: Api) -> object:
    def clear(state):
        return {"log": lib.Overwrite(["clean"])}

    def clear_by_key(state):
        return {"log": {"__overwrite__": ["by key"]}}

    app = chained(
        lib,
        Log,
        says("a"),
        ("clear", clear),
        says("b"),
        ("key", clear_by_key),
        says("c"),
        checkpointer=lib.InMemorySaver(),
    )
    seen = [app.invoke({"log": ["in"]}, thread()), history(app)]
    app.update_state(thread(), {"log": lib.Overwrite(["outside"])})
    seen.append(app.get_state(thread()).values)
    seen.append(app.invoke({"log": lib.Overwrite(["input"])}, thread()))
    return seen


@on_both
def test_history_is_filtered_limited_and_paged(lib: Api) -> object:
    app = chained(lib, Log, *map(says, "abcde"), checkpointer=lib.InMemorySaver())
    app.invoke({"log": []}, thread())
    whole = list(app.get_state_history(thread()))

    def values(**options):
        return [s.values for s in app.get_state_history(thread(), **options)]

    return [
        values(limit=2),
        values(limit=0),
        values(filter={"source": "input"}),
        values(filter={"step": 2}),
        values(before=whole[2].config),
        values(before=whole[2].config, limit=1),
        values(filter={"source": "loop"}, limit=2),
        values(filter={"source": "nothing"}),
    ]


@on_both
def test_time_travel_through_a_branch(lib: Api) -> object:
    class State(TypedDict, total=False):
        topic: str
        joke: str

    app = chained(
        lib,
        State,
        ("topic_of", lambda s: {"topic": "socks"}),
        ("write", lambda s: {"joke": f"on {s['topic']}"}),
        checkpointer=lib.InMemorySaver(),
    )
    app.invoke({}, thread())
    states = list(app.get_state_history(thread()))
    before = states[1]
    config = app.update_state(before.config, values={"topic": "chickens"})
    seen = [before.next, app.invoke(None, config)]
    seen.append(app.get_state(config).values)
    return seen, history(app)


@on_both
def test_a_fork_from_the_first_input(lib: Api) -> object:
    app = chained(lib, Log, says("a"), says("b"), checkpointer=lib.InMemorySaver())
    app.invoke({"log": ["in"]}, thread())
    first = list(app.get_state_history(thread()))[-1]
    seen = [first.next, first.values, app.invoke(None, first.config)]
    again = app.update_state(first.config, {"log": ["other"]}, as_node=lib.START)
    seen += [app.get_state(again).next, app.get_state(again).values]
    seen.append(app.invoke(None, again))
    return seen, history(app)


@on_both
def test_several_updates_in_one_step(lib: Api) -> object:
    app = chained(
        lib, Log, says("a"), says("b"), says("c"), checkpointer=lib.InMemorySaver()
    )
    update = lib.StateUpdate
    app.bulk_update_state(
        thread(),
        [
            [update({"log": ["in"]}, lib.START)],
            [update({"log": ["x"]}, "a")],
            [update({"log": ["y"]}, "b")],
        ],
    )
    seen = [app.get_state(thread()).next, app.get_state(thread()).values]
    seen.append(app.invoke(None, thread()))
    return seen, history(app)


@on_both
def test_state_is_read_by_checkpoint_id(lib: Api) -> object:
    app = chained(lib, Log, *map(says, "ab"), checkpointer=lib.InMemorySaver())
    app.invoke({"log": []}, thread())
    app.invoke({"log": ["more"]}, thread())
    found = []
    for state in app.get_state_history(thread()):
        again = app.get_state(state.config)
        found.append(
            (
                again.values == state.values,
                again.next == state.next,
                again.parent_config == state.parent_config,
                again.metadata == state.metadata,
            )
        )
    return found


@on_both
def test_a_delta_channel_keeps_a_long_list(lib: Api) -> object:
    def add(left, writes):
        found = list(left or [])
        for write in writes:
            found.extend(write)
        return found

    class State(TypedDict):
        log: Annotated[list, lib.DeltaChannel(add)]

    app = tried(
        lambda: chained(lib, State, *map(says, "abc"), checkpointer=lib.InMemorySaver())
    )
    if isinstance(app, Exception):
        return app
    seen = [app.invoke({"log": ["in"]}, thread()), app.invoke({"log": ["2"]}, thread())]
    seen.append([s.values for s in app.get_state_history(thread())])
    old = list(app.get_state_history(thread()))[3]
    seen.append(app.invoke(None, old.config))
    return seen


@on_both
def test_keys_with_defaults_and_empty_input(lib: Api) -> object:
    class State(TypedDict, total=False):
        n: int
        log: Annotated[list, operator.add]

    app = chained(
        lib,
        State,
        ("node", lambda s: {"n": s.get("n", 0) + 1}),
        checkpointer=lib.InMemorySaver(),
    )
    seen = [tried(lambda: app.invoke({}, thread()))]
    seen.append(tried(lambda: app.invoke({"log": []}, thread())))
    return [*seen, app.get_state(thread()).values]


@on_both
def test_nodes_that_return_nothing_lists_and_tuples(lib: Api) -> object:
    class State(TypedDict, total=False):
        a: int
        log: Annotated[list, operator.add]

    def several(state):
        return [{"a": 1}, {"log": ["x"]}, {"log": ["y"]}]

    def pairs(state):
        return [("a", 2), ("log", ["z"])]

    def nothing(state):
        return None

    def commands(state):
        return [lib.Command(update={"log": ["c"]}), {"log": ["d"]}]

    seen = []
    for node in (several, pairs, nothing, commands):
        app = chained(lib, State, ("node", node))
        seen.append(tried(lambda app=app: app.invoke({"log": ["in"]})))
        seen.append(tried(lambda app=app: list(app.stream({"log": ["in"]}))))
    return seen


@on_both
def test_context_reaches_nodes_branches_and_children(lib: Api) -> object:
    @dataclass
    class Context:
        user: str
        depth: int = 0

    def node(state, runtime):
        return {"log": [f"{runtime.context.user} {runtime.context.depth}"]}

    node.__annotations__["runtime"] = lib.Runtime[Context]

    def route(state, runtime):
        return "b" if runtime.context.depth else lib.END

    route.__annotations__["runtime"] = lib.Runtime[Context]

    child = lib.StateGraph(Log, context_schema=Context)
    child.add_node("deep", node)
    child.add_edge(lib.START, "deep")
    graph = lib.StateGraph(Log, context_schema=Context)
    graph.add_node("a", node)
    graph.add_node("b", child.compile())
    graph.add_edge(lib.START, "a")
    graph.add_conditional_edges("a", route, ["b", lib.END])
    app = graph.compile()
    return [
        app.invoke({"log": []}, context=Context("ada", 1))["log"][-1],
        app.invoke({"log": []}, context={"user": "bob"}),
        tried(lambda: app.invoke({"log": []}, context={"nobody": 1})),
        app.get_context_jsonschema(),
    ]


@on_drop_in
def test_undeclared_keys_are_dropped(lib: Api) -> object:
    app = chained(
        lib,
        Log,
        ("node", lambda s: {"log": ["x"], "zz": 1}),
        checkpointer=lib.InMemorySaver(),
    )
    seen = [app.invoke({"log": [], "yy": 2}, thread())]
    seen.append(
        list(app.stream({"log": []}, thread("2"), stream_mode=["updates", "values"]))
    )
    return seen, history(app)


@on_both
def test_a_state_without_keys(lib: Api) -> object:
    seen = []
    for schema, given, node in (
        (int, 1, lambda n: n + 1),
        (Annotated[list, operator.add], [1], lambda xs: [len(xs)]),
        (str, "a", lambda s: s + "b"),
    ):
        graph = lib.StateGraph(schema)
        graph.add_node("node", node)
        graph.add_edge(lib.START, "node")
        app = graph.compile(checkpointer=lib.InMemorySaver())
        seen.append(
            [
                app.invoke(given, thread()),
                app.get_state(thread()).values,
                list(app.stream(given, thread(), stream_mode=["values", "updates"])),
            ]
        )
    return seen


@on_both
def test_metadata_and_tags_reach_checkpoints_and_tasks(lib: Api) -> object:
    graph = lib.StateGraph(Log)
    graph.add_node(
        "a",
        lambda s, config: {
            "log": [
                (
                    sorted(config.get("tags") or []),
                    config["metadata"].get("k"),
                    config["metadata"].get("own"),
                    config["metadata"]["langgraph_node"],
                    config["metadata"]["langgraph_step"],
                )
            ]
        },
        metadata={"own": 1},
    )
    graph.add_edge(lib.START, "a")
    app = graph.compile(checkpointer=lib.InMemorySaver())
    config = {**thread(), "metadata": {"k": "v"}, "tags": ["t"], "run_name": "r"}
    seen = [str(app.invoke({"log": []}, config)["log"])]
    return [*seen, len(list(app.get_state_history(thread())))]


@on_both
def test_a_config_is_bound_and_merged(lib: Api) -> object:
    app = chained(
        lib,
        Log,
        (
            "node",
            lambda s, config: {
                "log": [
                    [config["configurable"].get("a"), config["configurable"].get("b")]
                ]
            },
        ),
        checkpointer=lib.InMemorySaver(),
    )
    bound = app.with_config({"configurable": {"a": 1, "thread_id": "1"}}, tags=["x"])
    return [
        bound.invoke({"log": []}),
        bound.invoke({"log": []}, {"configurable": {"b": 2}}),
        bound.invoke({"log": []}, {"configurable": {"a": 3, "thread_id": "2"}}),
        bound.get_state({"configurable": {"thread_id": "1"}}).values,
        bound.config["tags"],
    ]


@on_both
def test_threads_are_deleted_and_listed(lib: Api) -> object:
    saver = lib.InMemorySaver()
    app = chained(lib, Log, says("a"), checkpointer=saver)
    for name in ("1", "2"):
        app.invoke({"log": []}, thread(name))
    counted = [len(list(saver.list(thread(n)))) for n in ("1", "2")]
    saver.delete_thread("1")
    counted += [len(list(saver.list(thread(n)))) for n in ("1", "2")]
    counted.append(len(list(saver.list(None))))
    return counted, app.get_state(thread()).values, app.get_state(thread()).next


@on_both
def test_a_copied_thread_goes_its_own_way(lib: Api) -> object:
    app = chained(lib, Log, says("a"), says("b"), checkpointer=lib.InMemorySaver())
    app.invoke({"log": []}, thread())
    state = app.get_state(thread())
    app.update_state(thread("copy"), state.values)
    seen = [app.get_state(thread("copy")).next, app.get_state(thread("copy")).values]
    seen.append(tried(lambda: app.invoke(None, thread("copy"))))
    return seen
