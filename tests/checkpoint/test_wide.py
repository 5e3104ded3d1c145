"""Checkpoints of many channels, whose rows say what differs from a frame."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towpath.checkpoint.base.saver import Exact
from towpath.checkpoint.layout import WHOLE_MAX
from towpath.checkpoint.memory import InMemorySaver
from towpath.checkpoint.serde.keyring import Keyring
from towpath.checkpoint.sqlite import SqliteSaver
from towpath.testing.conformance_saver import at
from towpath.testing.rows import strays

from .test_changes import checkpoint_of, place

SAVERS = {
    "memory": InMemorySaver,
    "sqlite": lambda: SqliteSaver(":memory:"),
    "sealed": lambda: SqliteSaver(":memory:", encryption=Keyring(bytes(32))),
}
MANY = 60
KINDS = ("small", "long", "append", "append", "remove", "none", "node", "nothing")
steps = st.lists(
    st.tuples(
        st.sampled_from(KINDS),
        st.integers(0, MANY - 1),
        st.sampled_from(("go on", "go on", "go on", "go on", "begin", "fork")),
        st.integers(0, 50),
        st.booleans(),
    ),
    min_size=1,
    max_size=40,
)


@pytest.mark.parametrize("kind", SAVERS)
@settings(deadline=None, max_examples=60)
@given(steps=steps)
def test_what_is_told_by_differences_is_what_was_there(
    kind: str, steps: list[Any]
) -> None:
    with SAVERS[kind]() as saver:
        full = play(saver, steps)
        assert full == {
            found.checkpoint["id"]: told(found) for found in saver.list(place(None))
        }
        for id_, expected in full.items():
            assert expected == told(saver.get_tuple(place(id_)))
        if kind == "sqlite":
            assert [] == strays(saver)
        saver.prune(["t"], keep=3)
        kept = {found.checkpoint["id"]: told(found) for found in saver.list(at("t"))}
        assert kept == {id_: full[id_] for id_ in sorted(full)[-3:]}
        if kind == "sqlite":
            assert [] == strays(saver)


def told(found: Any) -> Any:
    checkpoint = found.checkpoint
    return (
        checkpoint["channel_values"],
        checkpoint["channel_versions"],
        checkpoint["versions_seen"],
        found.pending_writes,
    )


def play(saver: Any, steps: list[Any]) -> dict[str, Any]:
    """Store a history as the engine does; return what all of it was."""
    values: dict[str, Any] = {f"key_{n}": n for n in range(MANY)}
    heads: list[Any] = []
    full: dict[str, Any] = {}

    def put(state: Any, parent: Any, new: Any, writes: Any, written: Any) -> None:
        checkpoint = checkpoint_of(dict(state[0]), dict(state[1]))
        checkpoint["versions_seen"] = dict(state[2])
        config, id_ = place(parent), checkpoint["id"]
        staged = saver.stage_commit(
            config, checkpoint, {}, new, writes, written=written
        )
        staged.run()
        heads.append((*state, id_))
        full[id_] = (*map(frozen, state), [])
        for task, _, made in writes:
            before = full[parent][3]
            if task not in {recorded for recorded, _, _ in before}:  # the first stays
                before += [(task, channel, frozen(value)) for channel, value in made]

    put((values, dict.fromkeys(values, 1), {}), None, {}, (), None)
    for number, (kind, key, where, back, exact) in enumerate(steps):
        at_ = heads[back % len(heads)] if where == "fork" else heads[-1]
        values, versions, seen, parent = at_
        if where != "go on":
            begun = saver.begin_run(place(parent))
            values = begun.checkpoint["channel_values"]
        name = f"key_{key}"
        values, versions, new = dict(values), dict(versions), {}
        write: Any = None
        if kind == "node":
            seen = {**seen, f"node_{key}": {name: versions[name]}}
        elif kind != "nothing":
            old = values.pop(name, None)
            write = {"small": number, "long": f"{number:060}", "none": None}.get(kind)
            if kind == "append":
                write = [{"n": number}, "x"]
                values[name] = [*(old if isinstance(old, list) else ()), *write]
            elif kind != "remove":
                values[name] = write
            versions[name] = new[name] = max(versions.values()) + 1
        writes = [(f"task {parent}", "path", [(name, write)])] if new else []
        follows = exact and where == "go on"
        put(
            (values, versions, seen),
            parent,
            Exact(new) if follows else new,
            writes,
            {name: [write]} if new else {},
        )
    return full


def frozen(value: Any) -> Any:
    """Copy a value, so that it stays what it is."""
    if isinstance(value, dict):
        return {key: frozen(item) for key, item in value.items()}
    return [*map(frozen, value)] if isinstance(value, list) else value


def test_a_row_does_not_grow_with_the_channels_that_are_not_touched() -> None:
    sizes = []
    for many in (100, 10_000):
        values: dict[str, Any] = {f"key_{n}": 1 for n in range(many)}
        versions = dict.fromkeys(values, 1)
        with SqliteSaver(":memory:") as saver:
            config = saver.put(place(None), checkpoint_of(values, versions), {}, {})
            for number in range(20):
                values = {**values, "key_0": number}
                versions = {**versions, "key_0": number + 2}
                checkpoint = checkpoint_of(values, versions)
                new = {"key_0": number + 2}
                config = saver.put(config, checkpoint, {}, new)
            size = "SELECT max(length(header) + length(cells)) FROM towpath_checkpoints"
            sizes += saver.conn.execute(size).fetchone()
            assert values == saver.get_tuple(config).checkpoint["channel_values"]
    assert sizes[0] <= sizes[1] < WHOLE_MAX
