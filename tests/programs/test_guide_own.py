"""Guides of what users bring: savers, stores, caches, codecs, channels of their own."""

import asyncio
import operator
from collections import defaultdict
from dataclasses import dataclass
from typing import Annotated, Any

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from pydantic import BaseModel
from typing_extensions import TypedDict

from towpath.testing.api import Api

from .both import on_both, on_drop_in, thread
from .guides import Log, chained, part, says, tried


def history(app):
    return [(s.values, s.next, s.metadata) for s in app.get_state_history(thread())]


def own_saver(lib: Api):
    """A saver as the guide writes one: dicts, and the async twins by hand."""
    base = part(lib, "checkpoint.base")

    class Saver(base.BaseCheckpointSaver):
        def __init__(self):
            super().__init__()
            self.kept = defaultdict(dict)
            self.writes = defaultdict(dict)

        def place(self, config):
            conf = config["configurable"]
            return conf["thread_id"], conf.get("checkpoint_ns", "")

        def made(self, place, id_):
            found = self.kept[place][id_]
            config = {
                "configurable": {
                    "thread_id": place[0],
                    "checkpoint_ns": place[1],
                    "checkpoint_id": id_,
                }
            }
            parent = found[2] and {
                "configurable": {
                    "thread_id": place[0],
                    "checkpoint_ns": place[1],
                    "checkpoint_id": found[2],
                }
            }
            writes = [
                (t, c, self.serde.loads_typed(v))
                for (t, _), (c, v) in self.writes[(*place, id_)].items()
            ]
            return base.CheckpointTuple(
                config,
                self.serde.loads_typed(found[0]),
                found[1],
                parent or None,
                writes,
            )

        def get_tuple(self, config):
            place = self.place(config)
            id_ = base.get_checkpoint_id(config)
            if id_ is None:
                id_ = max(self.kept[place], default=None)
            return self.made(place, id_) if id_ in self.kept[place] else None

        def list(self, config, *, filter=None, before=None, limit=None):
            place = self.place(config)
            found = sorted(self.kept[place], reverse=True)
            if before:
                found = [i for i in found if i < base.get_checkpoint_id(before)]
            for id_ in found[:limit]:
                yield self.made(place, id_)

        def put(self, config, checkpoint, metadata, new_versions):
            place = self.place(config)
            self.kept[place][checkpoint["id"]] = (
                self.serde.dumps_typed(checkpoint),
                metadata,
                base.get_checkpoint_id(config),
            )
            return {
                "configurable": {
                    "thread_id": place[0],
                    "checkpoint_ns": place[1],
                    "checkpoint_id": checkpoint["id"],
                }
            }

        def put_writes(self, config, writes, task_id, task_path=""):
            place = (*self.place(config), config["configurable"]["checkpoint_id"])
            for n, (channel, value) in enumerate(writes):
                index = base.WRITES_IDX_MAP.get(channel, n)
                self.writes[place][task_id, index] = (
                    channel,
                    self.serde.dumps_typed(value),
                )

        async def aget_tuple(self, config):
            return self.get_tuple(config)

        async def alist(self, config, **options):
            for each in self.list(config, **options):
                yield each

        async def aput(self, *args):
            return self.put(*args)

        async def aput_writes(self, *args, **kwargs):
            return self.put_writes(*args, **kwargs)

    return Saver()


@on_drop_in
def test_a_saver_of_ones_own(lib: Api) -> object:
    def ask(state):
        return {"log": [lib.interrupt("q?")]}

    low = chained(lib, Log, says("x"))
    app = chained(
        lib, Log, says("a"), ("ask", ask), ("low", low), checkpointer=own_saver(lib)
    )
    seen = [app.invoke({"log": []}, thread())["log"]]
    seen.append(app.get_state(thread()).next)
    seen.append(app.invoke(lib.Command(resume="yes"), thread())["log"][:3])
    old = list(app.get_state_history(thread()))[-2]
    seen.append(app.invoke(None, old.config).get("log"))
    app.update_state(thread(), {"log": ["edit"]}, as_node="low")
    return seen, app.get_state(thread()).values["log"][-1], len(history(app))


@on_both
async def test_a_saver_of_ones_own_is_awaited(lib: Api) -> object:
    async def node(state):
        await asyncio.sleep(0)
        return {"log": ["x"]}

    app = chained(lib, Log, ("node", node), says("b"), checkpointer=own_saver(lib))
    await app.ainvoke({"log": []}, thread())
    await app.ainvoke({"log": ["2"]}, thread(), interrupt_before=["b"])
    state = await app.aget_state(thread())
    return (
        state.values,
        state.next,
        [(s.values, s.next) async for s in app.aget_state_history(thread())],
    )


@on_both
def test_a_store_of_ones_own(lib: Api) -> object:
    base = part(lib, "store.base")
    asked = []

    class Store(base.BaseStore):
        def __init__(self):
            self.items = {}

        def batch(self, ops):
            found = []
            for op in ops:
                asked.append(type(op).__name__)
                if isinstance(op, base.GetOp):
                    found.append(self.items.get((op.namespace, op.key)))
                elif isinstance(op, base.PutOp):
                    self.items[op.namespace, op.key] = op.value and base.Item(
                        value=op.value,
                        key=op.key,
                        namespace=op.namespace,
                        created_at="2020-01-01T00:00:00",
                        updated_at="2020-01-01T00:00:00",
                    )
                    found.append(None)
                else:
                    found.append([])
            return found

        async def abatch(self, ops):
            return self.batch(ops)

    def node(state, store):
        store.put(("a",), "k", {"v": 1})
        return {"log": [store.get(("a",), "k").value, store.search(("a",))]}

    node.__annotations__["store"] = base.BaseStore
    return chained(lib, Log, ("node", node), store=Store()).invoke({"log": []}), asked


@on_both
def test_a_cache_of_ones_own(lib: Api) -> object:
    base = part(lib, "cache.base")
    asked = []

    class Cache(base.BaseCache):
        def __init__(self):
            super().__init__()
            self.kept = {}

        def get(self, keys):
            asked.append(("get", len(keys)))
            return {key: self.kept[key] for key in keys if key in self.kept}

        def set(self, pairs):
            asked.append(("set", [ttl for _, ttl in pairs.values()]))
            self.kept.update({key: value for key, (value, _) in pairs.items()})

        def clear(self, namespaces=None):
            self.kept.clear()

        async def aget(self, keys):
            return self.get(keys)

        async def aset(self, pairs):
            self.set(pairs)

        async def aclear(self, namespaces=None):
            self.clear(namespaces)

    ran = []

    def node(state):
        ran.append(1)
        return {"log": ["x"]}

    graph = lib.StateGraph(Log)
    graph.add_node("node", node, cache_policy=lib.CachePolicy(ttl=7))
    graph.add_edge(lib.START, "node")
    app = graph.compile(cache=Cache())
    seen = [app.invoke({"log": []}) for _ in range(2)]
    app.clear_cache()
    seen.append(app.invoke({"log": []}))
    return seen, len(ran), asked


@on_both
def test_a_codec_of_ones_own(lib: Api) -> object:
    calls = defaultdict(int)
    inner = part(lib, "checkpoint.serde.jsonplus", "JsonPlusSerializer")()

    class Codec:
        def dumps_typed(self, obj):
            calls["dumps"] += 1
            return inner.dumps_typed(obj)

        def loads_typed(self, data):
            calls["loads"] += 1
            return inner.loads_typed(data)

    saver = lib.InMemorySaver(serde=Codec())
    app = chained(lib, Log, says("a"), checkpointer=saver)
    app.invoke({"log": []}, thread())
    return app.get_state(thread()).values, calls["dumps"] > 0, calls["loads"] > 0


@on_drop_in
def test_values_of_classes_of_ones_own(lib: Api) -> object:
    class State(TypedDict):
        log: Annotated[list, operator.add]
        point: Any

    app = chained(
        lib,
        State,
        ("a", lambda s: {"point": Point(1, 2), "log": [Card(n=3)]}),
        checkpointer=lib.InMemorySaver(),
    )
    found = app.invoke({"log": []}, thread())
    kept = app.get_state(thread()).values
    return found["point"], found["log"], type(kept["point"]).__name__, len(kept["log"])


@dataclass
class Point:
    x: int
    y: int


class Card(BaseModel):
    n: int


@on_both
def test_parts_of_a_screen_are_pushed(lib: Api) -> object:
    screen = part(lib, "graph.ui")

    class State(TypedDict):
        ui: Annotated[list, screen.ui_message_reducer]

    def node(state):
        screen.push_ui_message("chart", {"a": 1}, id="u1")
        screen.push_ui_message("chart", {"b": 2}, id="u1", merge=True)
        screen.push_ui_message("table", {"c": 3}, id="u2")
        screen.delete_ui_message("u2")
        return {}

    app = chained(lib, State, ("node", node))
    chunks = list(app.stream({"ui": []}, stream_mode="custom"))
    return app.invoke({"ui": []}), len(chunks)


@on_both
def test_messages_are_removed_and_trimmed(lib: Api) -> object:
    from langchain_core.messages import RemoveMessage, trim_messages

    def trim(state):
        kept = trim_messages(
            state["messages"], max_tokens=2, token_counter=len, strategy="last"
        )
        gone = [m for m in state["messages"] if m not in kept]
        return {"messages": [RemoveMessage(id=m.id) for m in gone]}

    app = chained(
        lib, lib.MessagesState, ("trim", trim), checkpointer=lib.InMemorySaver()
    )
    given = [HumanMessage(str(n), id=str(n)) for n in range(5)]
    found = app.invoke({"messages": given}, thread())
    return [m.content for m in found["messages"]], [
        m.content for m in app.get_state(thread()).values["messages"]
    ]


@on_both
def test_the_context_is_a_model_or_a_dict(lib: Api) -> object:
    class AsModel(BaseModel):
        user: str
        n: int = 3

    class AsDict(TypedDict, total=False):
        user: str

    seen = []
    for schema, given in (
        (AsModel, {"user": "a"}),
        (AsModel, AsModel(user="b")),
        (AsDict, {"user": "c"}),
        (None, {"any": 1}),
    ):

        def node(state, runtime):
            return {"log": [repr(runtime.context)]}

        node.__annotations__["runtime"] = lib.Runtime
        graph = lib.StateGraph(Log, context_schema=schema)
        graph.add_node("node", node)
        graph.add_edge(lib.START, "node")
        seen.append(
            tried(lambda g=graph, c=given: g.compile().invoke({"log": []}, context=c))
        )
    return seen


@on_both
def test_a_saver_is_told_by_the_config(lib: Api) -> object:
    app = chained(lib, Log, says("a"))
    conf = {
        "configurable": {"thread_id": "1", "__pregel_checkpointer": lib.InMemorySaver()}
    }
    return app.invoke({"log": []}, conf), tried(lambda: app.get_state(conf).values)


@on_both
def test_writers_of_nested_threads(lib: Api) -> object:
    def node(state):
        writer = lib.get_stream_writer()
        for n in range(3):
            writer({"n": n})
        return {"log": ["x"]}

    low = chained(lib, Log, ("node", node))

    def call(state):
        return low.invoke(state)

    app = chained(lib, Log, ("call", call))
    return (
        list(app.stream({"log": []}, stream_mode="custom")),
        list(
            app.stream({"log": []}, stream_mode=["custom", "updates"], subgraphs=True)
        ),
    )


@on_both
def test_edges_from_lists_and_to_the_end(lib: Api) -> object:
    graph = lib.StateGraph(Log)
    for name in "abc":
        graph.add_node(*says(name))
    graph.add_edge(lib.START, "a")
    graph.add_edge(lib.START, "b")
    graph.add_edge(["a", "b"], "c")
    graph.add_edge("c", lib.END)
    app = graph.compile()
    return app.invoke({"log": []}), sorted(
        (e.source, e.target) for e in app.get_graph().edges
    )


@on_both
def test_a_tool_call_is_validated(lib: Api) -> object:
    class Choose(BaseModel):
        """Choose."""

        number: int

    node = lib.ValidationNode([Choose])
    graph = lib.StateGraph(lib.MessagesState)
    graph.add_node("check", node)
    graph.add_edge(lib.START, "check")
    calls = [
        {"name": "Choose", "args": {"number": n}, "id": str(i), "type": "tool_call"}
        for i, n in enumerate((1, "x"))
    ]
    found = graph.compile().invoke({"messages": [AIMessage("", tool_calls=calls)]})
    return [
        (m.content[:20], bool(m.additional_kwargs.get("is_error")))
        for m in found["messages"][1:]
    ]


@on_both
def test_tools_wrapped_by_a_function(lib: Api) -> object:
    @tool
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    seen = []

    def wrapped(request, handler):
        seen.append((request.tool_call["name"], request.tool_call["args"]))
        changed = {**request.tool_call, "args": {"a": 10, "b": 1}}
        return handler(request.override(tool_call=changed))

    graph = lib.StateGraph(lib.MessagesState)
    graph.add_node("tools", lib.ToolNode([add], wrap_tool_call=wrapped))
    graph.add_edge(lib.START, "tools")
    call = {"name": "add", "args": {"a": 1, "b": 2}, "id": "1", "type": "tool_call"}
    found = graph.compile().invoke({"messages": [AIMessage("", tool_calls=[call])]})
    return found["messages"][-1].content, seen


@on_both
def test_a_run_is_drained(lib: Api) -> object:
    control = lib.RunControl()

    def node(state):
        control.request_drain("deploy")
        return {"log": ["a"]}

    app = chained(lib, Log, ("a", node), says("b"), checkpointer=lib.InMemorySaver())
    error = tried(lambda: app.invoke({"log": []}, thread(), control=control))
    return (
        type(error).__name__,
        control.drain_reason,
        app.get_state(thread()).next,
        app.invoke(None, thread()),
    )


@on_both
def test_generics_of_graphs(lib: Api) -> object:
    graph = lib.StateGraph[Log, None, Log, Log](Log)
    graph.add_node(*says("a"))
    graph.add_edge(lib.START, "a")
    return graph.compile().invoke({"log": []})


@on_both
def test_encrypted_threads(lib: Api) -> object:
    kind = part(lib, "checkpoint.serde.encrypted", "EncryptedSerializer")
    made = tried(lambda: kind.from_pycryptodome_aes(key=b"0123456789abcdef"))
    if isinstance(made, ImportError):
        return "no cipher"
    saver = lib.InMemorySaver(serde=made)
    app = chained(lib, Log, says("a"), checkpointer=saver)
    app.invoke({"log": []}, thread())
    return app.get_state(thread()).values


@on_drop_in
def test_an_interrupt_without_a_checkpointer(lib: Api) -> object:
    def ask(state):
        return {"log": [lib.interrupt("q?")]}

    app = chained(lib, Log, ("ask", ask))
    return tried(lambda: app.invoke({"log": []})), tried(
        lambda: list(app.stream({"log": []}))
    )
