"""Configs of callers: merged, checked, and turned into what a run needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from towpath.constants import CONF
from towpath.context import RunnableConfig
from towpath.errors import TowpathError, nearest
from towpath.given import VALUES

KEYS: Final = frozenset(RunnableConfig.__annotations__)
COUNTED: Final = "it counts supersteps, the one that takes the input included"


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
                # A lone text is one tag, not its letters.
                more = (value,) if isinstance(value, str) else value
                merged[key] = list(dict.fromkeys((*merged.get(key, ()), *more)))
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
    if not BARE.issuperset(config):
        check_parts(config)
    if part := config.get(CONF):
        check_place(part)


def check_parts(config: Mapping[Any, Any]) -> None:
    """Refuse what few configs have, where it is of the wrong kind."""
    if not KEYS.issuperset(config):
        check_keys(config)
    for key, look in LOOKS:
        value = config.get(key)
        if value is not None:
            look(value)


def check_keys(config: Mapping[Any, Any]) -> None:
    """Refuse a key that is none, or a slip of the pen.

    Keys of others' making may travel along.
    """
    for key in config:
        if not isinstance(key, str):
            raise NotAnOptionError(f"the keys of a config are text, not {key!r}")
        if key not in KEYS and (near := nearest(key, KEYS)):
            raise InvalidConfigError(f"a config has no key {key!r}", hint=near)


def check_place(configurable: Mapping[str, Any]) -> None:
    """Refuse what can name no checkpoint."""
    if not is_mapping(configurable):
        raise InvalidConfigError(f"config[{CONF!r}] is a dict, not {configurable!r}")
    for key in ("checkpoint_ns", "checkpoint_id"):
        named = configurable.get(key)
        if named is not None and not isinstance(named, str):
            raise InvalidConfigError(f"{key} is text, not {named!r}")


def check_metadata(metadata: Any) -> None:
    """Refuse metadata without names."""
    if not is_mapping(metadata):
        raise InvalidConfigError(f"config['metadata'] is a dict, not {metadata!r}")


def check_width(width: Any) -> None:
    """Refuse a `max_concurrency` that is no number of tasks."""
    if not is_count(width) or width < 1:
        kind = InvalidConfigError if is_count(width) else NotAnOptionError
        raise kind(f"max_concurrency is a number of tasks, at least 1, not {width!r}")


def check_tags(tags: Any) -> None:
    """Refuse tags that are no list of texts."""
    if not isinstance(tags, str | list | tuple | set | frozenset):
        raise NotAnOptionError(f"tags are a list of texts, not {tags!r}")


def check_callbacks(callbacks: Any) -> None:
    """Refuse callbacks that are neither handlers nor langchain's manager of them."""
    for handler in listed(callbacks):
        if isinstance(handler, VALUES):
            raise NotAnOptionError(
                f"callbacks are a list of handlers, not {callbacks!r}",
                hint="a handler is a BaseCallbackHandler of langchain_core",
            )


LOOKS: Final = (
    ("metadata", check_metadata),
    ("max_concurrency", check_width),
    ("tags", check_tags),
    ("callbacks", check_callbacks),
)
"""What is looked at of a config, and by whom."""
BARE: Final = frozenset({CONF, "recursion_limit", "run_name", "run_id"})
"""The keys that most configs have, of which one is looked at."""


def is_count(value: Any) -> bool:
    """Whether this is a whole number, which True is not meant to be."""
    return isinstance(value, int) and not isinstance(value, bool)


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
    return limit if type(limit) is int and limit > 0 else checked_limit(limit)


def checked_limit(limit: Any) -> int:
    """A limit that is not simply a positive number."""
    if isinstance(limit, float) and limit.is_integer():
        limit = int(limit)  # as it comes out of JSON
    if not is_count(limit):
        raise NotAnOptionError(
            f"recursion_limit is a whole number, not {limit!r}", hint=COUNTED
        )
    if limit < 1:
        raise InvalidConfigError(
            f"recursion_limit must be at least 1, not {limit!r}", hint=COUNTED
        )
    return int(limit)
