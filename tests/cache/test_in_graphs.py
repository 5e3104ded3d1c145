"""What a run takes from a cache, and what it does not."""

from __future__ import annotations

from typing import TypedDict

import pytest

from towpath import START, CachePolicy, StateGraph
from towpath.cache.memory import InMemoryCache
from towpath.cache.sqlite import SqliteCache
from towpath.types import default_cache_key


class State(TypedDict, total=False):
    x: int
    y: str


def graph(cache, node, *, policy=None, target="b", path=None):
    """Return a graph of a cached node, and what follows it."""
    builder = StateGraph(State)
    builder.add_node("node", node, cache_policy=policy or CachePolicy())
    for name in "bc":
        builder.add_node(name, lambda state, name=name: {"y": name})
    builder.add_edge(START, "node")
    if path is None:
        builder.add_edge("node", target)
    else:
        builder.add_conditional_edges("node", path, ["b", "c"])
    return builder.compile(cache=cache)


@pytest.fixture
def calls():
    return []


@pytest.fixture
def node(calls):
    def node(state):
        calls.append(state["x"])
        return {"x": state["x"] + 1}

    return node


def to_b(state):
    return "b"


def to_c(state):
    return "c"


def test_graphs_that_differ_in_their_edges_share_no_results(node, calls):
    cache = InMemoryCache()
    assert {"x": 1, "y": "b"} == graph(cache, node, target="b").invoke({"x": 0})
    assert {"x": 1, "y": "c"} == graph(cache, node, target="c").invoke({"x": 0})
    assert {"x": 1, "y": "b"} == graph(cache, node, path=to_b).invoke({"x": 0})
    assert {"x": 1, "y": "c"} == graph(cache, node, path=to_c).invoke({"x": 0})
    assert [0] * 4 == calls
    graph(cache, node, path=to_c).invoke({"x": 0})
    assert [0] * 4 == calls


def test_a_new_version_takes_no_old_results(node, calls):
    cache = InMemoryCache()
    for version in ("", "1", "1", "2"):
        graph(cache, node, policy=CachePolicy(version=version)).invoke({"x": 0})
    assert 3 == len(calls)


def test_clearing_a_node_forgets_its_version_too(node, calls):
    app = graph(InMemoryCache(), node, policy=CachePolicy(version="1"))
    app.invoke({"x": 0})
    app.clear_cache(["node"])
    app.invoke({"x": 0})
    assert [0, 0] == calls


@pytest.mark.parametrize(
    "planted",
    [-1, "text", [1, 2], [("x",)], [("no such key", 1)], [(None, 1)], {"x": 1}],
    ids=repr,
)
async def test_what_is_no_result_is_not_taken(node, calls, planted):
    kept = {}

    class Spied(InMemoryCache):
        def set(self, pairs):
            kept.update(pairs)
            super().set(pairs)

    cache = Spied()
    app = graph(cache, node)
    app.invoke({"x": 0})
    cache.set(dict.fromkeys(kept, (planted, None)))
    assert {"x": 1, "y": "b"} == app.invoke({"x": 0})
    cache.set(dict.fromkeys(kept, (planted, None)))
    assert {"x": 1, "y": "b"} == await app.ainvoke({"x": 0})
    assert [0] * 3 == calls


def test_results_of_module_functions_outlive_the_process(tmp_path, printed_apart):
    """Two processes with one file: the second one's node does not run."""
    program = tmp_path / "program.py"
    source = (
        "from towpath import START, CachePolicy, StateGraph\n"
        "from towpath.cache.sqlite import SqliteCache\n"
        "def node(state):\n"
        "    print('ran', end=' ')\n"
        "    return {'x': state['x'] + 1}\n"
        "builder = StateGraph(dict)\n"
        "builder.add_node(node, cache_policy=CachePolicy())\n"
        "builder.add_edge(START, 'node')\n"
        f"with SqliteCache(path={str(tmp_path / 'cache.db')!r}) as cache:\n"
        "    print(builder.compile(cache=cache).invoke({'x': 0})['x'])\n"
    )
    program.write_text(source)
    run = f"import runpy; runpy.run_path({str(program)!r}, run_name='program')"
    assert ["ran 1", "1"] == [printed_apart(run).strip() for _ in range(2)]


def test_a_result_is_found_in_a_file_again(tmp_path, node, calls):
    path = str(tmp_path / "cache.db")
    for _ in range(2):
        with SqliteCache(path=path) as cache:
            graph(cache, node).invoke({"x": 0})
    assert [0] == calls


def test_equal_inputs_have_one_key_whatever_objects_they_share():
    one, other = (bytes([97, 98]).decode() for _ in range(2))
    part = [1]
    key = default_cache_key({"x": one, "y": one, "z": [part, part]})
    assert key == default_cache_key({"x": one, "y": other, "z": [[1], [1]]})
    assert key != default_cache_key({"x": one, "y": other, "z": [[1], [2]]})
