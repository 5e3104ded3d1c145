"""The channel of a list-join that fires on the branches taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from towpath.channels.base import BaseChannel
from towpath.constants import MISSING
from towpath.errors import EmptyChannelError


class TakenBarrier(BaseChannel[None, str, Any]):
    """Opens when nothing else can run and at least one source has arrived.

    The join of `add_edge([...], target, join="taken")`: it does not wait for
    branches that were not taken.
    """

    __slots__ = ("finished", "names", "seen")

    ticks = False

    def __init__(self, typ: Any, names: frozenset[str]) -> None:
        super().__init__(typ)
        self.names = names
        self.seen: set[str] = set()
        self.finished = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TakenBarrier) and other.names == self.names

    __hash__ = None  # type: ignore[assignment] # channels are mutable

    @property
    def ValueType(self) -> Any:  # noqa: N802 - the contract's name
        return type(None)

    @property
    def UpdateType(self) -> Any:  # noqa: N802 - the contract's name
        return str

    def update(self, values: Sequence[str]) -> bool:
        new = set(values) - self.seen
        if new:
            self.seen |= new
            self.finished = False
        return bool(new)

    def finish(self) -> bool:
        if self.seen and not self.finished:
            self.finished = True
            return True
        return False

    def consume(self) -> bool:
        if self.finished:
            self.seen, self.finished = set(), False
            return True
        return False

    def is_available(self) -> bool:
        return self.finished

    def get(self) -> None:
        if not self.finished:
            raise EmptyChannelError

    def checkpoint(self) -> Any:
        return (sorted(self.seen), self.finished) if self.seen else MISSING

    def from_checkpoint(self, checkpoint: Any) -> Self:
        fresh = type(self)(self.typ, self.names)
        fresh.key = self.key
        if checkpoint is not MISSING:
            fresh.seen, fresh.finished = set(checkpoint[0]), bool(checkpoint[1])
        return fresh
