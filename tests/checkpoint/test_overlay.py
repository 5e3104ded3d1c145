"""Mappings of which one after the other differs in little are as dicts would be."""

from __future__ import annotations

from typing import Any

import pytest

from towpath.checkpoint.overlay import layer
from towpath.constants import MISSING

SIZES = (0, 1, 5, 31, 32, 33, 200)


def dict_of(size: int) -> dict[str, Any]:
    return {f"key {number}": number for number in range(size)}


def changed(content: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    together = {**content, **changes}
    return {key: value for key, value in together.items() if value is not MISSING}


@pytest.mark.parametrize("size", SIZES)
def test_what_is_laid_on_a_mapping_is_seen(size: int) -> None:
    content, laid = dict_of(size), layer(dict_of(size))
    rounds = (
        {"key 0": "first"},
        {"new": 1, "key 3": MISSING} if size > 3 else {"new": 1},
        {"key 3": "again", "new": MISSING},
        {f"key {number}": "all" for number in range(10)},
    )
    for changes in rounds:
        content, laid = changed(content, changes), laid.on(changes)
        assert content == laid.flat()
        assert len(content) == len(laid)
        assert content == {key: laid[key] for key in laid}


@pytest.mark.parametrize("size", SIZES)
def test_a_mapping_that_was_laid_on_is_as_it_was(size: int) -> None:
    laid = layer(dict_of(size))
    laid.on({"key 0": "other", "new": 1})
    assert dict_of(size) == laid


@pytest.mark.parametrize("size", SIZES)
def test_a_key_that_is_gone_is_not_found(size: int) -> None:
    laid = layer(dict_of(size)).on({"gone": 1}).on({"gone": MISSING})
    assert "gone" not in laid
    with pytest.raises(KeyError):
        laid["gone"]
