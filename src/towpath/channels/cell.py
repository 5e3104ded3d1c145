"""`Cell`: what the channels that keep one value in a slot have in common."""

from __future__ import annotations

from typing import Any, Generic, Self

from towpath.channels.base import BaseChannel, Value, own
from towpath.constants import MISSING, Missing
from towpath.errors import EmptyChannelError

__all__ = ("Cell",)


class Cell(BaseChannel[Value, Value, Value], Generic[Value]):
    """One slot, `value`, which is `MISSING` when empty."""

    __slots__ = ("value",)

    value: Value | Missing

    def __init__(self, typ: Any, key: str = "") -> None:
        self.typ = typ
        self.key = key
        self.value = MISSING

    # Two cells of a kind are one channel to a schema, whatever they hold.
    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    __hash__ = None  # type: ignore[assignment]  # mutable, so not hashable

    @property
    def ValueType(self) -> Any:  # noqa: N802 - the public name
        """The type of the value."""
        return self.typ

    @property
    def UpdateType(self) -> Any:  # noqa: N802 - the public name
        """The type of a write: that of the value."""
        return self.typ

    def empty(self) -> Self:
        """Make an empty channel of the same declaration."""
        twin = type(self).__new__(type(self))
        twin.typ = self.typ
        twin.key = self.key
        twin.value = MISSING
        return twin

    def copy(self) -> Self:
        """Make an independent channel that holds the same value."""
        twin = self.empty()
        twin.value = own(self.value)
        return twin

    def from_checkpoint(self, checkpoint: Value | Any) -> Self:
        """Make a channel like this one that holds `checkpoint`."""
        twin = self.empty()
        twin.value = checkpoint
        return twin

    def checkpoint(self) -> Value | Any:
        """Return the value, or `MISSING`."""
        return self.value

    def get(self) -> Value:
        """Return the value."""
        value = self.value
        if value is MISSING:
            raise EmptyChannelError
        return value

    def is_available(self) -> bool:
        """Tell whether there is a value."""
        return self.value is not MISSING
