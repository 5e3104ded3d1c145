"""What a function assigns to keys of its state, which is lost unless it is returned.

A node is given a state of its own. What it assigns there nobody else sees, whatever
the node means by it: a value for later lines of its own, or an update.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

CHANGES: Final = frozenset({"add", "append", "extend", "insert", "update"})
"""Methods of lists, sets and dicts that put something in and return nothing."""


@dataclass(slots=True)
class Touched:
    """The keys of its state that a function assigns, changes in place, and looks at."""

    assigned: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    used: list[str] = field(default_factory=list)


def touched(nodes: Iterable[ast.AST], state: str) -> Touched:
    """What is done to the keys of the parameter of this name."""
    found = Touched()
    changes: list[str] = []
    for node in nodes:
        if (key := key_of(node, state)) is not None:
            is_read = isinstance(node.ctx, ast.Load)  # type: ignore[attr-defined]  # it has one
            found.used.append(key) if is_read else found.assigned.add(key)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            found.assigned.update(keys_updated(node.value, state))
            changes.extend(key_changed(node.value, state))
    for key in changes:
        found.used.remove(key)  # to be changed is no use
    found.changed.update(changes)
    return found


def key_of(node: ast.AST, state: str) -> str | None:
    """The key of `state["key"]` or `state.key`."""
    if not isinstance(node, ast.Subscript | ast.Attribute):
        return None
    if not isinstance(node.value, ast.Name) or node.value.id != state:
        return None
    if isinstance(node, ast.Attribute):
        return node.attr
    key = node.slice.value if isinstance(node.slice, ast.Constant) else None
    return key if isinstance(key, str) else None


def key_changed(call: ast.Call, state: str) -> Iterator[str]:
    """The key of `state["key"].append(...)`."""
    if isinstance(call.func, ast.Attribute) and call.func.attr in CHANGES:
        key = key_of(call.func.value, state)
        if key is not None:
            yield key


def keys_updated(call: ast.Call, state: str) -> Iterator[str]:
    """The keys of `state.update({"key": ...})` or `state.update(key=...)`."""
    if key_of(call.func, state) != "update":
        return
    yield from (word.arg for word in call.keywords if word.arg)
    for given in call.args:
        for key in given.keys if isinstance(given, ast.Dict) else ():
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value
