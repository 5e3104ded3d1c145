"""What every checkpointer must do. `towpath.testing.conformance` runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from towpath.checkpoint.base import (
    CheckpointTuple,
    TaskWrites,
    empty_checkpoint,
)
from towpath.constants import ERROR, INTERRUPT, MISSING, RESUME
from towpath.testing.conformance_colours import Blocking
from towpath.types import RunnableConfig

HOSTILE = (
    "it's",
    '"quoted"',
    "100%",
    "under_score",
    "dotted.key",
    "$.path",
    "[0]",
    "{braces}",
    "a|b:c",
    "a/b\\c",
    "; DROP TABLE checkpoints; --",
    "new\nline",
    " ",
    "NULL",
    "0",
    "grün 🦜 日本",
    "long" * 1000,
)
"""Names that a query built from text would stumble over."""


def at(thread: object = "t", ns: str = "", id: str | None = None) -> RunnableConfig:
    """Return the config of a place."""
    configurable = {"thread_id": thread, "checkpoint_ns": ns}
    return {"configurable": configurable | ({"checkpoint_id": id} if id else {})}


class Branch:
    """Puts checkpoints on top of each other, as a run does."""

    def __init__(
        self,
        saver: Blocking,
        config: RunnableConfig,
        values: dict[str, Any] | None = None,
    ) -> None:
        self.saver = saver
        self.config = config
        self.values: dict[str, Any] = values or {}
        self.versions: dict[str, Any] = dict.fromkeys(self.values, 1)
        self.step = -2

    def fork(self) -> Branch:
        """Return a branch that goes on from here."""
        branch = Branch(self.saver, self.config)
        branch.values, branch.versions = dict(self.values), dict(self.versions)
        branch.step = self.step
        return branch

    def put(
        self,
        changes: Mapping[str, Any],
        metadata: Mapping[str, Any] | None = None,
        writes: Sequence[TaskWrites] | None = None,
    ) -> RunnableConfig:
        """Store a checkpoint in which these channels changed, some to MISSING."""
        self.step += 1
        next_version = self.saver.saver.get_next_version
        newest = max(self.versions.values(), default=None)
        new = dict.fromkeys(changes, next_version(newest, None))
        held = {**self.values, **changes}.items()
        self.values = {key: value for key, value in held if value is not MISSING}
        self.versions |= new
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = dict(self.values)
        checkpoint["channel_versions"] = dict(self.versions)
        checkpoint["versions_seen"] = {"node": dict(self.versions)}
        checkpoint["updated_channels"] = sorted(changes)
        facts: Any = {"source": "loop", "step": self.step, **(metadata or {})}
        if writes is None:
            self.config = self.saver.put(self.config, checkpoint, facts, new)
        else:
            self.config = self.saver.commit(self.config, checkpoint, facts, new, writes)
        return self.config


def id_of(config: RunnableConfig | None) -> str:
    """Return the checkpoint id in a config."""
    assert config is not None
    found: str = config["configurable"]["checkpoint_id"]
    return found


def ids(found: Iterable[CheckpointTuple]) -> list[str]:
    """Return the ids of checkpoints."""
    return [id_of(item.config) for item in found]


def values(found: CheckpointTuple | None) -> dict[str, Any]:
    """Return the values of a checkpoint."""
    assert found is not None
    return found.checkpoint["channel_values"]


def raises(kind: type[Exception], call: Callable[[], object]) -> None:
    """Check that a call fails in this way."""
    try:
        call()
    except kind:
        return
    raise AssertionError(f"no {kind.__name__} was raised")


class SaverChecks:
    """Each method is a check, and its name is what a saver guarantees."""

    # Reading what was put

    def an_unknown_thread_has_no_checkpoint(self, saver: Blocking) -> None:
        assert saver.get_tuple(at("nobody")) is None
        assert saver.list(at("nobody")) == []

    def an_unknown_id_has_no_checkpoint(self, saver: Blocking) -> None:
        Branch(saver, at()).put({"a": 1})
        assert saver.get_tuple(at(id="1f000000-0000-6000-8000-000000000000")) is None

    def a_checkpoint_comes_back_as_it_was_put(self, saver: Blocking) -> None:
        branch = Branch(saver, at())
        config = branch.put(
            {"a": [1, {"b": None}], "c": "text"}, {"parents": {"": "x"}}
        )
        found = saver.get_tuple(config)
        assert found is not None
        assert values(found) == {"a": [1, {"b": None}], "c": "text"}
        assert branch.versions == found.checkpoint["channel_versions"]
        assert {"node": branch.versions} == found.checkpoint["versions_seen"]
        assert found.checkpoint["updated_channels"] == ["a", "c"]
        assert id_of(config) == found.checkpoint["id"]
        assert found.metadata == {"source": "loop", "step": -1, "parents": {"": "x"}}
        assert not found.pending_writes

    def put_returns_the_config_that_leads_to_the_checkpoint(
        self, saver: Blocking
    ) -> None:
        config = Branch(saver, at("t", "ns")).put({"a": 1})
        place = config["configurable"]
        assert place["thread_id"] == "t"
        assert place["checkpoint_ns"] == "ns"
        assert values(saver.get_tuple(config)) == {"a": 1}

    def the_newest_checkpoint_is_found_without_an_id(self, saver: Blocking) -> None:
        branch = Branch(saver, at())
        branch.put({"a": 1})
        newest = branch.put({"a": 2})
        found = saver.get_tuple(at())
        assert found is not None
        assert id_of(newest) == id_of(found.config)

    def an_old_checkpoint_keeps_its_values(self, saver: Blocking) -> None:
        branch = Branch(saver, at())
        configs = [branch.put({"a": number}) for number in range(3)]
        assert [values(saver.get_tuple(c)) for c in configs] == [
            {"a": 0},
            {"a": 1},
            {"a": 2},
        ]

    def the_parent_is_the_checkpoint_that_was_named(self, saver: Blocking) -> None:
        branch = Branch(saver, at())
        first, second = branch.put({"a": 1}), branch.put({"a": 2})
        root, child = saver.get_tuple(first), saver.get_tuple(second)
        assert root is not None
        assert child is not None
        assert root.parent_config is None
        assert id_of(first) == id_of(child.parent_config)

    def unchanged_channels_are_read_from_the_parent(self, saver: Blocking) -> None:
        branch = Branch(saver, at())
        branch.put({"kept": "x", "changed": 1})
        config = branch.put({"changed": 2})
        assert values(saver.get_tuple(config)) == {"kept": "x", "changed": 2}

    def a_branch_does_not_see_the_other(self, saver: Blocking) -> None:
        trunk = Branch(saver, at())
        trunk.put({"a": 0, "b": 0})
        left, right = trunk.fork(), trunk.fork()
        # Both branches reach the same version with different values.
        left_end = left.put({"a": "left"})
        right_end = right.put({"a": "right"})
        assert values(saver.get_tuple(left_end)) == {"a": "left", "b": 0}
        assert values(saver.get_tuple(right_end)) == {"a": "right", "b": 0}
        assert values(saver.get_tuple(left.put({"b": 1}))) == {"a": "left", "b": 1}
        assert values(saver.get_tuple(right.put({"b": 2}))) == {"a": "right", "b": 2}

    def a_checkpoint_is_whole_though_its_parents_were_not_stored(
        self, saver: Blocking
    ) -> None:
        branch = Branch(saver, at())
        stored = branch.put({"a": 1, "b": 1})
        # With durability "exit" the steps between are skipped, and `new_versions`
        # may be those since the last step.
        branch.values |= {"a": 2}
        branch.versions |= {"a": max(branch.versions.values())}
        branch.versions["a"] = saver.saver.get_next_version(branch.versions["a"], None)
        branch.config = stored
        assert values(saver.get_tuple(branch.put({"b": 3}))) == {"a": 2, "b": 3}
        orphan = Branch(saver, at("t", id="1f000000-0000-6000-8000-000000000000"))
        orphan.values, orphan.versions = dict(branch.values), dict(branch.versions)
        assert values(saver.get_tuple(orphan.put({"b": 4}))) == {"a": 2, "b": 4}

    def a_channel_that_became_empty_has_no_value(self, saver: Blocking) -> None:
        branch = Branch(saver, at())
        branch.put({"a": 1, "b": 1})
        checkpoint = empty_checkpoint()
        version = saver.saver.get_next_version(branch.versions["a"], None)
        checkpoint["channel_values"] = {"b": 1}
        checkpoint["channel_versions"] = branch.versions | {"a": version}
        config = saver.put(branch.config, checkpoint, {"step": 1}, {"a": version})
        found = saver.get_tuple(config)
        assert found is not None
        assert values(found) == {"b": 1}
        assert version == found.checkpoint["channel_versions"]["a"]

    def a_channel_without_a_version_is_gone(self, saver: Blocking) -> None:
        branch = Branch(saver, at())
        branch.put({"a": 1, "gone": 1, "empty": MISSING})
        del branch.values["gone"], branch.versions["gone"]
        found = saver.get_tuple(branch.put({"a": 2}))
        assert found is not None
        assert values(found) == {"a": 2}
        assert found.checkpoint["channel_versions"].keys() == {"a", "empty"}

    def a_checkpoint_put_again_is_replaced(self, saver: Blocking) -> None:
        checkpoint = empty_checkpoint()
        checkpoint["channel_versions"] = {"a": saver.saver.get_next_version(None, None)}
        for value in (1, 2):
            checkpoint["channel_values"] = {"a": value}
            new = dict(checkpoint["channel_versions"])
            config = saver.put(at(), checkpoint, {"step": value}, new)
        [found] = saver.list(at())
        assert {"a": 2} == values(saver.get_tuple(config)) == values(found)
        assert found.metadata["step"] == 2

    def what_is_stored_is_what_was_handed_over(self, saver: Blocking) -> None:
        value: dict[str, Any] = {"list": [1]}
        config = Branch(saver, at()).put({"a": value})
        written = [1]
        saver.put_writes(config, [("w", written)], "task")
        value["list"].append(2)
        written.append(2)
        found = saver.get_tuple(config)
        assert found is not None
        assert values(found) == {"a": {"list": [1]}}
        assert found.pending_writes == [("task", "w", [1])]

    def every_read_makes_fresh_objects(self, saver: Blocking) -> None:
        config = Branch(saver, at()).put({"a": {"list": [1]}})
        values(saver.get_tuple(config))["a"]["list"].append(2)
        for found in saver.list(at()):
            values(found)["a"]["list"].append(3)
        assert values(saver.get_tuple(config)) == {"a": {"list": [1]}}

    def none_is_a_value(self, saver: Blocking) -> None:
        config = Branch(saver, at()).put({"a": None})
        assert values(saver.get_tuple(config)) == {"a": None}

    # Places

    def namespaces_are_apart(self, saver: Blocking) -> None:
        Branch(saver, at("t", "")).put({"a": "root"})
        Branch(saver, at("t", "child:1")).put({"a": "child"})
        assert values(saver.get_tuple(at("t", ""))) == {"a": "root"}
        assert values(saver.get_tuple(at("t", "child:1"))) == {"a": "child"}
        assert len(saver.list(at("t", "child:1"))) == 1
        assert len(saver.list(at("t", ""))) == 1

    def a_listing_without_namespace_has_them_all(self, saver: Blocking) -> None:
        Branch(saver, at("t", "")).put({"a": 1})
        Branch(saver, at("t", "child:1")).put({"a": 1})
        assert len(saver.list({"configurable": {"thread_id": "t"}})) == 2

    def a_missing_namespace_is_the_root(self, saver: Blocking) -> None:
        Branch(saver, {"configurable": {"thread_id": "t"}}).put({"a": 1})
        Branch(saver, at("t", "child")).put({"a": 2})
        assert values(saver.get_tuple({"configurable": {"thread_id": "t"}})) == {"a": 1}

    def a_number_is_the_same_thread_as_its_text(self, saver: Blocking) -> None:
        Branch(saver, at(7)).put({"a": 1})
        assert values(saver.get_tuple(at("7"))) == {"a": 1}
        assert values(saver.get_tuple(at(7))) == {"a": 1}

    def a_thread_id_of_another_type_is_refused(self, saver: Blocking) -> None:
        for thread in (None, ["t"], {"$ne": ""}, True, b"t"):
            raises(ValueError, partial(saver.get_tuple, at(thread)))

    def hostile_names_are_names_like_any_other(self, saver: Blocking) -> None:
        for name in HOSTILE:
            config = Branch(saver, at(name, name)).put({name: name}, {name: name})
            saver.put_writes(config, [(name, name)], name, name)
        for name in HOSTILE:
            found = saver.get_tuple(at(name, name))
            assert found is not None, name
            assert {name: name} == values(found)
            assert [(name, name, name)] == found.pending_writes
            assert len(saver.list(at(name, name), filter={name: name})) == 1
            assert len(saver.list(None, filter={name: name})) == 1, name
        saver.tend("delete_thread", "100%")
        assert len(HOSTILE) - 1 == len(saver.list(None))

    # Listing

    def a_listing_is_newest_first(self, saver: Blocking) -> None:
        branch = Branch(saver, at())
        put = [id_of(branch.put({"a": number})) for number in range(5)]
        found = saver.list(at())
        assert put[::-1] == ids(found)
        assert [values(item)["a"] for item in found] == [4, 3, 2, 1, 0]

    def a_long_listing_is_whole(self, saver: Blocking) -> None:
        branch = Branch(saver, at())
        put = [id_of(branch.put({"a": number})) for number in range(150)]
        assert put[::-1] == ids(saver.list(at()))
        assert put[:49:-1] == ids(saver.list(at(), limit=100))

    def a_listing_of_everything_has_all_threads(self, saver: Blocking) -> None:
        put = [id_of(Branch(saver, at(f"t{n}")).put({"a": n})) for n in range(3)]
        assert put[::-1] == ids(saver.list(None))

    def a_config_with_an_id_lists_that_checkpoint(self, saver: Blocking) -> None:
        branch = Branch(saver, at())
        first = branch.put({"a": 1})
        branch.put({"a": 2})
        assert [id_of(first)] == ids(saver.list(first))

    def before_lists_what_is_older(self, saver: Blocking) -> None:
        branch = Branch(saver, at())
        put = [branch.put({"a": number}) for number in range(4)]
        older = saver.list(at(), before=put[2])
        assert [id_of(put[1]), id_of(put[0])] == ids(older)
        assert [id_of(put[1])] == ids(saver.list(at(), before=put[2], limit=1))
        assert saver.list(at(), before=put[0]) == []

    def a_limit_counts_what_is_listed(self, saver: Blocking) -> None:
        branch = Branch(saver, at())
        for number in range(4):
            branch.put({"a": number}, {"even": number % 2 == 0})
        assert len(saver.list(at(), limit=None)) == 4
        assert len(saver.list(at(), limit=3)) == 3
        assert len(saver.list(at(), limit=2, filter={"even": True})) == 2
        assert saver.list(at(), limit=0) == []
        raises(ValueError, lambda: saver.list(at(), limit=-1))

    def a_filter_matches_equal_metadata(self, saver: Blocking) -> None:
        branch = Branch(saver, at())
        branch.put({"a": 0}, {"source": "input", "user": "ann"})
        branch.put({"a": 1}, {"user": "ann"})
        branch.put({"a": 2}, {"user": None, "tags": ["x"]})

        def found(filter: dict[str, Any]) -> list[Any]:
            return [values(item)["a"] for item in saver.list(at(), filter=filter)]

        assert found({}) == [2, 1, 0]
        assert found({"source": "input"}) == [0]
        assert found({"user": "ann"}) == [1, 0]
        assert found({"user": "ann", "step": 0}) == [1]
        assert found({"user": None}) == [2]
        assert found({"tags": ["x"]}) == [2]
        assert found({"user": "bob"}) == []
        assert found({"no such key": None}) == []

    # Pending writes

    def pending_writes_belong_to_their_checkpoint(self, saver: Blocking) -> None:
        branch = Branch(saver, at())
        first = branch.put({"a": 1})
        saver.put_writes(first, [("x", 1), ("y", [2])], "task")
        second = branch.put({"a": 2})
        found = saver.get_tuple(first)
        assert found is not None
        assert found.pending_writes == [("task", "x", 1), ("task", "y", [2])]
        child = saver.get_tuple(second)
        assert child is not None
        assert not child.pending_writes
        assert [len(item.pending_writes or ()) for item in saver.list(at())] == [0, 2]

    def pending_writes_are_in_the_order_of_their_tasks(self, saver: Blocking) -> None:
        config = Branch(saver, at()).put({"a": 1})
        saver.put_writes(config, [("x", 1)], "task-1", "path-c")
        saver.put_writes(config, [("x", 2), ("x", 3)], "task-3", "path-a")
        saver.put_writes(config, [("x", 4)], "task-2", "path-b")
        found = saver.get_tuple(config)
        assert found is not None
        assert [value for _, _, value in found.pending_writes or ()] == [2, 3, 4, 1]

    def what_a_task_wrote_first_stays(self, saver: Blocking) -> None:
        config = Branch(saver, at()).put({"a": 1})
        saver.put_writes(config, [("x", 1), ("y", 1)], "task")
        saver.put_writes(config, [("x", 2), ("y", 2)], "task")
        saver.put_writes(config, [("x", 3)], "other")
        found = saver.get_tuple(config)
        assert found is not None
        assert {("task", "x", 1), ("task", "y", 1), ("other", "x", 3)} == {
            *(found.pending_writes or ())
        }

    def errors_interrupts_and_answers_are_replaced(self, saver: Blocking) -> None:
        config = Branch(saver, at()).put({"a": 1})
        for value in ("old", "new"):
            for channel in (ERROR, INTERRUPT, RESUME):
                saver.put_writes(config, [(channel, value)], "task")
        found = saver.get_tuple(config)
        assert found is not None
        assert {("task", c, "new") for c in (ERROR, INTERRUPT, RESUME)} == {
            *(found.pending_writes or ())
        }

    def writes_may_come_before_their_checkpoint(self, saver: Blocking) -> None:
        branch = Branch(saver, at())
        checkpoint = empty_checkpoint()
        saver.put_writes(at(id=checkpoint["id"]), [("x", 1)], "task")
        assert saver.get_tuple(at()) is None
        saver.put(branch.config, checkpoint, {"step": 0}, {})
        found = saver.get_tuple(at())
        assert found is not None
        assert found.pending_writes == [("task", "x", 1)]

    def a_commit_stores_the_writes_and_the_checkpoint(self, saver: Blocking) -> None:
        branch = Branch(saver, at())
        parent = branch.put({"a": 1})
        saver.put_writes(parent, [("a", 2)], "early", "p1")
        child = branch.put({"a": 5}, writes=[("late", "p2", [("a", 3), ("b", 4)])])
        before, after = saver.get_tuple(parent), saver.get_tuple(child)
        assert before is not None
        assert after is not None
        assert before.pending_writes == [
            ("early", "a", 2),
            ("late", "a", 3),
            ("late", "b", 4),
        ]
        assert values(after) == {"a": 5}
        assert id_of(parent) == id_of(after.parent_config)

    def a_value_without_stored_form_leaves_nothing_behind(
        self, saver: Blocking
    ) -> None:
        branch = Branch(saver, at())
        parent = branch.put({"a": 1})
        lost = object()
        raises(TypeError, lambda: branch.fork().put({"a": lost}))
        late = [("task", "", [("a", lost)])]
        raises(TypeError, lambda: branch.fork().put({"a": 2}, writes=late))
        raises(
            TypeError, lambda: saver.put_writes(parent, [("x", 1), ("y", lost)], "t")
        )
        [found] = saver.list(at())
        assert id_of(parent) == id_of(found.config)
        assert not found.pending_writes

    def a_delta_history_is_the_writes_since_a_stored_value(
        self, saver: Blocking
    ) -> None:
        branch = Branch(saver, at())
        for number in range(5):
            # Only the second stores the value itself.
            config = branch.put({"d": ["whole"] if number == 1 else MISSING})
            saver.put_writes(config, [("d", number), ("x", 0)], "task")
        history = saver.delta_history(config, ["d", "nothing"])
        wanted = [("task", "d", number) for number in (1, 2, 3)]
        assert {"writes": wanted, "seed": ["whole"]} == history["d"]
        assert history["nothing"] == {"writes": []}

    # Threads over time

    def a_deleted_thread_is_gone(self, saver: Blocking) -> None:
        for thread in ("a", "ab", "b"):
            for ns in ("", "child"):
                config = Branch(saver, at(thread, ns)).put({"x": thread})
                saver.put_writes(config, [("w", 1)], "task")
        saver.tend("delete_thread", "a")
        assert saver.list({"configurable": {"thread_id": "a"}}) == []
        assert saver.get_tuple(at("a")) is None
        assert values(saver.get_tuple(at("ab"))) == {"x": "ab"}
        assert len(saver.list(None)) == 4
        # What is put there later starts afresh.
        fresh = saver.get_tuple(Branch(saver, at("a")).put({"y": 1}))
        assert values(fresh) == {"y": 1}


SAVER_CHECKS = tuple(name for name in vars(SaverChecks) if name[0] != "_")
"""The names of all checks."""
