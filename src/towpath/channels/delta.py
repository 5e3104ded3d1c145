"""`DeltaChannel`: a reducer that takes all the writes of a step at once.

In every observable way it equals a plain reducer channel. The peer's channel
of this name also chooses how its value is stored; here storage keeps changes
for every channel, so `checkpoint` gives the value, and `snapshot_frequency` is
only a bound: no more than that many changes lie between two snapshots.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic, Self

from towpath.channels.base import Value
from towpath.channels.binop import is_idempotent, same_function
from towpath.channels.cell import Cell
from towpath.channels.empties import empty_of
from towpath.channels.overwrite import overwritten, single_overwrite
from towpath.constants import MISSING
from towpath.errors import InvalidGraphError, InvalidUpdateError

__all__ = ("DeltaChannel",)


class DeltaChannel(Cell[Any], Generic[Value]):
    """Folds a step's writes in one call: `value = reducer(value, writes)`."""

    __slots__ = ("reducer", "snapshot_frequency")

    ticks: ClassVar[bool] = False

    def __init__(
        self,
        reducer: Callable[[Any, Sequence[Any]], Any],
        typ: type[Value] | None = None,
        *,
        snapshot_frequency: int = 100,
    ) -> None:
        if snapshot_frequency <= 0:
            raise InvalidGraphError(
                f"snapshot_frequency must be a positive int, got {snapshot_frequency}"
            )
        super().__init__(list if typ is None else typ)
        self.reducer = reducer
        self.snapshot_frequency = snapshot_frequency
        self.value = MISSING

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, DeltaChannel)
            and other.snapshot_frequency == self.snapshot_frequency
            and same_function(self.reducer, other.reducer)
        )

    __hash__ = None  # mutable, so not hashable

    @property
    def sums(self) -> bool:
        """Unless the reducer is known to take a value twice as once."""
        return not is_idempotent(self.reducer)

    def empty(self) -> Self:
        """Make an empty channel of the same declaration."""
        twin = super().empty()
        twin.reducer = self.reducer
        twin.snapshot_frequency = self.snapshot_frequency
        return twin

    def from_checkpoint(self, checkpoint: Any) -> Self:
        """Make a channel like this one that holds `checkpoint`."""
        if checkpoint is MISSING:
            checkpoint = empty_of(self.typ)
        # The peer's savers wrap a full value in a named tuple of one.
        elif getattr(checkpoint, "_fields", None) == ("value",):
            checkpoint = checkpoint.value
        elif type(checkpoint) is list and checkpoint and is_replay(checkpoint[0]):
            return self.replayed(*checkpoint)
        return super().from_checkpoint(checkpoint)

    def replayed(self, start: Any, *writes: Any) -> Self:
        """Make a channel like this one of writes that were imported as such."""
        seed = start.seed if start.seeded else empty_of(self.typ)
        twin = super().from_checkpoint(seed)
        twin.replay_writes([("", self.key, each) for each in writes])
        return twin

    def replay_writes(self, writes: Sequence[tuple[str, str, Any]]) -> None:
        """Fold in stored writes (task, channel, value) of any number of steps.

        The last one that replaces the value wins over those before it.
        """
        values = [value for _, _, value in writes]
        for at in range(len(values) - 1, -1, -1):
            new = overwritten(values[at])
            if new is not MISSING:
                self._replace(new)
                values = values[at + 1 :]
                break
        self._fold(values)

    def update(self, values: Sequence[Any]) -> bool:
        """Fold the writes in, or take the one that replaces the value.

        Raises:
            ConcurrentUpdateError: several writes replace it (TP-203).
        """
        if not values:
            return False
        new = single_overwrite(self.key, values)
        if new is MISSING:
            self._fold(values)
        else:
            self._replace(new)
        return True

    def _replace(self, value: Any) -> None:
        self.value = empty_of(self.typ) if value is None else value

    def _fold(self, writes: Sequence[Any]) -> None:
        if not writes:
            return
        value = empty_of(self.typ) if self.value is MISSING else self.value
        if value is MISSING:
            raise InvalidUpdateError(
                f"At key '{self.key}': {self.typ} has no empty value to start from",
                hint="give DeltaChannel a type that can be called without arguments",
            )
        self.value = self.reducer(value, writes)


def is_replay(first: Any) -> bool:
    """Whether what a list begins with says that it holds a channel's writes."""
    return getattr(first, "_fields", None) == ("seeded", "seed")
