"""A saver that stores changes holds what one that stores everything would hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towpath.checkpoint.base import empty_checkpoint
from towpath.checkpoint.base.id import checkpoint_id
from towpath.checkpoint.memory import InMemorySaver
from towpath.checkpoint.serde.jsonplus import JsonPlusSerializer
from towpath.checkpoint.sqlite import SqliteSaver

SAVERS: dict[str, Callable[[], Any]] = {
    "memory": InMemorySaver,
    "sqlite": lambda: SqliteSaver(":memory:"),
}
Head = tuple[dict[str, Any], dict[str, int], str | None]
plain = JsonPlusSerializer()

scalars = (
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(0, 1) | st.text("ab")
)
elements = st.one_of(
    scalars,
    st.dictionaries(st.sampled_from("xyz"), scalars, max_size=2),
    st.lists(scalars, max_size=2),
    st.tuples(scalars, scalars),
)
values = st.one_of(
    st.lists(elements, max_size=8),
    st.dictionaries(st.text("abcde", min_size=1, max_size=2), elements, max_size=8),
    scalars,
    st.sets(st.integers(0, 3)),
)
numbers = st.integers(0, 30)
changes = st.tuples(
    st.sampled_from(
        (
            *("append", "append", "append", "insert", "remove", "replace", "swap"),
            *("twice", "in place", "set", "other", "same", "clear"),
        )
    ),
    numbers,
    elements,
    values,
)
steps = st.lists(
    st.tuples(
        st.sampled_from(("a", "b")),
        changes,
        st.sampled_from(("go on", "go on", "go on", "go on", "fork", "begin")),
        numbers,
    ),
    min_size=1,
    max_size=25,
)


def changed(value: Any, change: tuple[str, int, Any, Any]) -> Any:
    """Make the next value of a channel out of the one before, as reducers do."""
    kind, number, element, other = change
    if kind == "other" or not isinstance(value, list | dict):
        return other
    if kind == "same":
        return value
    if kind == "clear":
        return type(value)()
    if isinstance(value, dict):
        return changed_dict(dict(value), kind, number, element)
    return changed_list(list(value), kind, number, element)


def changed_list(value: list[Any], kind: str, number: int, element: Any) -> Any:
    at = number % (len(value) or 1)
    if kind == "append" or not value:
        return [*value, element]
    if kind == "insert":
        return [*value[:at], element, *value[at:]]
    if kind == "remove":
        return value[:at] + value[at + 1 :]
    if kind == "swap":
        return value[at:] + value[:at]
    if kind == "twice":
        return [*value, value[at]]
    if kind == "in place" and isinstance(value[at], list | dict):
        mutate(value[at], element)
        return value
    value[at] = element
    return value


def changed_dict(value: dict[str, Any], kind: str, number: int, element: Any) -> Any:
    keys = list(value)
    key = keys[number % len(keys)] if keys else "new"
    if kind == "remove":
        value.pop(key, None)
    elif kind == "swap" and keys:
        value[key] = value.pop(key)  # the same, in another order
    elif kind == "in place" and isinstance(value.get(key), list | dict):
        mutate(value[key], element)
    else:
        value[key if kind == "replace" else f"{kind[0]}{number}"] = element
    return value


def mutate(item: Any, element: Any) -> None:
    if isinstance(item, list):
        item.append(element)
    else:
        item["new"] = element


def exact(value: Any) -> bytes:
    """Tell values apart by type as well, and dicts by order."""
    return plain.dumps_typed(value)[1]


@pytest.mark.parametrize("kind", SAVERS)
@settings(deadline=None, max_examples=150)
@given(steps=steps)
def test_what_is_stored_as_changes_is_what_was_there(
    kind: str, steps: list[Any]
) -> None:
    """Through forks, removals, replacements, and changes in place."""
    with SAVERS[kind]() as saver:
        play(saver, steps)


def play(saver: Any, steps: list[Any]) -> None:
    """Store a history, and compare all of it with what it was."""
    full: dict[str, bytes] = {}
    heads: list[Head] = [({}, {}, None)]
    for channel, change, where, number in steps:
        state, versions, parent = heads[number % len(heads) if where == "fork" else -1]
        config = place(parent)
        if where != "go on" and parent is not None:
            state = dict(saver.begin_run(config).checkpoint["channel_values"])
        state = {**state, channel: changed(state.get(channel), change)}
        versions = {**versions, channel: max(versions.values(), default=0) + 1}
        checkpoint = checkpoint_of(state, versions)
        full[checkpoint["id"]] = exact(state)
        saver.put(config, checkpoint, {}, {channel: versions[channel]})
        heads.append((state, versions, checkpoint["id"]))
    for at, expected in full.items():
        found = saver.get_tuple(place(at))
        assert exact(found.checkpoint["channel_values"]) == expected
    listed = {
        found.checkpoint["id"]: exact(found.checkpoint["channel_values"])
        for found in saver.list(place(None))
    }
    assert listed == full


def checkpoint_of(state: dict[str, Any], versions: dict[str, int]) -> Any:
    return {
        **empty_checkpoint(),
        "id": checkpoint_id(),
        "channel_values": state,
        "channel_versions": versions,
    }


def place(at: str | None) -> Any:
    conf = {"thread_id": "t", "checkpoint_ns": ""}
    return {"configurable": conf if at is None else {**conf, "checkpoint_id": at}}
