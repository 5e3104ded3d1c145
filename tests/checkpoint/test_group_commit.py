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
