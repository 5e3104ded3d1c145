"""Whatever befalls a run, the thread goes on in a later version of its graph.

The names of nodes have changed, and a migration says how. Random graphs, each left
at many places, end as if nothing had happened and nothing had changed.
"""

from __future__ import annotations

from typing import Any

import pytest

from towpath import Migration
from towpath.checkpoint.memory import InMemorySaver
from towpath.checkpoint.sqlite import SqliteSaver
from towpath.testing.laws import Talk, Trouble, rerun

from .plots import INPUT, Plot, factory
from .settings import seeds

PLACES = 8


def versions(seed: int, **plot: Any) -> list[Any]:
    """Return a graph in three versions: with other names, and with the first again."""
    plot["lasting"] = False  # such a node has to keep its name
    first = Plot(seed, version=1, **plot)
    made = [first.compile()]
    there = {name: f"{name}_anew" for name in first.named if not name.startswith("__")}
    back = {new: old for old, new in there.items()}
    steps = [Migration(1, 2, nodes=there), Migration(2, 3, nodes=back)]
    second = Plot(seed, version=2, migrations=steps[:1], suffix="_anew", **plot)
    made.append(second.compile())
    made.append(Plot(seed, version=3, migrations=steps, **plot).compile())
    return [factory(graph) for graph in made]


def tell(graphs: list[Any], seed: int, durability: str, saver: Any) -> Talk:
    return Talk(graphs[0], INPUT, seed=seed, durability=durability, saver=saver)


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("trouble", ["crash", "store", "close"])
def test_a_left_thread_ends_in_a_later_version_as_in_its_own(
    durability: str, trouble: Trouble
) -> None:
    for seed in seeds(24, start=20_000):
        graphs = versions(seed, children=1, nodes=6)
        whole = tell(graphs, seed, durability, InMemorySaver())
        whole.hold()
        expected = whole.outcome()
        places = whole.effects(trouble)
        every = max(1, places // PLACES)
        for place in range(seed % every, places, every):
            talk = tell(graphs, seed, durability, InMemorySaver())
            talk.hold(trouble, place)
            talk.factory = graphs[1]
            talk.hold("crash", place % 7)
            talk.factory = graphs[2]
            talk.hold()
            where = f"seed {seed}, place {place}"
            assert expected["values"] == talk.outcome()["values"], where
            assert (expected["next"], expected["error"]) == (
                *(talk.outcome()["next"], talk.error),
            ), where
            assert [] == list(rerun(talk.traces)), where


@pytest.mark.slow
def test_so_it_is_in_a_database() -> None:
    for seed in seeds(10, start=21_000):
        graphs = versions(seed, children=1, nodes=6)
        whole = tell(graphs, seed, "async", InMemorySaver())
        whole.hold()
        places = whole.effects("crash")
        for place in range(seed % 5, places, max(1, places // 3)):
            with SqliteSaver(":memory:") as saver:
                talk = tell(graphs, seed, "async", saver)
                talk.hold("crash", place)
                talk.factory = graphs[1]
                talk.hold()
                where = f"seed {seed}, place {place}"
                assert whole.outcome()["values"] == talk.outcome()["values"], where
