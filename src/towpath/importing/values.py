"""Values of LangGraph's classes as values of ours."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final

from towpath.checkpoint.serde.types import _DeltaSnapshot
from towpath.types import Command, Interrupt, Overwrite, Send

THEIRS: Final = "langgraph."
OURS: Final[Mapping[str, type]] = {
    each.__name__: each for each in (Command, Interrupt, Overwrite, Send)
}


def ours(value: Any) -> Any:
    """A value without LangGraph's classes, also in the containers it is made of."""
    kind = type(value)
    if kind is dict:
        return {key: ours(each) for key, each in value.items()}
    if kind in (list, tuple, set, frozenset):
        return kind(ours(each) for each in value)
    if not kind.__module__.startswith(THEIRS):
        return value
    if kind.__name__ == "_DeltaSnapshot":
        return _DeltaSnapshot(*map(ours, value))
    return made(value, OURS.get(kind.__name__))


def made(value: Any, kind: type | None) -> Any:
    """An object of their class as one of ours, attribute by attribute."""
    if kind is Send:
        return Send(value.node, ours(value.arg))
    if kind is Overwrite:
        return Overwrite(ours(value.value))
    if kind is None or not is_dataclass(kind):
        return value
    known = {each.name for each in fields(kind)}
    given = {k: ours(getattr(value, k)) for k in known if hasattr(value, k)}
    return kind(**given)


def of_peer(saver: Any) -> bool:
    """Whether a saver is one of LangGraph's, or made on its base class."""
    base = sys.modules.get("langgraph.checkpoint.base")
    theirs = getattr(base, "BaseCheckpointSaver", None)
    return theirs is not None and isinstance(saver, theirs)


def version(value: Any) -> Any:
    """A channel version as ours: LangGraph's begin with the number that counts."""
    return int(value.partition(".")[0]) if isinstance(value, str) else value


def versions(of: Mapping[str, Any]) -> dict[str, Any]:
    return {channel: version(each) for channel, each in of.items()}
