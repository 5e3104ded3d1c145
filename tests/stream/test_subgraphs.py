"""Subgraphs in a stream: each has one of its own, and its fate is told."""

from __future__ import annotations

from tests.programs.both import on_both, thread

from towpath.testing.api import Api

from .programs import Count, add, asking, chain, fail, read, tried


def run_of(graph, given=None, config=None, **options):
    return graph.stream_events(given or {"n": 1}, config, version="v3", **options)


def fate(handle):
    return (
        handle.path, handle.graph_name, handle.trigger_call_id, handle.status,
        handle.error, handle.interrupted if handle.error is None else None,
        tried(lambda: handle.output),
    )  # fmt: skip


@on_both
def test_a_subgraph_is_read_while_it_runs(lib: Api) -> object:
    deep = chain(lib, add, chain(lib, add, add))
    run = run_of(chain(lib, deep, add))
    found = []
    for handle in run.subgraphs:
        found.append(handle.status)
        for name, item in handle.interleave("values", "subgraphs", "lifecycle"):
            if name == "subgraphs":
                found.append((item.path, list(item.values), fate(item)))
            else:
                found.append((name, item))
        found.append(fate(handle))
    return [*found, run.output]


@on_both
def test_a_subgraph_read_afterwards_keeps_its_fate_only(lib: Api) -> object:
    run = run_of(chain(lib, chain(lib, add), add))
    handles = list(run.subgraphs)
    return [(fate(each), list(each.values), read(each)) for each in handles]


@on_both
def test_a_failing_subgraph_says_so(lib: Api) -> object:
    run = run_of(chain(lib, add, chain(lib, fail), add))
    handles = read(run.subgraphs)
    return [fate(each) if hasattr(each, "path") else each for each in handles]


@on_both
def test_a_subgraph_that_asks_says_so_and_goes_on(lib: Api) -> object:
    inner = chain(lib, add, asking(lib))
    graph = chain(lib, add, inner, add, checkpointer=lib.InMemorySaver())
    first = [fate(each) for each in run_of(graph, config=thread()).subgraphs]
    events = read(run_of(graph, lib.Command(resume=3), thread()))
    return first, events


@on_both
def test_a_graph_called_in_a_node_is_a_subgraph(lib: Api) -> object:
    inner = chain(lib, add)
    graph = chain(lib, add, lambda state: inner.invoke(inner.invoke(state)))
    return read(run_of(graph)), [fate(each) for each in run_of(graph).subgraphs]


@on_both
def test_closing_a_subgraph_leaves_the_run_alone(lib: Api) -> object:
    run = run_of(chain(lib, add, chain(lib, add, add), add))
    found = []
    for handle in run.subgraphs:
        handle.abort()
        found.append((handle.status, handle.output, list(handle.values)))
    return found, run.output


@on_both
def test_lifecycle_tells_of_every_depth(lib: Api) -> object:
    deep = chain(lib, add, chain(lib, add, chain(lib, add)))
    return list(run_of(chain(lib, deep)).lifecycle)


@on_both
def test_metadata_and_tags_of_a_run_reach_its_tasks(lib: Api) -> object:
    inner = chain(lib, add)

    graph = lib.StateGraph(Count)
    graph.add_node("kid", inner, metadata={"of": "node", "kid": 1})
    graph.add_node("body", lambda s: inner.invoke(s, {"metadata": {"called": 1}}))
    graph.add_edge(lib.START, "kid")
    graph.add_edge("kid", "body")
    app = graph.compile()
    config = {"metadata": {"of": "run", "lc_agent_name": "me"}, "tags": ["t"]}
    chunks = app.stream({"n": 1}, config, stream_mode="tasks", subgraphs=True)
    bare = app.stream({"n": 1}, stream_mode="tasks", subgraphs=True)
    tasks = [task for _, task in [*chunks, *bare] if "triggers" in task]
    named = list(run_of(app, config=config).lifecycle)
    return [(task["name"], task.get("metadata")) for task in tasks], named
