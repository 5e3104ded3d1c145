"""Graphs made of nodes and channels directly."""

import asyncio
import operator
import warnings
from importlib import import_module
from types import SimpleNamespace

import pytest

from towpath import semantics
from towpath.channels import BinaryOperatorAggregate, EphemeralValue, LastValue, Topic
from towpath.errors import (
    ColourError,
    EmptyInputError,
    InvalidGraphError,
    UndeclaredKeyError,
)
from towpath.managed.is_last_step import RemainingStepsManager
from towpath.pregel import NodeBuilder, Pregel
from towpath.pregel.nodes import ChannelWriteEntry
from towpath.testing.normal import Placeholders

THREAD = {"configurable": {"thread_id": "1"}}


def names(package):
    """A library's names for raw graphs."""
    pregel = import_module(f"{package}.pregel")
    channels = import_module(f"{package}.channels")
    writes = "pregel._write" if package == "langgraph" else "pregel.nodes"
    home = import_module(f"{package}.{writes}")

    def app(nodes, channels, inputs, outputs, **options):
        return pregel.Pregel(
            nodes=nodes,
            channels=channels,
            input_channels=inputs,
            output_channels=outputs,
            **options,
        )

    return SimpleNamespace(
        package=package,
        app=app,
        Node=pregel.NodeBuilder,
        Entry=home.ChannelWriteEntry,
        Saver=import_module(f"{package}.checkpoint.memory").InMemorySaver,
        Retry=import_module(f"{package}.types").RetryPolicy,
        Steps=import_module(f"{package}.managed.is_last_step").RemainingStepsManager,
        **{name: getattr(channels, name) for name in channels.__all__},
    )


def on_both(program):
    @pytest.mark.differential
    @pytest.mark.parametrize("preset", ["NATIVE", "LANGGRAPH"])
    def test(preset):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = Placeholders().value(program(names("langgraph")))
        former = semantics.set_default(getattr(semantics, preset))
        try:
            actual = Placeholders().value(program(names("towpath")))
        finally:
            semantics.set_default(former)
        assert expected == actual

    test.__name__, test.__module__ = program.__name__, program.__module__
    return test


def seen(graph, given, modes=("values", "updates"), config=None, **options):
    streams = {
        mode: list(graph.stream(given, config, stream_mode=mode, **options))
        for mode in modes
    }
    return graph.invoke(given, config), streams


def line(lib, **options):
    """input -> one -> inbox -> two -> output"""
    return lib.app(
        {
            "one": lib.Node().subscribe_only("input").do(lambda x: x + 1)
            .write_to("inbox"),
            "two": lib.Node().subscribe_only("inbox").do(lambda x: x + 1)
            .write_to("output"),
        },
        {
            "input": lib.EphemeralValue(int),
            "inbox": lib.LastValue(int),
            "output": lib.LastValue(int),
        },
        "input",
        "output",
        **options,
    )  # fmt: skip


def single(lib, node, *, of=None):
    """A graph of one node from `a` to `b`."""
    channels = {"a": lib.LastValue(int), "b": of or lib.LastValue(object)}
    return lib.app({"n": node.write_to("b")}, channels, "a", "b")


@on_both
def test_one_channel_in_and_one_out(lib):
    graph = line(lib)
    run = asyncio.run(graph.ainvoke(2))
    return seen(graph, 2, ("values", "updates", "tasks")), run


@on_both
def test_what_streams_show_may_be_chosen(lib):
    return [
        seen(line(lib, stream_channels=shown), 2)
        for shown in ("inbox", ["output", "inbox"])
    ] + [seen(line(lib), 2, output_keys=keys) for keys in ("output", ["inbox"])]


@on_both
def test_several_channels_in_and_out(lib):
    graph = lib.app(
        {
            "n1": lib.Node().subscribe_only("a").do(lambda x: x + x).write_to("b"),
            "n2": lib.Node().subscribe_only("b").do(lambda x: x + x).write_to("c"),
        },
        {
            "a": lib.EphemeralValue(str),
            "b": lib.LastValue(str),
            "c": lib.EphemeralValue(str),
        },
        ["a"],
        ["b", "c"],
    )
    return seen(graph, {"a": "foo"})


@on_both
def test_a_topic_gathers(lib):
    node = lib.Node
    graph = lib.app(
        {
            "n1": node().subscribe_only("a").do(lambda x: x + x).write_to("b", "c"),
            "n2": node().subscribe_to("b").do(lambda x: x["b"] * 2).write_to("c"),
        },
        {
            "a": lib.EphemeralValue(str),
            "b": lib.EphemeralValue(str),
            "c": lib.Topic(str, accumulate=True),
        },
        ["a"],
        ["c"],
    )
    return seen(graph, {"a": "foo"})


@on_both
def test_a_reducer_folds(lib):
    def join(old, new):
        return f"{old} | {new}" if old else new

    graph = lib.app(
        {
            "n1": lib.Node().subscribe_only("a").do(lambda x: x + x).write_to("b", "c"),
            "n2": lib.Node().subscribe_only("b").do(lambda x: x + x).write_to("c"),
        },
        {
            "a": lib.EphemeralValue(str),
            "b": lib.EphemeralValue(str),
            "c": lib.BinaryOperatorAggregate(str, operator=join),
        },
        ["a"],
        ["c"],
    )
    return seen(graph, {"a": "foo"})


@on_both
def test_a_cycle_ends_where_nothing_is_written(lib):
    double = (
        lib.Node()
        .subscribe_only("value")
        .do(lambda x: x + x if len(x) < 10 else None)
        .write_to(lib.Entry("value", skip_none=True))
    )
    channels = {"value": lib.EphemeralValue(str)}
    return seen(lib.app({"n": double}, channels, ["value"], ["value"]), {"value": "a"})


@on_both
def test_fixed_values_and_functions_are_written(lib):
    node = lib.Node().subscribe_only("a").do(lambda x: x + 1)
    node.write_to("b", lib.Entry("d", mapper=lambda x: -x), fixed=7, c=lambda x: x * 10)
    channels = {key: lib.LastValue(int) for key in ("a", "b", "c", "d", "fixed")}
    return seen(lib.app({"n": node}, channels, "a", ["b", "c", "d", "fixed"]), 1)


@on_both
def test_none_is_written_unless_it_is_skipped(lib):
    entries = (
        "b",
        lib.Entry("b", skip_none=True),
        lib.Entry("b", mapper=lambda _: 5, skip_none=True),
    )
    found = []
    for entry in entries:
        node = lib.Node().subscribe_only("a").do(lambda x: None).write_to(entry)
        channels = {"a": lib.LastValue(int), "b": lib.LastValue(object)}
        found.append(seen(lib.app({"n": node}, channels, "a", "b"), 1))
    return found


@on_both
def test_nodes_read_what_does_not_wake_them(lib):
    def tell(values):
        return sorted(values.items())

    nodes = {
        "w": lib.Node().subscribe_only("a").do(lambda x: x).write_to("kept", "b"),
        "n": lib.Node().subscribe_to("b").read_from("kept").do(tell).write_to("out"),
        "m": lib.Node().subscribe_to("b", read=False).do(tell).write_to("bare"),
    }
    channels = {
        "a": lib.EphemeralValue(int),
        "b": lib.EphemeralValue(int),
        "kept": lib.LastValue(int),
        "out": lib.LastValue(list),
        "bare": lib.LastValue(list),
    }
    return seen(lib.app(nodes, channels, "a", ["out", "bare"]), 1)


@on_both
def test_managed_values_can_be_read(lib):
    node = lib.Node().subscribe_to("a").read_from("left")
    node.do(lambda values: sorted(values.items())).write_to("b")
    channels = {"a": lib.LastValue(int), "b": lib.LastValue(list), "left": lib.Steps}
    graph = lib.app({"n": node}, channels, "a", "b")
    return graph.invoke(1, {"recursion_limit": 9})


@on_both
def test_several_functions_are_called_one_after_the_other(lib):
    node = lib.Node().subscribe_only("a").do(lambda x: x + 1).do(lambda x: x * 2)
    return single(lib, node).invoke(3), single(
        lib, lib.Node().subscribe_only("a")
    ).invoke(3)


@on_both
def test_async_functions_are_awaited(lib):
    async def add(x):
        return x + 1

    one = lib.Node().subscribe_only("a").do(add)
    two = lib.Node().subscribe_only("a").do(add).do(lambda x: x * 2)
    return [asyncio.run(single(lib, node).ainvoke(3)) for node in (one, two)]


@on_both
def test_a_graph_can_be_what_a_node_does(lib):
    return single(lib, lib.Node().subscribe_only("a").do(line(lib))).invoke(3)


@on_both
def test_tags_metadata_and_policies(lib):
    tries = []

    def flaky(x, config):
        tries.append(x)
        if len(tries) < 2:
            raise ConnectionError("again")
        return [*config["tags"], config["metadata"]["k"]]

    node = lib.Node().subscribe_only("a").do(flaky).meta("t", k="v")
    node.add_retry_policies(lib.Retry(initial_interval=0.001))
    return single(lib, node).invoke(3, {"tags": ["mine"]})


@on_both
def test_threads_are_kept(lib):
    add = lib.Node().subscribe_to("input").read_from("total")
    add.do(lambda x: (x.get("total") or 0) + x["input"]).write_to("output", "total")
    channels = {
        "input": lib.EphemeralValue(int),
        "total": lib.BinaryOperatorAggregate(int, operator.add),
        "output": lib.LastValue(int),
    }
    graph = lib.app({"n": add}, channels, "input", "output", checkpointer=lib.Saver())
    results = [graph.invoke(2, THREAD), graph.invoke(3, THREAD)]
    history = [
        (past.values, past.next, past.metadata["step"])
        for past in graph.get_state_history(THREAD)
    ]
    return results, history


@on_both
def test_breakpoints_and_edits(lib):
    graph = line(lib, checkpointer=lib.Saver(), interrupt_after_nodes=["one"])
    stopped = graph.invoke(2, THREAD)
    state = graph.get_state(THREAD)
    graph.update_state(THREAD, 25, as_node="one")
    after = graph.get_state(THREAD)
    return stopped, state.next, state.values, after.next, graph.invoke(None, THREAD)


@on_both
def test_schemas_follow_from_the_channels(lib):
    channels = {"a": lib.LastValue(int), "b": lib.LastValue(str)}
    node = lib.Node().subscribe_to("a").write_to("b")
    graph = lib.app({"n": node}, channels, ["a"], ["a", "b"])
    return [
        (g.get_input_jsonschema(), g.get_output_jsonschema())
        for g in (line(lib), graph)
    ]


@on_both
def test_a_built_node_tells_what_it_was_built_of(lib):
    node = lib.Node().subscribe_to("a", "b").read_from("c").meta("t", k=1).build()
    bare = lib.Node().subscribe_only("a").build()
    return [
        (n.channels, list(n.triggers), list(n.tags), dict(n.metadata))
        for n in (node, bare)
    ]


# -- Towpath by itself ------------------------------------------------------------


def copying(**options):
    given = {
        "nodes": {"n": NodeBuilder().subscribe_only("a").write_to("b")},
        "channels": {"a": EphemeralValue(int), "b": LastValue(int)},
        "input_channels": "a",
        "output_channels": "b",
    }
    return Pregel(**{**given, **options})


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"input_channels": "z"}, "Input channel 'z'"),
        ({"output_channels": ["z"]}, "Output channel 'z'"),
        ({"stream_channels": ["z"]}, "Stream channel 'z'"),
        ({"input_channels": "b"}, "not subscribed to"),
        ({"interrupt_before_nodes": ["z"]}, "breakpoint"),
        ({"channels": {"a": 1}}, "no channel"),
        ({"nodes": {"n": NodeBuilder().subscribe_only("z")}}, "Node n reads"),
    ],
)
def test_names_that_stand_for_nothing_are_refused(wrong, says):
    with pytest.raises(InvalidGraphError, match=says):
        copying(**wrong)


@pytest.mark.parametrize("second", ["subscribe_to", "read_from", "subscribe_only"])
def test_a_node_that_takes_a_bare_value_takes_no_other(second):
    node = NodeBuilder().subscribe_only("a")
    with pytest.raises(InvalidGraphError, match="Cannot"):
        getattr(node, second)("b")


def test_an_unknown_channel_is_no_place_to_write_to():
    node = NodeBuilder().subscribe_only("a").write_to("b", "zz")
    with pytest.raises(UndeclaredKeyError, match="`zz`"):
        copying(nodes={"n": node}).invoke(1)
    lax = copying(nodes={"n": node}, semantics=semantics.LANGGRAPH)
    with pytest.warns(RuntimeWarning, match="dropped"):
        assert 1 == lax.invoke(1)


def test_input_is_a_dict_of_input_channels():
    graph = copying(input_channels=["a"])
    assert 1 == graph.invoke({"a": 1})
    for empty in ({}, None, 5):
        with pytest.raises(EmptyInputError):
            graph.invoke(empty)
    with pytest.raises(UndeclaredKeyError, match="`z`"):
        graph.invoke({"z": 1})
    lax = copying(input_channels=["a"], semantics=semantics.LANGGRAPH)
    with pytest.warns(RuntimeWarning, match="dropped"), pytest.raises(EmptyInputError):
        lax.invoke({"z": 1})


def test_a_channel_s_value_is_not_shared_with_a_node_that_changes_it():
    node = NodeBuilder().subscribe_only("a").do(lambda x: x.append(1)).write_to("b")
    graph = copying(
        nodes={"n": node}, channels={"a": LastValue(list), "b": Topic(list)}
    )
    given = []
    graph.invoke(given)
    assert [] == given


def test_a_raw_graph_can_be_drawn():
    graph = Pregel(
        nodes={
            "one": NodeBuilder().subscribe_only("a").write_to("b"),
            "two": NodeBuilder().subscribe_only("b").write_to("c"),
        },
        channels={
            "a": EphemeralValue(int),
            "b": LastValue(int),
            "c": BinaryOperatorAggregate(int, operator.add),
        },
        input_channels="a",
        output_channels="c",
    )
    edges = {(e.source, e.target) for e in graph.get_graph().edges}
    expected = {("__start__", "one"), ("one", "two"), ("two", "__end__")}
    assert expected == edges
    assert ("a", "c", ("a", "b", "c")) == (
        graph.input_channels,
        graph.output_channels,
        graph.stream_channels_list,
    )


def test_a_managed_value_is_no_channel():
    node = NodeBuilder().subscribe_to("a").read_from("left").write_to("b")
    given = {"a": EphemeralValue(int), "b": LastValue(dict)}
    graph = copying(
        nodes={"n": node}, channels={**given, "left": RemainingStepsManager}
    )
    assert {"a": 1, "left": 4} == graph.invoke(1, {"recursion_limit": 4})


def test_async_steps_are_refused_in_blocking_runs():
    async def later(x):
        return x

    node = NodeBuilder().subscribe_only("a").do(lambda x: x).do(later).write_to("b")
    with pytest.raises(ColourError, match="async"):
        copying(nodes={"n": node}).invoke(1)


def test_an_entry_is_one_write():
    assert (("a", 1),) == ChannelWriteEntry("a").write(1)
    assert () == ChannelWriteEntry("a", skip_none=True).write(None)
