"""Driving a run to its end, and what the caller gets of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from towpath.constants import INTERRUPT
from towpath.drive.loop import LoopDriver
from towpath.drive.sync import SyncDriver
from towpath.errors import GraphInterrupt, InvalidUpdateError, ParentCommand
from towpath.kernel.run import Outcome
from towpath.pregel.runs import Options, Run, check_colour, connect, prepare_run
from towpath.types import GraphOutput

if TYPE_CHECKING:
    from towpath.pregel.main import Pregel

Graph = "Pregel[Any, Any, Any, Any]"


def run(
    graph: Pregel[Any, Any, Any, Any],
    input: Any,  # noqa: A002 - the public name
    config: Mapping[str, Any] | None,
    options: Options,
) -> Any:
    """Run to the end, blocking."""
    if options.stream_mode != "values":
        made = prepare_run(graph, input, config, options, streams=True)
        return list(stream_run(made))
    made = prepare_run(graph, input, config, options, streams=False)
    steps = drive(made)
    try:
        while True:
            made.format.echo(next(steps))
    except StopIteration as stop:
        return result(made, stop.value, options)


async def arun(
    graph: Pregel[Any, Any, Any, Any],
    input: Any,  # noqa: A002 - the public name
    config: Mapping[str, Any] | None,
    options: Options,
) -> Any:
    """Async twin of `run`."""
    if options.stream_mode != "values":
        made = prepare_run(graph, input, config, options, streams=True)
        return [chunk async for chunk in astream_run(made)]
    made = prepare_run(graph, input, config, options, streams=False)
    outcome: list[Outcome] = []
    async for chunk in adrive(made, outcome):
        made.format.echo(chunk)
    return result(made, outcome[0], options)


def drive(made: Run) -> Generator[Any, None, Outcome]:
    """Start a run with the blocking driver."""
    check_colour(made.request)
    driver = SyncDriver(made.scope)
    connect(made, driver.emit)
    return driver.stream(made.program())


def adrive(made: Run, outcome: list[Outcome]) -> AsyncGenerator[Any, None]:
    """Start a run with the asyncio driver; its end is left in `outcome`."""
    driver = LoopDriver(made.scope)
    connect(made, driver.emit)
    return driver.stream(made.program(), outcome)


def stream_run(made: Run) -> Generator[Any, None, None]:
    """Yield a run's chunks in the form that was asked for."""
    form, steps = made.format, drive(made)
    try:
        while True:
            chunk = next(steps)
            form.echo(chunk)
            if form.wants(chunk):
                yield form.shape(chunk)
    except StopIteration as stop:
        settle(made, stop.value)
    except ParentCommand as error:
        raise misdirected(made, error) from None
    finally:
        steps.close()


async def astream_run(made: Run) -> AsyncGenerator[Any, None]:
    """Async twin of `stream_run`."""
    form = made.format
    outcome: list[Outcome] = []
    try:
        async with aclosing(adrive(made, outcome)) as steps:
            async for chunk in steps:
                form.echo(chunk)
                if form.wants(chunk):
                    yield form.shape(chunk)
    except ParentCommand as error:
        raise misdirected(made, error) from None
    settle(made, outcome[0])


def settle(made: Run, outcome: Outcome | None) -> None:
    """Pass what a nested run asked on to the task around it."""
    if made.parent is None or outcome is None:
        return
    made.parent.scope.req.spent += outcome.steps
    if outcome.status != "done" and made.request.nested:
        question = GraphInterrupt(outcome.interrupts)
        made.parent.park(question)
        raise question


def result(made: Run, outcome: Outcome, options: Options) -> Any:
    """The output of a run in the form that was asked for."""
    settle(made, outcome)
    if options.version == "v2":
        return GraphOutput(outcome.value, outcome.interrupts)
    if not outcome.interrupts:
        return outcome.value
    asked = {INTERRUPT: list(outcome.interrupts)}
    if isinstance(outcome.value, dict):
        return {**outcome.value, **asked}
    return asked


def misdirected(made: Run, error: ParentCommand) -> BaseException:
    """A command for a parent, in a graph that has none."""
    if made.parent is not None:
        return error
    return InvalidUpdateError(
        f"a node of `{made.plan.name}` returned Command(graph=Command.PARENT), but "
        "the graph runs by itself and has no parent",
        hint="leave `graph` out to go to a node of the same graph",
    )
