"""Random graphs show the same on Towpath and on the peer it is modelled after.

Ours runs under the `LANGGRAPH` preset. Hypothesis draws a graph and a script
of runs, answers, edits and rewinds; both libraries play it, and everything a
program could observe is compared.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towpath.testing.api import Api, load
from towpath.testing.describe import Ask, Graph, Script, has
from towpath.testing.strategies import graphs, scripts

from .play import Player
from .settings import examples

pytest.importorskip("langgraph")
pytestmark = pytest.mark.differential


@pytest.fixture(scope="module")
def ours() -> Api:
    return load("towpath", preset="LANGGRAPH")


@pytest.fixture(scope="module")
def peer() -> Api:
    return load("langgraph")


def agree(ours: Api, peer: Api, plot: Plot, **options: object) -> None:
    """Play a plot with both and compare the traces entry by entry."""
    expected = Player(peer, *plot, **options).play()  # type: ignore[arg-type]
    actual = Player(ours, *plot, **options).play()  # type: ignore[arg-type]
    for theirs, mine in zip(expected, actual, strict=False):
        if has(plot[0], Ask) and told_early(theirs, mine):
            return
        assert theirs == mine
    assert len(expected) == len(actual)


def told_early(theirs: tuple[object, ...], mine: tuple[object, ...]) -> bool:
    """Tell whether we raise at a pause what the peer raises when it is resumed.

    Tasks that finished beside an open question wrote what cannot be written
    together. The peer says so at once, or later, depending on the level.
    """
    return ("run", "ends") == theirs[:2] and mine[1] == ("raises", "InvalidUpdateError")


Plot = tuple[Graph, Script]
plots: st.SearchStrategy[Plot] = graphs().flatmap(
    lambda graph: st.tuples(st.just(graph), scripts(graph))
)


@examples(150)
@given(plot=plots)
def test_streams_states_and_histories_agree(ours: Api, peer: Api, plot: Plot) -> None:
    """Every stream mode at once, snapshots after every act, and the history."""
    agree(ours, peer, plot)


@examples(75)
@given(plot=plots)
def test_asynchronous_runs_agree(ours: Api, peer: Api, plot: Plot) -> None:
    """The same under asyncio, with coroutine nodes."""
    agree(ours, peer, plot, asynchronous=True)


@examples(100)
@given(plot=plots)
def test_results_agree(ours: Api, peer: Api, plot: Plot) -> None:
    """Nobody listens: the plain way to run a graph."""
    agree(ours, peer, plot, modes=())


@examples(30)
@given(plot=plots)
def test_asynchronous_results_agree(ours: Api, peer: Api, plot: Plot) -> None:
    agree(ours, peer, plot, modes=(), asynchronous=True)
