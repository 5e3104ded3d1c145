"""Values that were taken apart are put together again, whole or from a place on."""

from __future__ import annotations

from typing import Any

import pytest

from towpath.checkpoint.changes import CHANGES, Differ, Link
from towpath.checkpoint.restoring import (
    Item,
    Pending,
    asked_by,
    restore,
    restore_all,
)
from towpath.checkpoint.serde.base import SerializerProtocol
from towpath.checkpoint.serde.compressed import CompressedSerializer
from towpath.checkpoint.serde.jsonplus import JsonPlusSerializer
from towpath.errors import DeserializationError


def versions(serde: SerializerProtocol) -> list[tuple[Link, list[Any]]]:
    """Three versions of a list: whole, grown, and with a piece cut out."""
    first = [{"a": at} for at in range(40)]
    grown = [*first, {"b": 1}, 2]
    cut = [*grown[:3], *grown[5:], {"c": 1}]
    differ, trace, base = Differ(serde), None, None
    found = []
    for value in (first, grown, cut):
        cell, trace = differ.store("c", value, trace, [])
        base = Link(*cell, base if cell[0] in CHANGES else None)
        found.append((base, value))
    return found


@pytest.fixture(params=[JsonPlusSerializer, CompressedSerializer])
def serde(request: pytest.FixtureRequest) -> SerializerProtocol:
    return request.param()


def written(link: Link, start: int | None) -> Pending:
    return Pending("task", "path", 0, "c", link, start)


@pytest.mark.parametrize("held", [False, True])
def test_a_write_is_the_end_of_a_list_from_any_place_on(serde, held):
    for link, value in versions(serde):
        for start in (None, 0, 1, len(value) - 3, len(value) - 1, len(value)):
            links = {"c": link} if held else {}
            _, values, writes = restore(serde, Item((), links, [written(link, start)]))
            assert [("task", "c", value[start:])] == writes
            assert ({"c": value} if held else {}) == values
            assert values.get("c") is not writes[0][2]


def test_versions_are_read_in_any_order_and_number(serde):
    stored = versions(serde)
    for order in ([2, 1, 0], [0, 1, 2], [1, 2, 0, 1], [2, 2, 0, 0, 2], [1]):
        items = [
            Item((), {"c": stored[at][0]}, [written(stored[at][0], None)])
            for at in order
        ]
        asked = [link for item in items for link in asked_by(item)]
        found = list(restore_all(serde, asked, items))
        assert [stored[at][1] for at in order] == [one[1]["c"] for one in found]
        lists = [held for one in found for held in (one[1]["c"], one[2][0][2])]
        assert len(lists) == len({*map(id, lists)})


def test_what_comes_before_damage_can_be_had(serde):
    link, value = versions(serde)[0]
    items = [Item((), {"c": one}) for one in (link, link, Link("tpl", b"\xc1"), link)]
    asked = [one for item in items for one in asked_by(item)]
    found = restore_all(serde, asked, items)
    assert [value, value] == [next(found)[1]["c"] for _ in range(2)]
    with pytest.raises(DeserializationError):
        next(found)
