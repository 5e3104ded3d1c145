"""Whatever befalls a run, wherever it does: going on leads to the same end.

Each law is tried on many random graphs, and on each of them at every place. A
failure names its seed: `SEED=17 pytest tests/simulate -k crash` repeats it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from towpath.checkpoint.memory import InMemorySaver
from towpath.checkpoint.sqlite import SqliteSaver
from towpath.testing.laws import Trouble, crash_everywhere
from towpath.testing.rows import row_counts, strays
from towpath.testing.simulate import simulate

from .plots import INPUT, Plot, factory
from .settings import seeds

DURABILITIES = ("sync", "async", "exit")
# Of a long conversation not every place: more graphs for the same time.
PLACES = 24


@pytest.fixture
def database() -> Iterator[Any]:
    """Empties one database for each telling."""
    with SqliteSaver(":memory:") as saver:

        def emptied() -> SqliteSaver:
            assert [] == strays(saver)
            saver.delete_thread("thread")
            assert {0} == set(row_counts(saver).values())
            return saver

        yield emptied


def check(
    seed: int,
    durability: str,
    trouble: Trouble,
    *,
    new_saver: Any = InMemorySaver,
    disk_s: float = 0.0,
    **plot: Any,
) -> int:
    """Hold one conversation everywhere; return how many times."""
    graph = Plot(seed, **plot).compile()
    report = crash_everywhere(
        factory(graph),
        INPUT,
        lambda question: f"answer to {question}",
        seed=seed,
        durability=durability,
        trouble=trouble,
        at_most=PLACES,
        lag=(0.0, 0.5, 0.9, 1.0)[seed % 4],
        disk_s=disk_s,
        new_saver=new_saver,
    )
    assert report.error is None, f"seed {seed}: {report.error}"
    report.check()
    return report.tried


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.slow
def test_a_resumed_run_ends_as_an_uninterrupted_one(durability: str) -> None:
    """A crash costs only what was not stored; nothing stored is done again."""
    tried = sum(
        check(seed, durability, "crash", children=1, nodes=5) for seed in seeds(70)
    )
    assert tried > 0


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.slow
def test_a_crash_inside_nested_subgraphs(durability: str) -> None:
    for seed in seeds(15, start=5_000):
        check(seed, durability, "crash", children=2, nodes=7)


@pytest.mark.parametrize("trouble", ["store", "fetch"])
@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.slow
def test_a_run_goes_on_after_storage_failed(durability: str, trouble: Any) -> None:
    """The n-th call fails, for every n: no hole in the history, nothing lost."""
    for seed in seeds(60, start=1_000):
        check(seed, durability, trouble, children=1, nodes=5)


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.slow
def test_a_run_that_lost_its_lease_stores_nothing_more(durability: str) -> None:
    """Another takes the thread over before the n-th commit, for every n."""
    tried = sum(
        check(seed, durability, "theft", children=1, nodes=5)
        for seed in seeds(30, start=3_000)
    )
    assert tried > 0


@pytest.mark.parametrize("trouble", ["crash", "theft", "store"])
@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.slow
def test_the_laws_hold_in_a_database_too(
    database: Any, durability: str, trouble: Any
) -> None:
    """With a disk that is slow as well, so that time limits pass behind it."""
    for seed in seeds(5, start=4_000):
        check(
            seed,
            durability,
            trouble,
            children=1,
            nodes=5,
            new_saver=database,
            disk_s=(0.0, 3.0)[seed % 2],
        )


@pytest.mark.parametrize("trouble", ["close", "cancel"])
@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.slow
def test_a_run_that_is_stopped_keeps_all_that_had_finished(
    durability: str, trouble: Any
) -> None:
    """Unlike a crash, a stop loses not even what was left behind the run."""
    for seed in seeds(30, start=2_000):
        check(seed, durability, trouble, children=1, nodes=5)


def test_a_seed_repeats_a_run_exactly() -> None:
    for seed in seeds(20):
        graph = Plot(seed, asks=False).compile()
        runs = [
            simulate(graph, INPUT, seed=seed, stream_mode=["updates", "values"])
            for _ in range(2)
        ]
        first, second = runs
        assert first.chunks == second.chunks
        assert first.journal.commands == second.journal.commands
        assert [n for n, _ in first.journal.ran] == [n for n, _ in second.journal.ran]
