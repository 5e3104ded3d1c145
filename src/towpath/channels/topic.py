"""`Topic`: every value written, in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Generic, Self

from towpath.channels.base import BaseChannel, Value
from towpath.constants import MISSING
from towpath.errors import EmptyChannelError

__all__ = ("Topic",)


class Topic(
    BaseChannel[Sequence[Value], Value | list[Value], list[Value]], Generic[Value]
):
    """Collects the values of a step, or, accumulating, of all steps.

    A list that is written counts as several values.
    """

    __slots__ = ("accumulate", "values")

    pure: ClassVar[bool] = True

    values: list[Value]
    accumulate: bool

    def __init__(self, typ: type[Value], accumulate: bool = False) -> None:
        super().__init__(typ)
        self.accumulate = accumulate
        self.values = []

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Topic) and other.accumulate == self.accumulate

    __hash__ = None  # type: ignore[assignment]  # mutable, so not hashable

    @property
    def ValueType(self) -> Any:  # noqa: N802 - the public name
        """A sequence of the declared type."""
        return Sequence[self.typ]  # type: ignore[name-defined]  # built at run time

    @property
    def UpdateType(self) -> Any:  # noqa: N802 - the public name
        """The declared type, or a list of it."""
        return self.typ | list[self.typ]  # type: ignore[name-defined]  # as above

    @property
    def sums(self) -> bool:
        """Always: every value written is kept."""
        return True

    def copy(self) -> Self:
        """Make an independent channel that holds the same values."""
        return self._holding(self.values)

    def _holding(self, values: Sequence[Value]) -> Self:
        twin = type(self)(self.typ, self.accumulate)
        twin.key = self.key
        twin.values = list(values)
        return twin

    def checkpoint(self) -> list[Value]:
        """Return the values held."""
        return list(self.values)

    def from_checkpoint(self, checkpoint: list[Value] | Any) -> Self:
        """Make a channel like this one that holds the stored values."""
        if checkpoint is MISSING or checkpoint is None:
            return self._holding(())
        # An old stored form: a pair, of values seen before and values held.
        return self._holding(
            checkpoint[1] if isinstance(checkpoint, tuple) else checkpoint
        )

    def update(self, values: Sequence[Value | list[Value]]) -> bool:
        """Add the values written; a step starts afresh unless accumulating."""
        fresh: list[Value] = []
        for value in values:
            if isinstance(value, list):
                fresh.extend(value)
            else:
                fresh.append(value)
        if self.accumulate:
            self.values.extend(fresh)
            return bool(fresh)
        # Clearing a channel that held something is a change as well.
        changed = bool(fresh or self.values)
        self.values = fresh
        return changed

    def get(self) -> Sequence[Value]:
        """Return the values held."""
        if not self.values:
            raise EmptyChannelError
        return list(self.values)

    def is_available(self) -> bool:
        """Tell whether there are values."""
        return bool(self.values)
