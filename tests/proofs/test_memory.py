"""Finished runs leave nothing, waiting ones hold little, streams do not hoard."""

from __future__ import annotations

import asyncio
import operator
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from towpath import END, START, Send, StateGraph
from towpath.config import get_stream_writer

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.adapters.libraries import Towpath
from bench.habits import CASES, Habit
from bench.memory import residue
from bench.workloads import WORKLOADS

RUNS = 10
"""Enough to tell one object a run from none; `make bench-memory` makes 10,000."""
NAMES = [f"{habit.name}-{saver}" for habit, saver in CASES]
STEPS = 300


@pytest.mark.slow
@pytest.mark.parametrize(("habit", "saver"), CASES, ids=NAMES)
def test_finished_runs_leave_no_objects_behind(habit: Habit, saver: str) -> None:
    assert {} == residue(habit, saver, RUNS).growing


def test_what_stays_is_told() -> None:
    kept: list[Any] = []

    def hoard(graph: Any, place: Any) -> None:
        kept.append([graph.invoke({"notes": [], "answer": "go"}, place)])

    left = residue(Habit(hoard), "none", RUNS)
    assert left.growing["list"] >= RUNS
    assert left.growing["dict"] >= RUNS
    assert left.leaks


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "most"),
    [("crowd-none", 11_000), ("crowd-memory", 18_000), ("ask-memory", 5_000)],
)
def test_a_conversation_that_waits_holds_kilobytes(
    name: str, most: int, tmp_path: Path
) -> None:
    """In flight, with what asyncio and its caller hold, or paused at a question."""
    of_name = next(each for each in WORKLOADS if each.name == name)
    # Of fewer, what the process keeps once would be much for each.
    workload = replace(of_name, size=400, units=400, expected=400)
    job = Towpath().prepare(workload, tmp_path)
    assert job is not None
    job.run() if not workload.asynchronous else asyncio.run(job.run())
    assert 0 < job.held() < most


class State(TypedDict):
    step: int
    seen: Annotated[int, operator.add]


class Run:
    """A long run, and how far it has come: by steps, two of three tasks each."""

    def __init__(self) -> None:
        self.steps = 0
        builder = StateGraph(State)
        builder.add_node("work", self._work)
        builder.add_node("sent", lambda sent: {"seen": 1})
        builder.add_edge(START, "work")
        builder.add_conditional_edges("work", self._spread, ["sent", END])
        builder.add_conditional_edges("sent", lambda state: "work", ["work"])
        self.graph = builder.compile()

    def _work(self, state: State) -> dict[str, int]:
        self.steps += 1
        get_stream_writer()(f"step {self.steps}")
        return {"step": state["step"] + 1}

    def _spread(self, state: State) -> Any:
        return END if state["step"] == STEPS else [Send("sent", 0), Send("sent", 1)]


GIVEN = {"step": 0, "seen": 0}
CONFIG = {"recursion_limit": 10 * STEPS}


def step_of(mode: str, chunk: Any) -> int:
    """Return the step that a chunk tells of, 0 if it does not say."""
    match mode:
        case "values":
            return chunk["step"]
        case "custom":
            return int(chunk.split()[1])
        case "updates":
            return chunk.get("work", {}).get("step", 0)
        case _:
            return 0


def watched(run: Run, mode: str, chunks: Iterator[Any]) -> Iterator[int]:
    """Yield how many steps the run has begun that the caller was not told of."""
    told = 0
    for chunk in chunks:
        told = max(told, step_of(mode, chunk))
        if told:
            yield run.steps - told


async def awatched(
    run: Run, mode: str, chunks: AsyncIterator[Any]
) -> AsyncIterator[int]:
    told = 0
    async for chunk in chunks:
        told = max(told, step_of(mode, chunk))
        for _ in range(10):  # time in which a run that is not held back would go on
            await asyncio.sleep(0)
        if told:
            yield run.steps - told


@pytest.mark.parametrize("mode", ["values", "updates", "custom"])
def test_a_run_is_at_most_a_step_ahead_of_who_listens(mode: str) -> None:
    run = Run()
    chunks = run.graph.stream(GIVEN, CONFIG, stream_mode=mode)
    assert max(watched(run, mode, chunks)) <= 1
    assert STEPS == run.steps


@pytest.mark.parametrize("mode", ["values", "updates", "custom"])
async def test_an_async_run_is_at_most_a_step_ahead(mode: str) -> None:
    run = Run()
    chunks = run.graph.astream(GIVEN, CONFIG, stream_mode=mode)
    ahead = [each async for each in awatched(run, mode, chunks)]
    assert max(ahead) <= 1
    assert STEPS == run.steps


async def test_a_run_nobody_takes_from_stands_still() -> None:
    run = Run()
    chunks = run.graph.astream(GIVEN, CONFIG, stream_mode=["values", "tasks"])
    for _ in range(4):
        await anext(chunks)
    begun = run.steps
    for _ in range(100):
        await asyncio.sleep(0)
    assert run.steps - begun <= 1
    await chunks.aclose()
