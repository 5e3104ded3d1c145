"""Hearing of stored classes that are refused, for those who watch their programs.

Decoding builds only what is registered. What it refuses is an error where it was
read; a listener hears of it, too, and may count or report it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Lock
from typing import Final, NotRequired, TypedDict

__all__ = ("SerdeEvent", "emit_serde_event", "register_serde_event_listener")

logger = logging.getLogger("langgraph.checkpoint.serde.event_hooks")


class SerdeEvent(TypedDict):
    """What was refused: `kind` is "blocked"."""

    kind: str
    module: str
    name: str
    method: NotRequired[str]


SerdeEventListener = Callable[[SerdeEvent], None]

_LOCK: Final = Lock()
_LISTENERS: Final[list[SerdeEventListener]] = []


def register_serde_event_listener(listener: SerdeEventListener) -> Callable[[], None]:
    """Call this with every event from now on; return what ends that."""
    with _LOCK:
        _LISTENERS.append(listener)

    def unregister() -> None:
        with _LOCK:
            if listener in _LISTENERS:
                _LISTENERS.remove(listener)

    return unregister


def emit_serde_event(event: SerdeEvent) -> None:
    """Tell all listeners; one that fails is logged, and disturbs nobody."""
    with _LOCK:
        listeners = tuple(_LISTENERS)
    for listener in listeners:
        try:
            listener(event)
        except Exception:  # of a listener, whatever it is
            logger.exception("Serde listener failed")
