"""LlamaIndex workflows: steps that are called by the event they are typed with.

Its workflows are made once and run without a timeout. A step of a chain has an
event class of its own, because that is how one says what follows what. Only
asynchronous runs exist; state is kept in the context of a run, without storage.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from itertools import pairwise

from workflows import Context, Workflow, step
from workflows.events import Event, StartEvent, StopEvent

from bench.adapters.base import Awaited, said
from bench.workloads import LOOP_STEPS


def row(size: int) -> type[Workflow]:
    """Return a workflow of `size` steps, each of which counts one."""

    class Row(Workflow):
        pass

    between = [type(f"Done{number}", (Event,), {}) for number in range(size - 1)]
    events = [StartEvent, *between, StopEvent]
    for number, (taken, given) in enumerate(pairwise(events)):
        add_step(Row, f"step_{number}", taken, given)
    return Row


def add_step(
    row: type[Workflow], name: str, taken: type[Event], given: type[Event]
) -> None:
    key = "result" if given is StopEvent else "count"

    async def count(event: Event) -> Event:
        return given(**{key: event.count + 1})

    count.__name__ = name
    count.__annotations__ = {"event": taken, "return": given}
    step(workflow=row)(count)


def compiling(size: int) -> int:
    row(size)(timeout=None)
    return size


def chain(size: int) -> Callable[[], Awaitable[object]]:
    workflow = row(size)(timeout=None)
    return partial(result, workflow, count=0)


async def result(workflow: Workflow, **given: object) -> object:
    return await workflow.run(**given)


class Ping(Event):
    count: int


class Pong(Event):
    count: int


class Loop(Workflow):
    @step
    async def begin(self, event: StartEvent) -> Ping:
        return Ping(count=0)

    @step
    async def ping(self, event: Ping) -> Pong:
        return Pong(count=event.count + 1)

    @step
    async def pong(self, event: Pong) -> Ping | StopEvent:
        count = event.count + 1
        return Ping(count=count) if count < LOOP_STEPS else StopEvent(result=count)


def loop(size: int) -> Callable[[], Awaitable[object]]:
    return partial(result, Loop(timeout=None))


class Thing(Event):
    weight: int


class Weighed(Event):
    weight: int


def fan(size: int) -> Callable[[], Awaitable[object]]:
    class Fan(Workflow):
        @step
        async def spread(self, context: Context, event: StartEvent) -> Thing | None:
            for weight in range(size):
                context.send_event(Thing(weight=weight))
            return None

        @step(num_workers=size)
        async def weigh(self, event: Thing) -> Weighed:
            return Weighed(weight=event.weight)

        @step
        async def add(self, context: Context, event: Weighed) -> StopEvent | None:
            weighed = context.collect_events(event, [Weighed] * size)
            if weighed is None:
                return None
            return StopEvent(result=sum(each.weight for each in weighed))

    return partial(result, Fan(timeout=None))


class Turn(Event):
    turn: int


def chat(size: int) -> Callable[[], Awaitable[object]]:
    class Chat(Workflow):
        @step
        async def begin(self, context: Context, event: StartEvent) -> Turn:
            await context.store.set("messages", [])
            return Turn(turn=0)

        @step
        async def talk(self, context: Context, event: Turn) -> Turn | StopEvent:
            async with context.store.edit_state() as state:
                state["messages"] += said(event.turn)
                so_far = len(state["messages"])
            turn = event.turn + 1
            return Turn(turn=turn) if turn < size else StopEvent(result=so_far)

    return partial(result, Chat(timeout=None))


class Llama(Awaited):
    name = "llama-index-workflows"
    module = "workflows"
    compiling = staticmethod(compiling)
    makers = {"chain": chain, "loop": loop, "fan": fan, "chat": chat}
