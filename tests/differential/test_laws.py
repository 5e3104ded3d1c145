"""Random graphs show the same whichever way Towpath runs them."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towpath.semantics import NATIVE
from towpath.testing.api import Api
from towpath.testing.describe import Graph, Script
from towpath.testing.strategies import graphs, scripts

from .ear import MODES, Ear
from .play import Player
from .settings import examples

Plot = tuple[Graph, Script]
plots: st.SearchStrategy[Plot] = graphs().flatmap(
    lambda graph: st.tuples(st.just(graph), scripts(graph))
)


# Children that run at once share one limit: who meets its end first is a race.
OURS = Api("towpath", semantics=replace(NATIVE, shared_limit=False))


def played(plot: Plot, **options: Any) -> list[Any]:
    return Player(OURS, *plot, **options).play()


@examples(150)
@given(plot=plots)
def test_both_colours_show_the_same(plot: Plot) -> None:
    """A blocking and an asyncio run differ in nothing that can be observed."""
    assert played(plot) == played(plot, asynchronous=True)


@examples(100)
@given(plot=plots)
def test_savers_show_the_same(plot: Plot) -> None:
    """What a database gives back equals what memory kept."""
    saver = OURS.SqliteSaver
    with TemporaryDirectory() as folder:
        with saver.from_conn_string(str(Path(folder) / "db.sqlite")) as sqlite:
            kept = sqlite if plot[1].stored else None
            assert played(plot) == played(plot, saver=kept)


@examples(100)
@given(plot=plots, mode=st.sampled_from(MODES))
def test_a_mode_shows_the_same_alone_as_with_others(plot: Plot, mode: str) -> None:
    """Listening to more changes nothing of what one hears."""
    together = _heard(played(plot), mode)
    assert together == _heard(played(plot, ear=Ear(modes=(mode,))), mode)


def _heard(trace: list[Any], mode: str) -> list[Any]:
    """Return the chunks of one mode, in an order that needs no other mode.

    A run that fails ends the comparison: whether that was a race is known only
    when all modes are heard.
    """
    runs = [entry[1:] for entry in trace if entry[0] == "run"]
    whole = takewhile(lambda run: run[0] == "ends", runs)
    return [sorted(_texts(chunks, mode)) for _, chunks in whole]


def _texts(streams: dict[Any, Any], mode: str) -> list[str]:
    told = [
        repr(chunk)
        for runs in streams.values()
        for run in runs
        for chunk in run
        if chunk[0] == mode
    ]
    # Ids are numbered by their appearance in all modes.
    return [re.sub(r"#\d+", "#", text) for text in told]


pytestmark = pytest.mark.slow
