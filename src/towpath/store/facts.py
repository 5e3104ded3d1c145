"""What an index knows of a value, so that a filter need not look at every item.

A fact stands for "this key has this text" or "this key has a number", and comes
with the number. Those of a value's own keys are kept beside the item, and a filter
that asks for a text, a number or a range of numbers names the facts of which an
item must have one. That only narrows down where to look: `fits` decides. So a fact
may be too much, as when two have one name, but none may be missing:

- numbers are kept as floats, which keeps their order, though not every difference;
- a text of digits is compared with numbers as one, so it has both facts;
- a value of another kind than these may be equal to anything, as a member of an
  enum is to its text, so its key has a fact that says so;
- of a value with many keys, or with keys that are no plain texts, only one fact is
  kept, which says nothing.

None needs no fact: a missing key counts as None, so facts cannot tell of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any, Final, NamedTuple

_FACTS_MAX: Final = 32
"""How many keys facts are kept of at most."""
_NUMBERS: Final = (bool, int, float)
_CONTAINERS: Final = (dict, list, tuple)
"""Kinds that are equal to no text and no number, and compare with none."""
_RANGES: Final = ("$eq", "$gt", "$gte", "$lt", "$lte")

Fact = tuple[int, float]
"""The name of a fact, and its number; that of texts is 0."""


class Wanted(NamedTuple):
    """The facts that will do for one part of a filter."""

    name: int
    low: float
    high: float
    anything: int
    unknown: int

    def holds(self, fact: Fact) -> bool:
        """Tell whether a fact is one of them."""
        name, number = fact
        if name == self.name:
            return self.low <= number <= self.high
        return name in (self.anything, self.unknown)


def facts_of(value: Mapping[str, Any]) -> set[Fact]:
    """Return the facts of a value."""
    if len(value) > _FACTS_MAX or not all(type(key) is str for key in value):
        return {(_UNKNOWN, 0.0)}
    return {fact for key, item in value.items() for fact in _facts(key, item)}


def _facts(key: str, value: Any) -> Iterator[Fact]:
    kind = type(value)
    if kind is str:
        yield _name(key, f"s{value}"), 0.0
    if kind is str or kind in _NUMBERS:
        number = _float(value)
        if number is not None:
            yield _name(key, "n"), number
    elif value is not None and kind not in _CONTAINERS:
        yield _name(key, "?"), 0.0


def facts_wanted(filter: Mapping[str, Any] | None) -> list[Wanted]:
    """Return what is wanted for each part of a filter that facts can tell of."""
    found = (_wanted(key, wanted) for key, wanted in (filter or {}).items())
    return [wanted for wanted in found if wanted is not None]


def _wanted(key: str, wanted: Any) -> Wanted | None:
    if type(key) is not str:
        return None
    parts = wanted if isinstance(wanted, Mapping) else {"$eq": wanted}
    others = _name(key, "?"), _UNKNOWN
    text = parts.get("$eq")
    if type(text) is str:
        return Wanted(_name(key, f"s{text}"), 0.0, 0.0, *others)
    low, high = -math.inf, math.inf
    for operator in _RANGES:
        operand = parts.get(operator)
        number = _float(operand) if type(operand) in _NUMBERS else None
        if number is None:
            continue
        if operator in ("$eq", "$gt", "$gte"):
            low = max(low, number)
        if operator in ("$eq", "$lt", "$lte"):
            high = min(high, number)
    if (low, high) == (-math.inf, math.inf):
        return None
    return Wanted(_name(key, "n"), low, high, *others)


def _float(value: Any) -> float | None:
    """Return a number, or a text of one, as a float; None if it is none."""
    try:
        number = float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except ValueError:
        return None
    # NaN is equal to nothing and in no range.
    return None if math.isnan(number) else number


def _name(key: str, what: str) -> int:
    text = f"{len(key)}:{key}{what}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), signed=True)


_UNKNOWN: Final = _name("", "?unknown")
