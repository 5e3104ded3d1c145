"""`BaseChannel`: the contract of a channel.

A channel holds the value of one key. The engine calls `update` with all the
writes of a superstep at once, in task order; `consume` after it planned a task
that the channel triggers; `finish` when nothing can be triggered any more.
Each returns whether the channel changed: only then does its version rise.
`checkpoint` gives what a saver keeps, `from_checkpoint` makes a channel of it.

Empty is `MISSING`, never `None`. A channel does no I/O and knows no engine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Final, Generic, Self, TypeVar

from towpath.constants import MISSING
from towpath.errors import EmptyChannelError

__all__ = ("BaseChannel",)

Value = TypeVar("Value")
Update = TypeVar("Update")
Checkpoint = TypeVar("Checkpoint")


COPIED: Final = frozenset({list, dict, set})
"""The containers that readers and look-ahead folds get copies of."""


def own(value: Any) -> Any:
    """The value, or a copy of it where it is a built-in container."""
    return value.copy() if type(value) in COPIED else value


class BaseChannel(ABC, Generic[Value, Update, Checkpoint]):
    """One key of the state. Subclass it for a way of folding of your own."""

    __slots__ = ("key", "typ")

    ticks: ClassVar[bool] = True
    """Whether `update([])` can change something: a step without a write."""

    pure: ClassVar[bool] = False
    """Whether `update` never changes an element that the channel holds already.

    Where that is not known, a saver that stores changes looks at all of them.
    It holds for the class that defines `update`, not for one that overrides it.
    """

    def __init__(self, typ: Any, key: str = "") -> None:
        self.typ = typ
        self.key = key

    @property
    def adds(self) -> bool:
        """Whether writes are added to the end of the value, and that is all."""
        return False

    @property
    def sums(self) -> bool:
        """Whether a value that is written to the channel again counts twice."""
        return False

    @property
    def folds_purely(self) -> bool:
        """Whether `pure` is said of the very `update` that the channel has."""
        mro = type(self).__mro__
        says = next(cls for cls in mro if "pure" in vars(cls))
        folds = next(cls for cls in mro if "update" in vars(cls))
        return self.pure and issubclass(says, folds)

    @property
    def single(self) -> bool:
        """Whether two writes in one step are an error."""
        return False

    @property
    @abstractmethod
    def ValueType(self) -> Any:  # noqa: N802 - the public name
        """The type of what `get` returns."""

    @property
    @abstractmethod
    def UpdateType(self) -> Any:  # noqa: N802 - the public name
        """The type of what `update` takes several of."""

    @abstractmethod
    def update(self, values: Sequence[Update]) -> bool:
        """Fold one superstep's writes in, and tell whether anything changed.

        `values` is empty in a step that did not write the channel.

        Raises:
            InvalidUpdateError: the channel cannot take these writes (TP-201).
        """

    @abstractmethod
    def get(self) -> Value:
        """Return the value.

        Raises:
            EmptyChannelError: there is none (TP-204).
        """

    @abstractmethod
    def from_checkpoint(self, checkpoint: Checkpoint | Any) -> Self:
        """Make a channel like this one that holds what `checkpoint()` gave.

        `MISSING` makes a fresh one.
        """

    def checkpoint(self) -> Checkpoint | Any:
        """Return what a saver is to keep; `MISSING` for nothing."""
        try:
            return self.get()
        except EmptyChannelError:
            return MISSING

    def copy(self) -> Self:
        """Make an independent channel of the same kind and value.

        A fold may work in place, so the copy has a container of its own.
        """
        return self.from_checkpoint(own(self.checkpoint()))

    def ahead(self, values: Sequence[Update]) -> Value | Any:
        """Return what the value would be after these writes, or `MISSING`.

        The channel stays as it is, and nobody else holds the container.
        """
        twin = self.copy()
        twin.update(values)
        return own(twin.get()) if twin.is_available() else MISSING

    def is_available(self) -> bool:
        """Tell whether `get` would return a value."""
        try:
            self.get()
        except EmptyChannelError:
            return False
        return True

    def show(self) -> None:
        """Note that the engine holds the value, too, to show it to nodes."""

    def consume(self) -> bool:
        """Note that a task triggered by the channel was planned."""
        return False

    def finish(self) -> bool:
        """Note that nothing can be triggered any more."""
        return False
