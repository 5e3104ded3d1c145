"""What the nodes of a nested graph wrote, to be told to the graph around it.

A graph that is a node shares keys with the graph around it. For a key whose
reducer would count what the nested graph was given a second time, its result is
what was written to the key, and not its value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from towpath.channels.overwrite import overwritten
from towpath.constants import MISSING, START
from towpath.plan import Plan
from towpath.step.tasks import Task
from towpath.types import Overwrite


class Written:
    """The writes to keys that sum up, in order, and the names of the others.

    An entry is (key, write) or (key,). It is kept as a list that only grows, so
    that a checkpoint stores what is new.
    """

    __slots__ = ("entries", "others")

    def __init__(self, entries: Iterable[Sequence[Any]] = ()) -> None:
        self.entries = [tuple(entry) for entry in entries]
        self.others = {entry[0] for entry in self.entries if len(entry) == 1}

    def note(self, plan: Plan, tasks: Sequence[Task]) -> bool:
        """Take in the writes of a superstep; whether there was anything new."""
        known = len(self.entries)
        for task in tasks:
            if task.name == START:  # it passes on what the graph was given
                continue
            for key, value in task.writes:
                if key in plan.sums:
                    self.entries.append((key, value))
                elif key in plan.key_set and key not in self.others:
                    self.others.add(key)
                    self.entries.append((key,))
        return len(self.entries) > known

    def to(self, key: str) -> list[Any] | None:
        """The writes to a key; None if it was written and does not sum up."""
        if key in self.others:
            return None
        return [entry[1] for entry in self.entries if entry[0] == key]


class Result(dict[str, Any]):
    """The output of a graph that is a node, with what was written in it."""

    __slots__ = ("written",)

    @classmethod
    def of(cls, output: Any, written: Written) -> Any:
        """The output with what was written; itself where it is no dict of keys."""
        if not isinstance(output, dict):
            return output
        result = cls(output)
        result.written = written
        return result

    written: Written

    def updates(self, plan: Plan) -> list[tuple[str, Any]]:
        """What it writes to the state of the graph around it."""
        updates: list[tuple[str, Any]] = []
        for key, value in self.items():
            writes = self.written.to(key) if key in plan.sums else None
            if writes is None:
                updates.append((key, value))
            elif any(overwritten(write) is not MISSING for write in writes):
                updates.append((key, Overwrite(value)))
            elif key in plan.adding and {*map(type, writes)} == {list}:
                updates.append((key, [part for write in writes for part in write]))
            else:
                updates.extend((key, write) for write in writes)
        return updates
