"""What is particular to the saver in memory."""

from __future__ import annotations

import operator
import threading
from typing import Annotated, TypedDict

import pytest

from towpath import START, StateGraph
from towpath.checkpoint.base import empty_checkpoint
from towpath.checkpoint.memory import InMemorySaver, MemorySaver
from towpath.checkpoint.serde.jsonplus import JsonPlusSerializer
from towpath.errors import SerializationError
from towpath.testing.conformance_saver import Blocking, Branch, at, id_of, values


def test_the_former_name_is_the_class():
    assert InMemorySaver is MemorySaver


def test_its_blocking_methods_may_be_called_on_a_loop():
    assert InMemorySaver().capabilities.inline


def test_storage_and_writes_are_keyed_as_the_peers():
    saver = InMemorySaver()
    config = Branch(Blocking(saver), at("t", "ns")).put({"a": 1})
    saver.put_writes(config, [("x", 1)], "task")
    assert [id_of(config)] == [*saver.storage["t"]["ns"]]
    assert [("t", "ns", id_of(config))] == [*saver.writes]
    assert [("task", 0)] == [*saver.writes["t", "ns", id_of(config)]]


def test_reading_makes_no_entries():
    saver = InMemorySaver()
    saver.get_tuple(at("nobody"))
    list(saver.list(at("nobody")))
    assert {} == saver.storage
    assert {} == saver.writes


def test_an_unchanged_value_is_kept_once():
    branch = Branch(Blocking(saver := InMemorySaver()), at())
    branch.put({"big": "x" * 1000, "n": 0})
    for number in range(5):
        branch.put({"n": number})
    kept = {id(record.cells["big"]) for record in saver.storage["t"][""].values()}
    assert 1 == len(kept)


def test_what_a_task_wrote_is_kept_once():
    """What is pending on a checkpoint refers to what the next one has of it."""

    class State(TypedDict):
        text: str
        notes: Annotated[list[str], operator.add]

    builder = StateGraph(State)
    builder.add_node("write", lambda state: {"text": "x" * 9000, "notes": ["y" * 9000]})
    builder.add_edge(START, "write")
    graph = builder.compile(checkpointer=(saver := InMemorySaver()))
    graph.invoke({"notes": []}, at("t"))
    [summary] = saver.threads()
    assert 18_000 < summary.bytes < 20_000
    [_, began, _] = saver.list(at("t"))
    written = {channel: value for _, channel, value in began.pending_writes}
    assert {"text": "x" * 9000, "notes": ["y" * 9000]} == written


def test_pending_writes_go_with_their_thread_or_one_by_one():
    saver = InMemorySaver()
    configs = [Branch(Blocking(saver), at(name)).put({"a": 1}) for name in "tu"]
    for config in configs:
        saver.put_writes(config, [("x", 1), ("y", 2)], "task")
    del saver.storage["t"]
    [key] = saver.writes
    assert [("task", 0), ("task", 1)] == [*saver.writes[key]]
    assert "y" == saver.writes[key]["task", 1].channel
    del saver.writes[key]
    assert [] == saver.get_tuple(configs[1]).pending_writes
    with pytest.raises(KeyError):
        del saver.writes[key]


def test_a_codec_of_ones_own_sees_every_value():
    class Counting(JsonPlusSerializer):
        seen: list = []

        def dumps_typed(self, obj):
            self.seen.append(obj)
            return super().dumps_typed(obj)

    saver = InMemorySaver(serde=Counting())
    config = Branch(Blocking(saver), at()).put({"secret": "s"})
    saver.put_writes(config, [("x", "w")], "task")
    assert {"s", "w"} <= {item for item in Counting.seen if isinstance(item, str)}


def test_threads_do_not_lose_each_others_checkpoints():
    saver = InMemorySaver()

    def work(name: str) -> None:
        branch = Branch(Blocking(saver), at(name))
        for number in range(50):
            saver.put_writes(branch.put({"n": number}), [("x", number)], "task")
            list(saver.list(at(name), limit=2))

    threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 300 == len(list(saver.list(None)))


def test_a_checkpoint_with_a_value_but_no_version_keeps_it():
    saver = InMemorySaver()
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = {"odd": 1}
    config = saver.put(at(), checkpoint, {"step": 0}, {})
    assert {"odd": 1} == values(saver.get_tuple(config))
    child = empty_checkpoint()
    assert {} == values(saver.get_tuple(saver.put(config, child, {"step": 1}, {})))


async def test_it_is_its_own_context_manager_in_both_colours():
    with InMemorySaver() as one:
        assert isinstance(one, InMemorySaver)
    async with InMemorySaver() as two:
        assert await two.aget_tuple(at()) is None


def test_what_cannot_be_stored_is_named_with_its_channel():
    saver = InMemorySaver()
    branch = Branch(Blocking(saver), at())
    with pytest.raises(SerializationError, match=r"channel `a`, at `\$\.lock`"):
        branch.fork().put({"a": {"lock": threading.Lock()}})
    with pytest.raises(SerializationError, match=r"the metadata, at `\$\.user`"):
        branch.fork().put({"a": 1}, {"user": object()})
    config = branch.put({"a": 1})
    with pytest.raises(SerializationError, match="channel `x`"):
        saver.put_writes(config, [("x", object())], "task")
