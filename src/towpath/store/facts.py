"""What an index knows of a value, so that a filter need not look at every item.

A fact is a number that stands for "this key has this value". Those of a value's
own keys are kept beside the item, and a filter for equality names the facts of
which an item must have one. That only narrows down where to look: `fits` decides.
So a fact may be too much, as when two have one number, but none may be missing:

- numbers that Python holds for equal have one fact, as they have one hash, which
  for numbers is the same in every process;
- a value of another kind than those below may be equal to anything, as a member
  of an enum is to its text, so its key has the fact `_ANYTHING`;
- of a value with many keys, or with keys that are no plain texts, only one fact is
  kept, which says nothing.

None needs no fact: a missing key counts as None, so a filter for it finds nothing
by facts.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final

_FACTS_MAX: Final = 32
"""How many facts an item has at most."""
_ANYTHING: Final = "?"


def facts_of(value: Mapping[str, Any]) -> list[int]:
    """Return the facts of a value."""
    if len(value) > _FACTS_MAX or not all(type(key) is str for key in value):
        return [_UNKNOWN]
    return [
        _number(key, what)
        for key, item in value.items()
        if (what := _what(item)) is not None
    ]


def facts_wanted(filter: Mapping[str, Any] | None) -> list[tuple[int, ...]]:
    """Return, for each part of a filter that facts can tell of, those that will do."""
    return [
        (_number(key, what), _number(key, _ANYTHING), _UNKNOWN)
        for key, wanted in (filter or {}).items()
        if type(key) is str
        and (what := _what(_operand(wanted))) is not None
        and what != _ANYTHING
    ]


def _operand(wanted: Any) -> Any:
    """Return what a value has to be equal to, None where it is not that simple."""
    if isinstance(wanted, Mapping):
        return wanted.get("$eq")
    return wanted


def _what(value: Any) -> str | None:
    """Say what a value is, in a text that equal values share."""
    kind = type(value)
    if kind is str:
        return f"s{value}"
    if kind in (bool, int, float):
        return f"n{hash(value)}"
    # Containers are equal to no text and no number.
    return None if value is None or kind in (dict, list, tuple) else _ANYTHING


def _number(key: str, what: str) -> int:
    text = f"{len(key)}:{key}{what}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), signed=True)


_UNKNOWN: Final = _number("", _ANYTHING)
