"""What a contestant must offer to be measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from bench.workloads import Workload

QUESTION = {"role": "user", "content": "What does the lock keeper do? " * 5}
ANSWER = {"role": "assistant", "content": "He fills the lock and opens the gate. " * 4}
"""One turn of a conversation, for every contestant the same."""


@dataclass
class Job:
    """A workload made ready: everything before `run` is not measured."""

    run: Callable[[], Any]
    """Do the work once and return its result, or a coroutine that does."""
    close: Callable[[], object] = field(default=lambda: None)
    stored: Callable[[], int] = field(default=lambda: 0)
    """Return how many bytes a run left on disk."""


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


def size(folder: Path) -> int:
    """Return how many bytes the files of a folder have."""
    return sum(path.stat().st_size for path in folder.iterdir())
