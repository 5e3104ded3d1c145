"""How a run is listened to, and what one chunk says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from towpath.testing import normal

MODES = ("values", "updates", "custom", "tasks", "checkpoints", "debug")


@dataclass(frozen=True)
class Ear:
    """How a run is listened to; without modes, the graph is invoked."""

    modes: tuple[str, ...] = MODES
    within: bool = True
    """Whether the chunks of children are heard."""
    version: str = "v1"
    keys: tuple[str, ...] | None = None

    def options(self) -> dict[str, Any]:
        """Return the keyword arguments of `stream`."""
        modes = self.modes[0] if len(self.modes) == 1 else list(self.modes)
        options: dict[str, Any] = {"stream_mode": modes, "version": self.version}
        options["subgraphs"] = self.within
        return options if self.keys is None else {**options, "output_keys": self.keys}

    def chunk(self, raw: Any) -> normal.Chunk:
        """Return what was heard as namespace, mode and payload."""
        if self.version == "v2":
            told = {key: raw[key] for key in raw if key not in {"type", "ns"}}
            return raw["ns"], raw["type"], told["data"] if len(told) == 1 else told
        parts = list(raw) if self.within or len(self.modes) > 1 else [raw]
        where = parts.pop(0) if self.within else ()
        mode = parts.pop(0) if len(self.modes) > 1 else self.modes[0]
        return where, mode, parts[0]
