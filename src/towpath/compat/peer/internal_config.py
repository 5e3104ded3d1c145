"""`langgraph._internal._config`: configs put together and changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from towpath.constants import CONF
from towpath.context import RunnableConfig, current
from towpath.pregel.config import merge
from towpath.semantics import default

__all__ = ("ensure_config", "merge_configs", "patch_config", "patch_configurable")


def merge_configs(*configs: RunnableConfig | None) -> RunnableConfig:
    """One config of several; the later ones win, tags and metadata add up."""
    return cast("RunnableConfig", dict(merge(*configs)))


def ensure_config(*configs: RunnableConfig | None) -> RunnableConfig:
    """A whole config: that of the running node, these, and what is missing."""
    task = current.get()
    around = None if task is None else task.config
    whole: dict[str, Any] = {
        "tags": [],
        "metadata": {},
        "callbacks": None,
        "recursion_limit": default().recursion_limit,
        "configurable": {},
    }
    for config in (around, *configs):
        given = config or {}
        whole.update({key: value for key, value in given.items() if value is not None})
    for key in ("tags", "metadata", CONF):
        whole[key] = whole[key].copy()
    return cast("RunnableConfig", whole)


def patch_config(
    config: RunnableConfig | None,
    *,
    callbacks: Any = None,
    recursion_limit: int | None = None,
    max_concurrency: int | None = None,
    run_name: str | None = None,
    configurable: Mapping[str, Any] | None = None,
) -> RunnableConfig:
    """A config with some keys changed; None leaves a key as it is."""
    patched: dict[str, Any] = dict(config or {})
    if callbacks is not None:
        # The name and the id of a run are those of its callbacks' run.
        patched["callbacks"] = callbacks
        patched.pop("run_name", None)
        patched.pop("run_id", None)
    changes = {
        "recursion_limit": recursion_limit,
        "max_concurrency": max_concurrency,
        "run_name": run_name,
    }
    patched.update({key: new for key, new in changes.items() if new is not None})
    if configurable is not None:
        patched[CONF] = {**patched.get(CONF, {}), **configurable}
    return cast("RunnableConfig", patched)


def patch_configurable(
    config: RunnableConfig | None, patch: Mapping[str, Any]
) -> RunnableConfig:
    """A config with entries of `configurable` changed."""
    return patch_config(config, configurable=patch)
