"""Configs of callers: merged, checked, and turned into what a run needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from towpath.constants import CONF
from towpath.context import RunnableConfig
from towpath.errors import TowpathError

KEYS: Final = frozenset(RunnableConfig.__annotations__)


class InvalidConfigError(TowpathError, ValueError):
    """A config holds something that cannot be meant."""

    code = "TP-610"


def merge(*configs: Mapping[str, Any] | None) -> dict[str, Any]:
    """Merge configs, later ones over earlier ones.

    Tags are joined, metadata and configurable merged key by key; of anything
    else the last one given counts.
    """
    merged: dict[str, Any] = {}
    for config in configs:
        if not config:
            continue
        for key, value in config.items():
            if value is None:
                continue
            if key in ("metadata", CONF):
                merged[key] = {**merged.get(key, {}), **value}
            elif key == "tags":
                merged[key] = [*merged.get(key, ()), *value]
            else:
                merged[key] = value
    return merged


def limit_of(config: Mapping[str, Any], default: int) -> int:
    """The number of supersteps a run may take.

    Raises:
        InvalidConfigError: it is not a positive number (TP-610).
    """
    limit = config.get("recursion_limit", default)
    if not isinstance(limit, int) or limit < 1:
        raise InvalidConfigError(
            f"recursion_limit must be at least 1, not {limit!r}",
            hint="it counts supersteps, the one that takes the input included",
        )
    return limit
