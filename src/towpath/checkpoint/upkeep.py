"""Threads over time: what to do with those that grow, and those nobody needs.

Every verb goes from thread to thread, each in one transaction of its own: a call
that fails half-way leaves every thread whole, and may be made again. What a verb
does is written once, as a generator of chores, see `Errand`; the two colours of the
verb do the chores, and a saver says how each is done.

A run that goes on meanwhile is not disturbed by `prune` and `sweep`: the newest
checkpoint of each namespace, which a run builds on, stays as long as the thread.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from towpath.checkpoint.base.rules import (
    Affected,
    Everything,
    Expired,
    OfRuns,
    Pruning,
    Rule,
    moment,
)
from towpath.checkpoint.base.saver import BaseCheckpointSaver, Staged, check_limit
from towpath.checkpoint.base.summary import ThreadSummary

R = TypeVar("R")
Errand = Generator[Staged[Any], Any, R]
"""Yields chores, each a transaction of its own, and is sent their results."""
ThreadPage = Sequence[tuple[str, str | None]]
"""Ids of threads, in order, each with its newest checkpoint if it has one."""


class UpkeepSaver(BaseCheckpointSaver[int]):
    """A saver whose verbs over threads are made of a few chores.

    All of them return what they did, and with `dry_run` what they would do.
    """

    ttl: timedelta | None = None
    """How long after its last checkpoint a thread may go, see `sweep`."""

    def threads(
        self, *, limit: int = 100, after: ThreadSummary | None = None
    ) -> Sequence[ThreadSummary]:
        """List threads, the last changed first: each at a glance.

        At most `limit`; `after` is the last one of the page before. One that changes
        between two pages comes to the top, and not again.
        """
        return self._next_threads(limit, after).run()

    async def athreads(
        self, *, limit: int = 100, after: ThreadSummary | None = None
    ) -> Sequence[ThreadSummary]:
        """Async twin of `threads`."""
        return await self._next_threads(limit, after).arun()

    def delete_thread(self, thread_id: str, *, dry_run: bool = False) -> Affected:
        """Delete everything of a thread."""
        return do(self._remove([thread_id], Everything(), dry_run))

    async def adelete_thread(
        self, thread_id: str, *, dry_run: bool = False
    ) -> Affected:
        """Async twin of `delete_thread`."""
        return await ado(self._remove([thread_id], Everything(), dry_run))

    def delete_for_runs(
        self, run_ids: Sequence[str], *, dry_run: bool = False
    ) -> Affected:
        """Delete the checkpoints whose metadata names one of these runs.

        All metadata is read for it, of every thread.
        """
        return do(self._remove(None, OfRuns(frozenset(run_ids)), dry_run))

    async def adelete_for_runs(
        self, run_ids: Sequence[str], *, dry_run: bool = False
    ) -> Affected:
        """Async twin of `delete_for_runs`."""
        return await ado(self._remove(None, OfRuns(frozenset(run_ids)), dry_run))

    def copy_thread(
        self, source_thread_id: str, target_thread_id: str, *, dry_run: bool = False
    ) -> Affected:
        """Copy a thread, with its whole history, to one that is empty.

        Raises:
            ValueError: the target is not empty.
        """
        source, target = str(source_thread_id), str(target_thread_id)
        return self._copying(source, target, dry_run).run()

    async def acopy_thread(
        self, source_thread_id: str, target_thread_id: str, *, dry_run: bool = False
    ) -> Affected:
        """Async twin of `copy_thread`."""
        source, target = str(source_thread_id), str(target_thread_id)
        return await self._copying(source, target, dry_run).arun()

    def prune(
        self,
        thread_ids: Sequence[str] | None = None,
        *,
        strategy: str = "keep_latest",
        keep: int = 1,
        older_than: timedelta | datetime | None = None,
        keep_forks: bool = False,
        keep_ancestors: bool = False,
        dry_run: bool = False,
    ) -> Affected:
        """Delete old checkpoints of these threads, or of all (None).

        What stays, in each namespace of a thread:

        - the newest `keep` checkpoints; of a subgraph whose call is over, only as
          long as the checkpoint stays at which it was called;
        - those younger than `older_than`, an age or a moment. The age of a
          checkpoint is the time in its id, and an id of another kind has none;
        - with `keep_forks`, those that no other was put on: where a branch ends;
        - with `keep_ancestors`, all that a kept fork descends from. A fork is what
          is neither the newest checkpoint nor an ancestor of it;
        - the checkpoint at which a question is open that a kept checkpoint of a
          subgraph asked.

        What stays reads as before. Where its parent goes, it has none; pending
        writes go with their checkpoint. `strategy="delete"` deletes the threads.

        Raises:
            ValueError: an option makes no sense, such as `keep=0` or an
                `older_than` without a time zone.
        """
        rule = Pruning(
            strategy=strategy,
            keep=keep,
            older_than=older_than,
            keep_forks=keep_forks,
            keep_ancestors=keep_ancestors,
        ).rule()
        return do(self._remove(thread_ids, rule, dry_run))

    async def aprune(
        self,
        thread_ids: Sequence[str] | None = None,
        *,
        strategy: str = "keep_latest",
        keep: int = 1,
        older_than: timedelta | datetime | None = None,
        keep_forks: bool = False,
        keep_ancestors: bool = False,
        dry_run: bool = False,
    ) -> Affected:
        """Async twin of `prune`."""
        pruning = Pruning(
            strategy=strategy,
            keep=keep,
            older_than=older_than,
            keep_forks=keep_forks,
            keep_ancestors=keep_ancestors,
        )
        return await ado(self._remove(thread_ids, pruning.rule(), dry_run))

    def sweep(
        self,
        now: datetime | None = None,
        *,
        ttl: timedelta | None = None,
        waiting: bool = False,
        limit: int | None = None,
        dry_run: bool = False,
    ) -> Affected:
        """Delete the threads on which nothing was stored for the time to live.

        That is `ttl`, or the saver's. Every checkpoint starts it anew. A thread
        that waits for an answer stays, unless `waiting`, and so does one that a run
        has: the result counts it as `running`. At most `limit` threads are deleted.
        Nothing calls this but you.

        Raises:
            ValueError: neither the call nor the saver has a `ttl`.
        """
        return do(self._sweep(self._expiry(now, ttl, waiting), limit, dry_run))

    async def asweep(
        self,
        now: datetime | None = None,
        *,
        ttl: timedelta | None = None,
        waiting: bool = False,
        limit: int | None = None,
        dry_run: bool = False,
    ) -> Affected:
        """Async twin of `sweep`."""
        rule = self._expiry(now, ttl, waiting)
        return await ado(self._sweep(rule, limit, dry_run))

    def vacuum(self) -> int:
        """Give what deleting freed back to the system; return how many bytes.

        It may take long and keep writers waiting.
        """
        return do(self._vacuum())

    async def avacuum(self) -> int:
        """Async twin of `vacuum`."""
        return await ado(self._vacuum())

    # The errands

    def _remove(
        self, threads: Iterable[object] | None, rule: Rule, dry_run: bool
    ) -> Errand[Affected]:
        def removing(thread: str) -> Staged[Affected]:
            return self._removing(thread, rule, dry_run)

        return self._each(threads, removing)

    def _each(
        self,
        threads: Iterable[object] | None,
        chore: Callable[[str], Staged[Affected]],
    ) -> Errand[Affected]:
        """Do a chore for these threads, or for all."""
        if threads is None:
            return (yield from self._every(chore))
        total = Affected()
        for thread in dict.fromkeys(map(str, threads)):
            total += yield chore(thread)
        return total

    def _every(
        self,
        chore: Callable[[str], Staged[Affected]],
        concerns: Callable[[str | None], bool] = lambda _: True,
        limit: int | None = None,
    ) -> Errand[Affected]:
        """Do a chore for all threads, or until `limit` were affected."""
        total, after = Affected(), None
        while page := (yield self._paging(after)):
            for thread, newest in page:
                if limit is not None and total.threads >= limit:
                    return total
                if concerns(newest):
                    total += yield chore(thread)
            after = page[-1][0]
        return total

    def _sweep(
        self, rule: Expired, limit: int | None, dry_run: bool
    ) -> Errand[Affected]:
        def removing(thread: str) -> Staged[Affected]:
            return self._removing(thread, rule, dry_run)

        return self._every(removing, rule.concerns, check_limit(limit))

    def _expiry(
        self, now: datetime | None, ttl: timedelta | None, waiting: bool
    ) -> Expired:
        lifetime = self.ttl if ttl is None else ttl
        if lifetime is None:
            raise ValueError("how long do threads live? Give `ttl`, here or the saver")
        since = moment(lifetime, moment(now or datetime.now(UTC), datetime.now(UTC)))
        return Expired(since, waiting)

    def _vacuum(self) -> Errand[int]:
        before: int = yield self._sizing()
        yield self._vacuuming()
        after: int = yield self._sizing()
        return max(0, before - after)

    def _next_threads(
        self, limit: int, after: ThreadSummary | None
    ) -> Staged[Sequence[ThreadSummary]]:
        check_limit(limit)
        return self._surveying(None if after is None else after.mark, limit)

    # The chores, which a saver has

    def _surveying(
        self, after: tuple[str, str] | None, most: int
    ) -> Staged[Sequence[ThreadSummary]]:
        """Return the next threads, after one with this mark."""
        raise NotImplementedError

    def _paging(self, after: str | None) -> Staged[ThreadPage]:
        """Return the next threads, those that sort after one."""
        raise NotImplementedError

    def _removing(self, thread: str, rule: Rule, dry_run: bool) -> Staged[Affected]:
        """Remove from a thread what a rule dooms."""
        raise NotImplementedError

    def _copying(self, source: str, target: str, dry_run: bool) -> Staged[Affected]:
        """Copy a thread."""
        raise NotImplementedError

    def _sizing(self) -> Staged[int]:
        """Tell how many bytes everything takes."""
        raise NotImplementedError

    def _vacuuming(self) -> Staged[None]:
        """Give freed space back."""
        raise NotImplementedError


def do(errand: Errand[R]) -> R:
    """Do the chores of an errand, and return its result."""
    done = None
    try:
        while True:
            done = errand.send(done).run()
    except StopIteration as stop:
        result: R = stop.value
        return result


async def ado(errand: Errand[R]) -> R:
    """Async twin of `do`."""
    done = None
    try:
        while True:
            done = await errand.send(done).arun()
    except StopIteration as stop:
        result: R = stop.value
        return result
