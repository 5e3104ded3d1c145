"""`langgraph.utils.config`: the config of the running node, and its parts."""

from __future__ import annotations

from towpath.compat.peer.internal_config import ensure_config, patch_configurable
from towpath.config import get_config, get_store

__all__ = ("ensure_config", "get_config", "get_store", "patch_configurable")
