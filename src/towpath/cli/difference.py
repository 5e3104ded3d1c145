"""What changed between two states, key by key.

Of a list or a text that only grew, the new part is told; of a list that was changed
in between, what went and what came, and where; of a mapping, its keys one by one.
Works on what JSON knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

Kind = Literal["added", "removed", "changed", "grew", "spliced"]


@dataclass(frozen=True, slots=True)
class Change:
    """A key that is not as it was.

    `at` is where a list or text differs first, `old` and `new` the parts that do.
    """

    key: str
    kind: Kind
    old: Any = None
    new: Any = None
    at: int | None = None

    def fields(self) -> dict[str, Any]:
        """Return the change as JSON, without what does not apply to its kind."""
        unused = {"added": "old", "grew": "old", "removed": "new"}.get(self.kind)
        told = asdict(self)
        return {
            name: value
            for name, value in told.items()
            if name != unused and not (name == "at" and value is None)
        }


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    """List what changed, in the order of the newer state."""
    return list(mapping_changes(old, new, ""))


def mapping_changes(
    old: Mapping[str, Any], new: Mapping[str, Any], prefix: str
) -> Iterator[Change]:
    """Compare two mappings key by key."""
    for key in (*new, *(key for key in old if key not in new)):
        name = f"{prefix}{key}"
        if key not in old:
            yield Change(name, "added", new=new[key])
        elif key not in new:
            yield Change(name, "removed", old=old[key])
        else:
            yield from value_changes(name, old[key], new[key])


def value_changes(key: str, old: Any, new: Any) -> Iterator[Change]:
    """Compare two values of one key."""
    # 1 and True are equal to Python, and different to whoever reads a state.
    if old == new and type(old) is type(new):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        yield from mapping_changes(old, new, f"{key}.")
    elif isinstance(old, list) and isinstance(new, list):
        yield list_change(key, old, new)
    elif isinstance(old, str) and isinstance(new, str) and old and new.startswith(old):
        yield Change(key, "grew", new=new[len(old) :], at=len(old))
    else:
        yield Change(key, "changed", old, new)


def list_change(key: str, old: list[Any], new: list[Any]) -> Change:
    """Find the part of two lists that differs."""
    shorter = min(len(old), len(new))
    start = next((i for i in range(shorter) if old[i] != new[i]), shorter)
    rest = shorter - start
    tail = next((i for i in range(rest) if old[-1 - i] != new[-1 - i]), rest)
    went, came = old[start : len(old) - tail], new[start : len(new) - tail]
    if not went and not tail:
        return Change(key, "grew", new=came, at=start)
    return Change(key, "spliced", went, came, at=start)
