"""The channels of a plain field: the last value written stays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Generic, Self

from towpath.channels.base import Value
from towpath.channels.cell import Cell
from towpath.constants import MISSING, Missing
from towpath.errors import ConcurrentUpdateError, EmptyChannelError

__all__ = ("LastValue", "LastValueAfterFinish")


class LastValue(Cell[Value], Generic[Value]):
    """Keeps the last value; takes at most one write per step."""

    __slots__ = ()

    ticks: ClassVar[bool] = False
    pure: ClassVar[bool] = True

    @property
    def single(self) -> bool:
        """Two writes in one step are an error."""
        return True

    def update(self, values: Sequence[Value]) -> bool:
        """Keep the one value written.

        Raises:
            ConcurrentUpdateError: there are several (TP-203).
        """
        if len(values) == 1:
            self.value = values[0]
            return True
        if values:
            raise ConcurrentUpdateError.at(self.key, len(values))
        return False


class LastValueAfterFinish(Cell[Value], Generic[Value]):
    """Keeps the last value, and shows it once the run has nothing else to do.

    A deferred node is triggered by one: it must not run in the step after its
    trigger was written, but when all the others are done.
    """

    __slots__ = ("finished",)

    ticks: ClassVar[bool] = False
    pure: ClassVar[bool] = True

    finished: bool

    def __init__(self, typ: Any, key: str = "") -> None:
        super().__init__(typ, key)
        self.finished = False

    def empty(self) -> Self:
        """Make an empty channel of the same declaration."""
        twin = super().empty()
        twin.finished = False
        return twin

    def copy(self) -> Self:
        """Make an independent channel of the same value and visibility."""
        twin = super().copy()
        twin.finished = self.finished
        return twin

    def checkpoint(self) -> tuple[Value | Missing, bool] | Any:
        """Return the value and whether it shows, or `MISSING`."""
        return MISSING if self.value is MISSING else (self.value, self.finished)

    def from_checkpoint(self, checkpoint: tuple[Value | Any, bool] | Any) -> Self:
        """Make a channel like this one that holds `checkpoint`."""
        twin = self.empty()
        if checkpoint is not MISSING:
            twin.value, twin.finished = checkpoint
        return twin

    def update(self, values: Sequence[Value | Any]) -> bool:
        """Keep the last value written, and hide it again."""
        if not values:
            return False
        self.value = values[-1]
        self.finished = False
        return True

    def get(self) -> Value:
        """Return the value, once it shows."""
        value = self.value
        if value is MISSING or not self.finished:
            raise EmptyChannelError
        return value

    def is_available(self) -> bool:
        """Tell whether there is a value that shows."""
        return self.finished and self.value is not MISSING

    def consume(self) -> bool:
        """Forget a value that showed: its task was planned."""
        if not self.finished:
            return False
        self.finished = False
        self.value = MISSING
        return True

    def finish(self) -> bool:
        """Show the value."""
        if self.finished or self.value is MISSING:
            return False
        self.finished = True
        return True
