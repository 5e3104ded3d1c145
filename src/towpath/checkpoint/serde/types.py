"""Protocols of the engine's values that stored bytes stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

from towpath.constants import ERROR, INTERRUPT, RESUME, SCHEDULED, TASKS

__all__ = (
    "ERROR",
    "INTERRUPT",
    "RESUME",
    "SCHEDULED",
    "TASKS",
    "ChannelProtocol",
    "RecordedError",
    "SendProtocol",
)

Value = TypeVar("Value", covariant=True)  # noqa: PLC0105 - the peer's name
Update = TypeVar("Update", contravariant=True)  # noqa: PLC0105
C = TypeVar("C")


class ChannelProtocol(Protocol[Value, Update, C]):
    """The part of a channel that persistence needs."""

    @property
    def ValueType(self) -> Any: ...  # noqa: N802 - the peer's name

    @property
    def UpdateType(self) -> Any: ...  # noqa: N802 - the peer's name

    def checkpoint(self) -> C | None: ...

    def from_checkpoint(self, checkpoint: C | None) -> Self: ...

    def update(self, values: Sequence[Update]) -> bool: ...

    def get(self) -> Value: ...

    def consume(self) -> bool: ...


@runtime_checkable
class SendProtocol(Protocol):
    """A message for a node."""

    node: str
    arg: Any

    def __hash__(self) -> int: ...

    def __eq__(self, value: object) -> bool: ...


class RecordedError(Exception):
    """An exception as it was recorded: the name of its type, and its message.

    Decoding gives Python's own exceptions back as they were. Any other class
    would have to be imported and called, which stored bytes cannot ask for.
    """

    def __init__(self, type_name: str, message: str) -> None:
        super().__init__(type_name, message)
        self.type_name = type_name
        self.message = message

    def __str__(self) -> str:
        return f"{self.type_name}: {self.message}"


class _DeltaReplay(NamedTuple):
    """Begins a list of writes that a delta channel's value is made of, in order.

    They are folded into `seed`, or where it is not `seeded` into the empty value.
    """

    seeded: bool
    seed: Any


class _DeltaSnapshot(NamedTuple):
    """A whole value of a delta channel, among checkpoints that store writes."""

    value: Any
