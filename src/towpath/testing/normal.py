"""What two libraries must agree on, with everything accidental taken out.

Ids, clocks and the order in which parallel tasks happen to finish differ from
run to run. Ids become placeholders in order of first appearance, so that who
refers to whom is still compared; what tasks of one step emit is sorted.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from towpath import errors

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
INTERRUPT_ID = re.compile(r"[0-9a-f]{32}")
INTERNAL = ("__pregel", "counters_since_delta_snapshot")
CLOCKS = {"timestamp", "created_at"}
ERRORS = (
    "GraphRecursionError",
    "InvalidUpdateError",
    "EmptyInputError",
    "GraphInterrupt",
    "ParentCommand",
    "ValidationError",
)
ERROR_TEXT = re.compile(r"^(\w+)\(.*", re.DOTALL)

Chunk = tuple[tuple[str, ...], str, Any]


@dataclass(frozen=True)
class Hidden:
    """What is not compared."""

    states: Collection[str] = ()
    """Nodes whose tasks are compared without their `state`."""
    configs: Collection[str] = ()
    """Nodes whose tasks are compared without it where it is a config."""
    parents: bool = False
    """Whether streamed checkpoints are compared without their parents."""

    def without_parent(self, payload: Any) -> Any:
        """Take the parent out of a streamed checkpoint."""
        if not self.parents or not isinstance(payload, dict):
            return payload
        if payload.get("type") == "checkpoint":
            return {**payload, "payload": self.without_parent(payload["payload"])}
        return {**payload, "parent_config": None} if "metadata" in payload else payload

    def without_state(self, task: Mapping[Any, Any]) -> Mapping[Any, Any]:
        """Take the `state` out of a task that is to be compared without."""
        state, name = task.get("state"), task.get("name")
        if state is None or not isinstance(name, str):
            return task
        is_config = isinstance(state, Mapping) and "configurable" in state
        if name in self.states or (is_config and name in self.configs):
            return {**task, "state": None}
        return task


class Placeholders:
    """Replaces ids by numbers in order of first appearance."""

    def __init__(self, hidden: Hidden | None = None) -> None:
        self._hidden = hidden or Hidden()
        self._numbers: dict[str, str] = {}

    def text(self, text: str) -> str:
        """Replace every id inside a text, and the wording of a library's error."""
        text = ERROR_TEXT.sub(_without_wording, text)
        return INTERRUPT_ID.sub("<interrupt>", UUID.sub(self._number, text))

    def _number(self, match: re.Match[str]) -> str:
        return self._numbers.setdefault(match[0], f"#{len(self._numbers)}")

    def value(self, value: Any) -> Any:
        """Return plain data that stands for `value`."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            value = _without_handler_id(self._hidden.without_state(value))
            return {
                self.value(key): "<time>" if key in CLOCKS else self.value(item)
                for key, item in sorted(value.items(), key=lambda pair: str(pair[0]))
                if not str(key).startswith(INTERNAL)
            }
        if isinstance(value, BaseException):
            return error(value)
        if isinstance(value, tuple) and hasattr(value, "_asdict"):
            return {"is": type(value).__name__, **self.value(value._asdict())}
        if isinstance(value, list | tuple):
            return type(value)(self.value(item) for item in value)
        return self._object(value)

    def _object(self, value: Any) -> Any:
        if is_dataclass(value) and not isinstance(value, type):
            members = {f.name: getattr(value, f.name) for f in fields(value)}
        elif hasattr(value, "model_dump"):
            members = dict(value)
        elif type(value).__name__ == "Send":
            members = {"node": value.node, "arg": value.arg}
        else:
            return value
        return {"is": type(value).__name__, **self.value(members)}


def _without_handler_id(task: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Take the id out of an error handler's task, which is told without a start."""
    name = task.get("name")
    if isinstance(name, str) and name.startswith("__error_handler__"):
        return {**task, "id": None}
    return task


def error(raised: BaseException) -> tuple[str, ...]:
    """Name an error: the library's by its public type, a node's with its text."""
    public = _public_name(type(raised))
    if public is not None:
        return ("raises", public)
    return ("raises", type(raised).__name__, str(raised))


def _public_name(kind: type) -> str | None:
    """Return the name under which users know an error of the library's own."""
    kinds = [each.__name__ for each in kind.__mro__]
    return next((public for public in ERRORS if public in kinds), None)


def _without_wording(match: re.Match[str]) -> str:
    """Replace the repr of a library's error by its public name."""
    name = match[1]
    public = name if name in ERRORS else None
    kind = getattr(errors, name, None)
    if isinstance(kind, type):
        public = _public_name(kind)
    return match[0] if public is None else f"{public}(...)"


def place(namespace: tuple[str, ...]) -> tuple[str, ...]:
    """Name a namespace without its ids."""
    return tuple(part.split(":")[0] for part in namespace)


def stream(
    chunks: Iterable[Chunk], hidden: Hidden | None = None
) -> dict[tuple[str, ...], list[Any]]:
    """Group chunks by namespace, each in an order that does not depend on timing."""
    hidden = hidden or Hidden()

    def shown(mode: str, payload: Any) -> Any:
        told = mode in {"checkpoints", "debug"}
        return hidden.without_parent(payload) if told else payload

    runs: dict[tuple[str, ...], list[tuple[str, Any]]] = defaultdict(list)
    for namespace, mode, payload in chunks:
        runs[namespace].append((mode, payload))
    found: dict[tuple[str, ...], list[Any]] = defaultdict(list)
    for namespace, run in runs.items():
        ids = Placeholders(hidden)
        found[place(namespace)].append(
            _order([(mode, ids.value(shown(mode, payload))) for mode, payload in run])
        )
    return {where: sorted(runs, key=repr) for where, runs in sorted(found.items())}


def _order(run: list[tuple[str, Any]]) -> list[Any]:
    ordered: list[Any] = []
    starts: list[Any] = []
    others: list[Any] = []
    for chunk in run:
        if _is_boundary(*chunk):
            ordered += [*starts, *_settle(starts, others), chunk]
            starts, others = [], []
        else:
            (starts if _is_start(*chunk) else others).append(chunk)
    return [*ordered, *starts, *_settle(starts, others)]


def _settle(starts: list[Any], others: list[Any]) -> list[Any]:
    modes = {mode for mode, _ in starts}
    alone = bool(starts) and len(starts) == len(modes)
    return others if alone else sorted(others, key=repr)


def _is_boundary(mode: str, payload: Any) -> bool:
    if mode == "values":
        return not (isinstance(payload, dict) and "__interrupt__" in payload)
    return mode == "checkpoints" or (
        mode == "debug" and payload["type"] == "checkpoint"
    )


def _is_start(mode: str, payload: Any) -> bool:
    if mode == "debug":
        return bool(payload["type"] == "task")
    return mode == "tasks" and "input" in payload
