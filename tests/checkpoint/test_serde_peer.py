"""What the peer's codec wrote is read, as far as the program knows the classes."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import pathlib
import uuid
from collections import deque
from dataclasses import dataclass

import ormsgpack
import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from pydantic import BaseModel

from towpath.checkpoint.serde import register
from towpath.checkpoint.serde.jsonplus import (
    JsonPlusSerializer,
    _msgpack_ext_hook_to_json,
)
from towpath.errors import DeserializationError
from towpath.types import Interrupt, Send

pytestmark = pytest.mark.differential


@register
@dataclass
class Doc:
    title: str
    tags: list[str]


@register
class Page(BaseModel):
    number: int


@register
class Colour(enum.Enum):
    RED = "red"


@dataclass
class Unknown:
    secret: int


def written(value):
    """A value as the peer's codec writes it."""
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer as Peers

    return Peers().dumps_typed(value)


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"bytes",
        bytearray(b"bytes"),
        {"a": [1, 2.5, "three", None, True], 4: {"b": "c"}},
        {1, 2},
        frozenset({3}),
        deque([1, 2]),
        uuid.UUID(int=7),
        decimal.Decimal("1.50"),
        dt.datetime(2020, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC),
        dt.date(2020, 1, 2),
        dt.timedelta(days=1, seconds=2),
        pathlib.Path("/a/b"),
        Colour.RED,
        Doc("one", ["a", "b"]),
        Page(number=3),
        [HumanMessage("hi", id="1"), AIMessage("ho", name="ann", tool_calls=[])],
        {"messages": [RemoveMessage(id="2")], "deep": {"doc": Doc("two", [])}},
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_come_back_as_they_were(value):
    assert value == JsonPlusSerializer().loads_typed(written(value))


def test_the_engine_s_own_values_come_back_as_ours():
    from langgraph.types import Interrupt as TheirInterrupt
    from langgraph.types import Send as TheirSend

    value = [TheirSend("a", {"b": 1}), TheirInterrupt("why?", id="7")]
    expected = [Send("a", {"b": 1}), Interrupt("why?", id="7")]
    assert expected == JsonPlusSerializer().loads_typed(written(value))


def test_bytes_never_choose_a_class():
    with pytest.raises(DeserializationError, match="Unknown"):
        JsonPlusSerializer().loads_typed(written(Unknown(1)))
    parts = ormsgpack.packb(["os", "system", "echo no"])
    hostile = ormsgpack.packb(ormsgpack.Ext(0, parts))
    with pytest.raises(DeserializationError, match="os:system"):
        JsonPlusSerializer().loads_typed(("msgpack", hostile))
    with pytest.raises(DeserializationError, match="pickle"):
        JsonPlusSerializer().loads_typed(("pickle", b"cos\nsystem\n."))


def test_servers_show_the_peer_s_bytes_as_json():
    from langgraph.checkpoint.serde.jsonplus import _msgpack_ext_hook_to_json as peers

    value = {"doc": Doc("one", []), "id": uuid.UUID(int=7), "m": HumanMessage("hi")}
    _, content = written(value)
    shown, expected = (
        ormsgpack.unpackb(content, ext_hook=hook)
        for hook in (_msgpack_ext_hook_to_json, peers)
    )
    assert expected == shown


def test_constructors_in_json_are_revived_where_the_class_is_known():
    revive = JsonPlusSerializer()._reviver
    kind = {"lc": 2, "type": "constructor"}
    message = {"lc": 1, "type": "constructor", "kwargs": {"content": "hi"}}
    message["id"] = ["langchain", "schema", "messages", "HumanMessage"]
    unknown = {**kind, "id": ["os", "system"], "args": ["echo no"]}

    assert uuid.UUID(int=0) == revive(
        {**kind, "id": ["uuid", "UUID"], "args": ["0" * 32]}
    )
    assert HumanMessage("hi") == revive(message)
    assert unknown == revive(unknown)
    assert {"a": 1} == revive({"a": 1})
