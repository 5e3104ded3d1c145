"""`AnyValue`: any one of the values written in a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Generic

from towpath.channels.base import Value
from towpath.channels.cell import Cell
from towpath.constants import MISSING

__all__ = ("AnyValue",)


class AnyValue(Cell[Value], Generic[Value]):
    """Keeps one of several equal writes, until a step writes none.

    All writers of a step are assumed to agree; the last one is kept.
    """

    __slots__ = ()

    pure: ClassVar[bool] = True

    def update(self, values: Sequence[Value]) -> bool:
        """Keep the last value written, or clear the channel."""
        if values:
            self.value = values[-1]
            return True
        if self.value is MISSING:
            return False
        self.value = MISSING
        return True
