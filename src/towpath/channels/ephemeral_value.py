"""`EphemeralValue`: a value that lives for one step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Generic

from towpath.channels.base import Value
from towpath.channels.guarded import GuardedCell
from towpath.constants import MISSING

__all__ = ("EphemeralValue",)


class EphemeralValue(GuardedCell[Value], Generic[Value]):
    """Keeps a value until the next step that does not write it."""

    __slots__ = ()

    pure: ClassVar[bool] = True

    def update(self, values: Sequence[Value]) -> bool:
        """Keep the value written, or clear the channel.

        Raises:
            ConcurrentUpdateError: several writes meet the guard (TP-203).
        """
        if values:
            return self.keep(values)
        if self.value is MISSING:
            return False
        self.value = MISSING
        return True
