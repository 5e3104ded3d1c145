"""Driving a run to its end, and what the caller gets of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import aclosing, closing
from typing import Any

from towpath.constants import INTERRUPT
from towpath.drive.loop import LoopDriver
from towpath.drive.sync import SyncDriver
from towpath.errors import GraphInterrupt, InvalidUpdateError, ParentCommand
from towpath.kernel.run import Outcome
from towpath.pregel.ports import Graph
from towpath.pregel.runs import Options, Run, check_colour, connect, prepare_run
from towpath.types import GraphOutput


def run(
    graph: Graph,
    input: Any,
    config: Mapping[str, Any] | None,
    options: Options,
) -> Any:
    """Run to the end, blocking."""
    streams = options.stream_mode != "values"
    made = prepare_run(graph, input, config, options, streams=streams)
    if streams:
        return list(stream_run(made))
    with guarded(made):
        outcome = to_end(made)
    return result(made, outcome)


async def arun(
    graph: Graph,
    input: Any,
    config: Mapping[str, Any] | None,
    options: Options,
) -> Any:
    """Async twin of `run`."""
    streams = options.stream_mode != "values"
    made = prepare_run(graph, input, config, options, streams=streams)
    if streams:
        return [chunk async for chunk in astream_run(made)]
    del input, config, options  # the run may wait for hours, and many with it
    outcome: list[Outcome] = []
    with guarded(made):
        async for chunk in adrive(made, outcome):
            await made.format.ashown(chunk)
    return result(made, outcome[0])


def to_end(made: Run) -> Outcome:
    """Obey the run's program to its end."""
    steps = drive(made)
    try:
        while True:
            made.format.shown(next(steps))
    except StopIteration as stop:
        outcome: Outcome = stop.value
        return outcome


def drive(made: Run) -> Generator[Any, None, Outcome]:
    """Start a run with the blocking driver."""
    check_colour(made.request)
    drivers = made.scope.drivers
    driver = (drivers.blocking if drivers else SyncDriver)(made.scope)
    connect(made, driver.emit)
    steps = driver.stream(made.program())
    trace = made.scope.trace
    return steps if trace is None else trace.drive(steps)


def adrive(made: Run, outcome: list[Outcome]) -> AsyncGenerator[Any, None]:
    """Start a run with the asyncio driver; its end is left in `outcome`."""
    drivers = made.scope.drivers
    driver = (drivers.looping if drivers else LoopDriver)(made.scope)
    connect(made, driver.emit)
    steps = driver.stream(made.program(), outcome)
    trace = made.scope.trace
    return steps if trace is None else trace.adrive(steps, outcome)


def stream_run(made: Run) -> Generator[Any, None, None]:
    """Yield a run's chunks in the form that was asked for."""
    with closing(drive(made)) as steps, guarded(made):
        while True:
            try:
                chunk = next(steps)
            except StopIteration as stop:
                return settle(made, stop.value)
            yield from made.format.shown(chunk)


async def astream_run(made: Run) -> AsyncGenerator[Any, None]:
    """Async twin of `stream_run`."""
    outcome: list[Outcome] = []
    async with aclosing(adrive(made, outcome)) as steps:
        with guarded(made):
            async for chunk in steps:
                for part in await made.format.ashown(chunk):
                    yield part
    settle(made, outcome[0])


class guarded:  # noqa: N801 - reads as a verb in `with`
    """Refuses a command for a parent from a graph that has none.

    A class, because `contextlib.contextmanager` sets an attribute on exceptions
    that pass, which frozen ones refuse.

    Raises:
        InvalidUpdateError: the graph runs by itself (TP-201).
    """

    __slots__ = ("made",)

    def __init__(self, made: Run) -> None:
        self.made = made

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: object, error: BaseException | None, trace: object
    ) -> None:
        if isinstance(error, ParentCommand) and self.made.parent is None:
            name = self.made.plan.name
            raise InvalidUpdateError(
                f"a node of `{name}` returned Command(graph=Command.PARENT), but the "
                "graph runs by itself and has no parent",
                hint="leave `graph` out to go to a node of the same graph",
            ) from error


def settle(made: Run, outcome: Outcome | None) -> None:
    """Pass what a nested run asked on to the task around it."""
    if made.parent is None or outcome is None:
        return
    if made.plan.semantics.shared_limit:
        made.parent.scope.req.spent += outcome.steps
    if outcome.status != "done" and made.request.nested:
        question = GraphInterrupt(outcome.interrupts)
        made.parent.park(question)
        raise question


def result(made: Run, outcome: Outcome) -> Any:
    """The output of a run in the form that was asked for."""
    settle(made, outcome)
    if made.format.version == "v2":
        return GraphOutput(made.format.instance(outcome.value), outcome.interrupts)
    if not outcome.interrupts:
        return outcome.value
    asked = {INTERRUPT: list(outcome.interrupts)}
    if isinstance(outcome.value, dict):
        return {**outcome.value, **asked}
    return asked
