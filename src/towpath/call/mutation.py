"""Finding state that a node changed in place and did not return.

Only under `debug=True`: it copies and compares the containers a node is
given, which costs time in proportion to the state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from towpath.errors import MutatedStateError
from towpath.plan import Plan
from towpath.step.isolate import isolate
from towpath.step.tasks import Task
from towpath.types import Command


class Watch:
    """Remembers what a node was given, to compare after it ran."""

    def __init__(self, plan: Plan, task: Task) -> None:
        self.plan = plan
        self.task = task
        self.before = isolate(self.given())

    def given(self) -> dict[str, Any]:
        given = self.task.input
        if isinstance(given, Mapping):
            return dict(given)
        return {k: getattr(given, k) for k in self.plan.keys if hasattr(given, k)}

    def check(self, output: Any) -> None:
        """Raise if a value was changed in place whose key was not returned.

        Raises:
            MutatedStateError: names the node and the key.
        """
        returned = written_keys(output)
        for key, value in self.given().items():
            if key in returned or key not in self.before:
                continue
            if isinstance(value, dict | list | set) and value != self.before[key]:
                raise MutatedStateError(
                    f"node `{self.task.name}` changed `{key}` in place and did "
                    "not return it",
                    hint=f"return {{'{key}': ...}}; what is not returned is lost",
                )


def written_keys(output: Any) -> set[Any]:
    parts = output if isinstance(output, list | tuple) else [output]
    keys: set[Any] = set()
    for part in parts:
        update = part.update if isinstance(part, Command) else part
        if isinstance(update, Mapping):
            keys.update(update)
    return keys
