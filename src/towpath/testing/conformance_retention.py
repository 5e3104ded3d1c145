"""What a checkpointer that declares `retention` must do with threads over time."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from towpath.checkpoint.base import Affected, CheckpointTuple, checkpoint_id
from towpath.checkpoint.base.id import UUID
from towpath.constants import INTERRUPT
from towpath.testing.conformance_colours import Blocking
from towpath.testing.conformance_saver import (
    Branch,
    at,
    id_of,
    ids,
    raises,
    values,
)

_ROOT_OF_TIME = datetime(1582, 10, 15, tzinfo=UTC)


def moment_of(checkpoint: str) -> datetime:
    """Return when a checkpoint was made, as its id tells."""
    return _ROOT_OF_TIME + timedelta(microseconds=UUID(checkpoint).time // 10)


def whole(thread: str) -> Any:
    """Return the config of a thread, of all its namespaces."""
    return {"configurable": {"thread_id": thread}}


def counted(affected: Affected) -> tuple[int, int, int]:
    """Return the counts that do not depend on how values are stored."""
    return affected.threads, affected.checkpoints, affected.writes


def line(saver: Blocking, thread: str, length: int, **metadata: Any) -> list[str]:
    """Store checkpoints on top of each other, each with a write; return their ids."""
    branch, made = Branch(saver, at(thread)), []
    for number in range(length):
        config = branch.put({"x": number, f"k{number}": number}, metadata)
        saver.put_writes(config, [("w", number)], "task")
        made.append(id_of(config))
    return made


def parent_of(found: CheckpointTuple) -> str | None:
    """Return the id of a checkpoint's parent."""
    return id_of(found.parent_config) if found.parent_config else None


def read(found: Iterable[CheckpointTuple]) -> list[Any]:
    """Return what there is to read of checkpoints, but for their parents."""
    return [(x.config, x.checkpoint, x.metadata, x.pending_writes) for x in found]


class RetentionChecks:
    """Each method is a check, and its name is what a saver guarantees."""

    def a_deletion_says_what_it_deleted(self, saver: Blocking) -> None:
        line(saver, "a", 3)
        line(saver, "b", 1)
        assert counted(saver.tend("delete_thread", "a")) == (1, 3, 3)
        assert saver.tend("delete_thread", "a") == Affected()
        assert len(saver.list(None)) == 1

    def a_copied_thread_is_whole_and_apart(self, saver: Blocking) -> None:
        branch = Branch(saver, at("a"))
        for number in range(3):
            config = branch.put({"x": number, f"k{number}": number})
            saver.put_writes(config, [("w", number)], "task")
        Branch(saver, at("a", "child")).put({"c": 1})
        assert counted(saver.tend("copy_thread", "a", "b")) == (1, 4, 3)
        original, copy = saver.list(at("a")), saver.list(at("b"))
        assert [item.checkpoint for item in original] == [
            item.checkpoint for item in copy
        ]
        assert ids(original) == ids(copy)
        assert [i.pending_writes for i in original] == [i.pending_writes for i in copy]
        assert values(saver.get_tuple(at("b", "child"))) == {"c": 1}
        branch.put({"x": "more"})
        saver.tend("delete_thread", "a")
        assert values(saver.get_tuple(at("b"))) == {"x": 2, "k0": 0, "k1": 1, "k2": 2}

    def a_thread_is_not_copied_over_another(self, saver: Blocking) -> None:
        Branch(saver, at("a")).put({"x": 1})
        Branch(saver, at("b")).put({"x": 2})
        raises(ValueError, lambda: saver.tend("copy_thread", "a", "b"))
        assert values(saver.get_tuple(at("b"))) == {"x": 2}

    def pruning_keeps_the_newest(self, saver: Blocking) -> None:
        branch = Branch(saver, at("a"))
        for number in range(4):
            config = branch.put({"x": number} | ({} if number else {"old": "kept"}))
            saver.put_writes(config, [("w", number)], "task")
        Branch(saver, at("b")).put({"x": 1})
        assert counted(saver.tend("prune", ["a"])) == (1, 3, 3)
        [found] = saver.list(at("a"))
        assert values(found) == {"x": 3, "old": "kept"}
        assert found.pending_writes == [("task", "w", 3)]
        assert found.parent_config is None
        assert len(saver.list(at("b"))) == 1
        assert values(saver.get_tuple(branch.put({"x": 4}))) == {"x": 4, "old": "kept"}
        assert counted(saver.tend("prune", ["a"], strategy="delete")) == (1, 2, 1)
        assert saver.list(at("a")) == []

    def pruning_can_keep_several(self, saver: Blocking) -> None:
        made = line(saver, "a", 5)
        before = saver.list(at("a"))[:3]
        assert counted(saver.tend("prune", ["a"], keep=3)) == (1, 2, 2)
        after = saver.list(at("a"))
        assert read(before) == read(after)
        assert [parent_of(found) for found in after] == [made[3], made[2], None]
        assert saver.tend("prune", ["a"], keep=3) == Affected()

    def pruning_can_spare_the_young(self, saver: Blocking) -> None:
        made = line(saver, "a", 5)
        saver.tend("prune", ["a"], older_than=moment_of(made[2]))
        assert made[:1:-1] == ids(saver.list(at("a")))
        saver.tend("prune", ["a"], older_than=timedelta(days=1))
        assert len(saver.list(at("a"))) == 3
        saver.tend("prune", ["a"], older_than=timedelta(0))
        assert made[-1:] == ids(saver.list(at("a")))

    def pruning_can_keep_forks(self, saver: Blocking) -> None:
        trunk = Branch(saver, at("a"))
        root = id_of(trunk.put({"x": 0}))
        fork = trunk.fork()
        fork.config = trunk.config
        left = [id_of(fork.put({"x": f"left {number}"})) for number in range(2)]
        right = [id_of(trunk.put({"x": f"right {number}"})) for number in range(3)]
        for options, stay in (
            ({"keep_ancestors": True, "keep_forks": True}, [root, *left, right[2]]),
            ({"keep_forks": True}, [left[1], right[2]]),
            ({}, [right[2]]),
        ):
            saver.tend("prune", ["a"], **options)
            found = saver.list(at("a"))
            assert stay == ids(found)[::-1]
            assert {parent_of(one) for one in found} <= {*stay, None}

    def pruning_keeps_what_a_subgraph_waits_for(self, saver: Blocking) -> None:
        trunk = Branch(saver, at("a"))
        trunk.put({"x": 0})
        asking = trunk.put({"x": 1})
        saver.put_writes(asking, [(INTERRUPT, ["?"])], "task")
        child = Branch(saver, at("a", "child:task"))
        child.put({"c": 0}, {"parents": {"": id_of(asking)}})
        newest = trunk.put({"x": 2})
        assert counted(saver.tend("prune", ["a"])) == (1, 1, 0)
        assert [id_of(newest), id_of(asking)] == ids(saver.list(at("a")))
        assert len(saver.list(at("a", "child:task"))) == 1

    def pruning_leaves_nothing_of_calls_that_are_over(self, saver: Blocking) -> None:
        trunk = Branch(saver, at("a"))
        for number in range(3):
            made = id_of(trunk.put({"x": number}))
            above = {"": made}
            child = Branch(saver, at("a", f"child:task{number}"))
            inner = id_of(child.put({"c": number}, {"parents": above}))
            nested = Branch(saver, at("a", f"child:task{number}|leaf:task"))
            ns = f"child:task{number}"
            nested.put({"n": number}, {"parents": {**above, ns: inner}})
            lasting = Branch(saver, at("a", "lasting"))
            lasting.put({"l": number}, {"parents": above})
        assert counted(saver.tend("prune", ["a"], keep=2)) == (1, 4, 0)
        assert counted(saver.tend("prune", ["a"])) == (1, 4, 0)
        for kept, ns in ((0, "child:task1"), (1, "child:task2"), (1, "lasting")):
            assert len(saver.list(at("a", ns))) == kept, ns
        assert len(saver.list(at("a", "child:task2|leaf:task"))) == 1
        newest = {"parents": {}, "carried": {"path": "child:task2"}}
        trunk.put({"x": 3}, newest)
        assert counted(saver.tend("prune", ["a"])) == (1, 1, 0)
        trunk.put({"x": 4})
        assert counted(saver.tend("prune", ["a"])) == (1, 3, 0)
        assert len(saver.list(whole("a"))) == 2

    def pruning_leaves_writes_whose_checkpoint_may_come(self, saver: Blocking) -> None:
        line(saver, "a", 2)
        upcoming = at("a", id=checkpoint_id())
        saver.put_writes(upcoming, [("w", "early")], "task")
        saver.tend("prune", ["a"])
        branch = Branch(saver, at("a"))
        config = branch.put({"x": 1})
        assert id_of(upcoming) < id_of(config)
        # It was never stored, and now cannot be.
        assert counted(saver.tend("prune", ["a"])) == (1, 1, 2)

    def pruning_without_names_is_of_all_threads(self, saver: Blocking) -> None:
        for number in range(3):
            line(saver, f"t{number}", 1 + number)
        assert counted(saver.tend("prune")) == (2, 3, 3)
        assert len(saver.list(None)) == 3

    def pruning_refuses_what_makes_no_sense(self, saver: Blocking) -> None:
        made = line(saver, "a", 2)
        for options in (
            {"strategy": "no such strategy"},
            {"strategy": "delete", "keep": 2},
            {"keep": 0},
            {"older_than": timedelta(days=-1)},
            {"older_than": moment_of(made[1]).replace(tzinfo=None)},
        ):
            raises(ValueError, partial(saver.tend, "prune", ["a"], **options))
        assert len(saver.list(at("a"))) == 2

    def the_checkpoints_of_a_run_can_be_deleted(self, saver: Blocking) -> None:
        branch = Branch(saver, at())
        branch.put({"x": 0, "y": 0}, {"run_id": "first"})
        branch.put({"x": 1}, {"run_id": "second"})
        branch.put({"x": 2}, {"run_id": "third"})
        deleted = saver.tend("delete_for_runs", ["second", "nobody"])
        assert counted(deleted) == (1, 1, 0)
        assert [values(found)["x"] for found in saver.list(at())] == [2, 0]
        assert values(saver.get_tuple(at())) == {"x": 2, "y": 0}

    def sweeping_deletes_the_threads_that_are_too_old(self, saver: Blocking) -> None:
        old, young = line(saver, "old", 2), line(saver, "young", 1)
        asking = Branch(saver, at("asking")).put({"x": 0})
        saver.put_writes(asking, [(INTERRUPT, ["?"])], "task")
        ttl = timedelta(hours=1)
        just = moment_of(young[0]) + ttl
        assert saver.tend("sweep", moment_of(old[0]) + ttl, ttl=ttl) == Affected()
        assert counted(saver.tend("sweep", just, ttl=ttl)) == (1, 2, 2)
        later = just + ttl
        assert counted(saver.tend("sweep", later, ttl=ttl, limit=5)) == (1, 1, 1)
        assert id_of(asking) == id_of(saver.get_tuple(at("asking")).config)  # type: ignore[union-attr]
        swept = saver.tend("sweep", later, ttl=ttl, waiting=True)
        assert counted(swept) == (1, 1, 1)
        assert saver.list(None) == []

    def sweeping_stops_at_its_limit(self, saver: Blocking) -> None:
        made = [line(saver, f"t{number}", 1) for number in range(4)]
        later = moment_of(made[-1][0]) + timedelta(seconds=2)
        sweep = partial(saver.tend, "sweep", later, ttl=timedelta(seconds=1), limit=3)
        assert [sweep().threads for _ in range(3)] == [3, 1, 0]

    def a_dry_run_tells_what_would_happen(self, saver: Blocking) -> None:
        made = line(saver, "a", 4, run_id="r")
        later = moment_of(made[-1]) + timedelta(seconds=2)
        child = Branch(saver, at("a", "child"))
        child.put({"c": 0})
        child.put({"c": 1})
        for verb, args, options in (
            ("copy_thread", ("a", "b"), {}),
            ("prune", (["a"],), {"keep": 3}),
            ("prune", (), {}),
            ("delete_for_runs", (["r"],), {}),
            ("delete_thread", ("a",), {}),
            ("sweep", (later,), {"ttl": timedelta(seconds=1)}),
        ):
            before = [saver.list(whole(thread)) for thread in "ab"]
            told = saver.tend(verb, *args, dry_run=True, **options)
            assert before == [saver.list(whole(thread)) for thread in "ab"], verb
            assert told != Affected(), verb
            assert told == saver.tend(verb, *args, **options), verb
            assert before != [saver.list(whole(thread)) for thread in "ab"], verb

    def a_vacuum_loses_nothing(self, saver: Blocking) -> None:
        line(saver, "a", 3)
        line(saver, "b", 3)
        saver.tend("delete_thread", "b")
        before = saver.list(None)
        assert saver.tend("vacuum") >= 0
        assert before == saver.list(None)


RETENTION_CHECKS = tuple(name for name in vars(RetentionChecks) if name[0] != "_")
"""The names of all checks."""
