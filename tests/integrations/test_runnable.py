"""To langchain a compiled graph is a Runnable like any other."""

import operator
from typing import Annotated, Any

import pytest
from langchain_core.callbacks import CallbackManager
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import (
    Runnable,
    RunnableBranch,
    RunnableConfig,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
)
from langchain_core.tools import tool
from typing_extensions import TypedDict

from .watching import Watcher, model, on_both


class State(TypedDict):
    text: str
    log: Annotated[list, operator.add]


def shout(state):
    return {"text": state["text"] + "!", "log": ["shout"]}


def chat(state):
    said = model("good day").invoke(state["text"])
    return {"text": said.content, "log": ["chat"]}


async def achat(state):
    said = await model("good day").ainvoke(state["text"])
    return {"text": said.content, "log": ["chat"]}


def made(lib, *actions, name="Shouts", **options):
    """A graph of nodes in a row."""
    builder = lib.StateGraph(State)
    names = []
    for index, action in enumerate(actions or (shout,)):
        names.append(f"{getattr(action, '__name__', 'node')}{index}")
        builder.add_node(names[-1], action)
    for one, other in zip([lib.START, *names], names, strict=False):
        builder.add_edge(one, other)
    return builder.compile(name=name, **options)


def given(text="hi"):
    return {"text": text, "log": []}


@on_both
def test_a_graph_is_a_runnable(lib):
    graph = made(lib)
    return [isinstance(graph, Runnable), issubclass(type(graph), Runnable)]


@on_both
def test_chains_in_both_directions(lib):
    graph = made(lib)
    before, after = RunnableLambda(given), RunnableLambda(lambda out: out["text"])
    chains = [
        before | graph | after,
        given | graph | (lambda out: out["text"]),
        graph.pipe(after, name="piped"),
        RunnableLambda(given).pipe(graph),
        {"text": RunnablePassthrough(), "log": lambda _: []} | graph,
        graph | {"text": after, "log": lambda out: out["log"]},
        RunnableLambda(lambda _: graph),
        RunnableBranch((lambda state: not state, after), graph),
        RunnableParallel(one=graph, other=graph),
        RunnablePassthrough.assign(more=graph),
    ]
    takes_text = {0, 1, 3, 4}
    return [
        chain.invoke("hi" if index in takes_text else given())
        for index, chain in enumerate(chains)
    ]


@on_both
async def test_chains_stream(lib):
    graph = made(lib, shout, shout)
    chain = given | graph
    return [
        list(chain.stream("hi")),
        [chunk async for chunk in chain.astream("hi")],
        list(graph.transform(iter([given()]))),
        [chunk async for chunk in graph.atransform(given_later())],
        chain.batch(["a", "b"]),
        await chain.abatch(["a", "b"]),
    ]


async def given_later():
    yield given()


@on_both
def test_wrappers_of_a_graph(lib):
    fails = [ValueError("once")]

    def shaky(state):
        if fails:
            raise fails.pop()
        return {"text": "calm"}

    def broken(state):
        raise KeyError("broken")

    graph = made(lib, shaky)
    kept = graph.with_retry(stop_after_attempt=2, wait_exponential_jitter=False)
    seen = []
    heard = made(lib).with_listeners(
        on_start=lambda run: seen.append(run.name),
        on_end=lambda run: seen.append(run.outputs["text"]),
    )
    return [
        kept.invoke(given()),
        made(lib, broken).with_fallbacks([made(lib)]).invoke(given()),
        made(lib).bind(stream_mode="updates").invoke(given()),
        heard.invoke(given()),
        seen,
        made(lib).map().invoke([given("a"), given("b")]),
        made(lib).pick("text").invoke(given()),
        made(lib).assign(size=lambda out: len(out["text"])).invoke(given()),
        made(lib).with_types(output_type=dict).invoke(given()),
        made(lib).with_config(tags=["t"], run_name="n").invoke(given()),
    ]


@on_both
def test_names_and_schemas(lib):
    graph = made(lib)
    return [
        graph.get_name(),
        graph.get_name("Input"),
        graph.get_name(name="other"),
        graph.get_input_jsonschema(),
        graph.get_output_jsonschema(),
        graph.get_input_schema().model_json_schema(),
        graph.config_specs,
        (given | graph).get_graph().draw_mermaid(),
        (given | graph).get_input_jsonschema(),
        (RunnableLambda(given) | graph).get_output_jsonschema(),
    ]


@on_both
def test_a_graph_as_a_tool(lib):
    found = made(lib).as_tool(name="shout", description="Shouts.")
    return [found.name, found.description, found.args, found.invoke(given())]


def shown(event):
    """What of an event does not differ from run to run."""
    return (
        event["event"],
        event["name"],
        event["tags"],
        len(event.get("parent_ids", ())),
        {k: v for k, v in event["metadata"].items() if "checkpoint_ns" not in k},
        {
            key: getattr(value, "content", value)
            for key, value in event["data"].items()
            if key != "input" or not isinstance(value, dict) or "messages" not in value
        },
    )


@on_both
async def test_events_of_version_2(lib):
    graph = made(lib, shout, achat, RunnableLambda(shout))
    seen = [shown(e) async for e in graph.astream_events(given(), version="v2")]
    only = {"include_types": ["chat_model"]}
    some = graph.astream_events(given(), version="v2", **only)
    return [seen, [shown(event) async for event in some]]


@on_both
async def test_events_of_a_chain_and_of_subgraphs(lib):
    inner = made(lib, achat, name="inner")
    graph = given | made(lib, inner, shout) | RunnableLambda(sorted)
    return [shown(e) async for e in graph.astream_events("hi", version="v2")]


@on_both
async def test_events_of_version_1(lib):
    graph = made(lib, shout, achat)
    return [shown(event) async for event in graph.astream_events(given(), version="v1")]


@on_both
async def test_the_log_of_a_run(lib):
    graph = made(lib, shout, achat)
    final = None
    paths = []
    async for patch in graph.astream_log(given()):
        final = patch if final is None else final + patch
        paths.extend((op["op"], op["path"]) for op in patch.ops)
    return [paths, final.state["final_output"], sorted(final.state["logs"])]


@on_both
def test_what_a_chain_says_reaches_the_nodes(lib):
    seen = []

    def look(state, config: RunnableConfig):
        keys = {k: config["metadata"].get(k) for k in ("m", "of", "langgraph_node")}
        seen.append((config["tags"], keys, config["configurable"]["mine"]))
        return {}

    watcher = Watcher()
    chain = given | made(lib, look, shout).with_config(metadata={"of": "graph"})
    chain.invoke(
        "hi",
        {
            "callbacks": CallbackManager([watcher]),
            "tags": ["t"],
            "metadata": {"m": 1},
            "configurable": {"mine": 2},
        },
    )
    return [seen, watcher.tree()]


@on_both
def test_chains_and_graphs_as_nodes(lib):
    prompt = ChatPromptTemplate.from_template("say {text}")
    chain = prompt | model("good day") | (lambda said: {"text": said.content})
    watcher = Watcher()
    graph = made(lib, chain, made(lib), RunnableLambda(shout).with_config(tags=["t"]))
    return [graph.invoke(given(), {"callbacks": [watcher]}), watcher.tree()]


@on_both
def test_a_graph_called_by_a_tool_hangs_below_it(lib):
    graph = made(lib)

    @tool
    def shouts(text: str) -> str:
        """Shout."""
        return graph.invoke(given(text))["text"]

    watcher = Watcher()

    def call(state: State) -> Any:
        return {"text": shouts.invoke({"text": state["text"]})}

    final = made(lib, call, name="Outer").invoke(given(), {"callbacks": [watcher]})
    return [final, watcher.tree()]


def test_a_graph_made_before_langchain_came_is_a_runnable_when_it_does(printed_apart):
    program = """
import sys
from typing import TypedDict
from towpath import START, StateGraph

class State(TypedDict):
    text: str

builder = StateGraph(State)
builder.add_node("shout", lambda state: {"text": state["text"] + "!"})
builder.add_edge(START, "shout")
graph = builder.compile()
graph.invoke({"text": "hi"})
assert "langchain_core" not in sys.modules
watching = len(sys.meta_path)
import langchain_core.runnables.base as base
assert isinstance(graph, base.Runnable)
assert len(sys.meta_path) == watching - 1
assert base.__spec__.loader is base.__loader__
assert base.__loader__.__class__.__module__ != "towpath.pregel.arrival"
chain = (lambda text: {"text": text}) | graph
print(chain.invoke("ho")["text"])
"""
    assert "ho!" == printed_apart(program).strip()


def test_a_graph_is_a_runnable_whoever_imports_langchain_first(printed_apart):
    program = """
import sys
from towpath.pregel import Pregel
assert "langchain_core" not in sys.modules
from towpath.integrations.runnable import RunnableCallable
from langchain_core.runnables import Runnable
print(issubclass(Pregel, Runnable), issubclass(RunnableCallable, Runnable))
"""
    assert "True True" == printed_apart(program).strip()


def test_without_langchain_the_verbs_say_what_is_missing(printed_apart):
    program = """
import sys
from typing import TypedDict

class Absent:
    def find_spec(self, name, path, target=None):
        if name.startswith("langchain_core"):
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, Absent())
from towpath import START, StateGraph

class State(TypedDict):
    text: str

builder = StateGraph(State)
builder.add_node("shout", lambda state: {"text": state["text"] + "!"})
builder.add_edge(START, "shout")
graph = builder.compile()
print(graph.invoke({"text": "hi"})["text"])
try:
    graph.with_retry()
except ImportError as error:
    print(error)
assert not hasattr(graph, "with_wings") and not hasattr(graph, "_private")
"""
    first, *rest = printed_apart(program).splitlines()
    assert "hi!" == first
    assert rest[0].endswith("pip install 'towpath[langchain]'")


@pytest.mark.parametrize("name", ["_call_with_config", "_transform_stream_with_config"])
def test_private_methods_that_langchain_s_call_are_there(name):
    import towpath.testing.api as api

    graph = made(api.load("towpath"))
    assert callable(getattr(graph, name))
    with pytest.raises(AttributeError):
        graph._nothing_of_the_kind  # noqa: B018
