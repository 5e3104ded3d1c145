"""Random graphs show the same on Towpath and on the peer it is modelled after.

Ours runs under the `LANGGRAPH` preset. Hypothesis draws a graph and a script
of runs, answers, edits and rewinds; both libraries play it, and everything a
program could observe is compared.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towpath.testing.api import Api, load
from towpath.testing.describe import Ask, Graph, Script, has, walk
from towpath.testing.strategies import graphs, scripts

from .ear import MODES, Ear
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

    def told(api: Api) -> list[Entry]:
        return Player(api, *plot, **options).play()  # type: ignore[arg-type]

    expected, actual = told(peer), told(ours)
    if expected != actual and expected != told(peer):
        return  # its threads were in each other's way
    for theirs, mine in zip(expected, actual, strict=False):
        if told_early(plot[0], theirs, mine) or told_apart(plot[0], theirs, mine):
            return
        if failed_by_chance(theirs, mine):
            return
        assert theirs == mine
    assert len(expected) == len(actual)


def told_early(graph: Graph, theirs: Entry, mine: Entry) -> bool:
    """Tell whether one raises at a pause what the other raises on resuming.

    Tasks that finished beside an open question wrote what cannot be written
    together. Whether that is told at once depends on the level, and with the
    peer on who listens.
    """
    outcomes = [theirs[1], mine[1]]
    refused = ("raises", "InvalidUpdateError")
    return (
        has(graph, Ask)
        and theirs[0] == "run"
        and outcomes
        in (
            ["ends", refused],
            [refused, "ends"],
        )
    )


def told_apart(graph: Graph, theirs: Entry, mine: Entry) -> bool:
    """Tell whether we know who wrote last, and the peer does not.

    A node with a join and an edge into it, run last, is two candidates for it.
    """
    ambiguous = theirs == ("edit", ("raises", "InvalidUpdateError"))
    joins = any(len(edge.sources) > 1 for edge in graph.edges)
    return joins and ambiguous and mine[0] == "edit"


def failed_by_chance(theirs: Entry, mine: Entry) -> bool:
    """Tell whether one of two failed runs had several failures to choose from.

    Which of them the other one met alone is chance as well.
    """
    outcomes = [theirs[1], mine[1]]
    raised = [one for one in outcomes if isinstance(one, tuple) and one[0] == "raises"]
    return theirs[0] == "run" and "fails" in outcomes and len(raised) == 1


Plot = tuple[Graph, Script]
Entry = tuple[object, ...]
plots: st.SearchStrategy[Plot] = graphs().flatmap(
    lambda graph: st.tuples(st.just(graph), scripts(graph))
)


@examples(300)
@given(plot=plots)
def test_streams_states_and_histories_agree(ours: Api, peer: Api, plot: Plot) -> None:
    """Every stream mode at once, snapshots after every act, and the history."""
    agree(ours, peer, plot)


@examples(150)
@given(plot=plots)
def test_asynchronous_runs_agree(ours: Api, peer: Api, plot: Plot) -> None:
    """The same under asyncio, with coroutine nodes."""
    agree(ours, peer, plot, asynchronous=True)


@examples(200)
@given(plot=plots)
def test_results_agree(ours: Api, peer: Api, plot: Plot) -> None:
    """Nobody listens: the plain way to run a graph."""
    agree(ours, peer, plot, ear=Ear(modes=()))


@examples(60)
@given(plot=plots)
def test_asynchronous_results_agree(ours: Api, peer: Api, plot: Plot) -> None:
    agree(ours, peer, plot, ear=Ear(modes=()), asynchronous=True)


ears: st.SearchStrategy[Ear] = st.builds(
    Ear,
    modes=st.lists(st.sampled_from(MODES), min_size=1, max_size=3, unique=True).map(
        tuple
    ),
    within=st.booleans(),
    version=st.sampled_from(("v1", "v2")),
    keys=st.sampled_from((None, None, ("log",), ("note", "total"))),
).map(lambda ear: replace(ear, version="v1") if ear.keys else ear)


@examples(200)
@given(plot=plots, ear=ears, asynchronous=st.booleans())
def test_chunks_agree_in_every_form(
    ours: Api, peer: Api, plot: Plot, ear: Ear, asynchronous: bool
) -> None:
    """One mode or some, with children or without, typed parts, chosen keys."""
    if ear.version == "v2" and not fits_typed_parts(plot[0]):
        ear = replace(ear, version="v1")
    agree(ours, peer, plot, ear=ear, asynchronous=asynchronous)


def fits_typed_parts(graph: Graph) -> bool:
    """Tell whether the peer can make typed parts of every chunk of a graph.

    It puts values of any level, and chosen keys, into the outermost output class.
    """
    graphs = [graph, *(node.child for node in walk(graph) if node.child)]
    plain = all(one.state in {"typeddict", "channels"} for one in graphs)
    private = any(node.private for node in walk(graph))
    narrow = any(one.narrow_output for one in graphs)
    return (plain or len(graphs) == 1) and not private and not narrow
