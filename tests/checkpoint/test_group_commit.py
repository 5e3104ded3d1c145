"""Many conversations in one process share the fsync of a transaction."""

from __future__ import annotations

import asyncio
import operator
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from towpath import END, START, StateGraph
from towpath.checkpoint.base import empty_checkpoint
from towpath.checkpoint.base.id import checkpoint_id
from towpath.checkpoint.base.saver import Staged
from towpath.checkpoint.sqlite import SqliteSaver
from towpath.drive.common import BACKLOG
from towpath.errors import PersistenceError


def place(thread: str, at: str | None = None) -> Any:
    conf = {"thread_id": thread, "checkpoint_ns": ""}
    return {"configurable": conf if at is None else {**conf, "checkpoint_id": at}}


def checkpoint(value: Any) -> Any:
    return {
        **empty_checkpoint(),
        "id": checkpoint_id(),
        "channel_values": {"a": value},
        "channel_versions": {"a": 1},
    }


def traced(saver: SqliteSaver) -> list[str]:
    statements: list[str] = []
    saver.conn.set_trace_callback(statements.append)
    return statements


def test_what_waits_for_a_turn_is_committed_together(tmp_path: Path) -> None:
    with SqliteSaver(str(tmp_path / "db")) as saver:
        told = traced(saver)
        threads = [
            threading.Thread(
                target=saver.put, args=(place(f"t{n}"), checkpoint(n), {}, {"a": 1})
            )
            for n in range(20)
        ]
        with saver._database.connections._lock:  # somebody else's turn
            for thread in threads:
                thread.start()
            while len(saver._database.connections._queue._jobs) < len(threads):
                pass
        for thread in threads:
            thread.join()

        assert 1 == told.count("COMMIT")
        for n in range(20):
            assert (
                n == saver.get_tuple(place(f"t{n}")).checkpoint["channel_values"]["a"]
            )


def test_tasks_of_an_event_loop_are_committed_together(tmp_path: Path) -> None:
    async def run() -> None:
        async with SqliteSaver(str(tmp_path / "db")) as saver:
            told = traced(saver)
            async with asyncio.TaskGroup() as group:
                for n in range(100):
                    group.create_task(
                        saver.aput(place(f"t{n}"), checkpoint(n), {}, {"a": 1})
                    )
            assert told.count("COMMIT") <= 10
            for n in range(100):
                found = await saver.aget_tuple(place(f"t{n}"))
                assert n == found.checkpoint["channel_values"]["a"]

    asyncio.run(run())


def test_one_that_fails_undoes_only_itself(tmp_path: Path) -> None:
    async def run() -> None:
        async with SqliteSaver(str(tmp_path / "db")) as saver:
            await saver.aput(place("full"), checkpoint(0), {}, {"a": 1})
            results = await asyncio.gather(
                saver.aput(place("one"), checkpoint(1), {}, {"a": 1}),
                saver.acopy_thread("full", "full"),  # not to itself
                saver.aput(place("two"), checkpoint(2), {}, {"a": 1}),
                return_exceptions=True,
            )
            assert isinstance(results[1], ValueError)
            for thread, value in (("one", 1), ("two", 2)):
                found = await saver.aget_tuple(place(thread))
                assert value == found.checkpoint["channel_values"]["a"]

    asyncio.run(run())


def test_when_the_commit_fails_everyone_is_told(tmp_path: Path) -> None:
    async def run() -> None:
        async with SqliteSaver(str(tmp_path / "db")) as saver:
            saver.conn.execute(
                "CREATE TEMP TRIGGER broken BEFORE INSERT ON main.towpath_checkpoints"
                " BEGIN SELECT RAISE(ROLLBACK, 'the disk is full'); END"
            )
            results = await asyncio.gather(
                *(
                    saver.aput(place(f"t{n}"), checkpoint(n), {}, {"a": 1})
                    for n in "abc"
                ),
                return_exceptions=True,
            )
            assert all(isinstance(result, PersistenceError) for result in results)
            saver.conn.execute("DROP TRIGGER broken")
            await saver.aput(place("t"), checkpoint(1), {}, {"a": 1})
            assert await saver.aget_tuple(place("t"))
            assert await saver.aget_tuple(place("ta")) is None

    asyncio.run(run())


def test_a_closed_saver_says_so_in_both_colours(tmp_path: Path) -> None:
    saver = SqliteSaver(str(tmp_path / "db"))
    saver.setup()
    saver.close()
    with pytest.raises(PersistenceError, match="closed"):
        saver.put(place("t"), checkpoint(1), {}, {"a": 1})
    with pytest.raises(PersistenceError, match="closed"):
        asyncio.run(saver.aput(place("t"), checkpoint(1), {}, {"a": 1}))


def test_an_interruption_of_one_is_no_success_of_the_others(tmp_path: Path) -> None:
    """Whoever commits for all may be the main thread, which Ctrl-C interrupts."""
    with SqliteSaver(str(tmp_path / "db")) as saver:
        told: list[BaseException | None] = []

        def put() -> None:
            try:
                saver.put(place("other"), checkpoint(1), {}, {"a": 1})
            except BaseException as error:
                told.append(error)
            else:
                told.append(None)

        def interrupted() -> Any:
            raise KeyboardInterrupt
            yield

        other = threading.Thread(target=put)
        with saver._database.connections._lock:
            other.start()
            while not saver._database.connections._queue._jobs:
                pass
            with pytest.raises(KeyboardInterrupt):
                saver._database.connections.write(interrupted())
        other.join()

        [error] = told
        assert isinstance(error, PersistenceError)
        assert isinstance(error.__cause__, KeyboardInterrupt)
        assert saver.get_tuple(place("other")) is None
        saver.put(place("other"), checkpoint(2), {}, {"a": 1})


class Notes(TypedDict):
    log: Annotated[list[int], operator.add]


STEPS = 6 * BACKLOG
COLOURS = ("sync", "loop")


def noting(saver: SqliteSaver, at: Callable[[int], object]) -> Any:
    """A graph whose node notes the number of the step, after a call with it."""

    def note(state: Notes) -> Notes:
        at(len(state["log"]))
        return {"log": [len(state["log"])]}

    builder = StateGraph(Notes)
    builder.add_node("note", note)
    builder.add_edge(START, "note")
    builder.add_conditional_edges(
        "note", lambda state: "note" if len(state["log"]) < STEPS else END
    )
    return builder.compile(checkpointer=saver)


def run(graph: Any, colour: str) -> Any:
    config = {**place("t"), "recursion_limit": 1000}
    if colour == "sync":
        return graph.invoke({"log": []}, config, durability="async")
    return asyncio.run(graph.ainvoke({"log": []}, config, durability="async"))


@pytest.mark.parametrize("colour", COLOURS)
def test_steps_that_wait_behind_a_run_are_committed_together(
    tmp_path: Path, colour: str
) -> None:
    path = str(tmp_path / "db")
    with SqliteSaver(path) as saver:
        with closing(sqlite3.connect(path, check_same_thread=False)) as other:
            told: list[str] = []

            def at(step: int) -> None:
                if step == 0:  # now nothing can be stored
                    other.execute("BEGIN IMMEDIATE")
                    saver.conn.set_trace_callback(told.append)
                if step == BACKLOG - 2:
                    other.rollback()

            graph = noting(saver, at)
            assert list(range(STEPS)) == run(graph, colour)["log"]
        # What began while the other wrote is one of them; all the rest went together.
        assert told.count("COMMIT") <= STEPS - (BACKLOG - 3)
        logs = [len(s.values["log"]) for s in graph.get_state_history(place("t"))]
        assert [*reversed(range(STEPS + 1)), 0] == logs


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("bad", range(1, 2 * BACKLOG))
def test_of_steps_committed_together_those_before_a_bad_one_are_stored(
    tmp_path: Path, colour: str, bad: int
) -> None:
    with SqliteSaver(str(tmp_path / "db")) as saver:
        inserted = "(SELECT count(*) FROM towpath_checkpoints)"
        saver.conn.execute(
            "CREATE TEMP TRIGGER broken BEFORE INSERT ON main.towpath_checkpoints"
            f" WHEN {inserted} = {bad} BEGIN SELECT RAISE(ABORT, 'no more'); END"
        )
        graph = noting(saver, lambda step: None)
        with pytest.raises(PersistenceError, match="no more"):
            run(graph, colour)
        saver.conn.execute("DROP TRIGGER broken")
        assert bad == len(list(graph.get_state_history(place("t"))))
        # It goes on from there, with whole values where changes have no ground.
        config = {**place("t"), "recursion_limit": 1000}
        assert list(range(STEPS)) == graph.invoke(None, config)["log"]
        logs = [s.values["log"] for s in graph.get_state_history(place("t"))]
        assert [list(range(len(log))) for log in logs] == logs


class Apart(Staged[Any]):
    """What a saver of a user's stages: nothing goes along with it."""

    def __init__(self, saver: Told, step: int, whole: Staged[Any]) -> None:
        self.saver, self.step, self.whole = saver, step, whole

    def run(self) -> Any:
        self.saver.told.append(self.step)
        return self.whole.run()

    async def arun(self) -> Any:
        self.saver.told.append(self.step)
        await self.saver.goes_on.wait()
        return await self.whole.arun()


class Told(SqliteSaver):
    told: list[int]
    goes_on: asyncio.Event

    def stage_commit(
        self, config: Any, made: Any, metadata: Any, *rest: Any, **options
    ):  # type: ignore[no-untyped-def]
        whole = super().stage_commit(config, made, metadata, *rest, **options)
        if config["configurable"].get("checkpoint_ns"):
            return whole
        return Apart(self, metadata["step"], whole)


async def test_a_blocking_run_in_a_node_finds_the_steps_before_it_stored(
    tmp_path: Path,
) -> None:
    seen: list[int] = []
    async with Told(str(tmp_path / "db")) as saver:
        saver.told, saver.goes_on = [], asyncio.Event()
        inner = StateGraph(Notes)
        inner.add_node("look", lambda state: seen.extend(saver.told))
        inner.add_edge(START, "look")
        looking = inner.compile()

        async def note(state: Notes) -> Notes:
            await asyncio.sleep(0)
            return {"log": [1]}

        async def calls(state: Notes) -> None:
            looking.invoke({"log": []})
            saver.goes_on.set()

        builder = StateGraph(Notes)
        builder.add_sequence([("one", note), ("two", note), ("calls", calls)])
        builder.add_edge(START, "one")
        graph = builder.compile(checkpointer=saver)
        await graph.ainvoke({"log": []}, place("t"), durability="async")
        assert [-1, 0, 1, 2] == seen


@pytest.mark.parametrize("durability", ["sync", "async"])
@pytest.mark.parametrize("turns", range(12))
def test_the_end_of_a_loop_loses_no_step_of_a_run_in_it(
    tmp_path: Path, turns: int, durability: str
) -> None:
    """`asyncio.run` cancels all at once: also what stores, or never began."""
    told: list[int] = []
    with SqliteSaver(str(tmp_path / "db")) as saver:

        async def note(state: Notes) -> Notes:
            await asyncio.sleep(0)
            told.append(len(state["log"]))
            return {"log": [len(state["log"])]}

        async def beside(state: Notes) -> None:
            return None

        builder = StateGraph(Notes)
        builder.add_node("note", note)
        builder.add_node("beside", beside)
        for source in (START, "note"):
            builder.add_conditional_edges(source, lambda state: ["note", "beside"])
        graph = builder.compile(checkpointer=saver)

        async def main() -> None:
            config = {**place("t"), "recursion_limit": 1000}
            run = graph.ainvoke({"log": []}, config, durability=durability)
            main.run = asyncio.ensure_future(run)  # type: ignore[attr-defined]
            for _ in range(turns):
                await asyncio.sleep(0)
            while turns > 6 and len(told) < turns:
                await asyncio.sleep(0)

        asyncio.run(main())
        found = graph.get_state(place("t"))
        writes = [
            write for task in found.tasks for write in (task.result or {}).items()
        ]
        assert max(told, default=-1) < len(found.values.get("log", ())) + len(writes)
