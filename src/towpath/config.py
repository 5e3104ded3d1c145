"""Functions that give a node its config, store and stream writer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from towpath.constants import CONF, CONFIG_KEY_RUNTIME
from towpath.context import RunnableConfig, ambient

if TYPE_CHECKING:
    from towpath.store.base import BaseStore
    from towpath.types import StreamWriter

__all__ = (
    "CONF",
    "CONFIG_KEY_RUNTIME",
    "get_config",
    "get_store",
    "get_stream_writer",
)


def get_config() -> RunnableConfig:
    """Return the config of the running task.

    Raises:
        OutsideNodeError: no node is running here (TP-604).
    """
    return ambient("get_config").config


def get_store() -> BaseStore:
    """Return the store that the graph was compiled with, or None.

    Raises:
        OutsideNodeError: no node is running here (TP-604).
    """
    store: BaseStore = ambient("get_store").store
    return store


def get_stream_writer() -> StreamWriter:
    """Return a callable that sends its argument to the `custom` stream.

    Raises:
        OutsideNodeError: no node is running here (TP-604).
    """
    writer: StreamWriter = ambient("get_stream_writer").writer
    return writer
