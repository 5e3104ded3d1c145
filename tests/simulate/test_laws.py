"""Laws of random graphs that need no crash: colours, replays, round trips."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, reject, settings

from towpath.checkpoint.memory import InMemorySaver
from towpath.checkpoint.sqlite import SqliteSaver
from towpath.constants import GRAPH
from towpath.step.state import open_state, to_checkpoint
from towpath.testing import normal
from towpath.testing.api import load
from towpath.testing.build import Builder
from towpath.testing.describe import Graph
from towpath.testing.laws import EndlessError, Talk, crash_everywhere, replays
from towpath.testing.simulate import Clock, simulate
from towpath.testing.strategies import Limits, graphs

from .plots import INPUT, Plot, factory
from .settings import SCALE, seeds

THREAD = {"configurable": {"thread_id": "thread"}}
# What nodes see of the steps that are left depends on the run, not on the state.
DRAWN = Limits(
    nodes=4,
    depth=1,
    failures=False,
    kinds=("typeddict", "dataclass", "pydantic"),
)
LIMITED = {**THREAD, "recursion_limit": 12}
MODES = ["values", "updates", "custom", "tasks", "checkpoints", "debug"]


def blocking(graph: Any) -> list[Any]:
    return list(graph.stream(INPUT, THREAD, stream_mode=MODES, subgraphs=True))


def looping(graph: Any) -> list[Any]:
    async def collect() -> list[Any]:
        steps = graph.astream(INPUT, THREAD, stream_mode=MODES, subgraphs=True)
        return [chunk async for chunk in steps]

    return asyncio.run(collect())


def simulated(graph: Any, seed: int) -> list[Any]:
    trace = simulate(graph, INPUT, THREAD, seed=seed, stream_mode=MODES, subgraphs=True)
    assert trace.error is None
    return trace.chunks


@pytest.mark.slow
def test_all_drivers_tell_the_same() -> None:
    """The same chunks, but for the order of what runs side by side."""
    for seed in seeds(40, start=10_000):
        graph = factory(
            Plot(seed, children=1, nodes=6, awaits=False, hurries=True).compile()
        )
        told = normal.stream(simulated(graph(InMemorySaver()), seed))

        assert told == normal.stream(blocking(graph(InMemorySaver()))), seed
        assert told == normal.stream(looping(graph(InMemorySaver()))), seed


@pytest.mark.slow
@pytest.mark.parametrize("asks", [False, True])
def test_async_nodes_tell_the_same_in_any_order(asks: bool) -> None:
    """Also what is told beside an open question, where a step is not folded yet."""
    for seed in seeds(40, start=11_000):
        plot = Plot(seed, children=1, nodes=6, hurries=True, asks=asks, calls=False)
        graph = factory(plot.compile())
        told = normal.stream(simulated(graph(InMemorySaver()), seed))

        assert told == normal.stream(simulated(graph(InMemorySaver()), seed + 1)), seed
        assert told == normal.stream(looping(graph(InMemorySaver()))), seed


@pytest.mark.slow
def test_the_order_in_which_tasks_finish_does_not_matter() -> None:
    for seed in seeds(60, start=12_000):
        graph = Plot(seed, asks=False, nodes=8).compile()
        values = [simulate(graph, INPUT, seed=order).value for order in range(4)]

        assert values[:1] * 4 == values, seed


@pytest.mark.slow
def test_replaying_a_checkpoint_leads_to_its_successor() -> None:
    for seed in seeds(60, start=13_000):
        plot = Plot(
            seed, nodes=6, asks=False, awaits=False, lasting=False, hurries=True
        )
        talk = Talk(factory(plot.compile()), INPUT, seed=seed)
        talk.hold()
        if talk.error is None:
            assert [] == list(replays(talk.factory(talk.saver), THREAD)), seed


@pytest.mark.slow
def test_a_checkpoint_survives_storage(tmp_path: Any) -> None:
    """Through the codec, through a database, and through an open state."""
    with SqliteSaver.from_conn_string(str(tmp_path / "laws.sqlite")) as sqlite:
        for seed in seeds(30, start=14_000):
            graph = Plot(seed, children=0).compile()
            talk = Talk(factory(graph), INPUT, seed=seed)
            talk.hold()
            config: dict[str, Any] = {
                "configurable": {"thread_id": str(seed), "checkpoint_ns": ""}
            }
            for saved in talk.history()[""]:
                checkpoint = saved.checkpoint
                versions = checkpoint["channel_versions"]
                config = sqlite.put(config, checkpoint, saved.metadata, versions)
                assert checkpoint == sqlite.get_tuple(config).checkpoint, seed
                opened = open_state(graph.plan_of_graph, checkpoint)
                opened.changed = set(opened.versions)
                again = to_checkpoint(opened)["channel_values"]
                held = {**checkpoint["channel_values"]}
                assert held.pop(GRAPH)  # a run says anew which graph it is of
                assert held == again, seed


@settings(
    max_examples=max(1, round(30 * SCALE)),
    deadline=None,
    database=None,
    print_blob=True,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
@given(graph=graphs(DRAWN))
@pytest.mark.slow
def test_drawn_graphs_survive_crashes(graph: Graph) -> None:
    """The graphs of the differential tests, at a few places each."""
    api = load("towpath", preset="LANGGRAPH")

    def make(saver: Any) -> Any:
        compiled = Builder(api, asynchronous=True).compile(graph, checkpointer=saver)
        compiled.store = api.InMemoryStore()
        return compiled

    try:
        report = crash_everywhere(make, {"log": ["in"]}, at_most=6, config=LIMITED)
    except EndlessError:
        reject()
    report.check()


def test_ids_grow_over_runs_that_share_a_clock() -> None:
    clock, saver = Clock(), InMemorySaver()
    graph = factory(Plot(3, asks=False, children=0).compile())(saver)

    for _ in range(3):
        simulate(graph, INPUT, THREAD, clock=clock)
    ids = [s.config["configurable"]["checkpoint_id"] for s in history(graph)]

    assert sorted(set(ids), reverse=True) == ids


def history(graph: Any) -> list[Any]:
    return list(graph.get_state_history(THREAD))
