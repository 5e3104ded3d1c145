"""The stored forms of LangChain's messages and documents.

langchain_core is not imported to define them. Encoding meets its classes only
in programs that have them; decoding imports the two modules named here.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any, Final

from towpath.checkpoint.serde.registry import DEFAULT, Entry, Registry
from towpath.checkpoint.serde.shape import shape_of

_MODULES: Final[dict[str, tuple[str, ...]]] = {
    "langchain_core.messages": (
        "AIMessage",
        "AIMessageChunk",
        "BaseMessage",
        "BaseMessageChunk",
        "ChatMessage",
        "ChatMessageChunk",
        "FunctionMessage",
        "FunctionMessageChunk",
        "HumanMessage",
        "HumanMessageChunk",
        "RemoveMessage",
        "SystemMessage",
        "SystemMessageChunk",
        "ToolMessage",
        "ToolMessageChunk",
    ),
    "langchain_core.documents": ("Document",),
}
_HOME: Final = {name: module for module, names in _MODULES.items() for name in names}
_PREFIX: Final = "langchain:"


def _by_type(cls: type) -> Entry | None:
    """Return the entry of a class of langchain_core's, if it is one of these."""
    home = _HOME.get(cls.__name__)
    if home is None or not cls.__module__.startswith("langchain_core."):
        return None
    if getattr(sys.modules.get(home), cls.__name__, None) is not cls:
        return None
    return _entry(cls)


def _by_name(name: str) -> Entry | None:
    """Return the entry of a stored name, importing its fixed home."""
    bare = name.removeprefix(_PREFIX)
    if bare == name or bare not in _HOME:
        return None
    return _entry(getattr(importlib.import_module(_HOME[bare]), bare))


def _entry(cls: Any) -> Entry | None:
    shape = shape_of(cls)
    return None if shape is None else Entry(_PREFIX + cls.__name__, cls, *shape)


def register_langchain(registry: Registry = DEFAULT) -> None:
    """Let a registry find these classes when it meets them."""
    registry.find(_by_type, _by_name)
