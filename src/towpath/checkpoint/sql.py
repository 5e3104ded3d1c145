"""A saver over a SQL database, whichever it is and in both colours.

Each method encodes what it was given, has a program run, and decodes what came
back. A subclass says how programs are run: blocking in `_read` and `_write`,
and for an event loop in `_aread` and `_awrite`. Encoding comes before any
waiting, so a value is stored as it was when the method was called.
"""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from datetime import timedelta
from functools import cached_property, partial
from itertools import chain
from typing import Any, Final, TypeVar

from towpath.checkpoint import (
    leasing,
    overview,
    reading,
    resealing,
    retention,
    writing,
)
from towpath.checkpoint.base.lease import Lease
from towpath.checkpoint.base.model import (
    Address,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    address_config,
    get_checkpoint_id,
    locate,
)
from towpath.checkpoint.base.rules import Affected, Everything, Rule
from towpath.checkpoint.base.saver import (
    Capabilities,
    Exact,
    Staged,
    TaskWrites,
    Written,
    check_limit,
    matches,
)
from towpath.checkpoint.base.summary import ThreadSummary
from towpath.checkpoint.bundle import Bundle, Part, in_turn
from towpath.checkpoint.heads import Head
from towpath.checkpoint.keeper import Keeper
from towpath.checkpoint.kept import dump_late
from towpath.checkpoint.programs import Make, Program
from towpath.checkpoint.reading import Scope, Stored
from towpath.checkpoint.record import (
    Cell,
    dump_channels,
    dump_metadata,
    dump_step,
    header_of,
    located,
)
from towpath.checkpoint.restoring import (
    Item,
    Restored,
    asked_by,
    in_order,
    restore,
    restore_all,
    restore_traced,
)
from towpath.checkpoint.sealing import PLAIN, KeyringSeal, Seal
from towpath.checkpoint.serde.base import SerializerProtocol
from towpath.checkpoint.serde.keyring import Keyring
from towpath.checkpoint.staged import Encoded, StagedSaver, Storing
from towpath.checkpoint.upkeep import ThreadPage, UpkeepSaver, ado, do
from towpath.checkpoint.writing import Draft
from towpath.types import RunnableConfig

R = TypeVar("R")
_PAGE_FIRST: Final = 64
_PAGE_MAX: Final = 1024
"""How many checkpoints a listing fetches at once: ever more. Of those fetched
together, values that grew from each other are decoded once."""


def _waits(parts: Sequence[Part]) -> bool:
    """Whether any of it has to reach the disk."""
    return any(part.durable for part in parts)


class SqlSaver(StagedSaver, UpkeepSaver):
    """The part of a SQL saver that does not depend on the database."""

    capabilities = Capabilities(
        atomic_commit=True,
        carries=True,
        deltas=True,
        leases=True,
        retention=True,
        staged=True,
    )

    def __init__(
        self,
        *,
        serde: SerializerProtocol | None = None,
        encryption: Keyring | None = None,
        ttl: timedelta | None = None,
    ) -> None:
        super().__init__(serde=serde)
        self.encryption = encryption
        self.ttl = ttl

    def _seal_of(self, thread: str, ns: str) -> Seal:
        ring = self.encryption
        return PLAIN if ring is None else KeyringSeal(ring, thread, ns)

    def _read(self, make: Make[R]) -> R:
        raise NotImplementedError

    def _write(self, make: Make[R], *, durable: bool = True) -> R:
        # What is not durable may be forgotten when the machine fails.
        raise NotImplementedError

    async def _aread(self, make: Make[R]) -> R:
        raise NotImplementedError

    async def _awrite(self, make: Make[R], *, durable: bool = True) -> R:
        raise NotImplementedError

    # Reading

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that `config` names, or the newest."""
        return self._read(partial(self._latest, locate(config)))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Async twin of `get_tuple`."""
        return await self._aread(partial(self._latest, locate(config)))

    def _latest(self, address: Address) -> Program[CheckpointTuple | None]:
        # Decoding is part of the program, so that it is done in the thread.
        stored = yield from reading.latest(address, self._seal_of)
        if stored is None:
            return None
        return _tuple(stored, restore(self.serde, _item(stored)))

    def begin_run(
        self, config: RunnableConfig, lease: Lease | None = None
    ) -> CheckpointTuple | None:
        """As `get_tuple`, for a run that goes on from there."""
        return self._beginning(config, lease).run()

    async def abegin_run(
        self, config: RunnableConfig, lease: Lease | None = None
    ) -> CheckpointTuple | None:
        """Async twin of `begin_run`."""
        return await self._beginning(config, lease).arun()

    def _beginning(
        self, config: RunnableConfig, lease: Lease | None
    ) -> Staged[CheckpointTuple | None]:
        make = partial(self._begin, locate(config), lease)
        if lease is None:
            return self._reading(make)
        return self._writing(make, durable=False)

    @cached_property
    def _keeper(self) -> Keeper:
        return Keeper(self._renew)

    def _renew(self, leases: Sequence[Lease]) -> None:
        self._write(partial(leasing.renew, leases), durable=False)

    def _begin(
        self, address: Address, lease: Lease | None
    ) -> Program[CheckpointTuple | None]:
        if lease is not None:
            lease.grant((yield from leasing.acquire(lease)))
            self._keeper.add(lease)
        stored = yield from reading.latest(address, self._seal_of)
        if stored is None:
            return None
        restored, traces = restore_traced(self.serde, _item(stored))
        found = _tuple(stored, restored)
        versions = dict(found.checkpoint["channel_versions"])
        self._heads.keep(address.space, Head(stored.id, versions, traces))
        return found

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints, newest first; those of all threads without config."""
        listing = _Listing(self._scope(config, filter, before), limit)
        return self._listed(listing)

    def _listed(self, listing: _Listing) -> Iterator[CheckpointTuple]:
        while (make := listing.next_page()) is not None:
            yield from self._tuples(listing.take(self._read(make)))

    def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Async twin of `list`."""
        listing = _Listing(self._scope(config, filter, before), limit)
        return self._alisted(listing)

    async def _alisted(self, listing: _Listing) -> AsyncIterator[CheckpointTuple]:
        while (make := listing.next_page()) is not None:
            for found in self._tuples(listing.take(await self._aread(make))):
                yield found

    def _tuples(self, page: Sequence[Stored]) -> Iterator[CheckpointTuple]:
        items = [*map(_item, page)]
        asked = chain.from_iterable(map(asked_by, items))
        return map(_tuple, page, restore_all(self.serde, asked, items))

    def _scope(
        self,
        config: RunnableConfig | None,
        filter: Mapping[str, Any] | None,
        before: RunnableConfig | None,
    ) -> Scope:
        def keep(meta: Cell) -> bool:
            return matches(self.serde.loads_typed(meta), filter)

        address = None if config is None else locate(config)
        until = get_checkpoint_id(before) if before else None
        return Scope(address, until, keep if filter else None, self._seal_of)

    # Writing

    def stage_commit(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
        writes: Sequence[TaskWrites] = (),
        *,
        written: Written = None,
        lease: Lease | None = None,
        own: Sequence[TaskWrites] = (),
    ) -> Staged[RunnableConfig]:
        """Encode what `commit` stores, and pending writes of the new checkpoint."""
        address = locate(config)
        if writes and address.id is None:
            located(config)  # says so
        meta = dump_metadata(self.serde, metadata)
        encoded = self._encode(address, checkpoint, new_versions, written)
        draft = self._draft(address, checkpoint, new_versions, encoded, meta)
        draft.lease = lease
        # What a remembered parent is not stored with, nobody can ask for any more.
        stored = encoded.cells.keys() & new_versions.keys() if encoded.exact else ()
        values = checkpoint["channel_values"]
        draft.late, draft.writes = dump_late(self.serde, writes, values, stored)
        if own:
            draft.own = dump_step(self.serde, own)
        make = partial(self._completed, draft, checkpoint)
        return Bundle(self, Part(address.space, make, draft.settle))

    def _draft(
        self,
        address: Address,
        checkpoint: Checkpoint,
        new_versions: ChannelVersions,
        own: Encoded,
        meta: Cell,
    ) -> Draft:
        seen = checkpoint["versions_seen"]
        if type(new_versions) is not Exact:  # the engine only replaces what is in it
            seen = {node: {**saw} for node, saw in seen.items()}
        return Draft(
            *address.space,
            id=checkpoint["id"],
            parent=address.id,
            header=header_of(checkpoint),
            versions=own.versions,
            seen=seen,
            new_versions=dict(new_versions),
            channels=own.channels if own.exact else None,
            held=checkpoint["channel_values"].keys(),
            meta=meta,
            cells=own.cells,
            loose=dump_channels(self.serde, checkpoint, own.loose),
            seal=self._seal_of(*address.space),
            known=own.known,
        )

    def _commit(self, draft: Draft) -> Program[set[str]]:
        """Return the program that stores a draft, see `writing.commit`."""
        return writing.commit(draft)

    def _completed(
        self, draft: Draft, checkpoint: Checkpoint
    ) -> Program[RunnableConfig]:
        while missing := (yield from self._commit(draft)):
            draft.cells |= dump_channels(self.serde, checkpoint, missing)
            draft.patched = True
        return address_config(draft.thread, draft.ns, draft.id)

    def stage_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[TaskWrites],
        *,
        lease: Lease | None = None,
    ) -> Staged[None]:
        """Encode what `put_writes` stores, of one task or of several."""
        thread, ns, at = located(config)
        cells = dump_step(self.serde, writes)
        seal = self._seal_of(thread, ns)
        make = partial(writing.put_writes, (thread, ns), at, cells, lease, seal)
        return Bundle(self, Part((thread, ns), make))

    def _stage_end(
        self,
        address: Address,
        cells: dict[str, Cell],
        lease: Lease | None,
        ended: Lease | None,
    ) -> Staged[None]:
        place, at = address.space, address.id
        seal = self._seal_of(*place)
        if ended is not None:
            self._keeper.drop(ended)

        def end() -> Program[None]:
            if cells and at is not None:
                yield from writing.amend(place, at, cells, lease, seal)
            if ended is not None:
                yield from leasing.release(ended)

        return Bundle(self, Part(place, end, durable=bool(cells)))

    def keep(self, parts: Sequence[Part]) -> Any:
        """Store what was staged, in one transaction; return the last one's result."""
        try:
            result = self._write(partial(in_turn, parts), durable=_waits(parts))
        except BaseException:
            self._forget(parts)
            raise
        parts[-1].done()
        return result

    async def akeep(self, parts: Sequence[Part]) -> Any:
        """Async twin of `keep`."""
        try:
            make = partial(in_turn, parts)
            result = await self._awrite(make, durable=_waits(parts))
        except BaseException:
            self._forget(parts)
            raise
        parts[-1].done()
        return result

    def _forget(self, parts: Sequence[Part]) -> None:
        for part in parts:
            self._heads.drop(part.space)

    # Threads over time

    def _surveying(
        self, after: tuple[str, str] | None, most: int
    ) -> Staged[Sequence[ThreadSummary]]:
        return self._reading(partial(self._survey, after, most))

    def _survey(
        self, after: tuple[str, str] | None, most: int
    ) -> Program[Sequence[ThreadSummary]]:
        found = yield from overview.survey(after, most, self._seal_of)
        tuples = self._tuples([stored for stored, _, _ in found])
        return [
            ThreadSummary(stored.thread, newest, checkpoints, size)
            for (stored, checkpoints, size), newest in zip(found, tuples, strict=True)
        ]

    def _paging(self, after: str | None) -> Staged[ThreadPage]:
        return self._reading(partial(retention.page, after))

    def _removing(self, thread: str, rule: Rule, dry_run: bool) -> Staged[Affected]:
        program: Callable[..., Program[Affected]]
        if isinstance(rule, Everything):
            program = partial(retention.delete, thread, dry_run)
        else:
            inside = retention.Inside(self.serde.loads_typed, self._seal_of)
            program = partial(retention.remove, thread, rule, inside, dry_run)
        return self._chore(program, dry_run)

    def _copying(self, source: str, target: str, dry_run: bool) -> Staged[Affected]:
        seal_of = self._seal_of
        program = partial(resealing.copy_thread, source, target, seal_of, dry_run)
        return self._chore(program, dry_run)

    def rotate(
        self, thread_ids: Sequence[str] | None = None, *, dry_run: bool = False
    ) -> Affected:
        """Seal with the current key what is sealed with a retired one, or not at all.

        Of these threads, or of all. What is counted is what had to be sealed again.

        Raises:
            ValueError: the saver has no `encryption`.
            SealError: (TP-510) something cannot be opened; its thread stays as it was.
        """
        return do(self._each(thread_ids, self._rotating(dry_run)))

    async def arotate(
        self, thread_ids: Sequence[str] | None = None, *, dry_run: bool = False
    ) -> Affected:
        """Async twin of `rotate`."""
        return await ado(self._each(thread_ids, self._rotating(dry_run)))

    def _rotating(self, dry_run: bool) -> Callable[[str], Staged[Affected]]:
        if self.encryption is None:
            raise ValueError("there are no keys to change: `encryption` was not given")

        def rotating(thread: str) -> Staged[Affected]:
            program = partial(resealing.rotate, thread, self._seal_of, dry_run)
            return self._chore(program, dry_run)

        return rotating

    def _reading(self, make: Make[R]) -> Staged[R]:
        return Storing(partial(self._read, make), partial(self._aread, make))

    def _writing(self, make: Make[R], *, durable: bool = True) -> Staged[R]:
        return Storing(
            partial(self._write, make, durable=durable),
            partial(self._awrite, make, durable=durable),
        )

    def _chore(self, make: Make[R], dry_run: bool) -> Staged[R]:
        return self._reading(make) if dry_run else self._writing(make)


def _item(stored: Stored) -> Item:
    return Item((stored.meta,), stored.cells, in_order(stored.writes))


def _tuple(stored: Stored, restored: Restored) -> CheckpointTuple:
    [metadata], values, writes = restored
    checkpoint = stored.checkpoint
    assert checkpoint is not None
    checkpoint["channel_values"] = values
    thread, ns, parent = stored.thread, stored.ns, stored.parent
    return CheckpointTuple(
        address_config(thread, ns, stored.id),
        checkpoint,
        metadata,
        address_config(thread, ns, parent) if parent else None,
        writes,
    )


class _Listing:
    """A listing under way: where it is, and how many are still wanted."""

    def __init__(self, scope: Scope, limit: int | None) -> None:
        self._scope = scope
        self._left = check_limit(limit)
        self._mark: reading.Mark | None = None
        self._over = False
        self._size = _PAGE_FIRST

    def next_page(self) -> Make[reading.Page] | None:
        """Return the program of the next page, or None at the end."""
        left = self._left
        if self._over or left == 0:
            return None
        # With a filter, a page of `left` rows would seldom yield as many.
        small = left is not None and self._scope.keep is None
        size = min(left, self._size) if small and left is not None else self._size
        self._size = min(self._size * 4, _PAGE_MAX)
        return partial(reading.page, self._scope, self._mark, size)

    def take(self, page: reading.Page) -> Sequence[Stored]:
        """Return the checkpoints of a page, as many as are still wanted."""
        found, self._mark = page
        self._over = self._mark is None
        if self._left is not None:
            found = found[: self._left]
            self._left -= len(found)
        return found
