"""`GuardedCell`: a cell that refuses several writes in one step, when told to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, Self

from towpath.channels.base import Value
from towpath.channels.cell import Cell
from towpath.errors import ConcurrentUpdateError

__all__ = ("GuardedCell",)


class GuardedCell(Cell[Value], Generic[Value]):
    """One slot, and a `guard` against several writes in one step."""

    __slots__ = ("guard",)

    guard: bool

    def __init__(self, typ: Any, guard: bool = True) -> None:
        super().__init__(typ)
        self.guard = guard

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and other.guard == self.guard

    __hash__ = None  # mutable, so not hashable

    @property
    def single(self) -> bool:
        """Whether two writes in one step are an error: the guard."""
        return self.guard

    def empty(self) -> Self:
        """Make an empty channel of the same declaration."""
        twin = super().empty()
        twin.guard = self.guard
        return twin

    def keep(self, values: Sequence[Value]) -> bool:
        """Keep the last of some writes; with a guard there may be only one."""
        if len(values) > 1 and self.guard:
            kind = type(self).__name__
            raise ConcurrentUpdateError.at(
                self.key,
                len(values),
                hint=f"{kind}(guard=False) keeps any one of several values",
            )
        self.value = values[-1]
        return True
