"""The stored forms of Towpath's own values.

They are named without a module: a thread is one format whether it was written
under `towpath` or under the drop-in import, and wherever a class moves to.
"""

from __future__ import annotations

from typing import Any

from towpath.checkpoint.serde.registry import DEFAULT, Entry
from towpath.checkpoint.serde.types import _DeltaReplay, _DeltaSnapshot
from towpath.schema.pydantic import answer_schema
from towpath.types import Command, Interrupt, Overwrite, Send, TimeoutPolicy


def _send_encode(value: Send) -> list[Any]:
    return [value.node, value.arg, value.timeout]


def _send_decode(payload: list[Any]) -> Send:
    node, arg, timeout = payload
    return Send(node, arg, timeout=timeout)


def _interrupt_encode(value: Interrupt[Any]) -> list[Any]:
    # A class is no data; what an answer must look like is.
    schema = value.response_schema
    form = answer_schema(schema) if isinstance(schema, type) else schema
    plain = [value.value, value.id, form]
    return plain if value.key is None else [*plain, value.key]


def _interrupt_decode(payload: list[Any]) -> Interrupt[Any]:
    if type(payload) is not list:
        # The star goes through all there is, and a network need not end.
        raise TypeError("the parts of an Interrupt are no list")
    value, at, schema, *key = payload
    return Interrupt(value, at, response_schema=schema, key=key[0] if key else None)


def register_own() -> None:
    """Add them to the registry of the process."""
    DEFAULT.add(Entry("Send", Send, _send_encode, _send_decode))
    DEFAULT.add(Entry("Interrupt", Interrupt, _interrupt_encode, _interrupt_decode))
    DEFAULT.add_plain(Command, "Command")
    DEFAULT.add_plain(Overwrite, "Overwrite")
    DEFAULT.add_plain(TimeoutPolicy, "TimeoutPolicy")
    DEFAULT.add_plain(_DeltaSnapshot, "DeltaSnapshot")
    DEFAULT.add_plain(_DeltaReplay, "DeltaReplay")
