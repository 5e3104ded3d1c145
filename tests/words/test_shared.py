"""Equal values, each once, and not for ever."""

from __future__ import annotations

from towpath.shared import Shared


def test_equal_values_become_one() -> None:
    shared = Shared[tuple[str, ...]]()
    first = shared.one(tuple("ab"))
    assert first is shared.one(tuple("ab"))
    assert first != shared.one(tuple("ba"))


def test_it_knows_only_so_many() -> None:
    shared = Shared[tuple[int, ...]](most=2)
    first = shared.one((*range(3),))
    for number in range(4):
        assert (number,) == shared.one((number,))
    assert first is not shared.one((*range(3),))
