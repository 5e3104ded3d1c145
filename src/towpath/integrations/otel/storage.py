"""Storing, as spans see it: whenever it is done, and by whomever.

A run may leave a checkpoint to be stored behind it, by another thread or
asyncio task. So what is timed is not the command but the saver's work for it:
a command gets a saver that hands on to its own, with the span it works under
as the current one. What a database's own instrumentation tells meanwhile hangs
there: under the commit, or under the step or run that reads or records.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any, Final

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.context import Context

from towpath.checkpoint.base.saver import Staged
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

DURABILITIES: Final = {"wait": "sync", "behind": "async"}
CALLS: Final = ("get_tuple", "begin_run", "put", "commit", "put_writes", "copy_thread")
STAGES: Final = ("stage_commit", "stage_writes", "end_run")
HOW: Final = {
    **dict.fromkeys(CALLS, "run"),
    **{f"a{name}": "arun" for name in CALLS},
    **dict.fromkeys(STAGES, "stage"),
}
"""The methods of a saver that do the work for a command, and how they are told."""


class Work:
    """The saver's work for one command, under a span that is there already."""

    token: Any = None

    def __init__(self, context: Context) -> None:
        self.context = context

    def __enter__(self) -> None:
        self.token = contexts.attach(self.context)

    def __exit__(
        self, kind: object, error: BaseException | None, trace: object
    ) -> None:
        contexts.detach(self.token)

    def end(self, error: BaseException | None = None) -> None:
        """It is over."""

    def run(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Make a saver's call, which does the work."""
        with self:
            return call(*args, **kwargs)

    async def arun(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Async twin of `run`."""
        with self:
            return await call(*args, **kwargs)

    def stage(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Have values encoded; what stores them does the work."""
        staged = call(*args, **kwargs)
        return None if staged is None else StagedWork(self, staged)


class Commit(Work):
    """One checkpoint on its way into storage: a span of its own."""

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
        self.how = {DURABILITY: DURABILITIES[command.how]}
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
        super().__init__(trace.set_span_in_context(self.span, around))

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

    def __exit__(
        self, kind: object, error: BaseException | None, trace: object
    ) -> None:
        super().__exit__(kind, error, trace)
        self.end(error)

    def stage(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        try:
            return super().stage(call, *args, **kwargs)
        except BaseException as error:
            self.end(error)
            raise


class Both(Work):
    """The work for two commands, in one go."""

    def __init__(self, first: Work, second: Work) -> None:
        self.first = first
        self.second = second
        super().__init__(second.context)

    def __exit__(
        self, kind: object, error: BaseException | None, trace: object
    ) -> None:
        super().__exit__(kind, error, trace)
        if error is None:  # otherwise they are tried again, one by one
            self.end()

    def end(self, error: BaseException | None = None) -> None:
        self.first.end(error)
        self.second.end(error)


class StagedWork(Staged[Any]):
    """What stores values that are encoded already."""

    def __init__(self, work: Work, staged: Any) -> None:
        self.work = work
        self.staged = staged

    def run(self) -> Any:
        return self.work.run(self.staged.run)

    async def arun(self) -> Any:
        return await self.work.arun(self.staged.arun)

    def along(self, later: Staged[Any]) -> StagedWork | None:
        own = self.staged
        if not isinstance(later, StagedWork) or not isinstance(own, Staged):
            return None
        both = own.along(later.staged)
        return None if both is None else StagedWork(Both(self.work, later.work), both)


class ToldSaver:
    """A saver for the sake of one command: another one, whose work is told."""

    def __init__(self, saver: Any, work: Work) -> None:
        self._saver = saver
        self._work = work

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._saver, name)
        how = HOW.get(name)
        return found if how is None else partial(getattr(self._work, how), found)
