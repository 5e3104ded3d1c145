"""Virtual time for tests of retries, timeouts and waiting.

Runs go through the simulator, so a test that waits for an hour takes no time
and comes out the same every time. `time.sleep` and `asyncio.sleep` spend
virtual time too, in the thread that runs the graph and while it does.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import get_ident
from typing import Any

from towpath.testing.simulate import simulate
from towpath.testing.world import Clock

__all__ = ("FrozenClock",)


class FrozenClock(Clock):
    """A clock that moves when somebody waits, and by no more than that.

    >>> from towpath import START, RetryPolicy, StateGraph
    >>> from towpath.testing import FrozenClock, scripted
    >>> builder = StateGraph(dict)
    >>> node = scripted(ConnectionError(), {"ok": True})
    >>> policy = RetryPolicy(initial_interval=60, jitter=False)
    >>> _ = builder.add_node("fetch", node, retry_policy=policy)
    >>> _ = builder.add_edge(START, "fetch")
    >>> clock = FrozenClock()
    >>> clock.invoke(builder.compile(), {})
    {'ok': True}
    >>> clock.elapsed_s
    60.0
    """

    def __init__(self, *, seed: int = 0) -> None:
        """Begin at zero; `seed` decides the order of what could race."""
        super().__init__()
        self.seed = seed
        self._began = self.now

    @property
    def elapsed_s(self) -> float:
        """How many virtual seconds have passed."""
        return self.now - self._began

    def invoke(
        self,
        graph: Any,
        input: Any,
        config: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Any:
        """Run a graph, its nodes blocking or async; return its output.

        `options` are those of `invoke`. Async nodes may await `asyncio.sleep`, and
        tasks and graphs that they call, but nothing that needs an event loop.

        Raises:
            SimulationError: a node waits for what only an event loop has.
            Exception: what the run raised.
        """
        with self._sleeping():
            trace = simulate(
                graph, input, config, seed=self.seed, clock=self, **options
            )
        if (error := trace.error) is not None:
            if isinstance(error, RuntimeError) and "event loop" in str(error):
                error.add_note(
                    "in virtual time there is no event loop: nodes may await "
                    "asyncio.sleep, tasks and graphs"
                )
            raise error
        return trace.value

    @contextmanager
    def _sleeping(self) -> Iterator[None]:
        """Have this thread spend virtual time where it sleeps."""
        here, slept, aslept = get_ident(), time.sleep, asyncio.sleep

        def sleep(seconds: float) -> None:
            mine(self.sleep, slept)(seconds)

        async def asleep(delay: float, result: Any = None) -> Any:
            await mine(self.asleep, aslept)(delay)
            return result

        def mine(
            ours: Callable[[float], Any], theirs: Callable[[float], Any]
        ) -> Callable[[float], Any]:
            return ours if get_ident() == here else theirs

        set_sleeps(sleep, asleep)
        try:
            yield
        finally:
            set_sleeps(slept, aslept)


def set_sleeps(sleep: Any, asleep: Any) -> None:
    """Replace how the process sleeps."""
    time.sleep = sleep
    asyncio.sleep = asleep
