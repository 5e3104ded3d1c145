"""`langgraph._internal._scratchpad`: counters of one task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ("PregelScratchpad",)


@dataclass(frozen=True, slots=True, kw_only=True)
class PregelScratchpad:
    """What a task counts, and the answers it has got."""

    step: int
    stop: int
    call_counter: Callable[[], int]
    interrupt_counter: Callable[[], int]
    get_null_resume: Callable[[bool], Any]
    resume: list[Any]
    subgraph_counter: Callable[[], int]
