"""What a saver says of a thread at a glance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from towpath.checkpoint.base.model import CheckpointTuple

_OWN: Final = ("__", "branch:", "join:")


@dataclass(frozen=True, slots=True)
class ThreadSummary:
    """A thread at a glance."""

    id: str
    newest: CheckpointTuple
    """Its newest checkpoint; of the values, those of the engine's own channels."""
    checkpoints: int
    """How many there are, those of subgraphs apart."""
    bytes: int
    """How much it takes as it is stored, subgraphs and pending writes included."""

    @property
    def mark(self) -> tuple[str, str]:
        """What the order of threads goes by, the last changed first."""
        return self.newest.checkpoint["id"], self.id


def is_own(channel: str) -> bool:
    """Tell whether a channel is the engine's own: no key of a state."""
    return channel.startswith(_OWN)
