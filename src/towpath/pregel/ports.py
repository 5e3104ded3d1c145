"""Where a run meets parts that may or may not be there."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, Final

from towpath.step.state import Bump, next_int

TRACER: Final = "towpath.integrations.langchain"


def bump_of(saver: Any) -> Bump:
    """How channel versions count: as the saver wants, ours by integers."""
    if saver is None:
        return next_int
    bump: Bump = saver.get_next_version
    return bump


def tracer() -> Any:
    """The adapter to langchain, if the program has loaded that.

    langchain is never imported for this: a program that has not loaded it has
    nothing that could be traced.
    """
    if "langchain_core" not in sys.modules:
        return None
    return sys.modules.get(TRACER) or import_module(TRACER)


def trace_of(scope: Any) -> Any:
    """The bridge to a tracing library, if anybody listens."""
    adapter = tracer()
    return None if adapter is None else adapter.trace(scope)


def surrounding() -> dict[str, Any]:
    """What a runnable of another library, around this call, says of it."""
    adapter = tracer()
    return {} if adapter is None else adapter.surrounding()
