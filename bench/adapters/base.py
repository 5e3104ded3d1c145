"""What a contestant must offer to be measured."""

from __future__ import annotations

import platform
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Protocol

from bench.workloads import Workload

Message = dict[str, str]
TURNS_MAX = 1000


def _turn(turn: int) -> tuple[Message, Message]:
    question = {"role": "user", "content": f"{turn}: What does the keeper do? " * 5}
    answer = {"role": "assistant", "content": f"{turn}: He fills the lock. " * 8}
    return question, answer


# Each turn has texts of its own: equal ones flatter a serializer that notices.
_SAID = [_turn(turn) for turn in range(TURNS_MAX)]


def said(turn: int) -> list[Message]:
    """Return what a turn of a conversation adds, the same for every contestant."""
    return [*_SAID[turn]]


@dataclass
class Job:
    """A workload made ready: everything before `run` is not measured."""

    run: Callable[[], Any]
    """Do the work once and return its result, or a coroutine that does."""
    close: Callable[[], object] = field(default=lambda: None)
    stored: Callable[[], int] = field(default=lambda: 0)
    """Return how many bytes a run left on disk."""
    held: Callable[[], int] = field(default=lambda: 0)
    """Return how many bytes of memory each waiting conversation holds."""
    begin: Callable[[], Awaitable[object]] | None = None
    """Open, in the loop of the runs, what belongs to a loop."""
    end: Callable[[], Awaitable[object]] | None = None
    """Close what `begin` opened, in the same loop."""


class Adapter(Protocol):
    """One contestant."""

    name: str

    @property
    def version(self) -> str:
        """Return the version that is measured."""

    def prepare(self, workload: Workload, folder: Path) -> Job | None:
        """Make a workload ready, `None` where it means nothing here.

        What must be on disk goes to `folder`, which is new and empty.
        """

    def importing(self) -> str:
        """Return the statement whose import time counts."""


class Bare:
    """No library: plain Python."""

    @property
    def version(self) -> str:
        return platform.python_version()

    def importing(self) -> str:
        return "pass"


class Awaited:
    """A contestant whose runs are only asynchronous, and stored nowhere."""

    name: str
    module: str
    """What is imported to use it."""
    compiling: ClassVar[Callable[[int], object]]
    makers: ClassVar[Mapping[str, Callable[[int], Callable[[], Any]]]]
    """For a kind of work: makes, for its size, what does it once."""

    @property
    def version(self) -> str:
        return version(self.name)

    def importing(self) -> str:
        return f"import {self.module}"

    def prepare(self, workload: Workload, folder: Path) -> Job | None:
        if workload.kind == "compile":
            return Job(partial(self.compiling, workload.size))
        if not workload.asynchronous or workload.saver != "none":
            return None
        make = self.makers.get(workload.kind)
        return None if make is None else Job(make(workload.size))


def size(folder: Path) -> int:
    """Return how many bytes the files of a folder have."""
    return sum(path.stat().st_size for path in folder.iterdir())
