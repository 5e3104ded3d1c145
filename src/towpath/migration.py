"""`Migration`: how a thread of one version of a graph becomes one of another.

A thread may wait for days, and the graph that it goes on in may not be the one
that it began in. The idea, and that a thread is brought up step by step, is that
of the migrations of database schemas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from towpath.errors import InvalidGraphError

__all__ = ("Migration", "Version", "lineage", "path_from", "version_text")

Version = str | int | None


def version_text(version: Version) -> str | None:
    """A version as it is stored: 1 and "1" are the same."""
    return None if version is None else str(version)


@dataclass(frozen=True, slots=True)
class Migration:
    """Brings threads from version `old` of a graph to version `new`.

    `keys` and `nodes` map old names to new ones: values, pending tasks, sends,
    joins and what finished tasks of a paused step have written follow. Then
    `state` takes the values by key, as a dict of its own, and returns those of
    the new version: a key that it leaves out is gone. `old` None stands for
    threads that were made before the graph had a version.

    >>> Migration("1", "2", keys={"msgs": "messages"}).new
    '2'
    """

    old: Version
    new: Version
    state: Callable[[dict[str, Any]], Mapping[str, Any]] | None = None
    keys: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    nodes: Mapping[str, str] = field(default_factory=dict, kw_only=True)


def lineage(
    version: Version, migrations: Iterable[Migration]
) -> dict[str | None, Migration]:
    """The migrations by the version they start from.

    Raises:
        InvalidGraphError: two start from one version, or one does not lead to
            the graph's own (TP-101).
    """
    found: dict[str | None, Migration] = {}
    for migration in migrations:
        old = version_text(migration.old)
        if old in found:
            raise InvalidGraphError(f"two migrations start from version {old!r}")
        found[old] = migration
    for old in found:
        if path_from(old, version_text(version), found) is None:
            raise InvalidGraphError(
                f"the migration from version {old!r} does not lead to {version!r}, "
                "the graph's own",
                hint="StateGraph(..., version='2', migrations=[Migration('1', '2')])",
            )
    return found


def path_from(
    old: str | None, new: str | None, known: Mapping[str | None, Migration]
) -> list[Migration] | None:
    """The migrations from one version to another, in order; None: no way."""
    path: list[Migration] = []
    at = old
    while at != new or not path:
        step = known.get(at)
        if step is None or len(path) == len(known):
            return None
        path.append(step)
        at = version_text(step.new)
    return path
