"""Many conversations in one process share the fsync of a transaction."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from towpath.checkpoint.base import empty_checkpoint
from towpath.checkpoint.base.id import checkpoint_id
from towpath.checkpoint.sqlite import SqliteSaver
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
