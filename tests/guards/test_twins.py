"""A verb and its asynchronous twin take the same arguments."""

from __future__ import annotations

import inspect

import pytest

from towpath.checkpoint.base import BaseCheckpointSaver
from towpath.checkpoint.memory import InMemorySaver
from towpath.checkpoint.sql import SqlSaver
from towpath.checkpoint.sqlite import SqliteSaver
from towpath.graph.state import CompiledStateGraph
from towpath.pregel import Pregel

CLASSES = (
    Pregel,
    CompiledStateGraph,
    BaseCheckpointSaver,
    InMemorySaver,
    SqlSaver,
    SqliteSaver,
)
VERBS = {
    *("invoke", "stream", "batch", "batch_as_completed", "get_state"),
    *("get_state_history", "update_state", "bulk_update_state", "get_subgraphs"),
}


def twins(owner: type) -> list[tuple[str, str]]:
    names = {name for name, _ in inspect.getmembers(owner, inspect.isfunction)}
    return [(name, f"a{name}") for name in sorted(names) if f"a{name}" in names]


def arguments(owner: type, name: str) -> list[tuple[str, object, object]]:
    parameters = inspect.signature(getattr(owner, name)).parameters.values()
    return [(one.name, one.kind, one.default) for one in parameters]


@pytest.mark.parametrize("owner", CLASSES, ids=lambda owner: owner.__name__)
def test_twins_have_equal_signatures(owner):
    for name, twin in twins(owner):
        assert arguments(owner, name) == arguments(owner, twin), name


def test_every_verb_has_a_twin():
    assert set() == VERBS - {name for name, _ in twins(Pregel)}
