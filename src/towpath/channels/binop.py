"""`BinaryOperatorAggregate`: a value and a reducer that folds writes into it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import chain
from sys import getrefcount
from typing import Any, ClassVar, Final, Generic, Self

from towpath.channels.base import Value, own
from towpath.channels.cell import Cell
from towpath.channels.empties import kind_of, made
from towpath.channels.overwrite import MARKED, overwritten, single_overwrite
from towpath.constants import MISSING, Missing

__all__ = ("BinaryOperatorAggregate", "same_function")

_LAMBDA: Final = "<lambda>"
ADD: Final = operator.add
PURE: Final = frozenset(map(id, (operator.add, operator.or_, operator.and_)))
"""Operators that make a new container and leave both operands as they are."""
_ADDING: Final = (operator.add, operator.concat, operator.iadd, operator.iconcat)
"""Operators that add to the end of a list, and do nothing else."""
_GENTLE: Final = (
    *_ADDING,
    *(operator.or_, operator.and_, operator.sub, operator.ior, max, min),
)
"""Operators that leave the elements of containers as they are."""


_IDEMPOTENT: Final = (
    *(operator.or_, operator.and_, operator.ior, operator.iand, max, min),
)
"""Operators that take a value twice as they take it once."""


def same_function(one: object, other: object) -> bool:
    """Tell whether two reducers count as one.

    A lambda tells nothing of what it is, and a schema that is evaluated twice
    makes it anew, so it counts as any other.
    """
    return one == other or _LAMBDA in (
        getattr(one, "__name__", ""),
        getattr(other, "__name__", ""),
    )


def is_gentle(reducer: Callable[..., Any]) -> bool:
    """Tell whether a reducer is known not to change elements of what it is given.

    A reducer says so of itself by an attribute `pure` that is True.
    """
    return reducer in _GENTLE or getattr(reducer, "pure", False) is True


def is_idempotent(reducer: Callable[..., Any]) -> bool:
    """Tell whether a reducer is known to take a value twice as it takes it once.

    A reducer says so of itself by an attribute `idempotent` that is True.
    """
    return reducer in _IDEMPOTENT or getattr(reducer, "idempotent", False) is True


def _holders(cell: Any) -> int:
    """How often the value of a cell is held, counted as `update` counts."""
    value = cell.value
    return getrefcount(value)


class BinaryOperatorAggregate(Cell[Value], Generic[Value]):
    """Folds every write into a value: `value = operator(value, write)`.

    It starts from the empty value of its type or from what `start()` makes;
    when neither exists the first write becomes the value as it is. A write
    may replace the value instead: see `towpath.types.Overwrite`.
    """

    __slots__ = ("foreseen", "kind", "operator", "shown", "start")

    ticks: ClassVar[bool] = False

    def __init__(
        self,
        typ: type[Value],
        operator: Callable[[Value, Value], Value],
        *,
        start: Callable[[], Value] | None = None,
    ) -> None:
        super().__init__(typ)
        self.operator = operator
        self.start = start
        self.kind = kind_of(typ)
        self.shown = 0
        self.foreseen: tuple[Any, Sequence[Value], Any] | None = None
        self.value = self._first()

    def _first(self) -> Value | Missing:
        first: Value | Missing = made(self.kind) if self.start is None else self.start()
        return first

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BinaryOperatorAggregate) and same_function(
            self.operator, other.operator
        )

    __hash__ = None  # mutable, so not hashable

    @property
    def adds(self) -> bool:
        """Whether writes are added to the end of the value, and that is all."""
        return self.folds_purely and self.operator in _ADDING

    @property
    def sums(self) -> bool:
        """Unless the reducer is known to take a value twice as once."""
        return not is_idempotent(self.operator)

    @property
    def folds_purely(self) -> bool:
        """Whether the reducer is known to leave the elements it is given alone."""
        ours = type(self).update is BinaryOperatorAggregate.update
        return ours and is_gentle(self.operator)

    def empty(self) -> Self:
        """Make a channel of the same declaration, without even a first value."""
        twin = super().empty()
        twin.operator = self.operator
        twin.start = self.start
        twin.kind = self.kind
        twin.shown = 0
        twin.foreseen = None
        return twin

    def show(self) -> None:
        """Note that the engine holds the value, too, to show it to nodes."""
        self.shown = 1

    def from_checkpoint(self, checkpoint: Value | Any) -> Self:
        """Make a channel like this one that holds `checkpoint`."""
        return super().from_checkpoint(
            self._first() if checkpoint is MISSING else checkpoint
        )

    def update(self, values: Sequence[Value]) -> bool:
        """Fold the writes in, or take the one that replaces the value.

        Raises:
            ConcurrentUpdateError: several writes replace it (TP-203).
        """
        if not values:
            return False
        value = self.value
        fold = self.operator
        if (
            fold is ADD
            and type(value) is list
            and getrefcount(value) == ALONE + self.shown
            and {*map(type, values)} == {list}
        ):
            # Nobody else holds the list, so nobody can tell it from a new one.
            for write in values:
                value.extend(write)  # type: ignore[arg-type]  # a list as well
            return True
        if (foreseen := self.foreseen) is not None:
            self.foreseen = None
            base, writes, ahead = foreseen
            if (
                base is value
                and same_objects(writes, values)
                and is_joined(ahead, value, values, alike)
            ):
                self.value = ahead
                return True
        for write in values:
            if isinstance(write, MARKED) and overwritten(write) is not MISSING:
                self.value = single_overwrite(self.key, values)
                return True
            value = write if value is MISSING else fold(value, write)
        self.value = value
        return True

    def ahead(self, values: Sequence[Value]) -> Value | Any:
        """Return what the value would be after these writes."""
        value = self.value
        if value is MISSING:
            return super().ahead(values)
        if id(self.operator) not in PURE:
            return self._foresee(values)
        for write in values:
            if isinstance(write, MARKED):
                return super().ahead(values)
            value = self.operator(value, write)
        return value

    def _foresee(self, values: Sequence[Value]) -> Value | Any:
        """The same, kept for `update`: a fold into a long list is not done twice.

        Only where the reducer is known to leave alone what it is given: another
        may tell by its arguments whether they are the ones of the step. And only
        where it has joined them and made nothing new: what it made belongs to the
        path function, which may change it, and of what it joined it can be told
        whether somebody has changed the lists since.
        """
        ahead = super().ahead(values)
        if self.folds_purely and is_joined(ahead, self.value, values, same_objects):
            self.foreseen = (self.value, values, own(ahead))
        return ahead


def same_objects(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Tell whether two sequences hold the very same objects."""
    return len(one) == len(other) and all(map(operator.is_, one, other))


def alike(one: list[Any], other: list[Any]) -> bool:
    """Tell whether two lists hold the same objects, or equal ones, in less time."""
    try:
        return one == other
    except Exception:
        return False


def is_joined(
    whole: Any,
    value: Any,
    writes: Sequence[Any],
    same: Callable[[list[Any], list[Any]], bool],
) -> bool:
    """Tell whether a list holds what another holds, then what was written to it."""
    if type(whole) is not list or type(value) is not list:
        return False
    size = len(value)
    rest = [*chain.from_iterable(w if type(w) is list else (w,) for w in writes)]
    return (
        len(whole) == size + len(rest)
        and same_objects(whole[size:], rest)
        and same(whole[:size], value)
    )


def _alone() -> int:
    """How often the value of a cell is held by itself; versions of Python differ."""
    cell: Cell[list[Any]] = Cell.__new__(BinaryOperatorAggregate)
    cell.value = []
    return _holders(cell)


ALONE: Final = _alone()
