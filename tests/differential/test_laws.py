"""Random graphs show the same whichever way Towpath runs them."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towpath.testing.api import load
from towpath.testing.describe import Graph, Script
from towpath.testing.strategies import graphs, scripts

from .play import MODES, Player
from .settings import examples

Plot = tuple[Graph, Script]
plots: st.SearchStrategy[Plot] = graphs().flatmap(
    lambda graph: st.tuples(st.just(graph), scripts(graph))
)


def played(plot: Plot, **options: Any) -> list[Any]:
    return Player(load("towpath"), *plot, **options).play()


@examples(100)
@given(plot=plots)
def test_both_colours_show_the_same(plot: Plot) -> None:
    """A blocking and an asyncio run differ in nothing that can be observed."""
    assert played(plot) == played(plot, asynchronous=True)


@examples(60)
@given(plot=plots)
def test_savers_show_the_same(plot: Plot) -> None:
    """What a database gives back equals what memory kept."""
    saver = load("towpath").SqliteSaver
    with TemporaryDirectory() as folder:
        with saver.from_conn_string(str(Path(folder) / "db.sqlite")) as sqlite:
            assert played(plot) == played(plot, saver=sqlite)


@examples(60)
@given(plot=plots, mode=st.sampled_from(MODES))
def test_a_mode_shows_the_same_alone_as_with_others(plot: Plot, mode: str) -> None:
    """Listening to more changes nothing of what one hears."""
    together = _heard(played(plot), mode)
    assert together == _heard(played(plot, modes=(mode,)), mode)


def _heard(trace: list[Any], mode: str) -> list[Any]:
    """Return the chunks of one mode, in an order that needs no other mode."""
    return [
        sorted(
            repr(chunk)
            for runs in entry[2].values()
            for run in runs
            for chunk in run
            if chunk[0] == mode
        )
        for entry in trace
        if entry[0] == "run"
    ]


pytestmark = pytest.mark.slow
