"""Reserved names, and the sentinel for "no value here".

`START` and `END` are what users write. The rest are names that appear in
checkpoints, configs and streams, spelled as the peer spells them, because
stored threads and other packages hold them. Names that the peer withdrew are
still importable, with a deprecation warning.
"""

from __future__ import annotations

import enum
from typing import Any, Final

__all__ = (
    "CONF",
    "CONFIG_KEY_CHECKPOINTER",
    "END",
    "MISSING",
    "START",
    "TAG_HIDDEN",
    "TAG_NOSTREAM",
    "TASKS",
    "Missing",
)


class Missing(enum.Enum):
    """The type of `MISSING`; an enum, so that `is` narrows it for checkers."""

    MISSING = "MISSING"

    def __repr__(self) -> str:
        return "MISSING"

    def __copy__(self) -> Missing:
        return self

    def __deepcopy__(self, memo: object) -> Missing:
        return self

    def __reduce__(self) -> str:
        return "MISSING"


MISSING: Final = Missing.MISSING
"""No value: an empty channel, an argument not given. `None` is a value."""

START: Final = "__start__"
"""The first, virtual node of a graph."""
END: Final = "__end__"
"""The last, virtual node of a graph."""
TAG_NOSTREAM: Final = "nostream"
"""A tag that keeps a model's tokens out of the `messages` stream."""
TAG_HIDDEN: Final = "langsmith:hidden"
"""A tag that hides a node or edge from streams and traces."""

# Channels, and the channels of pending writes.
TASKS: Final = "__pregel_tasks"
INPUT: Final = "__input__"
INTERRUPT: Final = "__interrupt__"
RESUME: Final = "__resume__"
ERROR: Final = "__error__"
ERROR_SOURCE_NODE: Final = "__error_source_node__"
SCHEDULED: Final = "__scheduled__"
NO_WRITES: Final = "__no_writes__"
RETURN: Final = "__return__"
PREVIOUS: Final = "__previous__"
ROOT: Final = "__root__"
OVERWRITE: Final = "__overwrite__"
# The channel that says by which graph a checkpoint was made.
GRAPH: Final = "__graph__"
# The channel that says what the nodes of a nested graph wrote.
TOLD: Final = "__told__"
# What the name of a node's error handler begins with.
HANDLER: Final = "__error_handler__"
# The key of a checkpoint's metadata under which the ids of tasks are kept that
# an edit carried over from the checkpoint before.
CARRIED: Final = "carried"
SNAPSHOT_BUMPS: Final = "__snapshot_bumps__"

# Task paths and namespaces.
PUSH: Final = "__pregel_push"
PULL: Final = "__pregel_pull"
NS_SEP: Final = "|"
NS_END: Final = ":"
NULL_TASK_ID: Final = "00000000-0000-0000-0000-000000000000"

# Keys of `config["configurable"]`.
CONF: Final = "configurable"
CONFIG_KEY_CACHE: Final = "__pregel_cache"
CONFIG_KEY_CALL: Final = "__pregel_call"
CONFIG_KEY_CHECKPOINTER: Final = "__pregel_checkpointer"
CONFIG_KEY_CHECKPOINT_ID: Final = "checkpoint_id"
CONFIG_KEY_CHECKPOINT_MAP: Final = "checkpoint_map"
CONFIG_KEY_CHECKPOINT_NS: Final = "checkpoint_ns"
CONFIG_KEY_DURABILITY: Final = "__pregel_durability"
CONFIG_KEY_READ: Final = "__pregel_read"
CONFIG_KEY_READ_STATE: Final = "__pregel_read_state"
CONFIG_KEY_REPLAY_STATE: Final = "__pregel_replay_state"
CONFIG_KEY_RESUMING: Final = "__pregel_resuming"
CONFIG_KEY_RESUME_MAP: Final = "__pregel_resume_map"
CONFIG_KEY_RUNNER_SUBMIT: Final = "__pregel_runner_submit"
CONFIG_KEY_RUNTIME: Final = "__pregel_runtime"
CONFIG_KEY_SCRATCHPAD: Final = "__pregel_scratchpad"
CONFIG_KEY_SEND: Final = "__pregel_send"
CONFIG_KEY_STREAM: Final = "__pregel_stream"
CONFIG_KEY_STRICT_RESUME: Final = "__pregel_strict_resume"
CONFIG_KEY_TASK_ID: Final = "__pregel_task_id"
CONFIG_KEY_THREAD_ID: Final = "thread_id"

# Names the engine does not use, kept for programs that import them.
WITHDRAWN: Final[dict[str, object]] = {
    "CACHE_NS_WRITES": "__pregel_ns_writes",
    "CONFIG_KEY_NODE_ERROR": "__pregel_node_error",
    "CONFIG_KEY_NODE_FINISHED": "__pregel_node_finished",
    "CONFIG_KEY_STREAM_MESSAGES_V2": "__pregel_stream_messages_v2",
    "CONFIG_KEY_TIMED_ATTEMPT_OBSERVER": "__pregel_timed_attempt_observer",
}
# These moved to a module above this one, so they are looked up by name.
_MOVED: Final = {"Send": "types", "Interrupt": "types"}

RESERVED: Final = frozenset(
    {
        CONF,
        CONFIG_KEY_CHECKPOINTER,
        CONFIG_KEY_CHECKPOINT_ID,
        CONFIG_KEY_CHECKPOINT_MAP,
        CONFIG_KEY_CHECKPOINT_NS,
        CONFIG_KEY_READ,
        CONFIG_KEY_REPLAY_STATE,
        CONFIG_KEY_RESUME_MAP,
        CONFIG_KEY_RESUMING,
        CONFIG_KEY_SEND,
        CONFIG_KEY_STREAM,
        CONFIG_KEY_STRICT_RESUME,
        CONFIG_KEY_TASK_ID,
        ERROR,
        ERROR_SOURCE_NODE,
        INPUT,
        INTERRUPT,
        NO_WRITES,
        NS_END,
        NS_SEP,
        PULL,
        PUSH,
        RESUME,
        SNAPSHOT_BUMPS,
        TAG_HIDDEN,
        "__pregel_stream_messages_v2",
        "__pregel_timed_attempt_observer",
    }
)
"""Names that a node or a state key may not have."""


def __getattr__(name: str) -> Any:
    if name in WITHDRAWN:
        _warn(f"Importing {name} from towpath.constants is deprecated.")
        return WITHDRAWN[name]
    if name in _MOVED:
        from importlib import import_module

        module = f"towpath.{_MOVED[name]}"
        _warn(
            f"Importing {name} from towpath.constants is deprecated. "
            f"Please use 'from {module} import {name}' instead."
        )
        return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _warn(message: str) -> None:
    import warnings

    from towpath.warnings import LangGraphDeprecatedSinceV10

    warnings.warn(message, LangGraphDeprecatedSinceV10, stacklevel=3)
