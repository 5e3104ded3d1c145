"""How-tos of the parts: stores, raw graphs, channels, drawings, savers, caches."""

import operator
import pickle
import warnings
from collections import deque
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Annotated
from uuid import UUID

from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable
from pydantic import BaseModel
from typing_extensions import TypedDict

from towpath.testing.api import Api

from .both import on_both, on_drop_in, thread
from .guides import Log, chained, part, says, tried


class Colour(Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    y: int = 0


class Model(BaseModel):
    name: str
    inner: list[int] = []


# -- stores ----------------------------------------------------------------------


def items(found):
    return [(i.namespace, i.key, i.value) for i in found]


@on_both
def test_a_store_is_searched_by_filter(lib: Api) -> object:
    store = lib.InMemoryStore()
    for n in range(6):
        store.put(
            ("a", str(n % 2)),
            f"k{n}",
            {"n": n, "kind": "even" if n % 2 == 0 else "odd", "deep": {"m": n}},
        )
    return [
        items(store.search(("a",), filter=flt, limit=20, offset=offset))
        for flt, offset in (
            (None, 0),
            (None, 3),
            ({"kind": "odd"}, 0),
            ({"n": {"$gt": 2}}, 0),
            ({"n": {"$gte": 2, "$lt": 5}}, 0),
            ({"n": {"$ne": 2}}, 0),
            ({"n": {"$eq": 2}}, 0),
            ({"kind": "odd", "n": 3}, 0),
            ({"deep": {"m": 1}}, 0),
            ({"nothing": 1}, 0),
        )
    ]


@on_both
def test_namespaces_are_listed(lib: Api) -> object:
    store = lib.InMemoryStore()
    for ns in (("a",), ("a", "b"), ("a", "b", "c"), ("x", "b"), ("x", "y", "c")):
        store.put(ns, "k", {})
    ask = store.list_namespaces
    return [
        sorted(ask()),
        sorted(ask(prefix=("a",))),
        sorted(ask(suffix=("c",))),
        sorted(ask(max_depth=2)),
        sorted(ask(prefix=("*", "b"))),
        sorted(ask(prefix=("a",), suffix=("b",))),
        len(ask(limit=2)),
        len(ask(offset=3)),
    ]


@on_both
def test_a_store_is_asked_in_a_batch(lib: Api) -> object:
    base = import_module(f"{lib.package}.store.base")
    store = lib.InMemoryStore()
    seen = store.batch(
        [
            base.PutOp(("a",), "1", {"v": 1}),
            base.PutOp(("a",), "2", {"v": 2}),
        ]
    )
    found = store.batch(
        [
            base.GetOp(("a",), "1"),
            base.GetOp(("a",), "no"),
            base.SearchOp(("a",), limit=5),
            base.ListNamespacesOp(),
            base.PutOp(("a",), "1", None),
        ]
    )
    return (
        seen,
        found[0].value,
        found[1],
        items(found[2]),
        found[3],
        found[4],
        store.get(("a",), "1"),
    )


class Letters(Embeddings):
    """Embeds a text by how often it has each letter."""

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        return [float(text.count(chr(97 + n))) for n in range(26)]


@on_both
def test_a_store_is_searched_by_meaning(lib: Api) -> object:
    store = lib.InMemoryStore(
        index={"dims": 26, "embed": Letters(), "fields": ["text"]}
    )
    for n, text in enumerate(("aaa", "aab", "bbb", "zzz")):
        store.put(("m",), str(n), {"text": text, "n": n})
    store.put(("m",), "none", {"other": 1})
    store.put(("m",), "off", {"text": "aaaa"}, index=False)
    store.put(("m",), "own", {"text": "zz", "alt": "aa"}, index=["alt"])
    seen = []
    for query, options in (("a", {}), ("b", {"limit": 2}), ("z", {"filter": {"n": 3}})):
        found = store.search(("m",), query=query, **options)
        seen.append([(i.key, i.score and round(i.score, 3)) for i in found])
    return seen


@on_both
async def test_a_store_is_awaited(lib: Api) -> object:
    store = lib.InMemoryStore()
    await store.aput(("a",), "k", {"v": 1})
    found = await store.aget(("a",), "k")
    listed = items(await store.asearch(("a",)))
    await store.adelete(("a",), "k")
    return (
        found.value,
        listed,
        await store.aget(("a",), "k"),
        sorted(await store.asearch(())),
    )


@on_both
def test_wrong_namespaces_are_refused(lib: Api) -> object:
    store = lib.InMemoryStore()
    seen = []
    for ns in (
        (),
        ("",),
        ("a.b",),
        ("langgraph",),
        ("langgraph", "x"),
        (1,),
        ("a", ""),
    ):
        found = tried(lambda ns=ns: store.put(ns, "k", {}))
        seen.append(found is None or type(found).__mro__[-3].__name__)
    return seen


@on_both
def test_memories_across_threads(lib: Api) -> object:
    def remember(state, config, store):
        user = config["configurable"]["user"]
        ns = (user, "memories")
        store.put(ns, str(len(store.search(ns))), {"said": state["log"][-1]})
        return {"log": [[i.value["said"] for i in store.search(ns)]]}

    remember.__annotations__["store"] = part(lib, "store.base", "BaseStore")
    app = chained(
        lib,
        Log,
        ("remember", remember),
        checkpointer=lib.InMemorySaver(),
        store=lib.InMemoryStore(),
    )
    return [
        app.invoke({"log": [text]}, thread(name, user=user))
        for name, user, text in (
            ("1", "a", "one"),
            ("2", "a", "two"),
            ("3", "b", "three"),
        )
    ]


# -- raw graphs ------------------------------------------------------------------


@on_both
def test_a_raw_graph_counts_up(lib: Api) -> object:
    build = part(lib, "pregel", "NodeBuilder")
    pregel = part(lib, "pregel", "Pregel")
    app = pregel(
        nodes={
            "one": build().subscribe_only("a").do(lambda x: x + "b").write_to("b"),
            "two": build()
            .subscribe_only("b")
            .do(lambda x: x + "c")
            .write_to("c", last=len),
        },
        channels={
            "a": lib.EphemeralValue(str),
            "b": lib.LastValue(str),
            "c": lib.Topic(str, accumulate=True),
            "last": lib.LastValue(int),
        },
        input_channels=["a"],
        output_channels=["b", "c", "last"],
        checkpointer=lib.InMemorySaver(),
    )
    seen = [app.invoke({"a": "x"}, thread()), app.invoke({"a": "y"}, thread())]
    seen.append(
        list(app.stream({"a": "z"}, thread(), stream_mode=["values", "updates"]))
    )
    return seen, app.get_state(thread()).values


@on_both
def test_a_raw_graph_loops_until_none(lib: Api) -> object:
    build = part(lib, "pregel", "NodeBuilder")
    pregel = part(lib, "pregel", "Pregel")
    entry = (
        part(lib, "pregel._write", "ChannelWriteEntry")
        if lib.package == "langgraph"
        else part(lib, "pregel.nodes", "ChannelWriteEntry")
    )
    app = pregel(
        nodes={
            "double": build()
            .subscribe_only("v")
            .do(lambda x: x * 2 if x < 50 else None)
            .write_to(entry("v", skip_none=True))
        },
        channels={"v": lib.EphemeralValue(int)},
        input_channels="v",
        output_channels="v",
    )
    return app.invoke(3), list(app.stream(3))


@on_both
def test_a_raw_graph_folds_and_reads(lib: Api) -> object:
    build = part(lib, "pregel", "NodeBuilder")
    pregel = part(lib, "pregel", "Pregel")
    app = pregel(
        nodes={
            "add": build()
            .subscribe_to("n")
            .read_from("total")
            .do(lambda d: d["n"] + len(d))
            .write_to("total"),
            "seen": build()
            .subscribe_to("total", read=False)
            .read_from("n")
            .do(lambda d: repr(sorted(d)))
            .write_to("said"),
        },
        channels={
            "n": lib.LastValue(int),
            "total": lib.BinaryOperatorAggregate(int, operator.add),
            "said": lib.LastValue(str),
        },
        input_channels=["n"],
        output_channels=["total", "said"],
        checkpointer=lib.InMemorySaver(),
    )
    return [app.invoke({"n": n}, thread()) for n in (1, 2)]


@on_both
def test_a_channel_of_ones_own(lib: Api) -> object:
    class Biggest(lib.BaseChannel):
        __slots__ = ("value",)

        def __init__(self, typ=int, key=""):
            super().__init__(typ, key)
            self.value = None

        @property
        def ValueType(self):
            return int

        @property
        def UpdateType(self):
            return int

        def checkpoint(self):
            return self.value

        def from_checkpoint(self, checkpoint):
            made = type(self)(self.typ, self.key)
            if isinstance(checkpoint, int):
                made.value = checkpoint
            return made

        def copy(self):
            return self.from_checkpoint(self.value)

        def update(self, values):
            if not values:
                return False
            self.value = max([*values, *([] if self.value is None else [self.value])])
            return True

        def get(self):
            if self.value is None:
                raise part(lib, "errors", "EmptyChannelError")
            return self.value

        def is_available(self):
            return self.value is not None

    class State(TypedDict):
        top: Annotated[int, Biggest]

    app = chained(
        lib,
        State,
        ("a", lambda s: {"top": 5}),
        ("b", lambda s: {"top": 3}),
        checkpointer=lib.InMemorySaver(),
    )
    return (
        app.invoke({"top": 1}, thread()),
        app.invoke({"top": 9}, thread()),
        [s.values for s in app.get_state_history(thread())],
    )


@on_both
async def test_a_node_is_called_alone(lib: Api) -> object:
    async def later(state):
        return {"log": ["later"]}

    def several(state):
        return lib.Command(update={"log": ["several"]}, goto="a")

    low = chained(lib, Log, says("x"))
    app = chained(
        lib,
        Log,
        says("a"),
        ("later", later),
        ("low", low),
        ("several", several),
        ("tools", lib.ToolNode([], name="tools")),
    )
    given = {"log": ["in"]}
    return [
        app.nodes["a"].invoke(given),
        await app.nodes["a"].ainvoke(given),
        await app.nodes["later"].ainvoke(given),
        app.nodes["low"].invoke(given),
        app.nodes["several"].invoke(given),
        list(app.nodes["a"].stream(given)),
        [part async for part in app.nodes["later"].astream(given)],
        type(app.nodes["tools"].bound).__name__,
        type(app.nodes["low"].bound).__name__,
        isinstance(app.nodes["tools"].bound, Runnable),
        [type(tried(lambda: app.nodes["later"].invoke(given))).__name__],
        tried(lambda: app.nodes["nothing"]).__class__.__name__,
    ]


@on_both
def test_nodes_tell_what_they_are(lib: Api) -> object:
    graph = lib.StateGraph(Log)
    graph.add_node(
        "a",
        says("a")[1],
        metadata={"x": 1},
        retry_policy=lib.RetryPolicy(max_attempts=2),
        cache_policy=lib.CachePolicy(ttl=1),
    )
    graph.add_node("low", chained(lib, Log, says("x")))
    graph.add_edge(lib.START, "a")
    graph.add_edge("a", "low")
    app = graph.compile()
    return sorted(app.nodes), [
        (
            node.triggers,
            node.channels,
            node.metadata,
            node.tags,
            node.retry_policy and node.retry_policy[0].max_attempts,
            node.cache_policy and node.cache_policy.ttl,
            node.timeout,
            node.is_error_handler,
            node.error_handler_node,
        )
        for node in (app.nodes["a"], app.nodes["low"])
    ]


# -- drawings and schemas --------------------------------------------------------


@on_both
def test_drawings(lib: Api) -> object:
    low = chained(lib, Log, says("x"), says("y"))
    graph = lib.StateGraph(Log)
    graph.add_node(*says("a"))
    graph.add_node("low", low)
    graph.add_node(*says("c"))
    graph.add_edge(lib.START, "a")
    graph.add_conditional_edges("a", lambda s: "low", {"left": "low", "right": "c"})
    graph.add_edge("low", lib.END)
    app = graph.compile()
    seen = []
    for xray in (False, True):
        drawn = app.get_graph(xray=xray)
        seen.append(
            (
                sorted(drawn.nodes),
                sorted(
                    (e.source, e.target, e.data, e.conditional) for e in drawn.edges
                ),
            )
        )
    return seen, app.get_graph().to_json()["edges"]


@on_both
def test_a_mermaid_drawing(lib: Api) -> object:
    app = chained(lib, Log, says("a"), says("b"))
    return app.get_graph().draw_mermaid(with_styles=False)


@on_both
def test_schemas_of_compiled_graphs(lib: Api) -> object:
    class Input(TypedDict):
        question: str

    class Output(TypedDict):
        answer: str

    class Whole(Input, Output):
        log: Annotated[list, operator.add]

    graph = lib.StateGraph(Whole, input_schema=Input, output_schema=Output)
    graph.add_node("a", lambda s: {"answer": s["question"] * 2, "log": ["x"]})
    graph.add_edge(lib.START, "a")
    app = graph.compile()
    return [
        app.get_input_jsonschema(),
        app.get_output_jsonschema(),
        app.invoke({"question": "q"}),
        list(app.stream({"question": "q"}, stream_mode="values")),
        sorted(app.channels),
        app.input_channels,
        sorted(app.output_channels),
        sorted(app.stream_channels_list),
    ]


# -- savers and values -----------------------------------------------------------


@on_both
def test_values_of_many_kinds_are_kept(lib: Api) -> object:
    class State(TypedDict):
        log: Annotated[list, operator.add]

    values = [
        1,
        2.5,
        "x",
        None,
        True,
        b"bytes",
        [1, [2]],
        {"a": {"b": 1}},
        {1, 2},
        frozenset({3}),
        date(2020, 1, 2),
        datetime(2020, 1, 2, 3, tzinfo=timezone.utc),
        timedelta(seconds=3),
        Decimal("1.5"),
        UUID(int=7),
        Path("/a/b"),
        deque([1, 2]),
        float("inf"),
    ]
    app = chained(
        lib, State, ("a", lambda s: {"log": values}), checkpointer=lib.InMemorySaver()
    )
    app.invoke({"log": []}, thread())
    kept = app.get_state(thread()).values["log"]
    return [(type(k).__name__, k == v) for k, v in zip(kept, values, strict=True)]


@on_both
def test_a_file_keeps_threads(lib: Api) -> object:
    import tempfile

    with (
        tempfile.TemporaryDirectory() as folder,
        lib.SqliteSaver.from_conn_string(f"{folder}/db.sqlite") as saver,
    ):
        app = chained(lib, Log, says("a"), says("b"), checkpointer=saver)
        app.invoke({"log": []}, thread())
        app.invoke({"log": ["2"]}, thread())
        seen = [s.values for s in app.get_state_history(thread())]
        seen.append(app.get_state(thread()).values)
        saver.delete_thread("1")
        seen.append(app.get_state(thread()).values)
        return seen


@on_both
async def test_a_file_is_awaited(lib: Api) -> object:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        async with lib.AsyncSqliteSaver.from_conn_string(
            f"{folder}/db.sqlite"
        ) as saver:
            app = chained(lib, Log, says("a"), says("b"), checkpointer=saver)
            await app.ainvoke({"log": []}, thread())
            seen = [s.values async for s in app.aget_state_history(thread())]
            config = await app.aupdate_state(thread(), {"log": ["edit"]})
            seen.append((await app.aget_state(config)).values)
            return seen


@on_both
def test_tuples_of_a_saver(lib: Api) -> object:
    saver = lib.InMemorySaver()
    app = chained(lib, Log, says("a"), checkpointer=saver)
    app.invoke({"log": []}, thread())
    found = saver.get_tuple(thread())
    listed = list(saver.list(thread(), limit=2))
    return (
        found.metadata,
        sorted(found.checkpoint),
        found.checkpoint["channel_values"]["log"],
        len(listed),
        listed[0].config == found.config,
        saver.get(thread())["id"] == found.checkpoint["id"],
        found.parent_config == listed[1].config,
    )


@on_both
def test_values_that_users_compare_and_copy(lib: Api) -> object:
    command = lib.Command(update={"a": 1}, goto="x", resume=2)
    send = lib.Send("n", {"a": 1})
    interrupt = lib.Interrupt("v", id="i")
    return [
        repr(command),
        repr(send),
        repr(interrupt),
        command == lib.Command(update={"a": 1}, goto="x", resume=2),
        send == lib.Send("n", {"a": 1}),
        send == lib.Send("n", {"a": 2}),
        pickle.loads(pickle.dumps(command)) == command,  # noqa: S301 - our own
        pickle.loads(pickle.dumps(send)) == send,  # noqa: S301 - our own
        lib.RetryPolicy()._asdict().keys(),
        lib.CachePolicy(ttl=3).ttl,
        repr(lib.Overwrite([1])),
        lib.Overwrite([1]) == lib.Overwrite([1]),
        command.PARENT,
        interrupt == lib.Interrupt("v", id="i"),
    ]


@on_both
def test_batches_with_configs(lib: Api) -> object:
    app = chained(
        lib, Log, ("a", lambda s, config: {"log": [config["configurable"]["n"]]})
    )
    return [
        app.batch(
            [{"log": []}, {"log": ["x"]}],
            [{"configurable": {"n": 1}}, {"configurable": {"n": 2}}],
        ),
        sorted(
            map(
                repr,
                app.batch_as_completed([{"log": []}] * 2, {"configurable": {"n": 1}}),
            )
        ),
    ]


def heard(call):
    """The kinds of warnings, and whether they are told at a line of this file."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        tried(call)
    return [(w.category.__name__, w.filename == __file__) for w in found]


@on_drop_in
def test_warnings_of_old_names(lib: Api) -> object:
    """The peer tells some of them at a line of its own."""
    app = chained(lib, Log, says("a"))
    policy = lib.RetryPolicy()
    seen = [
        heard(call)
        for call in (
            lambda: lib.StateGraph(Log, config_schema=dict),
            lambda: lib.StateGraph(Log, input=Log),
            lambda: lib.StateGraph(Log).add_node("a", len, retry=policy),
            lambda: lib.StateGraph(Log).add_node("a", len, input=Log),
            lambda: lib.task(retry=policy)(len),
            lambda: lib.entrypoint(config_schema=dict),
            lambda: app.invoke({"log": []}, checkpoint_during=False),
            lambda: list(app.stream({"log": []}, durability="exit")),
            lambda: app.config_schema(),
            lambda: app.get_config_jsonschema(),
            lambda: part(lib, "constants").Send,
            lambda: part(lib, "constants").Interrupt,
        )
    ]
    if lib.package == "towpath":
        assert all(here for found in seen for _, here in found)
    return [
        [kind.replace("TowpathWarning", "UserWarning") for kind, _ in found]
        for found in seen
    ]


def plainly(saver, config):
    """Whole checkpoints, with the versions of their channels as numbers."""

    def number(version):
        return version if isinstance(version, int) else int(version.split(".")[0])

    found = []
    for each in saver.list(config):
        whole = dict(each.checkpoint)
        seen = whole.pop("versions_seen")
        versions = whole.pop("channel_versions")
        found.append(
            (
                {k: v for k, v in whole.items() if k not in ("id", "ts")},
                {name: number(version) for name, version in versions.items()},
                {
                    node: {name: number(version) for name, version in of.items()}
                    for node, of in seen.items()
                },
                each.metadata,
                sorted(((w[1], w[2]) for w in each.pending_writes), key=repr),
            )
        )
    return found


@on_drop_in
def test_whole_checkpoints(lib: Api) -> object:
    saver = lib.InMemorySaver()
    app = chained(lib, Log, says("a"), says("b"), checkpointer=saver)
    app.invoke({"log": []}, thread())
    app.invoke({"log": ["again"]}, thread(), interrupt_before=["b"])
    app.invoke(None, thread())
    return plainly(saver, thread())


@on_drop_in
def test_whole_checkpoints_of_joins_and_branches(lib: Api) -> object:
    graph = lib.StateGraph(Log)
    for name in ("a", "b"):
        graph.add_node(*says(name))
        graph.add_edge(lib.START, name)
    graph.add_node(*says("join"))
    graph.add_node(*says("last"))
    graph.add_edge(["a", "b"], "join")
    graph.add_conditional_edges("join", lambda s: "last", ["last"])
    saver = lib.InMemorySaver()
    app = graph.compile(checkpointer=saver)
    app.invoke({"log": []}, thread())
    return plainly(saver, thread())


@on_drop_in
def test_a_checkpoint_that_is_put_by_hand(lib: Api) -> object:
    base = import_module(f"{lib.package}.checkpoint.base")
    seen = []
    for saver in (lib.InMemorySaver(), lib.SqliteSaver.from_conn_string(":memory:")):
        with saver as opened:
            config = {
                "configurable": {
                    "thread_id": "h",
                    "checkpoint_ns": "",
                    "user": "u",
                    "n": 1,
                    "__private": "p",
                    "table": {},
                },
                "metadata": {"run_id": "r", "user": "first", "writes": 1},
            }
            whole = base.empty_checkpoint()
            given = {"source": "input", "step": -1}
            at = opened.put(config, whole, given, {})
            opened.put_writes(at, [("a", 1), ("b", 2)], "t1")
            found = opened.get_tuple(at)
            seen.append((found.metadata, found.pending_writes, found.parent_config))
            seen.append(len(list(opened.list(None, filter={"run_id": "r"}))))
    return seen


@on_drop_in
def test_configs_that_savers_cannot_place(lib: Api) -> object:
    base = import_module(f"{lib.package}.checkpoint.base")
    saver = lib.InMemorySaver()
    nowhere = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}
    nul = saver.put(nowhere, base.empty_checkpoint(), {"key": "\0abc"}, {})
    calls = [
        lambda: saver.put_writes(nowhere, [("a", 1)], "t"),
        lambda: saver.put({"configurable": {}}, base.empty_checkpoint(), {}, {}),
    ]
    return [isinstance(tried(call), KeyError) for call in calls], [
        saver.get_tuple(nul).metadata,
        len(list(saver.list(None, filter={"key": "abc"}))),
    ]
