"""`langgraph._internal._constants`: names in configs and checkpoints.

All that `towpath.constants` has, without the warnings that its public twin
gives for what the peer withdrew.
"""

from __future__ import annotations

from typing import Any

from towpath import constants


def __getattr__(name: str) -> Any:
    known = {**constants.WITHDRAWN, **vars(constants)}
    if name not in known or name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return known[name]
