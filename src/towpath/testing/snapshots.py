"""Runs and values as plain data that is the same in every run.

What comes out is made of dicts, lists, texts and numbers, so that any plugin
for snapshots, or `==`, can compare it, and `json.dumps` write it. Ids become
numbers in the order they appear in, and times `<time>`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from towpath.testing.colour import stream_of
from towpath.testing.normal import Placeholders, stream

__all__ = ("normal_form", "outline")

TIME: Final = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?"
)
PLACE: Final = re.compile(r" at 0x[0-9a-f]+")
PLAIN: Final = (str, list, bool, int, float, type(None))


class Plain(Placeholders):
    """Placeholders, and nothing left that JSON has no form for."""

    def text(self, text: str) -> str:
        return super().text(TIME.sub("<time>", text))

    def value(self, value: Any) -> Any:
        if isinstance(value, datetime | date):
            return "<time>"
        if isinstance(value, set | frozenset):
            return sorted((self.value(item) for item in value), key=repr)
        found = super().value(value)
        if isinstance(found, tuple):
            return list(found)
        if isinstance(found, dict):
            return {str(key): item for key, item in found.items()}
        if isinstance(found, PLAIN):
            return found
        if isinstance(found, UUID | timedelta | bytes):
            return self.text(str(found))
        return PLACE.sub("", self.text(repr(found)))


def normal_form(value: Any) -> Any:
    """Return plain data that stands for a value, ids and times taken out.

    Messages, dataclasses and models become dicts that tell their class.

    >>> normal_form({"at": "2024-05-01T10:00:00Z", "pair": (1, 2)})
    {'at': '<time>', 'pair': [1, 2]}
    """
    return Plain().value(value)


def outline(
    graph: Any,
    input: Any,
    config: Mapping[str, Any] | None = None,
    **options: Any,
) -> dict[str, list[Any]]:
    """Run a graph and return what happened, as plain data.

    That is, for the graph (`""`) and each subgraph by its path, what each node
    wrote and the state after each step, in an order that does not depend on
    timing, with what it asked at the end. `options` are those of `stream`;
    another `stream_mode` than `["updates", "values"]` is a list as well.

    Raises:
        Exception: what the run raised.
    """
    modes = {"stream_mode": ["updates", "values"], **options}
    chunks = stream_of(graph, input, config, subgraphs=True, **modes)
    # Numbers of ids are those of `stream`: what it leaves has none any more.
    return {
        "/".join(where): [
            {mode: normal_form(payload)} for run in runs for mode, payload in run
        ]
        for where, runs in stream(chunks).items()
    }
