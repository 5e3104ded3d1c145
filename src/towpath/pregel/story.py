"""Reading what happened on a thread, as programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from towpath.constants import CONF
from towpath.errors import UnknownNamespaceError
from towpath.kernel.commands import Program
from towpath.pregel.states import PAGE, Place, history_page, next_page, place_of
from towpath.report.facts import mark_left
from towpath.report.moments import Budget, Moment, Teller


def read_story(
    graph: Any, config: Mapping[str, Any], budget: Budget | None, limit: int | None
) -> Program[dict[str, list[Moment]]]:
    """The moments of a thread and of its subgraphs, by namespace.

    Values are told as far as the budget goes; `limit` is how many checkpoints of a
    namespace are read, the newest first.
    """
    story: dict[str, list[Moment]] = {}
    left = [""]
    while left:
        ns = left.pop(0)
        with suppress(UnknownNamespaceError):  # of a subgraph that is gone
            place = place_of(graph, without_checkpoint(config, ns))
            story[ns] = yield from read_namespace(place, ns, budget, limit)
            inner = inner_namespaces(graph, config, story[ns])
            left.extend(one for one in inner if one not in story and one not in left)
    mark_left(story)
    return story


def inner_namespaces(
    graph: Any, config: Mapping[str, Any], moments: Sequence[Moment]
) -> dict[str, None]:
    """Where subgraphs that ran in these moments keep their state, once each.

    One that keeps it from run to run has one place for all of them.
    """
    found: dict[str, None] = {}
    for moment in moments:
        for task in moment.tasks:
            if task.ns:
                with suppress(UnknownNamespaceError):
                    place = place_of(graph, without_checkpoint(config, task.ns))
                    task.ns = place.request.ns
                found[task.ns] = None
    return found


def without_checkpoint(config: Mapping[str, Any], ns: str) -> dict[str, Any]:
    """The config of all of a thread's namespace."""
    conf = {
        key: value
        for key, value in (config.get(CONF) or {}).items()
        if key not in {"checkpoint_id", "checkpoint_map", "checkpoint_ns"}
    }
    return {**config, CONF: {**conf, "checkpoint_ns": ns} if ns else conf}


def read_namespace(
    place: Place, ns: str, budget: Budget | None, limit: int | None
) -> Program[list[Moment]]:
    """The moments of one namespace, oldest first; values are let go page by page."""
    teller, page = Teller(ns, budget), ()
    options, left = next_page(None, limit, page)
    while True:
        rows = yield from history_page(place, {}, options)
        for row in rows:
            teller.take(row)
        if len(rows) < PAGE:
            break
        options, left = next_page(None, left, rows)
        if left == 0:
            break
    return teller.told()
