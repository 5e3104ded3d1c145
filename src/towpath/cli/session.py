"""What the commands that run a graph share: the graph, its thread and its view."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import click

from towpath.cli.outcome import INTERRUPTED, Outcome
from towpath.cli.run import Request, follow
from towpath.cli.storage import open_saver, refused_questions
from towpath.cli.tally import Tally, tally_of
from towpath.cli.target import load_graph, with_saver
from towpath.cli.view import View


@dataclass(frozen=True, slots=True)
class Session:
    """A graph with its saver, ready to run on one thread."""

    request: Request
    saver: Any
    view: Callable[[Any, Tally], View]
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
        start = self.graph.get_state(self.request.start)
        view = self.view(self.graph, tally_of(start))
        try:
            with view:
                outcome = asyncio.run(follow(self.request, step, view))
        except KeyboardInterrupt:
            click.echo(f"stopped; go on with: {self.again}", err=True)
            sys.exit(INTERRUPTED)
        if outcome.status == "failed":
            outcome = replace(outcome, asked_at=self.asked_at())
        view.end(outcome)
        return outcome

    def asked_at(self) -> str | None:
        """Where a task that failed with the answer it was given asks anew."""
        saved = self.saver.get_tuple(self.request.config)
        if saved is None or not refused_questions(saved):
            return None
        return str(saved.config["configurable"]["checkpoint_id"])

    def show(self, outcome: Outcome) -> Outcome:
        """Show how the thread stands without running it."""
        self.view(self.graph, Tally(0)).end(outcome)
        return outcome

    def from_checkpoint(self, checkpoint: str) -> Session:
        """Return the session that starts from an older checkpoint."""
        return replace(self, request=replace(self.request, checkpoint=checkpoint))


@contextmanager
def open_graph(
    target: str, db: str, config: Mapping[str, Any] | None = None, *, create: bool
) -> Iterator[tuple[Any, Any]]:
    """Load a graph and open its saver, which a `--db` that was given replaces.

    Given is also what the environment or the project's file says.
    """
    graph = load_graph(target, config)
    source = click.get_current_context().get_parameter_source("db")
    with open_saver(db, create=create) as saver:
        ready = with_saver(
            graph, saver, replace=source is not click.core.ParameterSource.DEFAULT
        )
        yield ready, ready.checkpointer
