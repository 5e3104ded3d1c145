"""What changed between two states, by key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from towpath.report.values import line, shown

Kind = Literal["new", "gone", "changed", "grown"]
ITEMS: Final = 6
KEYS: Final = 40
LINE: Final = 240
"""How long a value is in the line of its change."""
ABSENT: Final = object()


@dataclass(slots=True)
class Change:
    """One key: lines that begin with "+", "-" or a blank, and the new value."""

    key: str
    kind: Kind
    lines: list[str]
    after: str = ""

    def size(self) -> int:
        return len(self.after) + sum(map(len, self.lines))


def changes(before: Any, after: Any, most: int) -> list[Change]:
    """The keys that differ, their new values in at most so many characters."""
    old, new = keyed(before), keyed(after)
    found: list[Change] = []
    for key in dict.fromkeys((*old, *new)):
        if len(found) > KEYS:
            found[-1] = Change("…", "changed", ["  and more keys"])
            break
        was, now = old.get(key, ABSENT), new.get(key, ABSENT)
        if not same(was, now):
            found.append(change(str(key), was, now))
            if now is not ABSENT and most > 0:
                whole = shown(now, min(most, 8000))
                # What the line has in full need not be said twice.
                found[-1].after = whole if len(whole) > LINE else ""
                most -= len(found[-1].after)
    return found


def keyed(state: Any) -> Mapping[Any, Any]:
    """A state by key; one without keys is a value by itself."""
    if isinstance(state, Mapping):
        return state
    return {} if state is None else {"state": state}


def same(left: Any, right: Any) -> bool:
    """Whether two values are equal, as far as they can tell."""
    if left is right:
        return True
    try:
        return type(left) is type(right) and bool(left == right)
    except Exception:
        # Arrays, for one, have no single answer.
        return False


def change(key: str, was: Any, now: Any) -> Change:
    if now is ABSENT:
        return Change(key, "gone", [f"- {line(was, LINE)}"])
    if was is ABSENT:
        return Change(key, "new", [f"+ {line(now, LINE)}"])
    if isinstance(was, list) and isinstance(now, list):
        return list_change(key, was, now)
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        return Change(key, "changed", some(mapping_lines(was, now)))
    return Change(key, "changed", [f"- {line(was, LINE)}", f"+ {line(now, LINE)}"])


def list_change(key: str, was: list[Any], now: list[Any]) -> Change:
    grown = len(now) > len(was) and same(now[: len(was)], was)
    if grown:
        added = [f"+ {line(item, LINE)}" for item in now[len(was) :][: ITEMS + 1]]
        lines = some(added, len(now) - len(was))
        return Change(key, "grown", [f"  after {len(was)} items", *lines])
    pairs = zip(was, now, strict=False)
    first = next((i for i, (a, b) in enumerate(pairs) if not same(a, b)), None)
    if first is None:
        return Change(key, "changed", [f"- {len(was)} items", f"+ {len(now)} items"])
    lines = [f"  at {first}, of {len(was)} items, now {len(now)}"]
    lines.append(f"- {line(was[first], LINE)}")
    lines.append(f"+ {line(now[first], LINE)}")
    return Change(key, "changed", lines)


def mapping_lines(was: Mapping[Any, Any], now: Mapping[Any, Any]) -> list[str]:
    lines = []
    for key in dict.fromkeys((*was, *now)):
        old, new = was.get(key, ABSENT), now.get(key, ABSENT)
        if same(old, new):
            continue
        if old is not ABSENT:
            lines.append(f"- {key}: {line(old, LINE)}")
        if new is not ABSENT:
            lines.append(f"+ {key}: {line(new, LINE)}")
    return lines


def some(lines: list[str], of: int | None = None) -> list[str]:
    """The first few lines, and how many there are besides."""
    left = (len(lines) if of is None else of) - ITEMS
    return lines[:ITEMS] + ([f"  … and {left} more"] if left > 0 else [])
