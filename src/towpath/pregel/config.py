"""Configs of callers: merged, checked, and turned into what a run needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from towpath.constants import CONF
from towpath.context import RunnableConfig
from towpath.errors import TowpathError, nearest

KEYS: Final = frozenset(RunnableConfig.__annotations__)


class InvalidConfigError(TowpathError, ValueError):
    """A config holds something that cannot be meant."""

    code = "TP-610"


class NotAnOptionError(InvalidConfigError, TypeError):
    """Something of the wrong kind was given for an option of a run."""


def merge(*configs: Mapping[str, Any] | None) -> dict[str, Any]:
    """Merge configs, later ones over earlier ones.

    Tags and callbacks are joined, metadata and configurable merged key by key;
    of anything else the last one given counts.
    """
    merged: dict[str, Any] = {}
    for config in configs:
        if not config:
            continue
        check(config)
        for key, value in config.items():
            if value is None:
                continue
            if key in ("metadata", CONF):
                merged[key] = {**merged.get(key, {}), **value}
            elif key == "tags":
                merged[key] = list(dict.fromkeys((*merged.get(key, ()), *value)))
            elif key == "callbacks" and merged.get(key):
                merged[key] = joined(merged[key], value)
            else:
                merged[key] = value
    return merged


def check(config: Any) -> None:
    """Refuse a config whose parts are of the wrong kind.

    Raises:
        InvalidConfigError: says which part, and what it should be (TP-610).
    """
    if not is_mapping(config):
        raise InvalidConfigError(
            f"a config is a dict, not {config!r}",
            hint="for example {'configurable': {'thread_id': '1'}}",
        )
    if not KEYS.issuperset(config):
        for key in config:
            # Keys of others' making may travel along; a slip of the pen may not.
            if key not in KEYS and (near := nearest(key, KEYS)):
                raise InvalidConfigError(f"a config has no key {key!r}", hint=near)
    for key in ("metadata", CONF):
        part = config.get(key)
        if part and not is_mapping(part):
            raise InvalidConfigError(f"config[{key!r}] is a dict, not {part!r}")
    width = config.get("max_concurrency")
    if width is not None and (not isinstance(width, int) or width < 1):
        raise InvalidConfigError(
            f"max_concurrency is a number of tasks, at least 1, not {width!r}"
        )
    ns = part.get("checkpoint_ns") if part else None
    if ns is not None and not isinstance(ns, str):
        raise InvalidConfigError(f"checkpoint_ns is text, not {ns!r}")


def is_mapping(value: Any) -> bool:
    """Whether this is a mapping; a dict nearly always, which is told at once."""
    return type(value) is dict or isinstance(value, Mapping)


def joined(first: Any, later: Any) -> Any:
    """Callbacks of two configs: lists of handlers, or langchain's managers of them.

    A manager knows which run it belongs to; of two, the later one does.
    """
    if hasattr(later, "add_handler"):
        base, more = later.copy(), getattr(first, "handlers", first)
    elif hasattr(first, "add_handler"):
        base, more = first.copy(), later
    else:
        known = listed(first)
        return [*known, *(handler for handler in listed(later) if handler not in known)]
    for handler in listed(more):
        base.add_handler(handler)
    return base


def listed(handlers: Any) -> list[Any]:
    """Several handlers, or a lone one, as a list."""
    return list(handlers) if isinstance(handlers, list | tuple) else [handlers]


def limit_of(config: Mapping[str, Any], default: int) -> int:
    """The number of supersteps a run may take.

    Raises:
        InvalidConfigError: it is not a positive number (TP-610).
    """
    if not config:
        return default
    limit = config.get("recursion_limit", default)
    if not isinstance(limit, int) or limit < 1:
        kind = InvalidConfigError if isinstance(limit, int) else NotAnOptionError
        raise kind(
            f"recursion_limit must be at least 1, not {limit!r}",
            hint="it counts supersteps, the one that takes the input included",
        )
    return limit
