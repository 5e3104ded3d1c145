"""A node that does what a script tells it to.

>>> from towpath.testing import scripted
>>> node = scripted({"text": "draft"}, ConnectionError("gone"))
>>> node({"text": ""})
{'text': 'draft'}
>>> node.calls
[{'text': ''}]
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from threading import Lock
from typing import Any

from towpath.call.scope import TaskContext
from towpath.context import current

__all__ = ("ScriptOverError", "Scripted", "scripted")


class ScriptOverError(Exception):
    """What is scripted was called once more than its script has lines."""


class Scripted:
    """A node that answers with the lines of its script, see `scripted`."""

    def __init__(self, lines: tuple[Any, ...], name: str) -> None:
        self.__name__ = name
        self.lines = lines
        self.calls: list[Any] = []
        """What it was called with, in order."""
        self._turns: dict[Any, int] = {}
        self._lock = Lock()

    def __call__(self, state: Any) -> Any:
        """Say the line whose turn it is."""
        with self._lock:
            self.calls.append(state)
            key = attempt_here() or ("call", len(self.calls))
            turn = self._turns.setdefault(key, len(self._turns))
        if turn >= len(self.lines):
            raise ScriptOverError(
                f"`{self.__name__}` was called for turn {turn + 1}, and its script "
                f"has {len(self.lines)}"
            )
        line = self.lines[turn]
        if isinstance(line, BaseException):
            raise line
        return line(state) if callable(line) else deepcopy(line)

    def rewind(self) -> None:
        """Begin the script anew, and forget the calls."""
        with self._lock:
            self.calls.clear()
            self._turns.clear()


def scripted(*lines: Any, name: str = "scripted") -> Scripted:
    """Make a node that does these things, one in each turn.

    A line is the update that the node returns, an exception that it raises, or
    a function of the state. An attempt that runs again, because the process
    died before its result was stored, has the same turn again.

    Raises:
        ScriptOverError: when called once more than there are lines.
    """
    return Scripted(lines, name)


def attempt_here() -> tuple[str, int] | None:
    """What names the attempt of a task that runs here, in every process."""
    context = current.get()
    if not isinstance(context, TaskContext):
        return None
    return context.task.id, context.task.attempt


def scripted_nodes(graph: Any) -> Iterator[Scripted]:
    """The scripted nodes of a graph and of its subgraphs."""
    graphs = [graph, *(inner for _, inner in graph.get_subgraphs(recurse=True))]
    for each in graphs:
        for spec in each.nodes.values():
            target = None if spec.action is None else spec.action.target
            if isinstance(target, Scripted):
                yield target
