"""Chunks in the form a caller asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from towpath.constants import INTERRUPT, START
from towpath.errors import TowpathError, nearest
from towpath.kernel.request import LIFECYCLE, Chunk
from towpath.pregel.debug import get_bolded_text, get_colored_text
from towpath.pregel.lifecycle import MODE, Listeners
from towpath.shared import Shared

MODES: Final = (
    "values",
    "updates",
    "custom",
    "messages",
    "checkpoints",
    "tasks",
    "debug",
    "tools",
)


_sets: Final = Shared[frozenset[str]]()


class InvalidModeError(TowpathError, ValueError):
    """A stream mode that does not exist."""

    code = "TP-611"


def modes_of(mode: str | Sequence[str] | None) -> tuple[str, ...]:
    """One mode or several, checked.

    Raises:
        InvalidModeError: one of them does not exist (TP-611).
    """
    if mode is not None and not isinstance(mode, str | Sequence | frozenset | set):
        raise InvalidModeError(f"a stream mode is text, not {mode!r}")
    modes = (mode,) if isinstance(mode, str) else tuple(mode or ())
    for each in modes:
        if each not in MODES:
            raise InvalidModeError(
                f"there is no stream mode {each!r}", hint=nearest(each, MODES)
            )
    return modes


def set_of(modes: Iterable[str]) -> frozenset[str]:
    """Modes as a set, of which all runs share one; there are not many."""
    return _sets.one(frozenset(modes))


@dataclass(slots=True)
class Format:
    """Which chunks a caller wants, and how: v1 tuples, or v2 typed parts."""

    modes: frozenset[str]
    single: bool
    subgraphs: bool
    version: Literal["v1", "v2"]
    printed: frozenset[str] = frozenset()
    inner: frozenset[str] = frozenset()
    own: tuple[str, ...] = ()
    listeners: Listeners | None = None
    make: Callable[[dict[str, Any]], Any] | None = None

    def shown(self, chunk: Chunk) -> tuple[Any, ...]:
        """The chunk as the caller gets it, or nothing; printed where asked."""
        if chunk[1] == LIFECYCLE and self.listeners is not None:
            self.listeners.hear(chunk)
        self.echo(chunk)
        return (self.shape(chunk),) if self.wants(chunk) else ()

    async def ashown(self, chunk: Chunk) -> tuple[Any, ...]:
        """Async twin of `shown`."""
        if chunk[1] == LIFECYCLE and self.listeners is not None:
            await self.listeners.ahear(chunk)
        self.echo(chunk)
        return (self.shape(chunk),) if self.wants(chunk) else ()

    @property
    def heard(self) -> frozenset[str]:
        """Every mode that somebody of this run listens to."""
        asked = self.modes | self.printed if self.printed else self.modes
        return asked if self.listeners is None else set_of(asked | MODE)

    def wants(self, chunk: Chunk) -> bool:
        ns, mode, _ = chunk
        if mode not in self.modes:
            return False
        return self.subgraphs or ns == self.own or mode in self.inner

    @property
    def passed(self) -> frozenset[str]:
        """The modes in which subgraphs are heard through this run."""
        every, some = self.modes | self.printed, self.modes & self.inner
        passed = every if self.subgraphs else some
        return set_of(passed if self.listeners is None else passed | MODE)

    def shape(self, chunk: Chunk) -> Any:
        ns, mode, payload = chunk
        if self.version == "v2":
            return self.made(part(ns, mode, payload))
        if self.subgraphs:
            return (ns, payload) if self.single else (ns, mode, payload)
        return payload if self.single else (mode, payload)

    def made(self, part_: dict[str, Any]) -> dict[str, Any]:
        """A typed part with state as an instance of the graph's schema class."""
        if self.make is None or part_["ns"] != self.own:
            return part_
        mode, data = part_["type"], part_["data"]
        if mode == "values":
            part_["data"] = self.instance(data)
        elif mode == "checkpoints":
            part_["data"] = self.checkpoint(data)
        elif mode == "debug" and data["type"] == "checkpoint":
            part_["data"] = {**data, "payload": self.checkpoint(data["payload"])}
        return part_

    def checkpoint(self, payload: Any) -> Any:
        """A checkpoint's payload; one that still has to take input is no state yet."""
        if payload["metadata"]["source"] == "input" or payload["next"] == [START]:
            return payload
        return {**payload, "values": self.instance(payload["values"])}

    def instance(self, values: Any) -> Any:
        """The values as an instance, or as they are while keys are missing."""
        if self.make is None or not isinstance(values, dict):
            return values
        try:
            return self.make(values)
        except (TypeError, ValueError):
            return values

    def echo(self, chunk: Chunk) -> None:
        """Print a chunk of a mode that is to be printed."""
        ns, mode, payload = chunk
        if mode in self.printed and (self.subgraphs or ns == self.own):
            words = [get_bolded_text(f"[{mode}]")]
            if ns:
                words.append(get_colored_text(f"[graph={ns}]", "yellow"))
            print(*words, payload)  # noqa: T201 - asked for


def part(ns: tuple[str, ...], mode: str, payload: Any) -> dict[str, Any]:
    """A chunk as a typed part (`towpath.types.StreamPart`)."""
    made: dict[str, Any] = {"type": mode, "ns": ns, "data": payload}
    if mode == "values":
        interrupts: tuple[Any, ...] = ()
        if isinstance(payload, Mapping) and INTERRUPT in payload:
            interrupts = tuple(payload[INTERRUPT])
            made["data"] = {k: v for k, v in payload.items() if k != INTERRUPT}
        made["interrupts"] = interrupts
    return made
