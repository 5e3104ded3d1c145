"""The public modules under `pregel`."""

from importlib import import_module

import pytest

from towpath import START, StateGraph
from towpath.pregel.protocol import PregelProtocol, StreamProtocol

WRITES = [
    [("a", 1)],
    [("a", 1), ("a", 2), ("b", 3), ("a", 4)],
    [],
]


@pytest.mark.differential
def test_helpers_of_debug_streams_are_the_peer_s():
    def seen(package):
        debug = import_module(f"{package}.pregel.debug")
        config = {"configurable": {"__pregel_x": 1, "x": 2}, "tags": ["t"]}
        results = [debug.map_task_result_writes(writes) for writes in WRITES]
        return (
            results,
            [debug.is_multiple_channel_write(v) for r in results for v in r.values()],
            [debug.rm_pregel_keys(given) for given in (None, {}, config)],
            debug.get_colored_text("x", "red") + debug.get_bolded_text("y"),
            set(debug.EXCLUDED_METADATA_KEYS),
        )

    assert seen("langgraph") == seen("towpath")


def test_a_compiled_graph_has_the_protocol():
    builder = StateGraph(dict)
    builder.add_node("step", lambda state: None)
    builder.add_edge(START, "step")
    assert isinstance(builder.compile(), PregelProtocol)
    for name in PregelProtocol.__abstractmethods__:
        assert callable(getattr(builder.compile(), name))


def test_a_stream_takes_chunks_of_its_modes():
    taken = []
    stream = StreamProtocol(taken.append, {"values"})
    stream(((), "values", 1))
    assert ([((), "values", 1)], {"values"}) == (taken, stream.modes)


def test_types_are_those_of_the_package():
    module = import_module("towpath.pregel.types")
    types = import_module("towpath.types")
    assert all(getattr(module, name) is getattr(types, name) for name in module.__all__)
