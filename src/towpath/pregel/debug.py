"""Small helpers around what `tasks`, `checkpoints` and `debug` streams show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from towpath.constants import CONF

__all__ = (
    "COLOR_MAPPING",
    "EXCLUDED_METADATA_KEYS",
    "get_bolded_text",
    "get_colored_text",
    "is_multiple_channel_write",
    "map_task_result_writes",
    "rm_pregel_keys",
)

EXCLUDED_METADATA_KEYS: Final = frozenset(
    {
        "checkpoint_id",
        "checkpoint_map",
        "checkpoint_ns",
        "langgraph_checkpoint_ns",
        "langgraph_node",
        "langgraph_path",
        "langgraph_step",
        "langgraph_triggers",
        "thread_id",
    }
)
"""What a checkpoint's metadata does not repeat of a config."""

COLOR_MAPPING: Final = {
    "black": "0;30",
    "red": "0;31",
    "green": "0;32",
    "yellow": "0;33",
    "blue": "0;34",
    "magenta": "0;35",
    "cyan": "0;36",
    "white": "0;37",
    "gray": "1;30",
}
SEVERAL: Final = "$writes"


def map_task_result_writes(writes: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """A task's writes by channel; several to one are marked as such."""
    found: dict[str, Any] = {}
    for channel, value in writes:
        if channel not in found:
            found[channel] = value
        elif is_multiple_channel_write(found[channel]):
            found[channel][SEVERAL].append(value)
        else:
            found[channel] = {SEVERAL: [found[channel], value]}
    return found


def is_multiple_channel_write(value: Any) -> bool:
    """Whether this stands for several writes to one channel."""
    return isinstance(value, dict) and isinstance(value.get(SEVERAL), list)


def rm_pregel_keys(config: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """What the caller put into a config's `configurable`."""
    if config is None:
        return None
    conf = config.get(CONF) or {}
    return {CONF: {k: v for k, v in conf.items() if not k.startswith("__pregel_")}}


def get_colored_text(text: str, color: str) -> str:
    """A text in a colour, for terminals."""
    return f"\033[1;3{COLOR_MAPPING[color]}m{text}\033[0m"


def get_bolded_text(text: str) -> str:
    """A text in bold, for terminals."""
    return f"\033[1m{text}\033[0m"
