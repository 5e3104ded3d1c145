"""The three drivers behind one face, so that each guarantee is written once."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from time import monotonic, sleep
from typing import Any, TypedDict

from towpath.call.scope import RunScope
from towpath.call.threads import STOCK
from towpath.checkpoint.memory import InMemorySaver
from towpath.drive.loop import LoopDriver
from towpath.drive.sync import SyncDriver
from towpath.graph import START, StateGraph
from towpath.kernel.request import Request
from towpath.testing.simulate import Clock, Faults, SimulatedDriver, simulate
from towpath.testing.world import Simulation

THREAD = {"configurable": {"thread_id": "thread"}}


class Empty(TypedDict, total=False):
    nothing: str


def empty_plan() -> Any:
    builder = StateGraph(Empty)
    builder.add_node("nothing", lambda state: None)
    builder.add_edge(START, "nothing")
    return builder.compile().plan_of_graph


class Colour:
    """How a program or a graph is run."""

    name: str

    def drive(self, program: Any, **request: Any) -> Any:
        """Obey a bare program."""
        raise NotImplementedError

    def invoke(self, graph: Any, given: Any, config: Any = None, **options: Any) -> Any:
        raise NotImplementedError

    def stream(
        self,
        graph: Any,
        given: Any,
        config: Any = None,
        stop: Any = None,
        **options: Any,
    ) -> list[Any]:
        """All chunks; with `stop`, those up to the first it is true of."""
        raise NotImplementedError

    def node(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A plain function as a node of this colour."""
        return function

    def barrier(self, parties: int) -> Any:
        """Makes nodes wait until so many of them have begun."""
        return Barrier(parties)

    def slow(self) -> Any:
        """A node that takes longer than any limit, and logs `late`."""
        self.gate = threading.Event()

        def node(state: Any) -> Any:
            self.gate.wait(10)
            return {"log": ["late"]}

        return node

    def release(self) -> None:
        """Let slow nodes end, which cannot be stopped."""
        self.gate.set()

    def nothing_runs(self) -> None:
        """Fail if a task of a run that is over still runs."""


class Barrier:
    """For threads."""

    def __init__(self, parties: int) -> None:
        self.barrier = threading.Barrier(parties, timeout=10)

    def before(self, function: Any) -> Any:
        def node(state: Any) -> Any:
            self.barrier.wait()
            return function(state)

        return node

    def inside(self, calls: Calls, function: Any) -> Any:
        def node(state: Any) -> Any:
            with calls:
                self.barrier.wait()
                return function(state)

        return node


class AsyncBarrier(Barrier):
    """For coroutines."""

    def __init__(self, parties: int) -> None:
        self.barrier: Any = None
        self.parties = parties

    async def wait(self) -> None:
        if self.barrier is None:
            self.barrier = asyncio.Barrier(self.parties)
        await self.barrier.wait()

    def before(self, function: Any) -> Any:
        async def node(state: Any) -> Any:
            await self.wait()
            return await function(state)

        return node

    def inside(self, calls: Calls, function: Any) -> Any:
        async def node(state: Any) -> Any:
            with calls:
                await self.wait()
                return function(state)

        return node


class NoBarrier(AsyncBarrier):
    """For simulated nodes: chance decides who overtakes whom."""

    async def wait(self) -> None:
        await asyncio.sleep(0)


class Calls:
    """Counts calls, from any thread, and how many go on at once."""

    def __init__(self) -> None:
        self.count: Counter[str] = Counter()
        self.lock = threading.Lock()
        self.active = self.most = 0

    def __call__(self, name: str) -> None:
        with self.lock:
            self.count[name] += 1

    def __enter__(self) -> None:
        with self.lock:
            self.active += 1
            self.most = max(self.most, self.active)

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.active -= 1


def threads() -> int:
    """How many threads the process keeps to run nodes in."""
    return sum(thread.name == "towpath-node" for thread in threading.enumerate())


def scope_of(request: dict[str, Any]) -> RunScope:
    return RunScope(empty_plan(), Request(None, (), **request), {})


class Sync(Colour):
    name = "sync"

    def nothing_runs(self) -> None:
        # A thread that has handed its task back is idle a moment later.
        until = monotonic() + 0.2
        while len(STOCK.idle) != threads() and monotonic() < until:
            sleep(0.001)
        idle = len(STOCK.idle)
        assert idle == threads(), f"{threads() - idle} threads at work"

    def drive(self, program: Any, **request: Any) -> Any:
        return SyncDriver(scope_of(request)).run(program)

    def invoke(self, graph: Any, given: Any, config: Any = None, **options: Any) -> Any:
        return graph.invoke(given, config, **options)

    def stream(
        self,
        graph: Any,
        given: Any,
        config: Any = None,
        stop: Any = None,
        **options: Any,
    ) -> list[Any]:
        chunks = []
        steps = graph.stream(given, config, **options)
        for chunk in steps:
            chunks.append(chunk)
            if stop is not None and stop(chunk):
                steps.close()
                break
        return chunks


class Loop(Colour):
    name = "loop"

    def drive(self, program: Any, **request: Any) -> Any:
        async def run() -> Any:
            return await LoopDriver(scope_of(request)).run(program)

        return asyncio.run(alone(run()))

    def invoke(self, graph: Any, given: Any, config: Any = None, **options: Any) -> Any:
        return asyncio.run(alone(graph.ainvoke(given, config, **options)))

    def stream(
        self,
        graph: Any,
        given: Any,
        config: Any = None,
        stop: Any = None,
        **options: Any,
    ) -> list[Any]:
        async def collect() -> list[Any]:
            chunks = []
            steps = graph.astream(given, config, **options)
            async for chunk in steps:
                chunks.append(chunk)
                if stop is not None and stop(chunk):
                    await steps.aclose()
                    break
            return chunks

        return asyncio.run(alone(collect()))

    def node(self, function: Callable[..., Any]) -> Callable[..., Any]:
        async def node(state: Any) -> Any:
            await asyncio.sleep(0)
            return function(state)

        return node

    def barrier(self, parties: int) -> Any:
        return AsyncBarrier(parties)


async def alone(work: Any) -> Any:
    """Await something that must leave no task of the loop behind it."""
    try:
        return await work
    finally:
        # What was cancelled needs a turn of the loop to notice.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"left behind: {left}"


class Simulated(Colour):
    name = "simulate"

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.clock = Clock()

    def drive(self, program: Any, **request: Any) -> Any:
        simulation = Simulation(self.seed, self.clock, Faults(), None)
        return SimulatedDriver(scope_of(request), simulation).run(program)

    def invoke(self, graph: Any, given: Any, config: Any = None, **options: Any) -> Any:
        trace = simulate(
            graph, given, config, seed=self.seed, clock=self.clock, **options
        )
        if trace.error is not None:
            raise trace.error
        assert not trace.journal.left
        return trace.value

    def stream(
        self,
        graph: Any,
        given: Any,
        config: Any = None,
        stop: Any = None,
        **options: Any,
    ) -> list[Any]:
        options.setdefault("stream_mode", "values")
        trace = simulate(
            graph,
            given,
            config,
            seed=self.seed,
            clock=self.clock,
            until=stop,
            **options,
        )
        if trace.error is not None:
            raise trace.error
        assert not trace.journal.left
        return trace.chunks

    node = Loop.node

    def barrier(self, parties: int) -> Any:
        return NoBarrier(parties)

    def slow(self) -> Any:
        def node(state: Any) -> Any:
            self.clock.sleep(3600.0)
            return {"log": ["late"]}

        return node

    def release(self) -> None:
        pass


class Diary(InMemorySaver):
    """A saver that is not inline, writes down what it is asked, and can fail."""

    capabilities = InMemorySaver.capabilities.__class__(atomic_commit=True)

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []
        self.fails: dict[int, BaseException] = {}
        self.before: Callable[[str], None] = lambda what: None

    def note(self, what: str) -> None:
        self.before(what)
        number = len(self.told)
        self.told.append(what)
        if number in self.fails:
            raise self.fails[number]

    def get_tuple(self, config: Any) -> Any:
        self.note("get")
        return super().get_tuple(config)

    def commit(
        self, config: Any, checkpoint: Any, metadata: Any, versions: Any, writes: Any
    ) -> Any:
        self.note(f"put {checkpoint['id'][:13]}")
        return super().commit(config, checkpoint, metadata, versions, writes)

    def put_writes(
        self, config: Any, writes: Any, task_id: str, task_path: str = ""
    ) -> None:
        self.note(f"writes {task_id}")
        super().put_writes(config, writes, task_id, task_path)

    async def aget_tuple(self, config: Any) -> Any:
        return await asyncio.to_thread(self.get_tuple, config)

    async def aput(
        self, config: Any, checkpoint: Any, metadata: Any, versions: Any
    ) -> Any:
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, versions)

    async def acommit(
        self, config: Any, checkpoint: Any, metadata: Any, versions: Any, writes: Any
    ) -> Any:
        return await asyncio.to_thread(
            self.commit, config, checkpoint, metadata, versions, writes
        )

    async def aput_writes(
        self, config: Any, writes: Any, task_id: str, task_path: str = ""
    ) -> None:
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)


async def turns(count: int = 20) -> None:
    """Let everything in the loop that can go on do so."""
    for _ in range(count):
        await asyncio.sleep(0)
