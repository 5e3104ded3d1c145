"""Switching telemetry on and off, what it shows, and what it may not break."""

import asyncio
import gc
import logging
import operator
import pkgutil
import subprocess
import sys
import tomllib
import weakref
from pathlib import Path
from typing import Annotated, TypedDict

import pytest
from opentelemetry import context
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics
from opentelemetry.semconv.attributes import error_attributes

from towpath import START, Command, StateGraph, interrupt
from towpath.checkpoint.memory import InMemorySaver
from towpath.context import current
from towpath.integrations.otel import guard, names, uninstrument

from .conftest import Loop, Sync

ROOT = Path(__file__).resolve().parents[3]
THREAD = {"configurable": {"thread_id": "1"}}


class State(TypedDict, total=False):
    log: Annotated[list, operator.add]


def build(node, **options):
    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    return builder.compile(name="graph", **options)


def says(state):
    return {"log": ["an answer"]}


def test_a_run_tells_its_graph_and_its_thread(told, colour):
    graph = build(colour.node(says), checkpointer=InMemorySaver())
    colour.invoke(graph, {"log": []}, THREAD)
    assert {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "graph",
        "gen_ai.conversation.id": "1",
        "towpath.outcome": "done",
    } == dict(told.span("invoke_agent graph").attributes)


def test_instrumenting_twice_tells_once(told):
    told.instrument()
    build(says).invoke({"log": []})
    assert 1 == len(told.spans("invoke_agent"))


def test_nothing_is_told_once_it_is_switched_off(told):
    uninstrument()
    uninstrument()
    build(says).invoke({"log": []})
    assert [] == told.spans()


def test_the_command_of_opentelemetry_finds_what_switches_it_on(told):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    found = project["entry-points"]["opentelemetry_instrumentor"]["towpath"]
    instrumentor = pkgutil.resolve_name(found)()
    uninstrument()
    instrumentor.instrument(tracer_provider=told.tracers, skip_dep_check=True)
    build(says).invoke({"log": []})
    assert 1 == len(told.spans("invoke_agent"))
    instrumentor.uninstrument()
    build(says).invoke({"log": []})
    assert 1 == len(told.spans("invoke_agent"))


def test_nothing_is_told_where_instrumentation_is_suppressed(told):
    key = context._SUPPRESS_INSTRUMENTATION_KEY
    token = context.attach(context.set_value(key, True))
    build(says).invoke({"log": []})
    context.detach(token)
    assert [] == told.spans()


def test_payloads_are_not_shown_unless_asked_for(told, colour):
    def asks(state):
        return {"log": [interrupt("a question")]}

    def play(thread):
        graph = build(colour.node(asks), checkpointer=InMemorySaver())
        place = {"configurable": {"thread_id": thread}}
        colour.invoke(graph, {"log": ["an input"]}, place)
        colour.invoke(graph, Command(resume="an answer"), place)
        text = "".join(span.to_json() for span in told.spans())
        told.exporter.clear()
        return [
            word for word in ("a question", "an input", "an answer") if word in text
        ]

    assert [] == play("1")
    told.instrument(record_content=True)
    assert ["a question", "an input", "an answer"] == play("2")


def test_the_usual_variable_of_the_environment_asks_for_payloads(told, monkeypatch):
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    told.instrument()
    build(says).invoke({"log": []})
    span = told.span("attempt node")
    assert "{'log': ['an answer']}" == span.attributes["towpath.output"]


def test_long_payloads_are_cut(told):
    told.instrument(record_content=True)
    build(says).invoke({"log": ["x" * 100_000]})
    assert len(told.span("invoke_agent").attributes["towpath.input"]) < 8200


class Broken(SpanProcessor):
    def on_start(self, span, parent_context=None):
        raise RuntimeError("cannot begin")

    def on_end(self, span):
        raise RuntimeError("cannot end")


def test_telemetry_that_fails_breaks_no_run_and_is_logged_once(
    told, colour, caplog, monkeypatch
):
    monkeypatch.setattr(guard.Mishap, "logged", False)
    told.tracers.add_span_processor(Broken())
    graph = build(colour.node(says), checkpointer=InMemorySaver())
    with caplog.at_level(logging.WARNING):
        result = colour.invoke(graph, {"log": []}, THREAD)
    assert ["an answer"] == result["log"]
    (record,) = caplog.records
    assert "telemetry failed" in record.message


def test_the_run_that_stored_a_checkpoint_is_named_in_its_metadata(told):
    graph = build(says, checkpointer=InMemorySaver())
    graph.invoke({"log": []}, THREAD)
    run = told.span("invoke_agent").context
    (parent,) = {
        each.metadata["traceparent"] for each in graph.get_state_history(THREAD)
    }
    assert f"00-{run.trace_id:032x}-{run.span_id:016x}-" == parent[:-2]


@pytest.mark.parametrize("module", [gen_ai_attributes, error_attributes])
def test_names_are_those_of_the_conventions(module):
    theirs = {v for k, v in vars(module).items() if k.isupper()}
    ours = {v for k, v in vars(names).items() if k.isupper()}
    prefix = "gen_ai." if module is gen_ai_attributes else "error."
    assert set() == {name for name in ours if name.startswith(prefix)} - theirs


def test_names_of_operations_and_metrics_are_those_of_the_conventions(told):
    known = {each.value for each in gen_ai_attributes.GenAiOperationNameValues}
    assert known >= {
        names.INVOKE_AGENT,
        names.CHAT,
        names.TEXT_COMPLETION,
        names.EXECUTE_TOOL,
    }
    assert {
        "gen_ai.client.operation.duration",
        "gen_ai.client.token.usage",
    } <= {v for k, v in vars(gen_ai_metrics).items() if k.isupper()}


OFF = """
import sys
from towpath import START, StateGraph
builder = StateGraph(dict)
builder.add_node("node", lambda state: {"x": 1})
builder.add_edge(START, "node")
builder.compile().invoke({"x": 0})
print([name for name in sys.modules if "opentelemetry" in name])
"""


def test_a_run_imports_nothing_of_it_when_it_is_off():
    done = subprocess.run([sys.executable, "-c", OFF], capture_output=True, text=True)
    assert "[]" == done.stdout.strip(), done.stderr


ABSENT = """
import sys
sys.modules["opentelemetry"] = None
import towpath.integrations.otel
"""


def test_who_has_not_installed_it_is_told_how():
    done = subprocess.run(
        [sys.executable, "-c", ABSENT], capture_output=True, text=True
    )
    assert "pip install 'towpath[otel]'" in done.stderr


@pytest.mark.parametrize("colour", [Sync(), Loop()], ids=lambda colour: colour.name)
def test_a_run_is_freed_when_it_is_over(told, colour):
    """By counting, as without telemetry: nothing of it waits for the collector.

    Without threads, which may hold a job for a moment longer.
    """
    scopes = []

    def node(state):
        scopes.append(weakref.ref(current.get().scope))

    graph = build(colour.node(node))
    gc.disable()
    try:
        colour.invoke(graph, {"log": []})
        assert [None] == [scope() for scope in scopes]
    finally:
        gc.enable()


def test_many_runs_at_once_keep_their_trees_apart(told):
    async def node(state):
        await asyncio.sleep(0)
        return {"log": [1]}

    async def play():
        graph = build(node)
        await asyncio.gather(*(graph.ainvoke({"log": []}) for _ in range(5)))

    asyncio.run(play())
    tree = told.tree()
    one = ["invoke_agent graph", "  superstep 1", "    task node", "      attempt node"]
    assert one * 5 == tree
