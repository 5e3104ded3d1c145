"""What tests of Towpath, of what plugs into it, and of graphs are made with.

For graphs of users: `crash_everywhere`, `FrozenClock`, `scripted`, `replay`,
`outline` and `normal_form`; scripted chat models are in `towpath.testing.models`.
Nothing is imported before it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from towpath.testing.crashes import CrashReport, crash_everywhere
    from towpath.testing.frozen import FrozenClock
    from towpath.testing.models import ScriptedChatModel
    from towpath.testing.rehearsal import ReplayReport, replay
    from towpath.testing.scripts import ScriptOverError, scripted
    from towpath.testing.snapshots import normal_form, outline

HOMES = {
    "CrashReport": "crashes",
    "FrozenClock": "frozen",
    "ReplayReport": "rehearsal",
    "ScriptOverError": "scripts",
    "ScriptedChatModel": "models",
    "crash_everywhere": "crashes",
    "normal_form": "snapshots",
    "outline": "snapshots",
    "replay": "rehearsal",
    "scripted": "scripts",
}

__all__ = (
    "CrashReport",
    "FrozenClock",
    "ReplayReport",
    "ScriptOverError",
    "ScriptedChatModel",
    "crash_everywhere",
    "normal_form",
    "outline",
    "replay",
    "scripted",
)


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"towpath.testing.{HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
