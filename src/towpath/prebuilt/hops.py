"""Programs that are written once, and run in either colour.

A program is a generator that yields a `Hop` for every call that may block or
must be awaited, and is sent what came of it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, TypeAlias, TypeVar, cast

T = TypeVar("T")


@dataclass(slots=True)
class Hop:
    """One call out of a program, in both forms."""

    call: Callable[[], Any]
    acall: Callable[[], Awaitable[Any]]


Program: TypeAlias = Generator[Hop, Any, T]


class Course(Generic[T]):
    """A program on its way; a hop is made inside `with`, which takes its error."""

    def __init__(self, program: Program[T]) -> None:
        self.program = program
        self.answer: Any = None
        self.error: BaseException | None = None
        self.result: T | None = None

    def next(self) -> Hop | None:
        """The next hop; None when the program has its result."""
        error, self.error = self.error, None
        try:
            if error is not None:
                return self.program.throw(error)
            return self.program.send(self.answer)
        except StopIteration as over:
            self.result = over.value
            return None

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        self.error = error
        return error is not None


def blocking(program: Program[T]) -> T:
    """Run a program here, and return its result."""
    course = Course(program)
    while (hop := course.next()) is not None:
        with course:
            course.answer = hop.call()
    return cast("T", course.result)  # it is set when `next` is None


async def awaited(program: Program[T]) -> T:
    """Run a program in the running loop, and return its result."""
    course = Course(program)
    while (hop := course.next()) is not None:
        with course:
            course.answer = await hop.acall()
    return cast("T", course.result)  # it is set when `next` is None
