"""Where a run meets parts that may or may not be there."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from towpath.step.state import Bump, next_int

TRACERS: dict[str, str] = {"langchain_core": "towpath.integrations.langchain"}


def bump_of(saver: Any) -> Bump:
    """How channel versions count: as the saver wants, ours by integers."""
    if saver is None:
        return next_int
    bump: Bump = saver.get_next_version
    return bump


def trace_of(scope: Any) -> Any:
    """The bridge to a tracing library, if the program has loaded one.

    langchain is never imported for this: a program that has not loaded it has
    nothing that could be traced.
    """
    for package, adapter in TRACERS.items():
        if package in sys.modules:
            make: Callable[[Any], Any] = import_module(adapter).trace
            return make(scope)
    return None
