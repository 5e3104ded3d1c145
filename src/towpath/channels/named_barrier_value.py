"""Barriers: channels that open when all of a set of names have been written."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any, ClassVar, Generic, Self

from towpath.channels.base import BaseChannel, Value
from towpath.constants import MISSING
from towpath.errors import EmptyChannelError, InvalidUpdateError, names

__all__ = ("NamedBarrierValue", "NamedBarrierValueAfterFinish")


class NamedBarrierValue(BaseChannel[Value, Value, set[Value]], Generic[Value]):
    """Waits until every one of `names` was written; read, it gives None."""

    __slots__ = ("names", "seen")

    ticks: ClassVar[bool] = False
    pure: ClassVar[bool] = True

    names: set[Value]
    seen: set[Value]

    def __init__(self, typ: type[Value], names: set[Value]) -> None:
        super().__init__(typ)
        self.names = names
        self.seen = set()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.names == self.names

    __hash__ = None  # type: ignore[assignment]  # mutable, so not hashable

    @property
    def ValueType(self) -> Any:  # noqa: N802 - the public name
        """The type of a name."""
        return self.typ

    @property
    def UpdateType(self) -> Any:  # noqa: N802 - the public name
        """The type of a name."""
        return self.typ

    def _holding(self, seen: AbstractSet[Value]) -> Self:
        twin = type(self)(self.typ, self.names)
        twin.key = self.key
        twin.seen = set(seen)
        return twin

    def copy(self) -> Self:
        """Make an independent channel that has seen the same names."""
        return self._holding(self.seen)

    def checkpoint(self) -> Any:
        """Return the names seen."""
        return set(self.seen)

    def from_checkpoint(self, checkpoint: Any) -> Self:
        """Make a channel like this one that has seen the stored names."""
        return self._holding(set() if checkpoint is MISSING else checkpoint)

    def update(self, values: Sequence[Value]) -> bool:
        """Note the names written, and tell whether one of them was new."""
        changed = False
        for value in values:
            if value not in self.names:
                raise InvalidUpdateError(
                    f"At key '{self.key}': Value {value} not in {names(self.names)}"
                )
            if value not in self.seen:
                self.seen.add(value)
                changed = True
        return changed

    def get(self) -> Value:
        """Return None, once all names have come."""
        if not self.is_available():
            raise EmptyChannelError
        return None  # type: ignore[return-value]  # the peer's contract

    def is_available(self) -> bool:
        """Tell whether all names have come."""
        return self.seen == self.names

    def consume(self) -> bool:
        """Start waiting anew: the task that waited was planned."""
        if not self.is_available():
            return False
        self.seen = set()
        return True


class NamedBarrierValueAfterFinish(NamedBarrierValue[Value], Generic[Value]):
    """A barrier that opens only once the run has nothing else to do."""

    __slots__ = ("finished",)

    finished: bool

    def __init__(self, typ: type[Value], names: set[Value]) -> None:
        super().__init__(typ, names)
        self.finished = False

    def copy(self) -> Self:
        """Make an independent channel of the same state."""
        twin = super().copy()
        twin.finished = self.finished
        return twin

    def checkpoint(self) -> tuple[set[Value], bool]:
        """Return the names seen and whether the barrier may open."""
        return set(self.seen), self.finished

    def from_checkpoint(self, checkpoint: Any) -> Self:
        """Make a channel like this one of the stored state."""
        seen, finished = (set(), False) if checkpoint is MISSING else checkpoint
        twin = self._holding(seen)
        twin.finished = finished
        return twin

    def is_available(self) -> bool:
        """Tell whether all names have come and the run is otherwise done."""
        return self.finished and self.seen == self.names

    def consume(self) -> bool:
        """Start waiting anew: the task that waited was planned."""
        if not super().consume():
            return False
        self.finished = False
        return True

    def finish(self) -> bool:
        """Open the barrier, if all names have come."""
        if self.finished or self.seen != self.names:
            return False
        self.finished = True
        return True
