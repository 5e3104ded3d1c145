"""One face for both colours of a thing, so that a check of it is written once."""

from __future__ import annotations

import asyncio
from typing import Any


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
