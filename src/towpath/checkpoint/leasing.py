"""Granting leases of threads, renewing them and taking them back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from towpath.checkpoint.base.lease import TTL_S, Lease, is_dead
from towpath.checkpoint.programs import HOLD, NOW, Program, Query
from towpath.errors import LeaseLostError, ThreadBusyError

_EPOCH: Final = (
    "SELECT l.epoch FROM towpath_leases l WHERE l.thread = s.thread AND l.owner = ?"
)
EPOCH: Final = f"({_EPOCH})"
"""Of a space `s`, the epoch in which an owner holds its thread."""
HELD_EPOCH: Final = f"({_EPOCH} {HOLD})"
"""The same, for a program that takes no lock: nobody takes it over meanwhile."""


def acquire(lease: Lease) -> Program[int]:
    """Claim a thread; return the epoch.

    Raises:
        ThreadBusyError: another run has it, which is not known to be dead.
    """
    rows = yield from Query(
        f"SELECT owner, epoch, expires > {NOW} FROM towpath_leases WHERE thread = ?",
        (lease.thread,),
        lock=lease.thread,
    )
    if not rows:
        yield Query(
            "INSERT INTO towpath_leases (thread, owner, epoch, expires)"
            f" VALUES (?, ?, 1, {NOW} + ?)",
            (lease.thread, lease.owner, TTL_S),
        )
        return 1
    [(owner, epoch, lasts)] = rows
    if owner is not None and lasts and owner != lease.owner and not is_dead(owner):
        raise busy(lease.thread, owner)
    yield Query(
        "UPDATE towpath_leases SET owner = ?, epoch = ?,"
        f" expires = {NOW} + ? WHERE thread = ?",
        (lease.owner, epoch + 1, TTL_S, lease.thread),
    )
    return int(epoch) + 1


def is_held(thread: str) -> Program[bool]:
    """Tell whether a run has a thread, which is not known to be dead."""
    rows = yield from Query(
        "SELECT owner FROM towpath_leases"
        f" WHERE thread = ? AND owner IS NOT NULL AND expires > {NOW}",
        (thread,),
    )
    return any(not is_dead(owner) for (owner,) in rows)


def busy(thread: str, owner: str) -> ThreadBusyError:
    """Return the error that tells who has a thread."""
    error = ThreadBusyError(
        f"thread `{thread}` is held by another run",
        hint="wait for it, which is the default (`on_busy`); or close the stream "
        "that is not finished; or use a thread of its own",
    )
    error.owner = owner
    return error


def check(lease: Lease | None, epoch: int | None) -> None:
    """Refuse to store under a lease that another run holds by now.

    Raises:
        LeaseLostError: names the thread (TP-505).
    """
    if lease is not None and epoch != lease.epoch:
        raise LeaseLostError(
            f"another run took thread `{lease.thread}` over; this one stores nothing "
            "more",
            hint="resume the thread, if it is not finished",
        )


def check_new(lease: Lease | None) -> Program[None]:
    """The same for a thread of which nothing is stored yet."""
    if lease is not None:
        rows = yield from Query(
            f"SELECT epoch FROM towpath_leases WHERE thread = ? AND owner = ? {HOLD}",
            (lease.thread, lease.owner),
        )
        check(lease, rows[0][0] if rows else None)


def renew(leases: Sequence[Lease]) -> Program[None]:
    """Make leases last longer."""
    yield Query(
        f"UPDATE towpath_leases SET expires = {NOW} + ? WHERE thread = ? AND owner = ?",
        [(TTL_S, lease.thread, lease.owner) for lease in leases],
        many=True,
    )


def release(lease: Lease) -> Program[None]:
    """Give a lease back; of a thread without a checkpoint nothing is left."""
    yield Query(
        "DELETE FROM towpath_leases WHERE thread = ? AND owner = ? AND NOT EXISTS"
        " (SELECT 1 FROM towpath_spaces s WHERE s.thread = towpath_leases.thread)",
        (lease.thread, lease.owner),
    )
    yield Query(
        "UPDATE towpath_leases SET owner = NULL WHERE thread = ? AND owner = ?",
        (lease.thread, lease.owner),
    )
    lease.end()  # not before: who is taken for dead loses what it stores last


class LeaseTable:
    """The leases of threads that are kept in the memory of this process.

    Whoever uses it holds a lock meanwhile.
    """

    def __init__(self) -> None:
        self._held: dict[str, Lease] = {}

    def acquire(self, lease: Lease) -> None:
        """Grant a claim.

        Raises:
            ThreadBusyError: another run has the thread.
        """
        held = self._held.get(lease.thread)
        if held is not None and held is not lease and not is_dead(held.owner):
            raise busy(lease.thread, held.owner)
        lease.grant(1 if held is None else held.epoch + 1)
        self._held[lease.thread] = lease

    def check(self, lease: Lease | None) -> None:
        """Refuse to store under a lease that is no longer held."""
        if lease is not None:
            check(lease, lease.epoch if self._held.get(lease.thread) is lease else None)

    def release(self, lease: Lease) -> None:
        """Take a lease back."""
        lease.end()
        if self._held.get(lease.thread) is lease:
            del self._held[lease.thread]

    def is_held(self, thread: str) -> bool:
        """Tell whether a run has a thread."""
        held = self._held.get(thread)
        return held is not None and not is_dead(held.owner)

    def forget(self, thread: str) -> None:
        """Forget who holds a thread that is no more."""
        self._held.pop(thread, None)
