"""Savers that encrypt: nothing in the clear, nothing out of its place, new keys."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Annotated, TypedDict

import pytest

from towpath import START, Command, StateGraph, interrupt
from towpath.checkpoint.base import Affected
from towpath.checkpoint.serde.encrypted import EncryptedSerializer
from towpath.checkpoint.serde.keyring import Keyring, SealError
from towpath.checkpoint.sqlite import SqliteSaver
from towpath.testing.conformance_colours import Blocking
from towpath.testing.conformance_retention import read, whole
from towpath.testing.conformance_saver import Branch, at, id_of, values

OLD, NEW = b"o" * 32, b"n" * 32
RING = Keyring(OLD)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "threads.db")


def other(number):
    """Too large to be kept in the row of a checkpoint."""
    return f"SECRET other {number:040}"


def fill(saver, thread="t"):
    """Store values that grow, writes, and metadata, all of which are secret."""
    branch = Branch(Blocking(saver), at(thread))
    grown = []
    for number in range(4):
        grown = [*grown, f"SECRET value {number}"]
        config = branch.put(
            {"grown": grown, "other": other(number)},
            {"user": "SECRET user", "number": number},
        )
        saver.put_writes(config, [("w", f"SECRET write {number}")], "task")
    Branch(Blocking(saver), at(thread, "child")).put({"c": "SECRET child"})
    return branch


def everything(saver, thread="t"):
    return read(saver.list(whole(thread)))


def bytes_on_disk(path):
    folder = Path(path).parent
    return b"".join(file.read_bytes() for file in folder.iterdir())


# What can be read without a key


def test_no_value_and_no_metadata_is_in_the_file(path):
    with SqliteSaver(path) as saver:
        fill(saver, "plain")
        assert b"SECRET" in bytes_on_disk(path)
        saver.delete_thread("plain")
        saver.vacuum()
    with SqliteSaver(path, encryption=RING) as saver:
        assert b"SECRET" not in bytes_on_disk(path)
        fill(saver)
        saver.copy_thread("t", "copy")
        stored = bytes_on_disk(path)
        assert b"SECRET" not in stored
        for known in (b"channel_versions", b"user", b"grown", b"other"):
            assert known not in stored
        assert 10 == len(everything(saver)) + len(everything(saver, "copy"))
    assert b"SECRET" not in bytes_on_disk(path)


class State(TypedDict):
    log: Annotated[list[str], operator.add]


def test_a_graph_is_interrupted_and_goes_on_in_another_process(path):
    def ask(state: State) -> State:
        return {"log": [interrupt("SECRET question")]}

    builder = StateGraph(State).add_node("ask", ask).add_edge(START, "ask")
    thread = {"configurable": {"thread_id": "t"}}
    with SqliteSaver(path, encryption=RING) as saver:
        builder.compile(checkpointer=saver).invoke({"log": ["SECRET input"]}, thread)
        assert b"SECRET" not in bytes_on_disk(path)
    with SqliteSaver(path, encryption=RING) as saver:
        graph = builder.compile(checkpointer=saver)
        done = graph.invoke(Command(resume="SECRET answer"), thread)
        assert {"log": ["SECRET input", "SECRET answer"]} == done
        assert b"SECRET" not in bytes_on_disk(path)


def test_metadata_filters_still_work(path):
    with SqliteSaver(path, encryption=RING) as saver:
        fill(saver)
        [found] = saver.list(None, filter={"user": "SECRET user", "number": 2})
        assert other(2) == values(found)["other"]
        assert 4 == len(list(saver.list(None, filter={"user": "SECRET user"})))


# What somebody who has no key can do to the rows


SWAPS = {
    "values of two cells": (
        "UPDATE towpath_cells SET tag = (SELECT tag FROM towpath_cells WHERE id = {b}),"
        " data = (SELECT data FROM towpath_cells WHERE id = {b}) WHERE id = {a}"
    ),
    "what a cell builds on": "UPDATE towpath_cells SET base = 1 WHERE base IS NOT NULL",
    "metadata of two checkpoints": (
        "UPDATE towpath_checkpoints SET meta ="
        " (SELECT o.meta FROM towpath_checkpoints o"
        " WHERE o.id < towpath_checkpoints.id ORDER BY o.id LIMIT 1) WHERE id = '{id}'"
    ),
    "headers of two checkpoints": (
        "UPDATE towpath_checkpoints SET header ="
        " (SELECT o.header FROM towpath_checkpoints o"
        " WHERE o.id < towpath_checkpoints.id ORDER BY o.id LIMIT 1) WHERE id = '{id}'"
    ),
    "which cells a checkpoint is made of": (
        "UPDATE towpath_checkpoints SET cells ="
        " (SELECT o.cells FROM towpath_checkpoints o"
        " WHERE o.id < towpath_checkpoints.id ORDER BY o.id LIMIT 1) WHERE id = '{id}'"
    ),
    "a write of another checkpoint": (
        "UPDATE towpath_writes SET data = (SELECT o.data FROM towpath_writes o"
        " WHERE o.checkpoint < towpath_writes.checkpoint ORDER BY o.checkpoint LIMIT 1)"
        " WHERE checkpoint = '{id}'"
    ),
    "the channel of a write": "UPDATE towpath_writes SET channel = 'other'",
    "the name of a thread": "UPDATE towpath_spaces SET thread = 'u', ns = ''",
    "a bit": "UPDATE towpath_cells SET data = CAST(data || x'00' AS BLOB)",
    "a value in the clear": "UPDATE towpath_cells SET tag = 'null', data = x''",
}


NEWEST_CELLS = (
    "SELECT k.id FROM towpath_cells k JOIN towpath_spaces s ON s.id = k.id >> 32"
    " ORDER BY k.id DESC LIMIT 2"
)


@pytest.mark.parametrize("what", SWAPS)
def test_what_was_changed_or_moved_does_not_open(path, what):
    with SqliteSaver(path, encryption=RING) as saver:
        newest = id_of(fill(saver).config)
        with saver.cursor() as cursor:
            cursor.execute("DELETE FROM towpath_spaces WHERE ns = 'child'")
            found = cursor.execute(NEWEST_CELLS).fetchall()
            (one,), (other,) = found
            cursor.execute(SWAPS[what].format(a=one, b=other, id=newest))
            assert cursor.rowcount
        thread = "u" if what == "the name of a thread" else "t"
        with pytest.raises(SealError):
            saver.get_tuple(at(thread))


def test_a_thread_is_only_copied_by_who_has_the_key(path):
    with SqliteSaver(path, encryption=RING) as saver:
        fill(saver)
        affected = saver.copy_thread("t", "copy")
        assert (1, 5, 4) == (affected.threads, affected.checkpoints, affected.writes)
        for one, other in zip(
            saver.list(whole("t")), saver.list(whole("copy")), strict=True
        ):
            assert one.checkpoint == other.checkpoint
            assert one.metadata == other.metadata
            assert one.pending_writes == other.pending_writes
    with (
        SqliteSaver(path, encryption=Keyring(NEW)) as saver,
        pytest.raises(SealError),
    ):
        saver.copy_thread("t", "another")
    with SqliteSaver(path, encryption=RING) as saver:
        assert [] == everything(saver, "another")


# Keys


def test_a_missing_key_is_named(path):
    with SqliteSaver(path, encryption=RING) as saver:
        fill(saver)
    [key_id] = RING.key_ids
    with (
        SqliteSaver(path, encryption=Keyring(NEW)) as saver,
        pytest.raises(SealError, match=key_id.hex()),
    ):
        saver.get_tuple(at())


def test_a_key_is_changed_and_the_old_one_thrown_away(path):
    with SqliteSaver(path, encryption=RING) as saver:
        fill(saver, "t")
        fill(saver, "u")
        before = everything(saver, "t"), everything(saver, "u")
        assert Affected() == saver.rotate()
    with SqliteSaver(path, encryption=Keyring(NEW, OLD)) as saver:
        assert before == (everything(saver, "t"), everything(saver, "u"))
        would = saver.rotate(dry_run=True)
        assert (2, 10, 8) == (would.threads, would.checkpoints, would.writes)
        assert 1 == saver.rotate(["t"]).threads
        rest = saver.rotate()
        assert (1, 5, 4, would.cells // 2) == (
            *(rest.threads, rest.checkpoints, rest.writes, rest.cells),
        )
        assert Affected() == saver.rotate()
    with SqliteSaver(path, encryption=Keyring(NEW)) as saver:
        assert before == (everything(saver, "t"), everything(saver, "u"))


async def test_keys_are_changed_from_an_event_loop(path):
    async with SqliteSaver(path, encryption=RING) as saver:
        fill(saver)
    async with SqliteSaver(path, encryption=Keyring(NEW, OLD)) as saver:
        assert (await saver.arotate()).threads == 1


def test_without_keys_the_error_says_what_is_missing(path):
    with SqliteSaver(path, encryption=RING) as saver:
        branch = fill(saver)
    with SqliteSaver(path) as saver:
        for read_or_write in (
            lambda: saver.get_tuple(at()),
            lambda: list(saver.list(None)),
            lambda: Branch(Blocking(saver), branch.config).put({"a": 1}),
            lambda: saver.prune(["t"]),
            lambda: saver.copy_thread("t", "u"),
        ):
            with pytest.raises(SealError, match="no key"):
                read_or_write()
        assert 1 == saver.delete_thread("t").threads


def test_what_a_serializer_encrypts_can_be_sealed_as_well(path):
    serde = EncryptedSerializer(RING)
    with SqliteSaver(path, serde=serde) as saver:
        fill(saver)
        before = everything(saver)
    ring = Keyring(OLD, accept_plain=True)
    with SqliteSaver(path, serde=serde, encryption=ring) as saver:
        assert before == everything(saver)
        assert 5 == saver.rotate().checkpoints
    with SqliteSaver(path, serde=serde, encryption=RING) as saver:
        assert before == everything(saver)


def test_what_is_older_than_the_key_is_read_and_sealed(path):
    with SqliteSaver(path) as saver:
        branch = fill(saver)
        before = everything(saver)
    with SqliteSaver(path, encryption=RING) as saver, pytest.raises(SealError):
        saver.get_tuple(at())
    with SqliteSaver(path, encryption=Keyring(OLD, accept_plain=True)) as saver:
        assert before == everything(saver)
        branch.saver = Blocking(saver)
        branch.put({"other": "SECRET new"})  # builds on what is not sealed
        saver.prune(["t"], keep=3)
        now = everything(saver)
        assert 3 == saver.rotate().checkpoints  # two of the thread, one of the child
    with SqliteSaver(path, encryption=RING) as saver:
        assert now == everything(saver)
        saver.vacuum()
    assert b"SECRET" not in bytes_on_disk(path)


def test_a_thread_longer_than_a_page_is_sealed_again_as_a_whole(path):
    with SqliteSaver(path, encryption=RING, synchronous="OFF") as saver:
        branch = Branch(Blocking(saver), at())
        for number in range(450):
            writes = [("task", "", [("w", number), ("x", number)])] if number else None
            branch.put({"n": other(number)}, writes=writes)
        before = everything(saver)
        copied = saver.copy_thread("t", "copy")
        assert (450, 898, 450) == (copied.checkpoints, copied.writes, copied.cells)
    with SqliteSaver(path, encryption=Keyring(NEW, OLD)) as saver:
        assert 900 == saver.rotate().checkpoints
    with SqliteSaver(path, encryption=Keyring(NEW)) as saver:
        assert before == everything(saver)
        assert 450 == len(everything(saver, "copy"))


def test_without_keys_there_is_nothing_to_change():
    with (
        SqliteSaver(":memory:") as saver,
        pytest.raises(ValueError, match="encryption"),
    ):
        saver.rotate()
