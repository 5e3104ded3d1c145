"""The contract's words, and the base of savers."""

from __future__ import annotations

import asyncio

import pytest

from towpath.channels import EphemeralValue, LastValue
from towpath.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    Capabilities,
    copy_checkpoint,
    create_checkpoint,
    empty_checkpoint,
    get_checkpoint_id,
    get_checkpoint_metadata,
    get_serializable_checkpoint_metadata,
)
from towpath.checkpoint.memory import InMemorySaver


def test_a_copy_does_not_share_the_containers():
    checkpoint = empty_checkpoint()
    checkpoint["versions_seen"] = {"node": {"a": 1}}
    copy = copy_checkpoint(checkpoint)
    copy["channel_values"]["a"] = 1
    copy["versions_seen"]["node"]["a"] = 2
    assert {} == checkpoint["channel_values"]
    assert {"node": {"a": 1}} == checkpoint["versions_seen"]


def test_a_created_checkpoint_holds_what_the_channels_hold():
    full, empty, unversioned = (
        LastValue(int, "full"),
        LastValue(int, "empty"),
        LastValue(int, "x"),
    )
    full.update([5])
    unversioned.update([6])
    before = empty_checkpoint()
    before["channel_versions"] = {"full": 1, "empty": 1}
    channels = {"full": full, "empty": empty, "x": unversioned}
    made = create_checkpoint(before, channels, 1)
    assert {"full": 5} == made["channel_values"]
    assert before["id"] < made["id"]
    assert "mine" == create_checkpoint(before, None, 1, id="mine")["id"]


def test_without_channels_the_values_are_carried_over():
    before = empty_checkpoint()
    before["channel_values"] = {"a": 1}
    assert {"a": 1} == create_checkpoint(before, None, 1)["channel_values"]


def test_an_ephemeral_channel_leaves_nothing():
    channel = EphemeralValue(int)
    before = empty_checkpoint()
    before["channel_versions"] = {"e": 1}
    assert {} == create_checkpoint(before, {"e": channel}, 1)["channel_values"]


CONFIGS = [
    {"configurable": {"thread_id": "t"}},
    {"configurable": {"thread_id": "t", "user": "ann", "n": 1, "f": 1.5, "b": True}},
    {"configurable": {"thread_id": "t", "__secret": 1, "list": [1], "none": None}},
    {"configurable": {"a": "from configurable"}, "metadata": {"a": "from metadata"}},
    {
        "configurable": {},
        "metadata": {"step": 77, "nul": "a\0b", "langgraph_node": "n"},
    },
]


@pytest.mark.differential
@pytest.mark.parametrize("config", CONFIGS)
def test_metadata_is_merged_as_the_peer_merges_it(config):
    from langgraph.checkpoint import base as peer

    facts = {"source": "loop", "step": 1, "writes": {"a": 1}}
    assert peer.get_checkpoint_metadata(config, facts) == get_checkpoint_metadata(
        config, facts
    )
    assert peer.get_serializable_checkpoint_metadata(
        config, facts
    ) == get_serializable_checkpoint_metadata(config, facts)


@pytest.mark.differential
def test_the_places_of_special_writes_are_the_peers():
    from langgraph.checkpoint import base as peer

    assert peer.WRITES_IDX_MAP == WRITES_IDX_MAP


def test_an_empty_checkpoint_id_is_none_at_all():
    assert (
        InMemorySaver().get_tuple(
            {"configurable": {"thread_id": "t", "checkpoint_id": ""}}
        )
        is None
    )
    assert get_checkpoint_id({"configurable": {}}) is None


def test_versions_are_counted():
    saver: BaseCheckpointSaver = BaseCheckpointSaver()
    assert [1, 2, 2.5] == [saver.get_next_version(v, None) for v in (None, 1, 1.5)]
    with pytest.raises(NotImplementedError):
        saver.get_next_version("1", None)


def test_what_a_saver_does_not_implement_says_so():
    saver: BaseCheckpointSaver = BaseCheckpointSaver()
    config = {"configurable": {"thread_id": "t"}}
    with pytest.raises(NotImplementedError):
        saver.get_tuple(config)
    with pytest.raises(NotImplementedError):
        asyncio.run(saver.aget_tuple(config))
    assert Capabilities() == saver.capabilities
    assert [] == saver.config_specs


class OnlyBlocking(BaseCheckpointSaver[int]):
    """A saver of an outside author who wrote the blocking methods alone."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = InMemorySaver()
        for name in ("get_tuple", "list", "put", "put_writes"):
            setattr(self, name, getattr(self.inner, name))


async def test_a_blocking_saver_serves_the_loop_through_threads():
    saver = OnlyBlocking()
    config = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    config = await saver.aput(config, empty_checkpoint(), {"step": 0}, {})
    child = empty_checkpoint()
    await saver.acommit(config, child, {"step": 1}, {}, [("task", "", [("x", 1)])])
    parent = await saver.aget_tuple(config)
    assert [("task", "x", 1)] == parent.pending_writes
    assert 2 == len([found async for found in saver.alist(None)])
    assert child["id"] == (await saver.aget({"configurable": {"thread_id": "t"}}))["id"]


def test_the_contract_loads_neither_codec_nor_loop(printed_apart):
    heavy = ("asyncio", "ormsgpack", "sqlite3", "pydantic", "langchain_core")
    program = (
        "import sys, towpath.checkpoint.base, towpath.store.base, towpath.cache.base\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    printed = printed_apart(program)
    assert "[]" == printed.strip()
