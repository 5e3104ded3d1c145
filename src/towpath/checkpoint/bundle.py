"""What a SQL saver stages: programs, some of which can share a transaction.

A run that goes on before its steps are stored has several of them waiting when the
database is slower than it is. They are of one thread and in order, so that one
transaction, and one wait for the disk, does for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from towpath.checkpoint.base.saver import Staged
from towpath.checkpoint.heads import Space
from towpath.checkpoint.programs import Make, Program

R = TypeVar("R")
T = TypeVar("T")


def nothing() -> None:
    """Have nothing to do when something is stored."""


class Part(NamedTuple):
    """One program, and what is to be done when it has stored something."""

    space: Space
    make: Make[Any]
    done: Callable[[], None] = nothing
    durable: bool = True


class Keeps(Protocol):
    """A saver that stores the parts of a bundle."""

    def keep(self, parts: Sequence[Part]) -> Any:
        """Store all of it, or nothing; return the result of the last."""

    async def akeep(self, parts: Sequence[Part]) -> Any:
        """Async twin of `keep`."""


class Bundle(Staged[R]):
    """Programs of one thread, run in one transaction."""

    __slots__ = ("parts", "saver")

    def __init__(self, saver: Keeps, *parts: Part) -> None:
        self.saver = saver
        self.parts = parts

    def run(self) -> R:
        """Store all of it, and wait until it is stored."""
        result: R = self.saver.keep(self.parts)
        return result

    async def arun(self) -> R:
        """Async twin of `run`."""
        result: R = await self.saver.akeep(self.parts)
        return result

    def along(self, later: Staged[T]) -> Staged[T] | None:
        """Return what stores this and then that in one transaction."""
        if not isinstance(later, Bundle) or later.saver is not self.saver:
            return None
        if later.parts[0].space[0] != self.parts[0].space[0]:
            return None  # two that lock two threads each would wait for each other
        return Bundle(self.saver, *self.parts, *later.parts)


def in_turn(parts: Sequence[Part]) -> Program[Any]:
    """Run programs one after the other; the result is the last one's."""
    *before, last = parts
    for part in before:
        yield from part.make()
        part.done()  # the next one builds on it
    return (yield from last.make())
