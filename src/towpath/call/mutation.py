"""Finding state that a node changed in place and did not return.

A node gets copies of the containers of its state, so what it changes in them
and does not return is lost. `check_lengths` finds most such changes for next to
nothing, a container that grew or shrank, and warns; `check_assigned` does for keys
that were assigned by a node that returns nothing. `Watch` finds all of them, in any
depth, by comparing copies, which costs time in proportion to the state; that
is for `debug=True`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from towpath.channels.base import COPIED
from towpath.constants import MISSING, PULL
from towpath.errors import MutatedStateError
from towpath.plan import Plan
from towpath.step.isolate import isolate
from towpath.step.state import State
from towpath.step.tasks import Task
from towpath.types import Command
from towpath.warnings import TowpathWarning, warn_user

SIMPLE: Final = frozenset({bool, int, str})
"""What a node is given as it is stored, and compares without surprises."""


class Watch:
    """Remembers what a node was given, to compare after it ran."""

    def __init__(self, plan: Plan, task: Task) -> None:
        self.plan = plan
        self.task = task
        self.held = self.given()
        self.before = isolate(self.held)

    def given(self) -> dict[str, Any]:
        given = self.task.input
        if isinstance(given, Mapping):
            return dict(given)
        return {k: getattr(given, k) for k in self.plan.keys if hasattr(given, k)}

    def check(self, output: Any) -> None:
        """Raise if a value was changed in place, or assigned, and not returned.

        Raises:
            MutatedStateError: names the node and the key.
        """
        returned = written_keys(output)
        for key, value in self.given().items():
            if key not in returned and self.is_lost(key, value):
                raise mutated(self.task, key)

    def is_lost(self, key: str, value: Any) -> bool:
        if isinstance(value, dict | list | set) and key in self.before:
            return bool(value != self.before[key])
        is_state = self.task.path[0] == PULL and key in self.plan.keys
        return is_state and value is not self.held.get(key)


def check_lengths(state: State, task: Task, output: Any) -> None:
    """Warn if a container of the state was made longer or shorter and not returned."""
    given, returned = task.input, None
    if type(given) is not dict or task.spec.action is None:
        return
    for key in state.containers:
        value: Any = given.get(key)
        if type(value) in COPIED and len(value) != len(state.values[key]):
            returned = written_keys(output) if returned is None else returned
            if key not in returned:
                warn_user(str(mutated(task, key)), TowpathWarning)


def check_assigned(plan: Plan, state: State, task: Task) -> None:
    """Warn if a node that returned nothing gave a key of its state another value.

    Simple values of dicts only: the rest may be read otherwise than it is stored.
    """
    given = task.input
    if type(given) is not dict or task.spec.action is None:
        return
    for key in plan.keys:
        value, known = given.get(key), state.values.get(key, MISSING)
        if type(value) in SIMPLE and (type(value) is not type(known) or value != known):
            warn_user(str(mutated(task, key)), TowpathWarning)


def mutated(task: Task, key: str) -> MutatedStateError:
    return MutatedStateError(
        f"node `{task.name}` changed `{key}` in place and did not return it",
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
