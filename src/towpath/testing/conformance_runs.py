"""What a checkpointer owes the runs that store in it, beyond the peer's contract.

Checks of `staged`, `carries`, `deltas` and `leases`, for savers that declare them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from towpath.checkpoint.base import Affected, empty_checkpoint
from towpath.checkpoint.base.lease import Lease
from towpath.constants import INTERRUPT
from towpath.errors import LeaseLostError, ThreadBusyError
from towpath.testing.conformance_colours import Blocking
from towpath.testing.conformance_saver import Branch, at, raises, values
from towpath.types import RunnableConfig


def step(values: Mapping[str, Any], version: int) -> tuple[Any, Any, Any]:
    """Return a checkpoint of one step, its metadata, and its new versions."""
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = dict(values)
    checkpoint["channel_versions"] = dict.fromkeys(values, version)
    return (
        checkpoint,
        {"source": "loop", "step": version},
        dict.fromkeys(values, version),
    )


def newest(saver: Blocking) -> dict[str, Any]:
    """Return the values of the thread that the checks use."""
    return values(saver.get_tuple(at()))


class RunChecks:
    """Each method is a check, named by its capability and what is guaranteed."""

    def staged_values_are_those_of_the_moment(self, saver: Blocking) -> None:
        value: Any = {"a": [{"x": 1}]}
        job = saver.saver.stage_commit(at(), *step(value, 1))
        value["a"][0]["x"] = 2
        value["a"].append({"x": 3})
        config = saver.run(job)
        assert newest(saver) == {"a": [{"x": 1}]}
        written = [{"x": 1}]
        writes = saver.saver.stage_writes(config, [("task", "", [("a", written)])])
        written[0]["x"] = 2
        saver.run(writes)
        found = saver.get_tuple(config)
        assert found is not None
        assert found.pending_writes == [("task", "a", [{"x": 1}])]

    def staged_for_one_thread_may_be_stored_at_once(self, saver: Blocking) -> None:
        items: list[Any] = [{"n": n} for n in range(9)]
        jobs: list[Any] = []
        config = at()
        for number in range(1, 5):
            items = [*items, {"more": number}]
            made = step({"a": items, "b": number}, number)
            jobs.append(saver.saver.stage_commit(config, *made))
            config = at(id=made[0]["id"])
        written = [("task", "", [("a", ["late"])])]
        jobs.append(saver.saver.stage_writes(config, written))
        whole: Any = jobs[0]
        for job in jobs[1:]:
            whole = None if whole is None else whole.along(job)
        for job in jobs if whole is None else [whole]:
            saver.run(job)
        found = saver.get_tuple(at())
        assert values(found) == {"a": items, "b": 4}
        assert found is not None
        assert found.pending_writes == [("task", "a", ["late"])]
        steps = [each.checkpoint["channel_values"] for each in saver.list(at())]
        assert [each["b"] for each in steps] == [4, 3, 2, 1]
        assert [len(each["a"]) for each in steps] == [13, 12, 11, 10]

    def deltas_tell_what_was_changed_in_place(self, saver: Blocking) -> None:
        items: list[Any] = [{"n": n} for n in range(50)]
        config = saver.put(at(), *step({"a": items}, 1))
        items[7]["n"] = "changed"
        written = {"a": [[items[7]]]}
        job = saver.saver.stage_commit(config, *step({"a": items}, 2), written=written)
        saver.run(job)
        assert newest(saver) == {"a": items}

    def deltas_of_branches_are_apart(self, saver: Blocking) -> None:
        branch = Branch(saver, at())
        branch.put({"a": list(range(100))})
        other = branch.fork()
        one = branch.put({"a": [*range(100), "one"]})
        two = other.put({"a": [*range(50), "two"]})
        assert values(saver.get_tuple(one)) == {"a": [*range(100), "one"]}
        assert values(saver.get_tuple(two)) == {"a": [*range(50), "two"]}

    def deltas_of_a_complete_run_end_as_its_values(self, saver: Blocking) -> None:
        value: Any = {"a": [{"x": 1}, {"x": 2}], "b": {"k": [1]}}
        config = saver.put(at(), *step(value, 1))
        value["a"][0]["x"] = "changed"
        value["b"]["k"].append(2)
        self._end(saver, config, value)
        assert newest(saver) == {"a": [{"x": "changed"}, {"x": 2}], "b": {"k": [1, 2]}}

    def deltas_of_a_run_that_stopped_are_what_it_returned(
        self, saver: Blocking
    ) -> None:
        value: Any = {"a": [{"x": 1}]}
        config = saver.put(at(), *step(value, 1))
        value["a"][0]["x"] = "changed"
        self._end(saver, config, None)
        assert newest(saver) == {"a": [{"x": 1}]}

    def carries_pending_writes_of_a_new_checkpoint(self, saver: Blocking) -> None:
        first = saver.put(at(), *step({"a": 1}, 1))
        recorded = [("task", "path", [("a", 2), (INTERRUPT, ["?"])])]
        stage = saver.saver.stage_commit
        late = [("before", "", [("a", 0)])]
        saver.run(stage(first, *step({"a": 3}, 2), late, own=recorded))
        found = saver.get_tuple(at())
        assert found is not None
        assert sorted(found.pending_writes or (), key=str) == [
            ("task", INTERRUPT, ["?"]),
            ("task", "a", 2),
        ]
        before = saver.get_tuple(first)
        assert before is not None
        assert before.pending_writes == [("before", "a", 0)]

    def leases_are_held_by_one_run(self, saver: Blocking) -> None:
        one, two = Lease("t"), Lease("t")
        saver.begin_run(at(), one)
        raises(ThreadBusyError, lambda: saver.begin_run(at(), two))
        saver.begin_run(at("other"), Lease("other"))
        self._end(saver, at(), None, one)
        saver.begin_run(at(), two)
        assert two.epoch

    def leases_are_held_until_they_are_given_back(self, saver: Blocking) -> None:
        one, two = Lease("t"), Lease("t")
        saver.begin_run(at(), one)
        value: Any = {"a": [{"x": 1}]}
        first = saver.saver.stage_commit(at(), *step(value, 1), lease=one)
        config = saver.run(first)
        value["a"][0]["x"] = "changed"
        end = saver.saver.end_run(config, value, one, release=True)
        assert end is not None
        raises(ThreadBusyError, lambda: saver.begin_run(at(), two))
        saver.run(end)
        assert values(saver.begin_run(at(), two)) == {"a": [{"x": "changed"}]}

    def leases_of_the_dead_are_free(self, saver: Blocking) -> None:
        one, two = Lease("t"), Lease("t")
        saver.begin_run(at(), one)
        saver.put(at(), *step({"a": 1}, 1))
        one.end()
        found = saver.begin_run(at(), two)
        assert values(found) == {"a": 1}
        assert two.epoch > one.epoch

    def leases_that_were_lost_store_nothing(self, saver: Blocking) -> None:
        one, two = Lease("t"), Lease("t")
        saver.begin_run(at(), one)
        config = saver.run(
            saver.saver.stage_commit(at(), *step({"a": 1}, 1), lease=one)
        )
        one.end()
        saver.begin_run(at(), two)
        late: list[Callable[[], Any]] = [
            lambda: saver.saver.stage_commit(config, *step({"a": 2}, 2), lease=one),
            lambda: saver.saver.stage_writes(
                config, [("task", "", [("a", 2)])], lease=one
            ),
        ]
        for stage in late:
            raises(LeaseLostError, lambda stage=stage: saver.run(stage()))  # type: ignore[misc]
        found = saver.get_tuple(at())
        assert found is not None
        assert (values(found), found.pending_writes) == ({"a": 1}, [])
        saver.run(saver.saver.stage_commit(config, *step({"a": 3}, 2), lease=two))
        assert newest(saver) == {"a": 3}

    def leases_of_a_deleted_thread_are_lost(self, saver: Blocking) -> None:
        lease = Lease("t")
        saver.begin_run(at(), lease)
        saver.run(saver.saver.stage_commit(at(), *step({"a": 1}, 1), lease=lease))
        saver.tend("delete_thread", "t")
        job = saver.saver.stage_commit(at(), *step({"a": 2}, 1), lease=lease)
        raises(LeaseLostError, lambda: saver.run(job))
        assert saver.list(None) == []

    def leases_keep_a_thread_from_being_swept(self, saver: Blocking) -> None:
        lease, ttl = Lease("t"), timedelta(0)
        saver.put(at(), *step({"a": 1}, 1))
        saver.begin_run(at(), lease)
        for dry_run in (True, False):
            told = saver.tend("sweep", ttl=ttl, dry_run=dry_run)
            assert told == Affected(running=1)
        self._end(saver, at(), None, lease)
        saver.begin_run(at(), dead := Lease("t"))
        dead.end()
        told = saver.tend("sweep", ttl=ttl)
        assert (told.threads, told.running) == (1, 0)
        assert saver.list(None) == []

    def _end(
        self,
        saver: Blocking,
        config: RunnableConfig,
        values: Mapping[str, Any] | None,
        lease: Lease | None = None,
    ) -> None:
        job = saver.saver.end_run(config, values, lease, release=lease is not None)
        if job is not None:
            saver.run(job)


RUN_CHECKS = {
    name: name.partition("_")[0] for name in vars(RunChecks) if name[0] != "_"
}
"""The names of all checks, and the capability that each is about."""
