"""One face for both colours of a thing, so that a check of it is written once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

Kinds = Mapping[type, Sequence[str]]
"""Classes of checks, and the names of their methods."""
Named = tuple[type, str]
F = TypeVar("F", bound="Face")


class Face:
    """A thing by its blocking methods."""

    def __init__(self, thing: Any) -> None:
        self.thing = thing

    def close(self) -> None:
        """Free what the face needs; the thing stays open."""

    def call(self, verb: str, *args: Any, **options: Any) -> Any:
        """Call a method, and return what it does."""
        return getattr(self.thing, verb)(*args, **options)


class Looped(Face):
    """A thing by its async methods, each run to its end on one loop."""

    def __init__(self, thing: Any) -> None:
        super().__init__(thing)
        self._runner = asyncio.Runner()

    def close(self) -> None:
        """Close the loop."""
        self._runner.close()

    def call(self, verb: str, *args: Any, **options: Any) -> Any:
        """Call the async twin of a method, and return what it comes to."""
        return self._runner.run(super().call(f"a{verb}", *args, **options))


def kinds_of(*kinds: type) -> Kinds:
    """Return the checks of some classes: their public methods."""
    return {
        kind: tuple(name for name in vars(kind) if not name.startswith("_"))
        for kind in kinds
    }


def each_check(
    kinds: Kinds, colours: Sequence[type[F]]
) -> Iterator[tuple[Named, type[F]]]:
    """Yield every check in every colour."""
    for colour in colours:
        for kind, names in kinds.items():
            for name in names:
                yield (kind, name), colour


def add_tests(
    cls: type,
    kinds: Kinds,
    colours: Sequence[type[F]],
    run: Callable[[Any, Named, type[F]], None],
) -> None:
    """Give a class a test method for every check and colour, which calls `run`."""
    for check, colour in each_check(kinds, colours):
        word = "looped" if issubclass(colour, Looped) else "blocking"
        setattr(cls, f"test_{check[1]}_{word}", _test(check, colour, run))


def _test(
    check: Named, colour: type[F], run: Callable[[Any, Named, type[F]], None]
) -> Callable[[Any], None]:
    def test(self: Any) -> None:
        run(self, check, colour)

    return test
