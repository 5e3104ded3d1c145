"""`UntrackedValue`: a value that no checkpoint keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Generic, Self

from towpath.channels.base import Value
from towpath.channels.guarded import GuardedCell
from towpath.constants import MISSING

__all__ = ("UntrackedValue",)


class UntrackedValue(GuardedCell[Value], Generic[Value]):
    """Keeps the last value in memory: a connection, a cache, a secret."""

    __slots__ = ()

    ticks: ClassVar[bool] = False
    pure: ClassVar[bool] = True

    def update(self, values: Sequence[Value]) -> bool:
        """Keep the value written.

        Raises:
            ConcurrentUpdateError: several writes meet the guard (TP-203).
        """
        return self.keep(values) if values else False

    def checkpoint(self) -> Value | Any:
        """Return `MISSING`: there is nothing to keep."""
        return MISSING

    def from_checkpoint(self, checkpoint: Value | Any) -> Self:  # noqa: ARG002
        """Make an empty channel, whatever was stored."""
        return self.empty()
