"""What a driver does with commands: their order, their replies, their failures."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from towpath.checkpoint.base.saver import Capabilities
from towpath.drive.common import BACKLOG
from towpath.kernel.commands import (
    Alarm,
    Fetch,
    FetchAll,
    Flush,
    Persist,
    Recall,
    Record,
    Remember,
    Wait,
)

from .colours import THREAD, Colour, Diary, Simulated


class Boom(Exception):
    pass


def place(id_: str | None = None) -> dict[str, Any]:
    conf = {"thread_id": "thread", "checkpoint_ns": ""}
    return {"configurable": {**conf, "checkpoint_id": id_} if id_ else conf}


def persist(saver: Any, how: Any, parent: str | None = None) -> Persist:
    checkpoint = {
        "v": 4, "channel_values": {}, "channel_versions": {}, "versions_seen": {},
        "updated_channels": None,
    }  # fmt: skip
    return Persist(saver, place(parent), checkpoint, {"step": 0}, {}, (), how)


def record(saver: Any, id_: str, task: str, how: Any) -> Record:
    return Record(saver, place(id_), [(task, task, [("key", 1)])], how)


def kinds(told: list[str]) -> list[str]:
    return [entry.split()[0] for entry in told]


def test_commands_are_obeyed_in_order_and_answered(colour: Colour) -> None:
    saver = Diary()

    def program() -> Any:
        nothing = yield Fetch(saver, THREAD)
        command = persist(saver, "wait")
        id_, ts = yield command
        yield record(saver, id_, "task", "wait")
        yield Flush()
        found = yield Fetch(saver, THREAD)
        rows = yield FetchAll(saver, THREAD)
        return nothing, (id_, ts), command.checkpoint, found, rows

    nothing, stamp, checkpoint, found, rows = colour.drive(program())

    assert nothing is None
    assert stamp == (checkpoint["id"], checkpoint["ts"])
    assert found.checkpoint["id"] == stamp[0]
    assert found.pending_writes == [("task", "key", 1)]
    assert [row.checkpoint["id"] for row in rows] == [stamp[0]]
    assert kinds(saver.told)[:4] == ["get", "put", "writes", "get"]


def test_ids_grow(colour: Colour) -> None:
    saver = Diary()

    def program() -> Any:
        ids = []
        for how in ("wait", "behind", "hold", "behind", "wait"):
            id_, _ = yield persist(saver, how)
            ids.append(id_)
        yield Flush()
        return ids

    ids = colour.drive(program())

    assert sorted(set(ids)) == ids


def test_what_is_held_is_only_stamped(colour: Colour) -> None:
    saver = Diary()

    def program() -> Any:
        command = persist(saver, "hold")
        first = yield command
        command.how = "wait"
        return first, (yield command)

    first, second = colour.drive(program())

    assert first == second
    assert saver.told == [f"put {first[0][:13]}"]


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_failure_is_thrown_in_at_its_command(colour: Colour, failing: int) -> None:
    """The program may record it, raise it, or go on."""
    saver = Diary()
    saver.fails[failing] = Boom()

    def program() -> Any:
        caught = []
        for number, command in enumerate(
            (
                persist(saver, "wait"),
                Fetch(saver, THREAD),
                record(saver, "id", "task", "wait"),
            )
        ):
            try:
                yield command
            except Boom:
                caught.append(number)
        return caught

    assert [failing] == colour.drive(program())


def test_what_a_program_raises_comes_out(colour: Colour) -> None:
    def program() -> Any:
        yield Flush()
        raise Boom

    with pytest.raises(Boom):
        colour.drive(program())


def test_a_program_is_closed_when_its_failure_is_not_caught(colour: Colour) -> None:
    saver, ended = Diary(), []
    saver.fails[0] = Boom()

    def program() -> Any:
        try:
            yield Fetch(saver, THREAD)
        finally:
            ended.append(True)

    with pytest.raises(Boom):
        colour.drive(program())
    assert [True] == ended


def test_what_is_left_behind_is_stored_in_order(colour: Colour) -> None:
    saver = Diary()

    def program() -> Any:
        expected = []
        for number in range(3 * BACKLOG):
            id_, _ = yield persist(saver, "behind")
            yield record(saver, id_, f"task{number}", "behind")
            expected += [f"put {id_[:13]}", f"writes task{number}"]
        yield Flush()
        return expected

    assert colour.drive(program()) == saver.told


def test_what_must_wait_comes_after_what_was_left_behind(colour: Colour) -> None:
    saver = Diary()

    def program() -> Any:
        id_, _ = yield persist(saver, "behind")
        yield record(saver, id_, "first", "behind")
        yield record(saver, id_, "second", "wait")
        return list(saver.told)

    told = colour.drive(program())

    assert ["put", "writes", "writes"] == kinds(told)
    assert told[1:] == ["writes first", "writes second"]


def test_a_flush_waits_for_all_that_was_left_behind(colour: Colour) -> None:
    saver = Diary()

    def program() -> Any:
        for _ in range(BACKLOG):
            yield persist(saver, "behind")
        yield Flush()
        return len(saver.told)

    assert BACKLOG == colour.drive(program())


def test_what_is_left_behind_is_what_it_was_then(colour: Colour) -> None:
    """Storage that lags behind must not see what a later step changes."""
    saver, gate = Diary(), threading.Event()
    if not isinstance(colour, Simulated):
        saver.before = lambda what: wait_for(gate)
    value = ["then"]

    def program() -> Any:
        command = persist(saver, "behind")
        command.checkpoint["channel_values"]["log"] = value
        command.checkpoint["channel_versions"]["log"] = 1
        command.versions = {"log": 1}
        yield command
        value.append("later")
        gate.set()
        yield Flush()
        found = yield Fetch(saver, THREAD)
        return found.checkpoint["channel_values"]["log"]

    assert ["then"] == colour.drive(program())


def wait_for(event: threading.Event) -> None:
    assert event.wait(10), "waited in vain"


def test_the_backlog_is_bounded(colour: Colour) -> None:
    """A run that is faster than its storage is made to wait for it."""
    saver, full = Diary(), threading.Event()
    told, most = [], []

    def before(what: str) -> None:
        if not isinstance(colour, Simulated):
            wait_for(full)  # let the program run as far ahead as it may
        most.append(len(told) - len(saver.told))

    saver.before = before

    def program() -> Any:
        for number in range(4 * BACKLOG):
            yield persist(saver, "behind")
            told.append(number)
            if len(told) == BACKLOG:
                full.set()
        yield Flush()

    colour.drive(program())

    # One more may be on its way into the backlog, and one out of it.
    assert max(most) <= BACKLOG + 2


def test_the_first_failure_behind_the_run_is_raised(colour: Colour) -> None:
    saver = Diary()
    saver.fails = {1: Boom("first"), 2: Boom("second")}

    def program() -> Any:
        for _ in range(BACKLOG):
            yield persist(saver, "behind")
        yield Flush()

    with pytest.raises(Boom, match="first"):
        colour.drive(program())


def test_nothing_is_stored_after_a_failure_behind_the_run(colour: Colour) -> None:
    """What would be stored refers to what was not."""
    saver = Diary()
    saver.fails = {1: Boom()}

    def program() -> Any:
        try:
            for _ in range(3 * BACKLOG):
                yield persist(saver, "behind")
            yield Flush()
        except Boom:
            pass
        try:
            yield persist(saver, "behind")
            yield Flush()
        except Boom:
            pass

    colour.drive(program())

    assert 2 == len(saver.told)


def test_a_saver_that_never_blocks_is_called_at_once(colour: Colour) -> None:
    if isinstance(colour, Simulated):
        pytest.skip("the simulator lets every saver lag behind")
    saver = Diary()
    saver.capabilities = Capabilities(inline=True)
    told = []

    def program() -> Any:
        for _ in range(3):
            yield persist(saver, "behind")
            told.append(len(saver.told))

    colour.drive(program())

    assert [1, 2, 3] == told


def test_waiting_for_nothing_but_a_moment_gives_an_alarm(colour: Colour) -> None:
    def program() -> Any:
        events = yield Wait((), until=0.0)
        return [type(event) for event in events]

    assert [Alarm] == colour.drive(program())


def test_the_cache_is_asked_and_told(colour: Colour) -> None:
    from towpath.cache.memory import InMemoryCache

    cache = InMemoryCache()
    key = (("ns",), "key")

    def program() -> Any:
        before = yield Recall(cache, [key])
        yield Remember(cache, key, (("channel", 1),), None)
        return before, (yield Recall(cache, [key]))

    before, after = colour.drive(program())

    assert {} == before
    assert [("channel", 1)] == [tuple(write) for write in after[key]]
