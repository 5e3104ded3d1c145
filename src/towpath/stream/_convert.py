"""Typed parts of a stream as events."""

from __future__ import annotations

from time import time_ns
from typing import Any

from towpath.stream._types import ProtocolEvent


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time_ns() // 1_000_000


def convert_to_protocol_event(part: dict[str, Any]) -> ProtocolEvent:
    """A part of `stream(version="v2")` as an event."""
    event: ProtocolEvent = {
        "type": "event",
        "method": part["type"],
        "params": {
            "namespace": list(part["ns"]),
            "timestamp": now_ms(),
            "data": part["data"],
        },
    }
    if "interrupts" in part:
        event["params"]["interrupts"] = part["interrupts"]
    return event
