"""A tracer sees the tree of runs that it sees on the peer."""

import asyncio
import operator
from typing import Annotated

import langsmith
import pytest
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langchain_core.tracers.context import collect_runs
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
from typing_extensions import TypedDict

from .watching import model, on_both


class State(TypedDict):
    text: str
    log: Annotated[list, operator.add]


def shown(run):
    """A run and those below it, without what differs from time to time."""
    metadata = (run.extra or {}).get("metadata", {})
    return {
        "name": run.name,
        "type": run.run_type,
        "inputs": run.inputs if run.run_type == "chain" else None,
        "outputs": run.outputs if run.run_type == "chain" else None,
        "error": (run.error or "").split("(")[0],
        "tags": run.tags,
        "metadata": {k: v for k, v in metadata.items() if "checkpoint" not in k},
        "events": [event["name"] for event in run.events],
        "depth": run.dotted_order.count("."),
        "below": sorted(map(shown, run.child_runs), key=place),
    }


def place(run):
    """Where a run stands among its siblings; those of one step run at once."""
    return run["metadata"].get("langgraph_step", 0), run["name"], str(run["inputs"])


def chat(state):
    return {"text": model("good day").invoke(state["text"]).content}


@tool
def upper(text: str) -> str:
    """Shout."""
    return text.upper()


def use(state):
    return {"log": [upper.invoke(state["text"])]}


def made(lib, *nodes, **options):
    builder = lib.StateGraph(State)
    names = [lib.START, *(f"n{index}" for index in range(len(nodes)))]
    for name, node in zip(names[1:], nodes, strict=True):
        builder.add_node(name, node)
    for one, other in zip(names, names[1:], strict=False):
        builder.add_edge(one, other)
    return builder.compile(**options)


def plain(lib):
    return made(lib, chat, use)


def nested(lib):
    return made(lib, made(lib, chat, name="inner"), use)


def called(lib):
    inner = made(lib, chat, name="inner")
    return made(lib, lambda state: inner.invoke(state))


def chain(lib):
    prompt = ChatPromptTemplate.from_template("say {text}")
    last = RunnableLambda(lambda said: {"text": said.content})
    return made(lib, prompt | model("yes", "yes", "yes") | last, use)


def branched(lib):
    builder = lib.StateGraph(State)
    builder.add_node("chat", chat)
    builder.add_node("use", use)

    def first(state):
        return "chat"

    def spread(state):
        return [lib.Send("use", {"text": text}) for text in "ab"]

    builder.add_conditional_edges(lib.START, first, ["chat", "use"])
    builder.add_conditional_edges("chat", spread, ["use"])
    return builder.compile()


def commanded(lib):
    def go(state):
        return lib.Command(goto="use", update={"log": ["go"]})

    builder = lib.StateGraph(State)
    builder.add_node("go", go)
    builder.add_node("use", use)
    builder.add_edge(lib.START, "go")
    return builder.compile()


def failing(lib):
    def fail(state):
        raise ValueError("boom")

    return made(lib, fail)


def asking(lib):
    saver = lib.InMemorySaver()
    return made(lib, lambda state: lib.interrupt("why?"), checkpointer=saver)


KINDS = (plain, nested, called, chain, branched, commanded, failing, asking)


def traced(graph, how):
    """Run a graph and return what a tracer was told."""
    tracer = RunCollectorCallbackHandler()
    config = {
        "callbacks": [tracer],
        "tags": ["t"],
        "metadata": {"m": 1},
        "run_name": "mine",
        "configurable": {"thread_id": how, "other": 2},
    }
    given = {"text": "hi", "log": []}
    try:
        if how == "async":
            asyncio.run(graph.ainvoke(given, config))
        elif how == "stream":
            list(graph.stream(given, config))
        else:
            graph.invoke(given, config)
    except ValueError:
        pass
    return [shown(run) for run in tracer.traced_runs]


def told_of(kind):
    def program(lib):
        return [traced(kind(lib), how) for how in ("sync", "async", "stream")]

    program.__name__ = f"test_{kind.__name__}"
    program.__module__ = __name__
    return on_both(program)


test_plain, test_nested, test_called, test_chain = map(told_of, KINDS[:4])
test_branched, test_commanded, test_failing, test_asking = map(told_of, KINDS[4:])


@on_both
def test_runs_are_collected_in_a_with_block(lib):
    with collect_runs() as collected:
        plain(lib).invoke({"text": "hi", "log": []})
    plain(lib).invoke({"text": "hi", "log": []})
    return [shown(run) for run in collected.traced_runs]


@pytest.mark.parametrize("enabled", [True, False])
def test_tracing_is_asked_for_in_a_with_block(enabled):
    from towpath.integrations.langchain import traced_anyway

    with langsmith.tracing_context(enabled=enabled):
        assert enabled is traced_anyway()
    assert not traced_anyway()
