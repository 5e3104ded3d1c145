"""A commit as a span, whenever and by whomever it is made.

A run may leave a checkpoint to be stored behind it, by another thread or
asyncio task. So what is timed is not the command but the saver's work for it:
the command gets a saver that hands on to its own, and tells when it is done.
What a database's own instrumentation tells meanwhile belongs to the commit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.context import Context

from towpath.integrations.otel.ends import DONE, End, show
from towpath.integrations.otel.guard import harmless
from towpath.integrations.otel.names import (
    CHECKPOINT,
    DURABILITY,
    NAMESPACE,
    SOURCE,
    STEP,
)
from towpath.integrations.otel.telemetry import Telemetry
from towpath.kernel.commands import Persist

HOW = {"wait": "sync", "behind": "async"}


class Commit:
    """One checkpoint on its way into storage."""

    def __init__(
        self,
        telemetry: Telemetry,
        command: Persist,
        around: Context | None,
        labels: dict[str, Any],
    ) -> None:
        self.telemetry = telemetry
        self.began = perf_counter()
        metadata = command.metadata
        self.labels = labels
        self.how = {DURABILITY: HOW[command.how]}
        facts = {**self.how, SOURCE: metadata["source"], STEP: metadata["step"]}
        ns = command.config["configurable"]["checkpoint_ns"]
        if ns:
            facts[NAMESPACE] = ns
        self.checkpoint = command.checkpoint
        self.behind = int(command.how == "behind")
        self.over = False
        telemetry.meters.behind.add(self.behind, labels)
        self.span = telemetry.tracer.start_span(
            "commit", around, attributes={**labels, **facts}
        )
        self.context = trace.set_span_in_context(self.span, around)

    @harmless
    def end(self, error: BaseException | None = None) -> None:
        """The checkpoint is stored, or it could not be; once."""
        if self.over:
            return
        self.over = True
        meters = self.telemetry.meters
        meters.behind.add(-self.behind, self.labels)
        end = DONE if error is None else End("failed", error)
        if "id" in self.checkpoint:
            self.span.set_attribute(CHECKPOINT, self.checkpoint["id"])
        show(self.span, end, details=self.telemetry.record_errors)
        self.span.end()
        labels = {**self.labels, **self.how, **end.facts}
        meters.commits.record(perf_counter() - self.began, labels)

    def __enter__(self) -> None:
        """The saver works for it from here on, and here."""
        self.token = contexts.attach(self.context)

    def __exit__(
        self, kind: object, error: BaseException | None, trace: object
    ) -> None:
        contexts.detach(self.token)
        self.end(error)

    def run(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Make a saver's call, which is the commit."""
        with self:
            return call(*args, **kwargs)

    async def arun(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Async twin of `run`."""
        with self:
            return await call(*args, **kwargs)

    def stage(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Have a checkpoint encoded; what stores it is the commit."""
        token = contexts.attach(self.context)
        try:
            return StagedCommit(self, call(*args, **kwargs))
        except BaseException as error:
            self.end(error)
            raise
        finally:
            contexts.detach(token)


class StagedCommit:
    """What stores a checkpoint that is encoded already."""

    def __init__(self, commit: Commit, staged: Any) -> None:
        self.commit = commit
        self.staged = staged

    def run(self) -> Any:
        return self.commit.run(self.staged.run)

    async def arun(self) -> Any:
        return await self.commit.arun(self.staged.arun)


class ToldSaver:
    """A saver for the sake of one commit: another one, whose work is told."""

    def __init__(self, saver: Any, commit: Commit) -> None:
        self._saver = saver
        self._told = {
            "put": commit.run,
            "commit": commit.run,
            "aput": commit.arun,
            "acommit": commit.arun,
            "stage_commit": commit.stage,
        }

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._saver, name)
        told = self._told.get(name)
        return found if told is None else partial(told, found)
