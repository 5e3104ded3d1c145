"""What the commands that run a graph share: the graph, its thread and its view."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import click

from towpath.cli.outcome import INTERRUPTED, Outcome
from towpath.cli.run import Request, follow
from towpath.cli.storage import open_saver
from towpath.cli.tally import Tally, tally_of
from towpath.cli.target import load_graph, with_saver
from towpath.cli.view import View


@dataclass(frozen=True, slots=True)
class Session:
    """A graph with its saver, ready to run on one thread."""

    request: Request
    saver: Any
    view: Callable[[Tally], View]
    again: str

    @property
    def graph(self) -> Any:
        """Return the graph."""
        return self.request.graph

    def snapshot(self) -> Any:
        """Return the state of the thread."""
        return self.graph.get_state(self.request.config)

    def run(self, step: Any) -> Outcome:
        """Run from an input, an answer or `None`, and show it."""
        view = self.view(tally_of(self.snapshot()))
        try:
            with view:
                outcome = asyncio.run(follow(self.request, step, view))
        except KeyboardInterrupt:
            click.echo(f"stopped; go on with: {self.again}", err=True)
            sys.exit(INTERRUPTED)
        view.end(outcome)
        return outcome

    def show(self, outcome: Outcome) -> Outcome:
        """Show how the thread stands without running it."""
        self.view(Tally(0)).end(outcome)
        return outcome


@contextmanager
def open_graph(target: str, db: str, *, create: bool) -> Iterator[tuple[Any, Any]]:
    """Load a graph and open its saver, which a `--db` given by hand replaces."""
    graph = load_graph(target)
    source = click.get_current_context().get_parameter_source("db")
    by_hand = source in {
        click.core.ParameterSource.COMMANDLINE,
        click.core.ParameterSource.ENVIRONMENT,
    }
    with open_saver(db, create=create) as saver:
        ready = with_saver(graph, saver, replace=by_hand)
        yield ready, ready.checkpointer
